"""Numbers of sources of a class: against enumeration, SciPy's binomial, and simulated skies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from gpal.errors import InputError
from gpal.metrics import class_counts


def enumerated(P):
    """(C, n + 1) distribution of the counts over all Cⁿ ways to give n sources a class."""
    samples, n, C = P.shape
    found = np.zeros((C, n + 1))
    for sample in P:
        for classes in product(range(C), repeat=n):
            weight = np.prod([sample[i, c] for i, c in enumerate(classes)])
            for c in range(C):
                found[c, classes.count(c)] += weight / samples
    return found


@pytest.mark.parametrize("level", [0.5, 0.68, 0.9])
def test_against_every_way_to_give_classes(level):
    P = np.random.default_rng(3).dirichlet([0.5, 1.0, 2.0], size=(4, 5))
    found, truth = class_counts(P, level), enumerated(P)
    k = np.arange(6)
    np.testing.assert_allclose(found.mean, truth @ k)
    np.testing.assert_allclose(found.mean.sum(), 5)
    variance = truth @ k**2 - (truth @ k) ** 2
    np.testing.assert_allclose(found.sampling_sd**2 + found.shared_sd**2, variance)
    for c in range(3):
        below = [truth[c, :j].sum() for j in range(7)]  # P(N < j)
        tail = (1 - level) / 2
        assert below[found.lower[c]] <= tail < below[found.lower[c] + 1]
        assert below[found.upper[c]] < 1 - tail <= below[found.upper[c] + 1]


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (2, 0.5), (37, 0.01), (1000, 0.999), (5000, 0.2)])
def test_equal_probabilities_are_binomial(n, p):
    found = class_counts(np.tile([p, 1 - p], (n, 1)))
    assert found.lower[0] == binom.ppf(0.05, n, p) and found.upper[0] == binom.ppf(0.95, n, p)
    assert found.lower[1] == n - found.upper[0] or n * (1 - p) < 1  # mirrored
    assert found.shared_sd.max() < 1e-9


def test_certain_sources_and_none():
    found = class_counts(np.repeat(np.eye(2), [3, 4], axis=0))
    np.testing.assert_array_equal([found.lower, found.upper], [[3, 4], [3, 4]])
    assert found.sampling_sd.max() == 0
    nothing = class_counts(np.empty((5, 0, 3)))
    np.testing.assert_array_equal([nothing.mean, nothing.lower, nothing.upper], np.zeros((3, 3)))


def simulate(rng, n=60, samples=100):
    """Samples (S, n, 2) of calibrated probabilities with an error that all sources share, and the
    true number of the first class: the truth is one more draw of the same."""
    own, shared = rng.normal(size=n), rng.normal(0, 0.5, size=samples + 1)
    p = 1 / (1 + np.exp(-(own + shared[:, None])))
    return np.stack([p[1:], 1 - p[1:]], axis=2), int((rng.random(n) < p[0]).sum())


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held, without = [], []
    for _ in range(400):
        P, truth = simulate(rng)
        for found, hits in ((class_counts(P), held), (class_counts(P.mean(axis=0)), without)):
            hits.append(found.lower[0] <= truth <= found.upper[0])
    # 400 skies: three standard errors of a frequency of .9 are .045; counts are whole numbers,
    # which makes the intervals a little longer.
    assert 0.87 <= np.mean(held) <= 0.96
    assert np.mean(without) < 0.8  # sampling alone is too sure


def test_what_is_refused():
    for bad in ([0.5, 0.5], [[0.5, 0.6]], [[1.5, -0.5]], [[np.nan, 1.0]]):
        with pytest.raises(InputError, match="probabilities"):
            class_counts(bad)
    with pytest.raises(InputError, match="confidence_level"):
        class_counts([[0.5, 0.5]], 1.0)


def test_as_plain_data():
    found = class_counts([[0.9, 0.1]] * 100).as_dict(["bll", "psr"])
    assert found["psr"] == {
        **{"mean": pytest.approx(10), "lower": 5, "upper": 15},
        **{"sampling_sd": pytest.approx(3), "shared_sd": 0},
    }
    assert isinstance(found["psr"]["lower"], int)
