"""Scores against their definitions, and the entropy split against information theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from gpal.active import scores


def dirichlet_draws(seed, n, T, S, C, concentration):
    return np.random.default_rng(seed).dirichlet(np.full(C, concentration), size=(n, T, S))


shapes = st.tuples(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(2, 5),
    st.sampled_from([0.01, 0.3, 1.0, 30.0]),
)


@settings(deadline=None, max_examples=60)
@given(shapes)
def test_parts_sum_to_the_total_and_none_is_negative(shape):
    draws = dirichlet_draws(*shape)
    split = scores.entropy_split(draws)
    total = scipy_entropy(draws.mean(axis=(1, 2)), axis=-1)
    assert np.allclose(sum(split), total, atol=1e-12)
    assert np.allclose(split.total, total, atol=1e-12)
    assert all((part >= 0).all() for part in split)


def test_parts_are_mutual_informations():
    """Against I(a; b) = Σ p(a, b) ln p(a, b) / p(a) p(b), summed over the joint distribution."""
    draws = dirichlet_draws(1, 3, 4, 5, 3, 0.5)
    split = scores.entropy_split(draws)
    for i, p in enumerate(draws):
        y_and_x = p.mean(axis=1) / len(p)
        independent = y_and_x.sum(0)[None, :] * y_and_x.sum(1)[:, None]
        assert np.isclose(split.measurement[i], (y_and_x * np.log(y_and_x / independent)).sum())
        for_inputs = []
        for q in p:
            joint = q / len(q)
            independent = joint.sum(0)[None, :] * joint.sum(1)[:, None]
            for_inputs.append((joint * np.log(joint / independent)).sum())
        assert np.isclose(split.model[i], np.mean(for_inputs))


@pytest.mark.parametrize("part", ["measurement", "model", "overlap"])
def test_each_part_sees_its_own_cause(part):
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    draws = {
        "measurement": sure[:, None, :],  # the class follows from x, x is not known
        "model": sure[None, :, :],  # the class follows from f, f is not known
        "overlap": np.full((1, 1, 2), 0.5),
    }[part][None]
    split = scores.entropy_split(draws)._asdict()
    assert np.isclose(split.pop(part)[0], np.log(2))
    assert np.allclose([value[0] for value in split.values()], 0)


def test_scores_of_probabilities():
    P = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert np.allclose(scores.entropy(P), scipy_entropy(P, axis=1))
    assert np.allclose(scores.margin(P), [0.8, 0.0, 1.0])
    assert np.allclose(scores.least_confidence(P), [0.5, 0.0, 2 / 3])


def test_variation_ratio_counts_dissenting_votes():
    votes = np.eye(3)[[0, 0, 1, 0, 2, 0]].reshape(1, 2, 3, 3)
    assert np.isclose(scores.variation_ratio(votes)[0], 2 / 6)


def test_masked_leaves_its_argument_alone():
    score = np.arange(3.0)
    shown = scores.masked(score, np.array([1]))
    assert np.isnan(shown[1]) and (score == np.arange(3.0)).all() and shown[2] == 2
