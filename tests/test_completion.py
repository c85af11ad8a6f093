"""Features that were not measured are averaged over in a prediction, under every treatment."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import norm, qmc, truncnorm

from gpal import GPClassifier, Measurements, NoisyInputGP
from gpal.arrays import as_measurements
from gpal.input_noise import INPUT_NOISES
from gpal.input_noise.integrated import Integrated
from gpal.limits import Limits

GRADIENT = {"inference": "svgp", "inference_options": {"steps": 300, "learning_rate": 0.03}}


@pytest.fixture(scope="module")
def problem():
    """One Gaussian of two features, rings around its centre as classes: the mean source is of
    another class than most."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], size=200)
    radius = np.hypot(*X.T) + 0.1 * rng.normal(size=200)
    return X, np.digitize(radius, [0.8, 1.6]), np.full(X.shape, 0.05)


@pytest.fixture(scope="module")
def fitted(problem):
    """A model of a treatment and a population, fitted once; tests only predict with it."""

    @cache
    def fit(input_noise: str, population: int | str = 1) -> GPClassifier:
        options = GRADIENT if INPUT_NOISES[input_noise].gradient_only else {}
        classifier = GPClassifier(
            input_noise=input_noise, population=population, n_inducing=25, max_rounds=2, **options
        )
        return classifier.fit(*problem)

    return fit


NOTHING = np.full((1, 2), np.nan), np.full((1, 2), np.inf)


@pytest.mark.parametrize("population", [1, "flat"])
@pytest.mark.parametrize("input_noise", sorted(INPUT_NOISES))
def test_a_source_with_nothing_measured_gets_the_fractions_of_the_classes(
    problem, fitted, input_noise, population
):
    X, y, X_err = problem
    model = fitted(input_noise, population)
    expected = model.predict_proba(X, X_err).mean(axis=0)
    np.testing.assert_allclose(expected, np.bincount(y) / len(y), atol=0.03)
    np.testing.assert_allclose(model.predict_proba(*NOTHING)[0], expected, atol=0.03)


@pytest.mark.parametrize("input_noise", ["none", "first_order", "integrated"])
def test_what_was_not_measured_is_drawn_given_what_was(fitted, input_noise):
    model, x = fitted(input_noise), 1.3
    population = model.model_.population
    (mean,), (P,) = population.means, population.covariances
    scaled = (x - model.offset_[0]) / model.width_[0]
    slope = P[1, 0] / P[0, 0]
    rng = np.random.default_rng(1)
    second = mean[1] + slope * (scaled - mean[0])
    second = second + np.sqrt(P[1, 1] - slope * P[0, 1]) * rng.normal(size=4000)
    complete = np.column_stack([np.full(4000, x), second * model.width_[1] + model.offset_[1]])
    at_draws = model.predict_proba(complete, 0.0)
    X, X_err = np.array([[x, np.nan]]), np.array([[0.0, np.inf]])
    both = np.vstack([complete[:3], X]), np.vstack([np.zeros((3, 2)), X_err])
    p = model.predict_proba(*both)
    np.testing.assert_allclose(p[:3], at_draws[:3], rtol=1e-12)  # others are not touched
    np.testing.assert_allclose(p[3], at_draws.mean(axis=0), atol=0.02)
    deviation = model.predict_proba_std(*both)[3]
    assert (deviation > 0.8 * at_draws.std(axis=0)).all()
    mean_f, variance_f = model.predict_latent(*both)
    at_mean, at_variance = model.predict_latent(complete, 0.0)
    np.testing.assert_allclose(mean_f[3], at_mean.mean(axis=0), atol=0.05)
    total = at_variance.mean(axis=0) + at_mean.var(axis=0)
    np.testing.assert_allclose(variance_f[3], total, rtol=0.05)
    covariance = model.predict_latent(*both, full_cov=True)[1]
    assert covariance.shape == (3, 4, 4) and np.linalg.eigvalsh(covariance).min() > -1e-8
    drawn = model.sample_latent(*both, num_samples=4000, seed=3)
    np.testing.assert_allclose(drawn.mean(axis=0), mean_f, atol=0.15)
    np.testing.assert_allclose(drawn.var(axis=0), variance_f, rtol=0.15, atol=0.02)


def test_a_response_is_that_of_the_mixture_of_the_draws(problem):
    """y = x₀²: of a source with nothing measured the mean is E x₀², not (E x₀)²."""
    X, _, X_err = problem
    y = X[:, 0] ** 2
    model = NoisyInputGP(input_noise="first_order", n_inducing=25, max_rounds=5).fit(X, y, X_err)
    mean, variance = model.predict_y(*NOTHING)
    assert mean[0] == pytest.approx(y.mean(), abs=0.15)
    assert variance[0] == pytest.approx(y.var(), rel=0.3)
    log_p = model.predict_log_density(NOTHING[0], np.array([0.5]), NOTHING[1])
    assert np.isfinite(log_p).all()


@pytest.mark.parametrize("error", [1.0, 5.0, 5e3])
@pytest.mark.parametrize("population", [1, 2, "flat"])
def test_within_wide_errors_inputs_are_averaged_over(problem, fitted, population, error):
    """Against many draws of p(x | x̃), and for all sources alike: sums of p are right, too."""
    model, (X, _, _) = fitted("integrated", population), problem
    X = X[:12] + error * np.random.default_rng(1).normal(size=(12, 2))
    found = model.predict_proba(X, error)
    if population == "flat":
        ε = norm.ppf(qmc.Sobol(2, seed=3).random(2048))
        inputs = X[:, None] + error * ε
        p = model.predict_proba(inputs.reshape(-1, 2), 0.0).reshape(12, 2048, -1)
        expected = p.mean(axis=1)
    else:
        draws = np.concatenate([*model.probability_draws(X, error, nodes=2048, samples=32)])
        expected = draws.mean(axis=(1, 2))
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.01
    np.testing.assert_allclose(found.mean(axis=0), expected.mean(axis=0), atol=0.01)


