"""Class fractions averaged over, against an integral and its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

from gpal.errors import InputError
from gpal.evaluation.uncertain_fractions import fraction_ratios, with_uncertain_fractions

P = np.random.default_rng(0).dirichlet([1.0, 0.5, 2.0], size=40)


def test_without_a_spread_nothing_changes():
    np.testing.assert_allclose(with_uncertain_fractions(P, 0.0), P, atol=1e-15)


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_of_two_classes_it_is_a_logistic_normal_integral(spread):
    """The difference of two s has the variance 2 τ²."""
    p = np.array([0.02, 0.3, 0.9])
    expected = [
        quad(lambda z, q=q: expit(logit(q) + np.sqrt(2) * spread * z) * norm.pdf(z), -9, 9)[0]
        for q in p
    ]
    found = with_uncertain_fractions(np.column_stack([p, 1 - p]), spread)[:, 0]
    np.testing.assert_allclose(found, expected, atol=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.floats(0.1, 2.0), st.integers(0, 1000))
def test_probabilities_come_nearer_to_each_other(num_classes, spread, seed):
    P = np.random.default_rng(seed).dirichlet(np.full(num_classes, 0.7), size=10)
    found = with_uncertain_fractions(P, spread)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.max(axis=1) <= P.max(axis=1) + 0.01).all()


def test_ratios_have_the_spread_and_the_seed():
    ratios = np.log(fraction_ratios(3, spread=1.5, num_samples=1000))
    np.testing.assert_allclose(ratios.std(axis=0), 1.5, rtol=0.02)
    np.testing.assert_allclose(ratios.mean(axis=0), 0, atol=0.02)
    np.testing.assert_array_equal(ratios, np.log(fraction_ratios(3, 1.5, 1000)))
    with pytest.raises(InputError, match="0 or more"):
        fraction_ratios(3, spread=-1)
