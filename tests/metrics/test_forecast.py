"""The NLL that probabilities promise: the entropy, and how often the outcome lies inside."""

import numpy as np
import pytest

from gpal.errors import InputError
from gpal.metrics import expected_nll, negative_log_predictive_density

rng = np.random.default_rng(3)


def test_of_known_probabilities_it_is_their_entropy():
    P = rng.dirichlet([1.0, 2.0, 0.5], size=300)
    entropy = -(P * np.log(P)).sum(axis=1).mean()
    found = expected_nll(np.repeat(P[None], 2000, axis=0))
    per_source = (P * np.log(P) ** 2).sum(axis=1) - (P * np.log(P)).sum(axis=1) ** 2
    sd = np.sqrt(per_source.sum()) / len(P)
    assert found["mean"] == pytest.approx(entropy, abs=4 * sd / np.sqrt(2000))
    assert found["upper"] - found["lower"] == pytest.approx(2 * 1.645 * sd, rel=0.1)


def test_outcomes_lie_inside_as_often_as_it_says():
    """Class fractions that all sources share, drawn for each sky anew."""
    P, inside = rng.dirichlet([1.0, 1.0], size=60), []
    for sky in range(300):
        ratios = np.exp(rng.normal(size=(201, 2)))
        samples = P * ratios[:, None]
        samples /= samples.sum(axis=2, keepdims=True)
        truth = (rng.random(len(P)) > samples[-1][:, 0]).astype(int)
        stated = samples[:-1].mean(axis=0)
        found = expected_nll(samples[:-1], stated, random_state=sky)
        nll = negative_log_predictive_density(truth, stated)
        inside.append(found["lower"] <= nll <= found["upper"])
    assert np.mean(inside) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 300))


def test_of_some_of_the_sources():
    """Two kinds of source, one known and one not: what is promised follows how many are asked of
    each, and asking of all in turn is asking of all."""
    P = np.array([[1.0, 0.0]] * 30 + [[0.5, 0.5]] * 10)
    samples = np.repeat(P[None], 50, axis=0)
    rows = np.stack([np.r_[rng.choice(30, 6), 30 + rng.choice(10, 4)] for _ in samples])
    found = expected_nll(samples, rows=rows)
    assert found["lower"] == found["upper"] == pytest.approx(0.4 * np.log(2))
    in_turn = np.tile(np.arange(40), (50, 1))
    assert expected_nll(samples, rows=in_turn) == expected_nll(samples)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="samples of probabilities are"):
        expected_nll(np.full((4, 2), 0.5))
    with pytest.raises(InputError, match="confidence_level"):
        expected_nll(np.full((4, 2, 2), 0.5), confidence_level=90)
    for rows in ([[0, 2]] * 4, [[-1]] * 4, [[0]] * 3, [0, 1], np.zeros((4, 0), int)):
        with pytest.raises(InputError, match="from 0 to 1"):
            expected_nll(np.full((4, 2, 2), 0.5), rows=rows)


def test_samples_that_are_no_probabilities_are_refused():
    P = np.full((5, 2), 0.5)
    for samples in (np.full((3, 5, 2), np.nan), np.full((3, 5, 2), 2.0), np.full((3, 5, 2), 0.4)):
        with pytest.raises(InputError, match="samples hold no probabilities"):
            expected_nll(samples, P)
    with pytest.raises(InputError, match="P has shape"):
        expected_nll(np.full((3, 5, 2), 0.5), P[:4])
