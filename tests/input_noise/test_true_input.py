"""The error model: scale, floor and correlations of the error bars."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from gpal.arrays import as_measurements
from gpal.inference.input_rows import InputRows
from gpal.input_noise.conditional import error_root
from gpal.input_noise.first_order import FirstOrder
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.population import Population
from gpal.input_noise.true_input import SMALLEST_FLOOR, TrueInput

D = 3
PRIOR = Population(np.ones(1), np.array([[0.3, -0.2, 0.1]]), (np.eye(D) + 0.4)[None])


def covariances(n: int = 5, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(n, D, D))
    return 0.3 * A @ np.swapaxes(A, 1, 2)


def test_roots_reproduce_errors_and_covariances():
    X_cov = covariances()
    X_err = np.sqrt(np.einsum("ndd->nd", X_cov))
    root = error_root(X_err, X_cov)
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), X_cov, rtol=1e-6)
    np.testing.assert_array_equal(error_root(X_err), X_err[:, :, None] * np.eye(D))


def test_an_exact_or_missing_feature_has_no_correlation():
    X_cov = covariances(2)
    X_cov[0, 1], X_cov[0, :, 1] = 0.0, 0.0
    X_err = np.sqrt(np.einsum("ndd->nd", X_cov))
    X_err[1, 2] = np.inf
    root = error_root(X_err, X_cov)
    V = root @ np.swapaxes(root, 1, 2)
    assert (V[0, 1] == 0).all() and (V[0, :, 1] == 0).all()
    assert (V[1, 2, :2] == 0).all()
    np.testing.assert_allclose(V[1, :2, :2], X_cov[1, :2, :2], rtol=1e-6)


def test_scale_and_floor_change_the_variances_and_keep_the_correlations():
    X_cov = covariances()
    variance = np.einsum("ndd->nd", X_cov)
    scale, floor = np.array([1.5, 0.7, 0.0]), np.array([0.0, 0.2, 0.4])
    model = TrueInput(PRIOR, scale=scale, floor=floor)
    root = model.scaled(error_root(np.sqrt(variance), X_cov)).numpy()
    V = root @ np.swapaxes(root, 1, 2)
    wanted = scale**2 * variance + floor**2
    np.testing.assert_allclose(np.einsum("ndd->nd", V), wanted, rtol=1e-6)
    for got, given in zip(V, X_cov, strict=True):
        got_correlation = got / np.sqrt(np.outer(np.diag(got), np.diag(got)))
        given_correlation = given / np.sqrt(np.outer(np.diag(given), np.diag(given)))
        np.testing.assert_allclose(got_correlation, given_correlation, atol=1e-6)


def test_a_floor_gives_exact_features_an_error_and_zero_leaves_them_exact():
    exact = np.zeros((2, D, D))
    np.testing.assert_array_equal(TrueInput(PRIOR, scale=2.0).scaled(exact), 0.0)
    np.testing.assert_allclose(TrueInput(PRIOR, floor=0.3).scaled(exact)[0], 0.3 * np.eye(D))


def test_the_covariance_enters_the_textbook_product_of_gaussians():
    X, X_cov = np.random.default_rng(1).normal(size=(5, D)), covariances()
    inputs = InputRows(TrueInput(PRIOR), FirstOrder())
    mean, root = (a.numpy() for a in inputs(*inputs.measurement(as_measurements(X, X_cov=X_cov))))
    m, P = PRIOR.means[0], PRIOR.covariances[0]
    for i in range(len(X)):
        C = np.linalg.inv(np.linalg.inv(P) + np.linalg.inv(X_cov[i]))
        textbook = C @ (np.linalg.solve(P, m) + np.linalg.solve(X_cov[i], X[i]))
        np.testing.assert_allclose(root[i] @ root[i].T, C, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(mean[i], textbook, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("treatment", [FirstOrder(), Integrated(nodes=4)])
@pytest.mark.parametrize("flat", [False, True])
def test_rows_are_differentiable_in_what_is_learned(treatment, flat):
    """Gradient of a function of the rows against central differences, exact features included."""
    model = TrueInput(PRIOR, flat=flat, learn="both", floor=0.3)
    inputs = InputRows(model, treatment)
    rng = np.random.default_rng(2)
    X, X_err = rng.normal(size=(4, D)), rng.uniform(0.1, 0.5, size=(4, D))
    X_err[0] = 0.0
    measured = [tf.constant(a) for a in inputs.measurement(as_measurements(X, X_err))]

    @tf.function(autograph=False)  # as the engine calls it
    def value():
        rows, root = inputs(*measured)
        return tf.reduce_sum(tf.sin(rows)) + tf.reduce_sum(root**2)

    with tf.GradientTape() as tape:
        total = value()
    assert len(inputs.trainable_variables) == 2
    for variable, gradient in zip(
        inputs.trainable_variables, tape.gradient(total, inputs.trainable_variables), strict=True
    ):
        start = variable.numpy()
        for j in range(D):
            step = 1e-5 * np.eye(D)[j]
            variable.assign(start + step)
            above = value()
            variable.assign(start - step)
            np.testing.assert_allclose((above - value()) / 2e-5, gradient[j], atol=1e-6)
            variable.assign(start)


def test_a_learned_floor_starts_above_zero_and_what_is_fixed_has_no_variables():
    assert TrueInput(PRIOR, learn="floor").floor.numpy() == pytest.approx(SMALLEST_FLOOR)
    assert TrueInput(PRIOR, learn="floor", scale=0.0).scale.numpy() == pytest.approx(0.0)
    assert not TrueInput(PRIOR, scale=2.0, floor=1.0).trainable_variables


def test_a_huge_error_has_no_correlation_either():
    """What was not measured says nothing of the other feature, whatever the covariance says."""
    X_err = np.array([[1.0, 2e4]])
    X_cov = np.array([[[1.0, 0.9 * 2e4], [0.9 * 2e4, 4e8]]])
    missing = error_root(np.array([[1.0, np.inf]]), np.where(X_cov > 1.0, 0.0, X_cov))
    np.testing.assert_allclose(error_root(X_err, X_cov), missing, rtol=1e-9)


@pytest.mark.parametrize("beyond", [0.0, 1e-9, 9e-6])
def test_a_correlation_rounded_beyond_one_is_one(beyond):
    """As columns of single precision have it, and as Measurements lets it pass."""
    X_err = np.array([[2.0, 2000.0], [1.0, 1.0]])
    ρ = np.array([1.0 + beyond, 0.5])
    X_cov = np.einsum("ni,nj->nij", X_err, X_err)
    X_cov[:, 0, 1] = X_cov[:, 1, 0] = ρ * X_err.prod(axis=1)
    sources = as_measurements(np.zeros((2, 2)), X_cov=X_cov)
    root = error_root(sources.X_err, sources.covariance)
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), X_cov, rtol=2e-5)
