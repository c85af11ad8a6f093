"""q(x_i) of the treatments that draw their inputs: the algebra, and a posterior that is known."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import multivariate_normal, poisson

from gpal.inference.base import Problem
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.rows import Data
from gpal.inference.single_latent import SingleLatentSites
from gpal.inference.sparse import SparseGP
from gpal.inference.svgp import SVGP, GradientSchedule, fit_svgp
from gpal.input_noise import make_input_noise
from gpal.input_noise.drawn import InputPosterior
from gpal.input_noise.latent import Latent
from gpal.input_noise.population import Population
from gpal.likelihoods.quasi_random import antithetic_normal

D = 3
PRIOR = Population(np.ones(1), np.array([[0.3, -0.2, 0.1]]), (np.eye(D) + 0.4)[None])
DRAWN = ("latent", "amortized", "resampled")


def moments(n: int = 6, seed: int = 0):
    """x̃, σ and the tensors b, R of n sources; the second feature of the first is exact."""
    rng = np.random.default_rng(seed)
    X, X_err = rng.normal(size=(n, D)), rng.uniform(0.1, 0.8, size=(n, D))
    X_err[0, 1] = 0.0
    return X, X_err, *PRIOR.condition(X, X_err).moments()


class Fixed(InputPosterior):
    """q(x_i) with given a and log s."""

    def __init__(self, a, log_s):
        super().__init__()
        self.a, self.log_s = tf.constant(a), tf.constant(log_s)

    def parameters_of(self, sources, b, root, Y):
        return tf.gather(self.a, sources), tf.gather(self.log_s, sources)


def test_the_penalty_is_that_of_the_paper_up_to_the_evidence():
    """E_q log N(x̃ | x, V) − KL(q(x) ‖ p(x)) = log p(x̃) − KL_i, eq. 10 written out in full."""
    X, X_err, b, R = moments()
    X_err[0, 1] = 0.3
    b, R = PRIOR.condition(X, X_err).moments()
    rng = np.random.default_rng(1)
    a, log_s = rng.normal(size=(2, 6, D))
    _, divergence = Fixed(a, log_s).draw(np.arange(6), b, R, None, np.zeros((6, D)))
    evidence = PRIOR.condition(X, X_err).log_evidence.numpy()
    m, P = PRIOR.means[0], PRIOR.covariances[0]
    for i in range(6):
        Ri = R[i].numpy()
        mean, C = b[i].numpy() + Ri @ a[i], Ri @ np.diag(np.exp(2 * log_s[i])) @ Ri.T
        V = np.diag(X_err[i] ** 2)
        likelihood = multivariate_normal(X[i], V).logpdf(mean) - 0.5 * np.trace(
            np.linalg.inv(V) @ C
        )
        away = mean - m
        kl = 0.5 * (
            np.trace(np.linalg.solve(P, C))
            - D
            + away @ np.linalg.solve(P, away)
            + np.linalg.slogdet(P)[1]
            - np.linalg.slogdet(C)[1]
        )
        np.testing.assert_allclose(likelihood - kl, evidence[i] - divergence[i], rtol=1e-8)


def test_draws_have_the_moments_of_q():
    _, _, b, R = moments()
    a, log_s = np.random.default_rng(1).normal(size=(2, 6, D))
    normal = antithetic_normal(64, D)[:, None]
    x, _ = Fixed(a, log_s).draw(np.arange(6), b, R, None, normal)
    np.testing.assert_allclose(tf.reduce_mean(x, 0), b + tf.linalg.matvec(R, a), atol=1e-12)
    away = x - tf.reduce_mean(x, 0)
    got = tf.einsum("sid,sie->ide", away, away) / 64
    want = R.numpy() @ (np.exp(2 * log_s)[..., None] * np.swapaxes(R.numpy(), 1, 2))
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("name", DRAWN)
def test_training_starts_at_the_prior(name):
    _, _, b, R = moments()
    q = make_input_noise(name).posterior(6, D, 3, seed=0)
    Y, normal = np.arange(6.0)[:, None] % 3, np.random.default_rng(2).normal(size=(1, 6, D))
    x, divergence = q.draw(np.arange(6), b, R, Y, normal)
    np.testing.assert_allclose(x, b + tf.linalg.matvec(R, normal), atol=1e-14)
    np.testing.assert_array_equal(divergence, 0.0)


def moved(name: str, n: int, num_classes: int | None = 3):
    """q(x_i) with random parameters."""
    q = make_input_noise(name).posterior(n, D, num_classes, seed=0)
    rng = np.random.default_rng(3)
    for variable in q.trainable_variables:
        variable.assign(rng.normal(size=variable.shape) * 0.3)
    return q


def test_the_network_leaves_exact_features_alone_and_sees_errors_and_labels():
    _, _, b, R = moments()
    q = moved("amortized", 6)
    Y = np.zeros((6, 1))
    a, log_s = (part.numpy() for part in q.parameters_of(None, b, R, Y))
    assert a[0, 1] == log_s[0, 1] == 0.0
    assert np.count_nonzero(a) == np.count_nonzero(log_s) == 6 * D - 1
    x, _ = q.draw(None, b, R, Y, np.ones((1, 6, D)))
    assert x[0, 0, 1] == b[0, 1]
    for other in (q.parameters_of(None, b, R, Y + 1), q.parameters_of(None, b, 0.5 * R, Y)):
        assert np.abs(other[0] - a)[1:].min() > 1e-4
    without = q.draw(None, b, 0.0 * R, Y, np.ones((1, 6, D)))
    np.testing.assert_array_equal(without[0][0], b)
    np.testing.assert_array_equal(without[1], 0.0)


@pytest.mark.parametrize("name", ["latent", "amortized"])
def test_a_batch_takes_labels_error_bars_and_q_of_its_sources_along(name):
    """Labels, errors or q left behind while x is shuffled is the mistake this is for."""
    _, _, b, R = moments(12)
    data = Data(b, tf.constant(np.arange(12.0)[:, None] % 2), R)
    Z = np.random.default_rng(4).normal(size=(5, D))
    model = SVGP(
        SparseGP(KernelRows([gpflow.kernels.SquaredExponential()], Z, 1)),
        gpflow.likelihoods.Gaussian(0.5),
        SingleLatentSites(),
        12,
        input_posterior=moved(name, 12, 2),
    )
    model.q_mean.assign(np.random.default_rng(5).normal(size=(5, 1)))
    normal = np.random.default_rng(6).normal(size=(4, 12, D))
    of_all = model.terms(data, tf.range(12), tf.constant(normal)).numpy()
    some = np.random.default_rng(7).permutation(12)[:5]
    batch = model._batch(data, tf.constant(some))
    of_some = model.terms(batch, tf.constant(some), tf.constant(normal[:, some]))
    np.testing.assert_allclose(of_some, of_all[some], rtol=1e-10)
    left_behind = model.terms(
        batch._replace(root=R[:5]), tf.constant(some), tf.constant(normal[:, some])
    )
    assert np.abs(left_behind - of_all[some]).max() > 1e-3


# A latent function that is known and linear, f(x) = w·x, and a Gaussian likelihood: p(x | x̃, y) is
# Gaussian, with precision I + Rᵀw wᵀR/τ² of z, and p(y | x̃) = N(y | w·b, wᵀRRᵀw + τ²).
SLOPE, VARIANCE = np.array([1.5, -0.8]), 0.2


def linear_gaussian(n: int = 8):
    rng = np.random.default_rng(8)
    b = rng.normal(size=(n, 2))
    R = rng.uniform(0.2, 1.0, size=(n, 2))[:, :, None] * np.eye(2)
    R[: n // 2, 1, 1] = 0.0  # one noisy feature: there the exact posterior is in the family
    y = b @ SLOPE + rng.normal(size=n)
    kernel = gpflow.kernels.Linear(variance=np.ones(2))
    gp = SparseGP(KernelRows([kernel], np.eye(2), 1))
    model = SVGP(
        gp,
        gpflow.likelihoods.Gaussian(VARIANCE),
        SingleLatentSites(),
        n,
        input_posterior=Latent().posterior(n, 2, None, 0),
        learning_rate=0.02,
    )
    # u = f(Z) = L v at the two unit vectors is the slope; v has next to no variance.
    L = np.linalg.cholesky(np.eye(2) * (1 + 1e-6))
    model.q_mean.assign(np.linalg.solve(L, SLOPE)[:, None])
    model.q_root.assign(1e-4 * np.eye(2)[None])
    for part in (model.q_mean, model.q_root, model.gp, model.likelihood):
        gpflow.set_trainable(part, False)
    return model, Data(*map(tf.constant, (b, y[:, None], R)))


def exact_posterior(data):
    b, y, R = data.X.numpy(), data.Y.numpy()[:, 0], data.root.numpy()
    direction = np.swapaxes(R, 1, 2) @ SLOPE
    precision = np.eye(2) + direction[:, :, None] * direction[:, None] / VARIANCE
    pull = direction * ((y - b @ SLOPE) / VARIANCE)[:, None]
    a = np.linalg.solve(precision, pull[..., None])[..., 0]
    total = np.sum(direction**2, axis=1) + VARIANCE
    evidence = -0.5 * ((y - b @ SLOPE) ** 2 / total + np.log(2 * np.pi * total))
    return a, 1.0 / np.sqrt(np.einsum("ndd->nd", precision)), evidence


def test_the_bound_is_stationary_at_the_exact_posterior_and_tight_where_that_is_in_the_family():
    model, data = linear_gaussian()
    a, s, evidence = exact_posterior(data)
    values = model.input_posterior.values
    values.assign(np.concatenate([a, np.log(s)], axis=1))
    normal = tf.constant(antithetic_normal(8, 2)[:, None])
    with tf.GradientTape() as tape:
        terms = model.terms(data, tf.range(8), normal)
        total = tf.reduce_sum(terms)
    gradient = tf.convert_to_tensor(tape.gradient(total, values))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4)  # jitter of K(Z, Z)
    np.testing.assert_allclose(terms[:4], evidence[:4], atol=1e-4)
    assert (terms.numpy()[4:] < evidence[4:] - 1e-3).all()


def test_latent_inputs_are_recovered_by_training():
    model, data = linear_gaussian()
    a, s, _ = exact_posterior(data)
    for k in range(800):
        model.step(data, tf.range(8), tf.constant(k))
    got_a, got_s = np.split(model.input_posterior.values.numpy(), 2, axis=1)
    np.testing.assert_allclose(got_a, a, atol=0.15)
    np.testing.assert_allclose(np.exp(got_s), s, atol=0.1)
    exact = data.root.numpy().any(axis=1) == 0
    assert exact.any()
    np.testing.assert_array_equal(got_a[exact], 0.0)
    np.testing.assert_array_equal(got_s[exact], 0.0)


@pytest.mark.parametrize("name", DRAWN)
def test_a_likelihood_of_gpflow_trains_too(name):
    """Poisson counts, a single latent function: sec. 3.5 of the paper."""
    rng = np.random.default_rng(9)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = rng.poisson(np.exp(1.0 + X[:, 0])).astype(float)
    root = np.tile(0.2 * np.eye(2), (60, 1, 1))
    data = Data(*map(tf.constant, (X + 0.2 * rng.normal(size=X.shape), y[:, None], root)))
    gp = SparseGP(
        KernelRows([gpflow.kernels.SquaredExponential(lengthscales=np.ones(2))], X[:10], 1)
    )
    fit = fit_svgp(
        Problem(
            gp, gpflow.likelihoods.Poisson(), SingleLatentSites(), data, make_input_noise(name)
        ),
        GradientSchedule(steps=150, learning_rate=0.05),
    )
    mean, _ = gp.marginals(fit.posterior, X)
    assert np.corrcoef(mean[:, 0], X[:, 0])[0, 1] > 0.9
    best_constant = poisson(y.mean()).logpmf(y).mean()
    assert fit.bound / 60 > best_constant
