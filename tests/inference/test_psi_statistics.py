"""Psi statistics against Monte Carlo, GPflow's closed forms, and the limits R → 0 and R → ∞."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.expectations import expectation
from gpflow.inducing_variables import InducingPoints
from gpflow.probability_distributions import Gaussian
from scipy.stats import norm, qmc

from gpal.errors import InputError
from gpal.inference.kernels import make_kernel
from gpal.inference.psi_statistics import check_kernel, psi_statistics

k = gpflow.kernels
ARD = [0.7, 1.3, 2.0]
RNG = np.random.default_rng(0)
MEAN, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
ROOT = RNG.uniform(-0.4, 0.8, size=(6, 3, 2))  # two directions of noise in three features

KERNELS = {
    "se, ard": lambda: k.SquaredExponential(variance=1.7, lengthscales=ARD),
    "se, scalar": lambda: k.SquaredExponential(variance=1.7, lengthscales=0.8),
    "se, active list": lambda: k.SquaredExponential(lengthscales=[0.7, 1.4], active_dims=[2, 0]),
    "se, active slice": lambda: k.SquaredExponential(active_dims=slice(0, 2)),
    "linear, ard": lambda: k.Linear(variance=[0.5, 1.5, 2.5]),
    "linear, scalar": lambda: k.Linear(variance=0.5),
    "constant": lambda: k.Constant(2.0),
    "rbf": lambda: make_kernel("rbf", 3),
    "rbf+linear": lambda: make_kernel("rbf+linear", 3),
    "nested sum": lambda: (
        (k.Linear(0.3) + k.Constant())
        + (k.Linear([0.2, 0.4], active_dims=[1, 2]) + k.SquaredExponential(lengthscales=ARD))
    ),
}


def statistics(kernel, root=ROOT):
    return tuple(
        a.numpy() for a in psi_statistics(kernel, *(tf.constant(a) for a in (MEAN, root, Z)))
    )


@pytest.mark.parametrize("name", KERNELS)
def test_moments_equal_those_over_many_inputs(name):
    """2¹⁶ quasi-random inputs: to 2e-3 of the kernel's scale."""
    kernel = KERNELS[name]()
    psi1, psi0, covariance = statistics(kernel)
    uniform = qmc.Sobol(2, seed=0).random_base2(16)
    for i in range(len(MEAN)):
        x = MEAN[i] + norm.ppf(uniform) @ ROOT[i].T
        K, diagonal = kernel(x, Z).numpy(), kernel(x, full_cov=False).numpy()
        scale = diagonal.mean()
        np.testing.assert_allclose(psi1[i], K.mean(axis=0), atol=2e-4 * scale)
        np.testing.assert_allclose(psi0[i], diagonal.mean(), rtol=2e-4)
        np.testing.assert_allclose(
            covariance[i], np.cov(K, rowvar=False, bias=True), atol=2e-4 * scale**2
        )


@pytest.mark.parametrize("name", ["se, ard", "se, scalar", "linear, ard", "linear, scalar"])
def test_moments_equal_gpflows(name):
    kernel, inducing = KERNELS[name](), InducingPoints(Z)
    psi1, psi0, covariance = statistics(kernel)
    p = Gaussian(tf.constant(MEAN), tf.constant(ROOT @ np.swapaxes(ROOT, 1, 2)))
    pair = (kernel, inducing)
    np.testing.assert_allclose(psi1, expectation(p, pair), rtol=1e-9)
    np.testing.assert_allclose(psi0, expectation(p, kernel), rtol=1e-9)
    second = covariance + psi1[:, :, None] * psi1[:, None, :]
    np.testing.assert_allclose(second, expectation(p, pair, pair), rtol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_an_exact_input_has_the_kernels_own_rows_and_no_covariance(name):
    kernel = KERNELS[name]()
    psi1, psi0, covariance = statistics(kernel, np.zeros_like(ROOT))
    np.testing.assert_allclose(psi1, kernel(MEAN, Z), rtol=1e-13)
    np.testing.assert_allclose(psi0, kernel(MEAN, full_cov=False), rtol=1e-13)
    np.testing.assert_array_equal(covariance, 0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_small_errors_give_the_slopes(name):
    """Δ → (∂k/∂x) R Rᵀ (∂k/∂x)ᵀ, the covariance of first order."""
    kernel, root = KERNELS[name](), 1e-4 * ROOT
    _, _, covariance = statistics(kernel, root)
    step = 1e-5 * np.eye(3)
    slopes = np.stack([(kernel(MEAN + s, Z) - kernel(MEAN - s, Z)).numpy() / 2e-5 for s in step], 1)
    along = np.einsum("nde,ndm->nem", root, slopes)
    expected = np.einsum("nej,nek->njk", along, along)
    np.testing.assert_allclose(covariance, expected, rtol=1e-4, atol=1e-14)


def test_far_points_and_huge_errors_stay_finite():
    """200 lengthscales away, and errors of 10⁵: neither overflow nor NaN, in value or gradient."""
    kernel = make_kernel("rbf", 3)
    far = tf.constant(np.concatenate([Z, Z + 400.0]))
    for scale in (0.0, 1e-8, 1.0, 1e5):
        root = tf.constant(scale * ROOT)
        with tf.GradientTape() as tape:
            values = psi_statistics(kernel, tf.constant(MEAN), root, far)
            total = tf.add_n([tf.reduce_sum(v) for v in values])
        assert all(np.isfinite(v).all() for v in values)
        assert all(np.isfinite(g).all() for g in tape.gradient(total, kernel.trainable_variables))
    assert (np.abs(values.covariance) < 16.0).all()


@pytest.mark.parametrize("name", ["matern52", "rbf+rbf", "rbf+matern32"])
def test_a_kernel_without_closed_form_is_refused(name):
    with pytest.raises(InputError, match=r"closed forms for sums of.*choose kernel='rbf'"):
        check_kernel(make_kernel(name, 3))
    with pytest.raises(InputError, match="not Product"):
        check_kernel(k.SquaredExponential() * k.Linear())
