"""Kernels of powers of their inputs, against SciPy's powers and finite differences."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import yeojohnson

from gpal.inference.covariances import covariance, square_covariance
from gpal.inference.derivatives import rows_and_derivatives, rows_and_gradients
from gpal.inference.kernels import make_kernel
from gpal.inference.power_input import FARTHEST, PowerInput, yeo_johnson

rng = np.random.default_rng(0)
POWERS = {
    "power": [0.3, 1.0, -2.0],
    "shift": [0.4, 0.0, -0.2],
    "unit": [0.5, 1.0, 2.0],
    "offset": [0.3, 0.0, -0.1],
    "width": [0.7, 1.0, 1.4],
}
X, Z = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))


def some_kernel() -> PowerInput:
    base = make_kernel("rbf+linear", 3)
    base.kernels[0].lengthscales.assign([0.8, 1.3, 2.0])
    base.kernels[1].variance.assign([0.5, 1.5, 0.2])
    return PowerInput(base, **POWERS)


@pytest.mark.parametrize("power", [-3.0, -0.5, 0.0, 1e-12, 0.5, 1.0, 2.0, 2.0 + 1e-12, 3.5])
def test_powers_are_those_of_scipy(power):
    x = np.concatenate([rng.normal(size=20) * 10.0 ** rng.integers(-9, 3, size=20), [0.0]])
    np.testing.assert_allclose(yeo_johnson(x, power), yeojohnson(x, power), rtol=1e-9)


@pytest.mark.parametrize("power", [-3.0, 0.0, 0.5, 1.0, 2.0, 3.5])
def test_the_derivative_is_right_in_zero_too(power):
    x, step = tf.constant([-40.0, -0.3, 0.0, 0.3, 40.0], tf.float64), 1e-6
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = yeo_johnson(x, power)
    apart = yeo_johnson(x + step, power) - yeo_johnson(x - step, power)
    np.testing.assert_allclose(tape.gradient(y, x), apart / (2 * step), rtol=1e-5, atol=1e-9)
    assert np.all(np.diff(y) > 0)


def test_the_kernel_is_that_of_the_powers():
    kernel, base = some_kernel(), some_kernel().base_kernel
    power, shift, unit, offset, width = (POWERS[key] for key in POWERS)
    inner = [
        np.stack(
            [
                (yeojohnson((part[:, j] + shift[j]) / unit[j], power[j]) - offset[j]) / width[j]
                for j in range(3)
            ],
            axis=1,
        )
        for part in (X, Z)
    ]
    np.testing.assert_allclose(kernel.inner(X), inner[0], rtol=1e-12)
    np.testing.assert_array_equal(kernel.inner(X)[:, 1], X[:, 1])  # of power 1: as it was
    for found in (kernel(X, Z), covariance(kernel, tf.constant(X), tf.constant(Z))):
        np.testing.assert_allclose(found, base(*inner), rtol=1e-12)
    np.testing.assert_allclose(
        square_covariance(kernel, tf.constant(X)), base(inner[0]), rtol=1e-12
    )
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(kernel(X)), rtol=1e-12)


def test_derivatives_of_rows_go_through_the_powers():
    kernel, step = some_kernel(), 1e-6
    alpha = rng.normal(size=(5, 2))
    gradients = rows_and_gradients(kernel, tf.constant(X), tf.constant(Z), tf.constant(alpha))[1]
    for j, e in enumerate(np.eye(3)):
        tangent = tf.constant(np.tile(e, (len(X), 1)))
        along = rows_and_derivatives(kernel, tf.constant(X), tf.constant(Z), [tangent])[1][0]
        apart = (kernel(X + step * e, Z) - kernel(X - step * e, Z)).numpy() / (2 * step)
        np.testing.assert_allclose(along, apart, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(gradients[:, j], apart @ alpha, rtol=1e-5, atol=1e-8)


def test_only_the_kernel_inside_is_learned():
    kernel, base = some_kernel(), make_kernel("rbf+linear", 3)
    assert len(kernel.trainable_variables) == len(base.trainable_variables)


numbers = st.floats(-30, 30)


@settings(max_examples=60, deadline=None)
@given(x=numbers, power=st.floats(-3, 5), shift=numbers, offset=numbers, width=st.floats(0.1, 10))
def test_x_comes_back_from_its_power(x, power, shift, offset, width):
    kernel = PowerInput(gpflow.kernels.Linear(), power, shift, 1.0, offset, width)
    at = np.array([[x]])
    inner = kernel.inner(at).numpy()
    if np.abs(inner).max() == FARTHEST:
        return  # cut off
    spread = width * np.spacing(100.0)  # what rounding leaves of y, in x: by the derivative of p
    power_here = power if x + shift >= 0 else 2.0 - power
    slope = (1.0 + abs(x + shift)) ** (power_here - 1.0)
    tolerance = 1e-9 + 10 * (spread + 1e-14 * (abs(offset) + abs(shift))) / slope
    if tolerance < 1e-3:
        np.testing.assert_allclose(kernel.outer(inner), at, atol=tolerance)


def test_no_power_is_beyond_the_farthest():
    kernel = PowerInput(gpflow.kernels.Linear(), power=-3.0)
    assert kernel.inner(np.array([[-90.0]])).numpy() == -FARTHEST
