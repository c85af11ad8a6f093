"""The population prior against textbook Gaussian algebra and a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from gpal.input_noise.population import Population

MIXTURE = Population(
    np.array([0.3, 0.7]),
    np.array([[2.0, 1.0, -1.0], [-1.0, 0.0, 0.5]]),
    np.array(
        [
            [[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.7]],
            [[0.5, -0.2, 0.0], [-0.2, 0.4, 0.1], [0.0, 0.1, 1.2]],
        ]
    ),
)
SINGLE = Population(np.ones(1), MIXTURE.means[:1], MIXTURE.covariances[:1])


def draw(population: Population, n: int, seed: int, low: float = 0.05, high: float = 1.5):
    """(truth, noisy measurement, its error), errors log-uniform per source and feature."""
    rng = np.random.default_rng(seed)
    component = rng.choice(len(population.weights), size=n, p=population.weights)
    roots = np.linalg.cholesky(population.covariances)
    d = population.means.shape[1]
    x = population.means[component] + np.einsum(
        "nde,ne->nd", roots[component], rng.normal(size=(n, d))
    )
    error = np.exp(rng.uniform(np.log(low), np.log(high), size=(n, d)))
    return x, x + error * rng.normal(size=(n, d)), error


def log_likelihood(population: Population, X: np.ndarray, X_err: np.ndarray) -> float:
    """Mean log evidence, source by source."""
    total = 0.0
    for x, e in zip(X, X_err, strict=True):
        o = np.isfinite(e)
        total += np.log(
            sum(
                w * multivariate_normal(m[o], V[np.ix_(o, o)] + np.diag(e[o] ** 2)).pdf(x[o])
                for w, m, V in zip(
                    population.weights, population.means, population.covariances, strict=True
                )
            )
        )
    return total / len(X)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_posterior_is_the_textbook_product_of_gaussians(seed):
    _, X, X_err = draw(MIXTURE, 4, seed)
    share, mean, covariance = MIXTURE.posterior(X, X_err)
    for i in range(4):
        noise = np.diag(X_err[i] ** -2.0)
        evidence = []
        for j in range(2):
            m, V = MIXTURE.means[j], MIXTURE.covariances[j]
            C = np.linalg.inv(np.linalg.inv(V) + noise)
            np.testing.assert_allclose(covariance[i, j], C, rtol=1e-8, atol=1e-10)
            textbook = C @ (np.linalg.solve(V, m) + noise @ X[i])
            np.testing.assert_allclose(mean[i, j], textbook, rtol=1e-8, atol=1e-10)
            marginal = multivariate_normal(m, V + np.diag(X_err[i] ** 2))
            evidence.append(MIXTURE.weights[j] * marginal.pdf(X[i]))
        np.testing.assert_allclose(share[i], np.array(evidence) / np.sum(evidence), rtol=1e-8)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_exact_features_are_unchanged_to_the_last_bit(seed):
    _, X, X_err = draw(MIXTURE, 5, seed)
    exact = np.random.default_rng(seed).uniform(size=X.shape) < 0.5
    X_err[exact] = 0.0
    _, mean, covariance = MIXTURE.posterior(X, X_err)
    for j in range(2):
        np.testing.assert_array_equal(mean[:, j][exact], X[exact])
        np.testing.assert_array_equal(np.diagonal(covariance[:, j], axis1=1, axis2=2)[exact], 0.0)
        assert (covariance[:, j][exact] == 0.0).all()  # whole rows


def test_a_missing_feature_gets_the_conditional_given_the_exact_others():
    X, X_err = np.array([[0.7, np.nan, -0.4]]), np.array([[0.0, np.inf, 0.0]])
    _, mean, covariance = SINGLE.posterior(X, X_err)
    m, V, o = SINGLE.means[0], SINGLE.covariances[0], [0, 2]
    gain = V[1, o] @ np.linalg.inv(V[np.ix_(o, o)])
    np.testing.assert_allclose(mean[0, 0, 1], m[1] + gain @ (X[0, o] - m[o]), rtol=1e-6)
    np.testing.assert_allclose(covariance[0, 0, 1, 1], V[1, 1] - gain @ V[o, 1], rtol=1e-6)
    completed, error = SINGLE.complete(X, X_err)
    np.testing.assert_array_equal(completed[0, o], X[0, o])
    np.testing.assert_allclose(completed[0, 1], mean[0, 0, 1])
    np.testing.assert_allclose(error[0, 1] ** 2, covariance[0, 0, 1, 1], rtol=1e-6)


@pytest.mark.parametrize("population", [SINGLE, MIXTURE])
def test_not_measured_is_the_limit_of_a_huge_error(population):
    _, X, X_err = draw(population, 6, 0)
    huge, missing, X_nan = X_err.copy(), X_err.copy(), X.copy()
    pattern = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]], bool)
    huge[pattern], missing[pattern], X_nan[pattern] = 1e5, np.inf, np.nan
    for got, want in zip(
        population.posterior(X_nan, missing), population.posterior(X, huge), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-7)


def test_nothing_measured_gives_the_population_itself():
    X, X_err = np.full((2, 3), np.nan), np.full((2, 3), np.inf)
    share, mean, covariance = MIXTURE.posterior(X, X_err)
    np.testing.assert_allclose(share, np.tile(MIXTURE.weights, (2, 1)), atol=1e-6)
    np.testing.assert_allclose(mean[1], MIXTURE.means, atol=1e-6)
    np.testing.assert_allclose(covariance[1], MIXTURE.covariances, atol=1e-6)
    completed, error = MIXTURE.complete(X, X_err)
    overall = MIXTURE.weights @ MIXTURE.means
    spread = MIXTURE.means - overall
    total = np.einsum("j,jdd->d", MIXTURE.weights, MIXTURE.covariances)
    np.testing.assert_allclose(completed[0], overall, atol=1e-6)
    np.testing.assert_allclose(error[0] ** 2, total + MIXTURE.weights @ spread**2, rtol=1e-6)


def test_complete_leaves_measured_entries_and_errors_alone():
    _, X, X_err = draw(MIXTURE, 5, 1)
    X[2, 0], X_err[2, 0] = np.nan, np.inf
    completed, error = MIXTURE.complete(X, X_err)
    measured = np.isfinite(X_err)
    np.testing.assert_array_equal(completed[measured], X[measured])
    np.testing.assert_array_equal(error[measured], X_err[measured])
    assert np.isfinite(completed).all() and np.isfinite(error).all()


@pytest.mark.parametrize("components", [1, 2])
def test_the_log_likelihood_never_falls(components):
    _, X, X_err = draw(MIXTURE, 80, 2)
    X[::7, 1], X_err[::7, 1] = np.nan, np.inf
    values = [
        log_likelihood(
            Population.fit(
                X, X_err, num_components=components, num_iterations=k, tolerance=-np.inf, ridge=0.0
            ),
            X,
            X_err,
        )
        for k in (1, 2, 3, 5, 10, 30)
    ]
    assert (np.diff(values) >= -1e-9).all() and values[-1] > values[0]


def test_a_known_gaussian_is_recovered_from_heteroskedastic_measurements():
    n = 5000
    _, X, X_err = draw(SINGLE, n, 3)
    fitted = Population.fit(X, X_err, tolerance=1e-6)
    m, V = SINGLE.means[0], SINGLE.covariances[0]
    # four standard errors, with the noise of a typical source added to the spread
    total = np.diag(V) + np.median(X_err) ** 2
    assert (np.abs(fitted.means[0] - m) < 4 * np.sqrt(total / n)).all()
    allowed = 4 * np.sqrt(2 / n) * np.sqrt(np.outer(total, total))
    assert (np.abs(fitted.covariances[0] - V) < allowed).all()
    raw = np.cov(X.T)
    assert np.abs(np.diag(raw) - np.diag(V)).min() > 0.25  # what ignoring the noise would give
    some = X[:1000], X_err[:1000]
    assert log_likelihood(fitted, *some) > log_likelihood(SINGLE, *some) - 1e-3


def test_a_mixture_of_two_is_recovered():
    _, X, X_err = draw(MIXTURE, 3000, 4, high=0.5)
    fitted = Population.fit(X, X_err, num_components=2, tolerance=1e-7, num_iterations=300)
    order = np.argsort(fitted.weights)
    np.testing.assert_allclose(fitted.weights[order], MIXTURE.weights, atol=0.05)
    np.testing.assert_allclose(fitted.means[order], MIXTURE.means, atol=0.2)
    np.testing.assert_allclose(fitted.covariances[order], MIXTURE.covariances, atol=0.3)


@pytest.mark.parametrize("seed", range(3))
def test_what_one_clump_lacks_has_the_spread_of_the_feature(seed):
    """x_1 is of N(0, 1) everywhere, and nine in ten of the right clump lack it."""
    rng, n = np.random.default_rng(seed), 400
    right = rng.random(n) < 0.5
    x = rng.normal(size=(n, 2)) + np.where(right[:, None], [2.5, 0], [-2.5, 0])
    X, X_err = x + 0.05 * rng.normal(size=x.shape), np.full((n, 2), 0.05)
    missing = rng.random(n) < np.where(right, 0.9, 0.05)
    X[missing, 1], X_err[missing, 1] = np.nan, np.inf
    population = Population.fit(X, X_err, num_components=2)
    assert (np.sqrt(population.covariances[:, 1, 1]) > 0.3).all()
    completed, error = population.complete(X, X_err)
    pulls = ((x - completed) / error)[missing, 1]
    assert np.sqrt(np.mean(pulls**2)) < 2


def test_draws_have_the_mean_and_covariance_of_x_given_its_measurement():
    X, X_err = np.tile([2.0, np.nan, 0.3], (20_000, 1)), np.tile([0.5, np.inf, 0.2], (20_000, 1))
    share, mean, covariance = (part[0] for part in MIXTURE.posterior(X[:1], X_err[:1]))
    expected = share @ mean
    spread = np.einsum("j,jde->de", share, covariance)
    spread += np.einsum("j,jd,je->de", share, mean - expected, mean - expected)
    x = MIXTURE.draws(X, X_err, seed=1)
    np.testing.assert_allclose(x.mean(axis=0), expected, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), spread, atol=0.05 * np.diag(spread).max())
    np.testing.assert_array_equal(x, MIXTURE.draws(X, X_err, seed=1))


def test_a_constant_feature_and_one_never_measured_leave_the_fit_finite(recwarn):
    rng = np.random.default_rng(0)
    X, X_err = rng.normal(size=(40, 3)), np.full((40, 3), 0.1)
    X[:, 1], X_err[:, 1] = 2.0, 0.0
    X[:, 2], X_err[:, 2] = np.nan, np.inf
    population = Population.fit(X, X_err)
    completed, error = population.complete(X, X_err)
    assert np.isfinite(completed).all() and np.isfinite(error).all()
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def test_order_of_sources_does_not_matter():
    _, X, X_err = draw(MIXTURE, 200, 5)
    order = np.random.default_rng(0).permutation(200)
    a, b = Population.fit(X, X_err), Population.fit(X[order], X_err[order])
    np.testing.assert_allclose(a.means, b.means, atol=1e-8)
    np.testing.assert_allclose(a.covariances, b.covariances, atol=1e-8)
    shuffled = Population.fit(X[order], X_err)  # the errors of other sources: another answer
    assert np.abs(a.covariances - shuffled.covariances).max() > 1e-3
