"""Stop advice: kappa against scikit-learn, and the criterion on sequences of known behaviour."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from gpal.active.campaign.stop import cohen_kappa, stop_advice


@pytest.mark.parametrize("flip", [0.0, 0.02, 0.3, 1.0])
def test_kappa(flip):
    rng = np.random.default_rng(0)
    a = rng.choice(["bll", "fsrq", "psr"], 500, p=[0.6, 0.3, 0.1])
    b = np.where(rng.random(500) < flip, rng.permutation(a), a)
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))


def test_kappa_of_one_class():
    same = np.array(["psr"] * 5)
    assert cohen_kappa(same, same) == 1.0


def models(flips, step=20, n=1000):
    """A sequence of predictions, each with `flips` sources changed from the one before."""
    rng = np.random.default_rng(1)
    predicted = rng.integers(2, size=n)
    sequence = [(100, predicted)]
    for k, flip in enumerate(flips, 1):
        predicted = predicted.copy()
        predicted[rng.choice(n, flip, replace=False)] ^= 1
        sequence.append((100 + step * k, predicted))
    return sequence


def test_criterion():
    assert stop_advice(models([])).stop is None
    assert stop_advice(models([1, 1])).stop is None
    assert stop_advice(models([100, 1, 1, 1])).stop is True
    assert stop_advice(models([1, 1, 1, 30])).stop is False
    advice = stop_advice(models([4, 4, 4]))
    assert np.allclose(advice.kappas, 1 - 2 * 0.004, atol=1e-4) and advice.stop
    assert advice.labels == (120, 140, 160)
    assert not stop_advice(models([6, 6, 6])).stop


def test_models_few_labels_apart_do_not_count():
    """Every label flips one source: models one label apart agree, 20 apart do not."""
    sequence = models([1] * 100, step=1, n=200)
    advice = stop_advice(sequence)
    assert advice.stop is False and len(advice.kappas) == 5
    assert advice.labels == (120, 140, 160, 180, 200)


def test_the_newest_model_speaks_also_after_labels_were_taken_back():
    stable = models([0, 0, 0])
    assert stop_advice(stable).stop is True
    advice = stop_advice([*stable, (159, 1 - stable[0][1])])
    assert advice.labels == (120, 159) and advice.kappas[1] < 0
    assert stop_advice([*stable, (110, stable[0][1])]).labels == ()


def test_of_models_with_the_same_labels_the_last_counts():
    first, second = np.zeros(50, int), np.arange(50) % 2
    assert stop_advice([(20, first), (40, first), (40, second)]).kappas == (0.0,)
    assert stop_advice([(20, first), (40, second), (40, first)]).kappas == (1.0,)


def test_advice_in_words():
    assert "too early" in str(stop_advice([]))
    assert "stabilised" in str(stop_advice(models([1, 1, 1])))
    assert "go on" in str(stop_advice(models([50, 50, 50])))
