"""FullGP against dense NumPy, GPflow's exact regression, and SparseGP at the same points."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import Dense, make_data, make_sites, posterior_moments

from gpal.inference.full import FullGP
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.rows import Data, Sites
from gpal.inference.sparse import SparseGP

k = gpflow.kernels


@pytest.fixture(scope="module")
def case():
    data, sites = make_data(25, 3, 2), make_sites(25, 2)
    kernels = [
        k.Matern52(1.5, [1.0, 1.5, 2.0]) + k.Linear([0.2, 0.3, 0.1]),
        k.Matern32(0.8, 1.2) + k.Constant(0.5),
    ]
    gp = FullGP(KernelRows(kernels, data.X.numpy(), 2))
    gp.refresh(data)
    return gp, data, sites


def test_solution_equals_the_dense_one(case):
    gp, data, sites = case
    posterior, kl = gp.posterior(data, sites), 0.0
    for c in range(2):
        dense = Dense(gp, data, sites, c, jitter=0.0)
        mu, Sigma = dense.solution()
        got_mu, got_Sigma = posterior_moments(gp, posterior, c, jitter=0.0)
        np.testing.assert_allclose(got_mu, mu, atol=1e-8)
        np.testing.assert_allclose(got_Sigma, Sigma, atol=1e-8)
        kl += dense.kl(mu, Sigma)
    np.testing.assert_allclose(posterior.kl, kl, rtol=1e-8)


def assert_gradient(variables, gradients, bound):
    """The gradients are those of `bound`, by differences along a direction of each variable."""
    for variable, gradient in zip(variables, gradients, strict=True):
        start = variable.numpy()
        direction = np.random.default_rng(0).normal(size=start.shape)
        values = []
        for step in (1e-5, -1e-5):
            variable.assign(start + step * direction)
            values.append(bound())
        variable.assign(start)
        slope = (values[0] - values[1]) / 2e-5
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5, atol=1e-6)


def test_collapsed_bound_and_gradient(case):
    gp, data, sites = case

    def dense_bound():
        return sum(Dense(gp, data, sites, c, jitter=0.0).collapsed() for c in range(2))

    J, gradients = gp.bound_and_gradient(data, sites)
    np.testing.assert_allclose(J, dense_bound(), rtol=1e-8)
    assert len(gradients) == len(gp.trainable_variables) == 6
    assert_gradient(gp.trainable_variables, gradients, dense_bound)


def test_collapsed_bound_and_gradient_of_negative_precisions(case):
    """Against dense algebra and differences of it; NaN where Σ is not positive definite."""
    gp, data, sites = case
    precision = sites.precision.numpy().copy()
    precision[::5] = -0.05
    signed = Sites(tf.constant(precision), sites.natural_mean)

    def dense_bound():
        total = 0.0
        for c in range(2):
            K = gp.kernels[c](data.X).numpy()
            theta, r = precision[:, c], sites.natural_mean.numpy()[:, c]
            inverse = np.linalg.inv(K) + np.diag(theta)
            assert np.linalg.eigvalsh(inverse).min() > 0
            log_det = np.linalg.slogdet(np.eye(len(K)) + K * theta)[1]
            total += 0.5 * r @ np.linalg.solve(inverse, r) - 0.5 * log_det
        return total

    J, gradients = gp.collapsed(data, signed)[:2]
    np.testing.assert_allclose(J, dense_bound(), rtol=1e-7)
    assert_gradient(gp.trainable_variables, gradients, dense_bound)
    precision[::5] = -5.0
    assert np.isnan(gp.collapsed(data, Sites(tf.constant(precision), sites.natural_mean))[0])


def test_sparse_with_inducing_points_at_the_data_is_the_full_gp(case):
    gp, data, sites = case
    sparse = SparseGP(KernelRows(gp.kernels, data.X.numpy(), 2), jitter=1e-13)
    a, b = gp.posterior(data, sites), sparse.posterior(data, sites)
    np.testing.assert_allclose(a.kl, b.kl, rtol=1e-7)
    new = np.random.default_rng(3).normal(size=(9, 3))
    for got, want in zip(gp.marginals(a, new), sparse.marginals(b, new), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-7)
    np.testing.assert_allclose(
        gp.bound_and_gradient(data, sites)[0], sparse.bound_and_gradient(data, sites)[0], rtol=1e-7
    )


@pytest.mark.parametrize("white", [0.0, 0.4])
def test_gaussian_sites_are_gp_regression(white):
    """θ = 1/σ², r = y/σ²: J + Σ log N(y | 0, σ²) is the log evidence of GPR, to 1e-8.

    White noise of the kernel is in f at the training inputs, and anew in a prediction there.
    """
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(30, 2)), 0.1
    y = np.sin(2 * X[:, :1]) + np.sqrt(noise) * rng.normal(size=(30, 1))
    kernel = k.SquaredExponential(1.3, [0.8, 1.5])
    if white:
        kernel = kernel + k.White(white)
    new = np.concatenate([rng.normal(size=(7, 2)), X[:5]])
    gpr = gpflow.models.GPR((X, y), kernel, noise_variance=noise)
    gpflow.set_trainable(gpr.likelihood, False)
    with tf.GradientTape() as tape:
        evidence = gpr.log_marginal_likelihood()
    expected = tape.gradient(evidence, gpr.trainable_variables)
    mean, variance = gpr.predict_f(new)

    gp = FullGP(KernelRows([kernel], X, 1))
    data = Data(tf.constant(X), tf.constant(y), tf.zeros([30, X.shape[1], X.shape[1]], tf.float64))
    sites = Sites(tf.fill([30, 1], tf.constant(1.0 / noise, tf.float64)), tf.constant(y / noise))
    gp.refresh(data)
    J, gradients = gp.bound_and_gradient(data, sites)
    constant = np.sum(-0.5 * np.log(2 * np.pi * noise) - 0.5 * y**2 / noise)
    np.testing.assert_allclose(J + constant, evidence, rtol=1e-8)
    got_mean, got_variance = gp.marginals(gp.posterior(data, sites), new)
    np.testing.assert_allclose(got_mean, mean, atol=1e-8)
    np.testing.assert_allclose(got_variance, variance, atol=1e-8)
    found = {id(v): g for v, g in zip(gp.trainable_variables, gradients, strict=True)}
    for v, g in zip(gpr.trainable_variables, expected, strict=True):
        np.testing.assert_allclose(found[id(v)], g, rtol=1e-7)
