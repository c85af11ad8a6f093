"""The entropy split of a fitted model behaves as its names promise."""

from __future__ import annotations

import numpy as np
import pytest
from known_truth import draw
from sklearn.linear_model import LogisticRegression

from gpal import GPClassifier
from gpal.active import scores
from gpal.active.gain import expected_gain
from gpal.active.posterior import probability_draws, score_sources, split_sources
from gpal.active.strategies import STRATEGIES


def test_draws_average_to_the_prediction(fitted):
    """An exact input: the model's own predictive, by other points."""
    classifier, X, _, _ = fitted
    draws = probability_draws(classifier, X[:40], 0.0, samples=256)
    assert draws.shape == (40, 1, 256, 2)
    P = classifier.predict_proba(X[:40], X_err=0.0)
    assert np.allclose(draws.mean(axis=(1, 2)), P, atol=5e-3)


def test_growing_noise_raises_only_the_measurement_part(fitted):
    """Over sources of the population, E over x̃ and x | x̃ is E over x: the others stay."""
    classifier = fitted[0]
    means = []
    for sigma in (0.01, 0.3, 1.0):
        X, X_err, _, _ = draw(2000, sigma, seed=3)
        means.append(np.mean(split_sources(classifier, X, X_err), axis=1))
    measurement, model, overlap = np.transpose(means)
    assert measurement[0] < 0.01 < measurement[1] < 0.6 * measurement[2]
    rise = measurement[2] - measurement[0]
    assert np.ptp(model) < 0.1 * rise
    assert np.ptp(overlap) < 0.15 * rise


def test_labels_lower_the_model_part(fitted):
    classifier, X, X_err, y = fitted
    few = GPClassifier(n_inducing=20, max_rounds=0, kernel=classifier.model_.gp.kernels[0])
    many = GPClassifier(n_inducing=20, max_rounds=0, kernel=classifier.model_.gp.kernels[0])
    few.fit(X[:20], y[:20], X_err=X_err[:20])
    many.fit(X, y, X_err=X_err)
    few_labels, many_labels = (split_sources(c, X, X_err).model.mean() for c in (few, many))
    assert many_labels < 0.6 * few_labels


def test_an_exact_source_on_a_boundary_shows_class_overlap(fitted):
    classifier = fitted[0]
    line = np.column_stack([np.linspace(-2, 2, 201), np.zeros(201)])
    P = classifier.predict_proba(line, X_err=1e-3)
    boundary = line[[np.argmin(np.abs(P[:, 0] - 0.5))]]
    split = split_sources(classifier, boundary, np.full((1, 2), 1e-3))
    assert split.overlap[0] > 0.8 * split.total[0] > 0.5
    assert split.measurement[0] < 1e-3


def test_every_score_of_the_pool(fitted):
    classifier, X, X_err, _ = fitted
    for name in STRATEGIES:
        value = score_sources(classifier, X, X_err, score=name)
        assert value.shape == (150,) and (value >= 0).all() and np.ptp(value) > 0


def test_missing_values_are_measurement_uncertainty(fitted):
    classifier = fitted[0]
    X = np.array([[0.8, 0.0], [np.nan, 0.0]])
    X_err = np.array([[0.05, 0.05], [np.inf, 0.05]])
    split = split_sources(classifier, X, X_err)
    assert split.measurement[1] > 5 * split.measurement[0]


def test_a_classifier_without_posterior_has_one_draw(fitted):
    _, X, _, y = fitted
    classifier = LogisticRegression().fit(X, y)
    split = split_sources(classifier, X)
    assert np.allclose(split.overlap, scores.entropy(classifier.predict_proba(X)))
    assert (split.model == 0).all() and (split.measurement == 0).all()


def entropy_of(P):
    return -(P * np.log(P)).sum(axis=1)


@pytest.mark.parametrize("options", [{"error_scale": 3.0}, {"error_floor": 0.8}])
def test_the_split_sees_the_errors_that_the_model_sees(options):
    """Scaled errors, or a floor alone: the total is the entropy of the prediction."""
    X, X_err, _, y = draw(80, 0.3, seed=4)
    X_err = X_err if "error_scale" in options else 0.0 * X_err
    classifier = GPClassifier(n_inducing=20, max_rounds=1, **options).fit(X, y, X_err=X_err)
    split = split_sources(classifier, X, X_err)
    assert split.measurement.mean() > 0.1
    want = entropy_of(classifier.predict_proba(X, X_err=X_err))
    np.testing.assert_allclose(split.total, want, atol=0.06)
    gain = expected_gain(classifier, X, X_err, 0.5)
    learns = "error_scale" in options  # better catalog errors leave a floor where it is
    assert gain.measurement.mean() > 0.01 if learns else gain.measurement.mean() < 0.01


def test_the_split_sees_correlated_errors():
    X, X_err, _, y = draw(80, 0.6, seed=4)
    X_cov = X_err[:, :, None] * X_err[:, None, :] * np.array([[1.0, 0.95], [0.95, 1.0]])
    classifier = GPClassifier(n_inducing=20, max_rounds=1).fit(X, y, X_cov=X_cov)
    split = split_sources(classifier, X, X_cov=X_cov)
    want = entropy_of(classifier.predict_proba(X, X_cov=X_cov))
    np.testing.assert_allclose(split.total, want, atol=0.06)
    assert np.abs(split.total - split_sources(classifier, X, X_err).total).max() > 0.1