def test_within_wide_errors_the_nodes_are_those_of_the_treatment(problem, fitted):
    """Another seed gives other ones, and a treatment with rows of its own keeps these."""
    model, X = fitted("integrated"), problem[0][:5]
    p = model.predict_proba(X, 2.0)

    class Twice(Integrated):
        def rows(self, x):
            return tf.repeat(x.X, 2, axis=0), tf.zeros_like(x.root)

    try:
        kept = model.model_.input_noise
        model.model_.input_noise = Integrated(seed=7)
        assert 0 < np.abs(model.predict_proba(X, 2.0) - p).max() < 0.03
        model.model_.input_noise = Twice(nodes=2)
        scaled = model._scaled(as_measurements(X, 2.0))
        assert {nodes for _, _, nodes in model.model_.completed(scaled)} == {2}
    finally:
        model.model_.input_noise = kept


@pytest.mark.parametrize("other", [0.1, np.inf])
@pytest.mark.parametrize("input_noise", sorted(INPUT_NOISES))
def test_an_error_that_leaves_nothing_of_a_value(fitted, input_noise, other):
    """It tells as much as no measurement; where errors are ignored it is ignored too, whatever the
    other values of the call are."""
    X, X_err = np.array([[1.3, 0.4], [1.3, 0.4]]), np.array([[0.1, 1e6], [other, 0.1]])
    model = fitted(input_noise)
    far = model.predict_proba(X, X_err)[0]
    known = 0.0 if input_noise == "none" else np.inf
    np.testing.assert_allclose(far, model.predict_proba(X[:1], [[0.1, known]])[0], atol=1e-6)


@pytest.mark.parametrize("population", [1, "flat"])
@pytest.mark.parametrize("input_noise", sorted(INPUT_NOISES))
def test_a_limit_that_says_nothing_is_no_measurement(fitted, input_noise, population):
    """An upper limit far above all, and beside it a source without one: to what 64 draws give."""
    model = fitted(input_noise, population)
    X, X_err = np.array([[1.3, np.nan]] * 2), np.array([[0.1, np.inf]] * 2)
    limits = Limits([[np.nan, 40.0], [np.nan, np.nan]], [[0, -1.0], [0, 0]])
    sources = Measurements(X, X_err, ("0", "1"), limits=limits)
    with_limit, without = model.predict_proba(sources)
    np.testing.assert_allclose(with_limit, without, atol=0.015)


@pytest.mark.parametrize("confidence", [1.0, 0.95])
@pytest.mark.parametrize("population", [1, "flat"])
@pytest.mark.parametrize("input_noise", ["none", "first_order", "analytic", "integrated"])
def test_a_value_below_a_limit_is_drawn_from_what_lies_there(
    fitted, input_noise, population, confidence
):
    """Against draws of the truncated normal and, of a limit that may be wrong, of all of it."""
    model, x, L = fitted(input_noise, population), 1.3, 0.5 if confidence == 1 else -0.3
    population = model.model_.population
    (mean,), (P,) = population.means, population.covariances
    scaled, bound = (np.array([x, L]) - model.offset_) / model.width_
    conditional = mean[1] + P[1, 0] / P[0, 0] * (scaled - mean[0])
    deviation = np.sqrt(P[1, 1] - P[1, 0] ** 2 / P[0, 0])
    below = truncnorm(-np.inf, (bound - conditional) / deviation, conditional, deviation)
    share = norm.cdf((bound - conditional) / deviation) * (2 * confidence - 1)
    wrong = np.random.default_rng(2).random(4000) < (1 - confidence) / (1 - confidence + share)
    second = np.where(
        wrong,
        np.random.default_rng(3).normal(conditional, deviation, 4000),
        below.rvs(4000, random_state=1),
    )
    second = second * model.width_[1] + model.offset_[1]
    expected = model.predict_proba(np.column_stack([np.full(4000, x), second]), 0.0).mean(axis=0)
    limits = Limits([[np.nan, L]], [[0, -confidence]])
    sources = Measurements([[x, np.nan]], [[0.0, np.inf]], ("0", "1"), limits=limits)
    np.testing.assert_allclose(model.predict_proba(sources)[0], expected, atol=0.02)


def test_draws_of_the_input_are_from_what_lies_below_a_limit_too(fitted):
    """Of a limit that may be wrong from both heaps; those of other sources are what they were."""
    model = fitted("integrated")
    X, X_err = [[1.3, np.nan], [0.4, 0.2]], [[0.05, np.inf], [0.05, 0.3]]
    limits = Limits([[np.nan, -0.6], [np.nan, np.nan]], [[0.0, -0.95], [0.0, 0.0]])
    sources = Measurements(X, X_err, ("0", "1"), limits=limits)
    drawn = np.concatenate(list(model.probability_draws(sources, nodes=64, samples=32)))
    np.testing.assert_allclose(drawn.mean(axis=(1, 2)), model.predict_proba(sources), atol=0.02)
    alone = np.concatenate(list(model.probability_draws(sources[1:], nodes=64, samples=32)))
    np.testing.assert_array_equal(drawn[1:], alone)
