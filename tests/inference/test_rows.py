"""∂k/∂x of every kind of kernel, and the sites of sources whose input is integrated over."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import make_sites, numerical_derivatives

from gpal.inference.chunks import SparsePosterior
from gpal.inference.derivatives import (
    _forward_derivative,
    rows_and_derivatives,
    rows_and_gradients,
)
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.rows import Data, Sites, meet

k = gpflow.kernels
ARD = [0.7, 1.3, 2.0]
X = np.random.default_rng(0).normal(size=(6, 3))
Z = np.random.default_rng(1).normal(size=(4, 3))

TANGENTS = [tf.constant(np.random.default_rng(s).normal(size=X.shape)) for s in (2, 3)]

KERNELS = {
    "se, ard": lambda: k.SquaredExponential(variance=1.7, lengthscales=ARD),
    "se, scalar": lambda: k.SquaredExponential(variance=1.7, lengthscales=0.8),
    "se, active list": lambda: k.SquaredExponential(lengthscales=[0.7, 1.4], active_dims=[2, 0]),
    "se, active one": lambda: k.SquaredExponential(lengthscales=0.7, active_dims=[1]),
    "se, active slice": lambda: k.SquaredExponential(active_dims=slice(0, 2)),
    "linear, ard": lambda: k.Linear(variance=[0.5, 1.5, 2.5]),
    "linear, scalar": lambda: k.Linear(variance=0.5),
    "linear, active list": lambda: k.Linear(variance=0.5, active_dims=[0, 2]),
    "constant": lambda: k.Constant(2.0),
    "constant, active list": lambda: k.Constant(2.0, active_dims=[0, 1]),
    "matern52": lambda: k.Matern52(lengthscales=ARD),
    "sum": lambda: k.SquaredExponential(lengthscales=ARD) + k.Linear(0.3) + k.Constant(),
    "nested sum": lambda: (k.Matern52() + k.Constant()) + k.Linear(active_dims=[1, 2]),
    "sum, constant first": lambda: k.Constant(0.4) + k.Constant(2.0) + k.Matern32(),
    "constants": lambda: k.Constant(0.4) + k.Constant(2.0),
    "product": lambda: k.SquaredExponential(lengthscales=ARD) * k.Linear(0.3),
    "polynomial": lambda: k.Polynomial(degree=2),
}


@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_equal_finite_differences_and_forward_mode(name):
    kernel = KERNELS[name]()
    K, rows = rows_and_derivatives(kernel, tf.constant(X), tf.constant(Z), TANGENTS)
    np.testing.assert_allclose(K, kernel(X, Z), atol=1e-12)
    derivatives = numerical_derivatives(kernel, X, Z)
    assert len(rows) == 2
    for tangent, row in zip(TANGENTS, rows, strict=True):
        expected = np.einsum("nd,dnm->nm", tangent, derivatives)
        np.testing.assert_allclose(row, expected, atol=1e-8)
        forward = _forward_derivative(kernel, tf.constant(X), tf.constant(Z), tangent)
        np.testing.assert_allclose(row, forward, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_of_sums_of_the_rows_are_those_of_finite_differences(name):
    kernel, alpha = KERNELS[name](), np.random.default_rng(4).normal(size=(4, 2))
    K, gradients = rows_and_gradients(kernel, tf.constant(X), tf.constant(Z), tf.constant(alpha))
    np.testing.assert_allclose(K, kernel(X, Z), atol=1e-12)
    expected = np.einsum("dnm,mp->ndp", numerical_derivatives(kernel, X, Z), alpha)
    np.testing.assert_allclose(gradients, expected, atol=1e-8)


@pytest.mark.parametrize("noisy", [(0, 1, 2), (0, 2)])
@pytest.mark.parametrize("shared", [True, False])
def test_marginals_without_derivative_rows_are_those_with(noisy, shared):
    kernels = [KERNELS["sum"](), KERNELS["matern52"](), KERNELS["polynomial"]()]
    rows = KernelRows(kernels[:1] if shared else kernels, Z, 3, noisy=noisy)
    rng = np.random.default_rng(5)
    root, square = rng.normal(size=(6, 3, 3)), rng.normal(size=(3, 4, 4))
    M = -1e-3 * square @ square.transpose(0, 2, 1)
    posterior = SparsePosterior(*(tf.constant(part) for part in (rng.normal(size=(3, 4)), M, 0.0)))
    at = tf.constant(X), tf.constant(root)
    got = rows.marginals_at(*at, noisy, posterior)
    for one, other in zip(got, rows.marginals(rows.at(*at, noisy), posterior), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert (got[1].numpy() > rows.marginals_at(*at, (), posterior)[1].numpy()).all()


@pytest.mark.parametrize("name", ["se, ard", "matern52"])
def test_derivative_at_an_inducing_point_is_zero(name):
    tangents = [tf.constant(np.random.default_rng(2).normal(size=Z.shape))]
    _, (row,) = rows_and_derivatives(KERNELS[name](), tf.constant(Z), tf.constant(Z), tangents)
    np.testing.assert_allclose(np.diag(row.numpy()), 0.0, atol=1e-14)


def test_rows_that_are_kept_are_those_made_anew():
    kernels = [KERNELS["sum"](), KERNELS["matern52"]()]
    root = np.random.default_rng(4).uniform(size=(len(X), 3, 3))
    data = Data(*(tf.constant(part) for part in (X, np.zeros((len(X), 1)), root)))
    rows = KernelRows(kernels, Z, 2, noisy=(0, 2))
    rows.refresh(data)
    kept = rows.kept(data)
    assert sum(part.numpy().nbytes for part in kept) == rows.bytes_kept(len(X))
    where = tf.constant(1), tf.constant(len(X))
    found, anew = rows.chunk_of(*where, data, kept), rows.chunk_of(*where, data)
    close = partial(np.testing.assert_allclose, rtol=1e-13)
    tf.nest.map_structure(close, found, anew)


def quadratic_rule(precision: float) -> SimpleNamespace:
    """E = −½ θ ((m − y)² + v): a Gaussian of precision θ at y, up to a constant."""
    return SimpleNamespace(
        meet=lambda _, m, v, Y: (
            precision + tf.zeros_like(m),
            precision * Y + tf.zeros_like(m),
            tf.reduce_sum(-0.5 * precision * ((m - Y) ** 2 + v), axis=1),
        ),
        signed=False,
        couples=lambda _: False,
    )


def test_integrated_sites_carry_the_gradient_of_the_log_mean_exponential():
    """∂/∂m and ∂/∂v of log (1/S) Σ_s exp E_s, by the tape, are r − θ m and −θ/2."""
    rng = np.random.default_rng(0)
    nodes, n = 4, 3
    shape = (n * nodes, 2)
    m, v = tf.constant(rng.normal(size=shape)), tf.constant(rng.uniform(size=shape))
    Y, rule = tf.constant(rng.normal(size=(n, 1))), quadratic_rule(1.3)
    with tf.GradientTape() as tape:
        tape.watch([m, v])
        E = tf.reshape(rule.meet(None, m, v, tf.repeat(Y, nodes, axis=0))[2], [n, nodes])
        expected = tf.math.log(tf.reduce_mean(tf.exp(E), axis=1))
    gradient_m, gradient_v = tape.gradient(expected, [m, v])
    sites, terms = meet(rule, None, m, v, Y, nodes)
    np.testing.assert_allclose(terms, expected, rtol=1e-12)
    np.testing.assert_allclose(sites.natural_mean - sites.precision * m, gradient_m, atol=1e-12)
    np.testing.assert_allclose(-0.5 * sites.precision, gradient_v, atol=1e-12)


def test_equal_nodes_are_one_source():
    rng = np.random.default_rng(1)
    m, v = tf.constant(rng.normal(size=(3, 2))), tf.constant(rng.uniform(size=(3, 2)))
    Y, rule = tf.constant(rng.normal(size=(3, 1))), quadratic_rule(0.7)
    one, terms = meet(rule, None, m, v, Y, 1)
    many, many_terms = meet(rule, None, tf.repeat(m, 5, 0), tf.repeat(v, 5, 0), Y, 5)
    np.testing.assert_allclose(many_terms, terms, rtol=1e-12)
    np.testing.assert_allclose(
        many.precision.numpy().reshape(3, 5, 2).sum(axis=1), one.precision, rtol=1e-12
    )


@pytest.mark.parametrize("signed", [False, True])
def test_negative_precision_is_clipped_unless_signed_and_the_mean_gradient_kept(signed):
    m, v, Y = tf.constant([[0.8]], tf.float64), tf.ones([1, 1], tf.float64), tf.zeros([1, 1])
    rule = SimpleNamespace(
        meet=lambda _, m, v, Y: (-2.0 * tf.ones_like(m), 0.3 - 2.0 * m, m[:, 0]), signed=signed
    )
    sites, _ = meet(rule, None, m, v, Y, 1)
    precision = float(sites.precision[0, 0])
    assert precision == -2.0 if signed else 0.0 < precision < 1e-6
    np.testing.assert_allclose(sites.natural_mean - sites.precision * m, [[0.3]], rtol=1e-12)


def test_mixing_sites_is_linear():
    a, b = make_sites(4, 2, seed=0), make_sites(4, 2, seed=1)
    np.testing.assert_array_equal(a.mix(b, 0.0).precision, a.precision)
    np.testing.assert_array_equal(a.mix(b, 1.0).natural_mean, b.natural_mean)
    middle = Sites(*(0.5 * (u + v) for u, v in zip(a, b, strict=True)))
    np.testing.assert_allclose(a.mix(b, 0.5).precision, middle.precision, rtol=1e-15)
