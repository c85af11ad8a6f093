"""log p(y) of responses, against another quadrature, and where p(y | f) is narrow."""

from __future__ import annotations

import gpflow.likelihoods as gl
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import logsumexp
from scipy.stats import norm, poisson

from gpal.errors import InputError
from gpal.inference.graph import compiled
from gpal.inference.response_distribution import response_log_density, response_moments
from gpal.inference.single_latent import QUADRATURE, SINGLE_LATENT
from gpal.likelihoods.ordinal import Ordinal

EDGES = np.array([-0.5, 0.4, 1.3])
CASES = {
    "wide": gl.StudentT(0.5, 4.0),
    "narrow": gl.StudentT(0.01, 3.0),
    "very narrow": gl.StudentT(1e-4, 3.0),
    "counts": gl.Poisson(),
    "waiting times": gl.Exponential(),
    "gamma": gl.Gamma(shape=40.0),
    "beta": gl.Beta(scale=30.0),
    "grades": Ordinal(EDGES),
}
Y = {
    "counts": [0.0, 3.0, 4000.0],
    "waiting times": [0.01, 1.0, 30.0],
    "gamma": [0.5, 40.0, 900.0],
    "beta": [0.03, 0.5, 0.98],
    "grades": [0.0, 2.0, 3.0],
}


def by_pieces(log_prob, m: float, v: float, y: float) -> float:
    """Forty Gauss-Legendre points in each of many pieces, which halve towards the likeliest f
    given y alone and with N(m, v)."""
    deviation = np.sqrt(v)

    def log_p(f: np.ndarray) -> np.ndarray:
        found = log_prob(
            tf.constant(f.reshape(-1, 1)), tf.constant(np.full((f.size, 1), y))
        ).numpy()
        return np.where(np.isfinite(found), found, -np.inf).reshape(f.shape)

    def joint(f: np.ndarray) -> np.ndarray:
        return log_p(f) + norm.logpdf(f, m, deviation)

    halves = deviation * 2.0 ** np.arange(-30.0, 9.0)
    limits = [m + deviation * np.linspace(-10, 10, 41)]
    for function in (log_p, joint):
        grid = np.linspace(m - 300 * deviation, m + 300 * deviation, 4001)
        for _ in range(4):
            peak, width = grid[np.argmax(function(grid))], grid[1] - grid[0]
            grid = np.linspace(peak - width, peak + width, 201)
        limits += [peak - halves, [peak], peak + halves]
    limits = np.unique(np.concatenate(limits))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.diff(limits)[:, None] / 2
    return float(logsumexp(joint(limits[:-1, None] + half * (1 + nodes)), b=half * weights))


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_integral(name):
    likelihood = CASES[name]
    column = tf.TensorSpec([None, 1], tf.float64)
    log_prob = compiled(lambda f, y: likelihood.log_prob(None, f, y), column, column)
    for m, v in ((0.3, 1e-4), (0.5, 1.0), (-0.5, 6.0)):
        for y in Y.get(name, [0.4, -2.0, 5.0]):
            wanted = by_pieces(log_prob, m, v, y)
            got = response_log_density(likelihood, *(np.array([[part]]) for part in (m, v, y)))
            assert got == pytest.approx(wanted, abs=1e-4, rel=1e-6), (m, v, y)


