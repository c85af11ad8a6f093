"""Expected gains against a model whose information is known by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from known_truth import draw

from gpal import GPClassifier
from gpal.active.gain import Gain, expected_gain
from gpal.active.posterior import split_sources
from gpal.errors import InputError


def test_gain_lies_between_nothing_and_a_perfect_measurement(fitted):
    classifier = fitted[0]
    X, X_err, _, _ = draw(60, 0.8, seed=5)
    little, much = (expected_gain(classifier, X, X_err, shrink) for shrink in (0.9, 0.3))
    for gain in (little, much):
        assert (gain.measurement >= 0).all()
        assert (gain.measurement <= gain.perfect_measurement).all()
        assert (gain.label >= gain.perfect_measurement).all()
    assert 0 < little.measurement.mean() < 0.6 * much.measurement.mean()
    exact = expected_gain(classifier, X, X_err, 0.0)
    assert (exact.measurement == exact.perfect_measurement).all()


def test_gain_agrees_with_measuring_again(fitted):
    """Over many sources: entropy at σ minus entropy at κ σ, each with fresh data (tower rule)."""
    classifier = fitted[0]
    X, X_err, x, _ = draw(1500, 1.0, seed=6)
    rng = np.random.default_rng(7)
    again = x + X_err / np.sqrt(3) * rng.normal(size=x.shape)
    better = 0.25 * X + 0.75 * again
    before = split_sources(classifier, X, X_err).total.mean()
    after = split_sources(classifier, better, 0.5 * X_err).total.mean()
    gain = expected_gain(classifier, X[:400], X_err[:400], 0.5).measurement.mean()
    assert gain == pytest.approx(before - after, rel=0.25)


@pytest.mark.parametrize("kappa", [0.5, pytest.param(0.9, marks=pytest.mark.slow)])
def test_gain_of_correlated_features_agrees_with_independent_draws(kappa):
    """Of a class that follows from the sum of two features: what the true input and the error of
    the second measurement have in common would show there."""
    rng, d, sigma = np.random.default_rng(0), 5, 0.8
    x = rng.normal(size=(150, d))
    y = np.where(x[:, 2] + x[:, 3] + 0.3 * rng.normal(size=150) > 0, "b", "a")
    known = x + 0.3 * rng.normal(size=x.shape)
    model = GPClassifier(n_inducing=20, max_rounds=2, input_noise="first_order")
    model.fit(known, y, X_err=0.3)
    X = rng.normal(size=(8, d)) * np.sqrt(1 + sigma**2)
    population, width = model.model_.population, model.width_
    P = population.covariances[0] * np.outer(width, width)
    keep = P @ np.linalg.inv(P + sigma**2 * np.eye(d))
    mean = model.offset_ + width * population.means[0]
    root = np.linalg.cholesky(P - keep @ P)
    before = split_sources(model, X, np.full(X.shape, sigma), nodes=512).total
    gains = []
    for source, entropy in zip(X, before, strict=True):
        true = mean + keep @ (source - mean) + rng.normal(size=(300, d)) @ root.T
        again = true + sigma * kappa / np.sqrt(1 - kappa**2) * rng.normal(size=true.shape)
        better = (1 - kappa**2) * again + kappa**2 * source
        after = split_sources(model, better, np.full(better.shape, kappa * sigma), nodes=64).total
        gains.append((entropy - after.mean(), after.std() / np.sqrt(len(after))))
    expected, error = np.array(gains).T
    found = expected_gain(model, X, np.full(X.shape, sigma), kappa).measurement
    assert np.abs(found - expected).max() < 0.005 + 3 * error.max()
    assert found.mean() == pytest.approx(expected.mean(), abs=0.002 + 2 * error.mean() / 8**0.5)


def test_worth_measuring_depends_on_time(fitted):
    classifier = fitted[0]
    gain = expected_gain(classifier, *draw(20, 0.8, seed=8)[:2], 0.0)
    assert not gain.worth_measuring().any()  # a label settles the class, a measurement may not
    assert gain.worth_measuring(time_label=1e6).any()


def test_shrink_must_shrink(fitted):
    with pytest.raises(InputError, match="shrink"):
        expected_gain(fitted[0], np.zeros((1, 2)), np.ones((1, 2)), 1.0)


@pytest.mark.parametrize("time", [0.0, -1.0])
def test_times_are_above_zero(time):
    gain = Gain(*np.ones((4, 3)))
    with pytest.raises(InputError, match="time_label holds a time that is not above 0"):
        gain.worth_measuring(time_label=time)
    assert not gain.worth_measuring(time_measurement=[np.nan] * 3).any()


def test_a_label_that_cannot_be_had_is_worth_less_than_a_measurement():
    gain = Gain(*(np.array([value, value]) for value in (0.5, 0.1, 0.2, 0.1)))
    np.testing.assert_array_equal(gain.worth_measuring(time_label=[np.nan, 1.0]), [True, False])
    assert not gain.worth_measuring(time_measurement=np.nan).any()