@pytest.mark.parametrize("sigma", [1.0, 0.1, 0.01, 0.001])
def test_grades_are_right_however_narrow_their_steps(sigma):
    """And so are their mean and variance; GPflow's 20 points are off by a nat."""
    likelihood = Ordinal(np.array([-1.0, 0.3, 1.2]))
    likelihood.sigma.assign(sigma)
    grades = np.arange(4.0)[:, None]
    for m, v in ((0.2, 1.0), (4.0, 1.0), (-1.0, 0.01)):
        f = m + np.sqrt(v) * np.linspace(-9, 9, 400_001)
        weights = norm.pdf(f, m, np.sqrt(v)) * (f[1] - f[0])
        p = [
            np.exp(likelihood.log_prob(None, f[:, None], np.full((len(f), 1), y))) @ weights
            for y in grades[:, 0]
        ]
        one = np.ones_like(grades)
        got = response_log_density(likelihood, m * one, v * one, grades)
        np.testing.assert_allclose(got, np.log(p), atol=1e-5)
        mean, variance = response_moments(likelihood, m * one[:1], v * one[:1])
        p = np.array(p) - 1e-6  # which GPflow adds to a probability in its logarithm only
        p /= p.sum()  # GPflow's Φ ends at 1e-3 and at 1 less that
        assert mean.numpy() == pytest.approx(p @ grades[:, 0], abs=1e-5)
        squares = p @ grades[:, 0] ** 2
        assert variance.numpy() == pytest.approx(squares - (p @ grades[:, 0]) ** 2, abs=1e-5)


def test_a_certain_grade_has_no_variance():
    likelihood, one = Ordinal(np.arange(9.0)), np.ones((1, 1))
    likelihood.sigma.assign(0.1)
    mean, variance = response_moments(likelihood, 30 * one, 0.01 * one)
    assert mean.numpy() == pytest.approx(9, abs=1e-6)
    assert variance.numpy() == pytest.approx(0, abs=1e-6)


def test_every_likelihood_without_a_closed_form_is_tried():
    kinds = {type(each) for each in CASES.values()} | {gl.Ordinal}
    assert {row.kind for row in SINGLE_LATENT.values() if row.prediction == QUADRATURE} <= kinds


def test_a_narrow_response_has_the_density_of_the_latent_function():
    """GPflow's quadrature is off by 8 nats at the mean."""
    likelihood, y = gl.StudentT(1e-3, 3.0), np.linspace(-2.0, 2.0, 9)[:, None]
    one = np.ones_like(y)
    got = response_log_density(likelihood, 0 * one, one, y)
    np.testing.assert_allclose(got, norm.logpdf(y[:, 0]), atol=0.02)
    theirs = likelihood.predict_log_density(None, 0 * one, one, y).numpy()
    assert np.abs(theirs - norm.logpdf(y[:, 0])).max() > 5.0


def test_a_density_integrates_to_one():
    likelihood, counts = gl.Poisson(), np.arange(3000.0)[:, None]
    m, v = np.full_like(counts, 4.0), np.full_like(counts, 0.3)
    assert np.exp(response_log_density(likelihood, m, v, counts)).sum() == pytest.approx(
        1, abs=1e-6
    )


def test_where_there_is_a_closed_form_it_is_taken():
    likelihood, one = gl.Gaussian(0.3), np.ones((3, 1))
    got = response_log_density(likelihood, one, 2 * one, 0.5 * one)
    np.testing.assert_allclose(got, norm.logpdf(0.5, 1.0, np.sqrt(2.3)), rtol=1e-12)


def test_a_function_known_exactly_has_the_density_of_the_response():
    likelihood, y = gl.Poisson(), np.array([[0.0], [2.0], [400.0]])
    mean = np.array([[0.0], [-1.0], [5.0]])
    got = response_log_density(likelihood, mean, np.zeros((3, 1)), y)
    np.testing.assert_allclose(got, poisson.logpmf(y, np.exp(mean))[:, 0], atol=1e-6)


def test_moments_are_those_that_a_response_has():
    mean, variance = np.array([[0.5], [-1.0]]), np.array([[0.2], [2.0]])
    for likelihood in (gl.StudentT(0.3, 5.0), gl.Poisson()):
        for got, theirs in zip(
            response_moments(likelihood, mean, variance),
            likelihood.predict_mean_and_var(None, mean, variance),
        ):
            np.testing.assert_array_equal(got, theirs)
    for df in (2.0, 1.5):
        got = response_moments(gl.StudentT(0.3, df), tf.constant(mean), tf.constant(variance))
        np.testing.assert_array_equal(got[0], mean)
        assert np.isposinf(got[1]).all()
    with pytest.raises(InputError, match="df=1 has no mean"):
        response_moments(gl.StudentT(0.3, 1.0), mean, variance)
