"""Kernels by name, and their way into a file and back."""

from __future__ import annotations

import json

import gpflow
import numpy as np
import pytest

from gpal.errors import InputError
from gpal.inference.kernels import (
    KERNELS,
    describe_module,
    kernel_from_data,
    kernel_to_data,
    make_kernel,
)

k = gpflow.kernels
X = np.random.default_rng(0).normal(size=(6, 3))

SAVED = {
    **{name: lambda name=name: make_kernel(name, 3) for name in KERNELS},
    "sum by name": lambda: make_kernel("matern52+linear", 3),
    "ard": lambda: k.SquaredExponential(1.7, [0.3, 2.0, 1.1]),
    "active list": lambda: k.Matern32(0.4, [0.3, 2.0], active_dims=[2, 0]),
    "active slice": lambda: k.SquaredExponential(0.4, active_dims=slice(1, 3)),
    "rational quadratic": lambda: k.RationalQuadratic(1.2, 0.7, alpha=2.3),
    "nested": lambda: (k.Matern12(0.5) + k.Linear([0.1, 0.2, 0.3])) * k.Constant(3.0),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_kernel_survives_the_file(name):
    kernel = SAVED[name]()
    for i, variable in enumerate(kernel.trainable_variables):
        variable.assign_add(0.1 * (i + 1) * np.ones(variable.shape))
    back = kernel_from_data(json.loads(json.dumps(kernel_to_data(kernel))), X.shape[1])
    np.testing.assert_allclose(back(X), kernel(X), rtol=1e-12)
    assert len(back.trainable_variables) == len(kernel.trainable_variables)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: k.Periodic(k.SquaredExponential()),
        lambda: k.Polynomial(degree=2),
        lambda: k.ArcCosine(order=1),
        lambda: k.ChangePoints([k.Linear(), k.SquaredExponential()], [0.0]),
        lambda: type("OwnKernel", (k.SquaredExponential,), {})(),
    ],
)
def test_a_kernel_that_would_not_come_back_is_refused(kernel):
    with pytest.raises(InputError, match="cannot be saved"):
        kernel_to_data(kernel())


def test_named_kernels_have_one_scale_per_feature_and_an_offset():
    kernel = make_kernel("rbf+linear", 3)
    shapes = sorted(tuple(v.shape) for v in kernel.trainable_variables)
    assert shapes == [(), (), (3,), (3,)]
    assert isinstance(kernel.kernels[-1], k.Constant)
    # the trained variable is the logarithm
    np.testing.assert_allclose(
        np.exp(kernel.kernels[0].lengthscales.unconstrained_variable),
        kernel.kernels[0].lengthscales,
    )


def test_a_kernel_object_is_copied():
    mine = k.SquaredExponential()
    copy = make_kernel(mine, 3)
    copy.variance.assign(9.0)
    assert float(mine.variance.numpy()) == 1.0


@pytest.mark.parametrize("name", ["rbff", "rbf+", "rbf*linear"])
def test_an_unknown_name_is_an_input_error_that_lists_the_known_ones(name):
    with pytest.raises(InputError, match="rbf, matern32"):
        make_kernel(name, 3)


def test_any_kernel_can_be_described():
    described = describe_module(k.Periodic(k.SquaredExponential(2.0), period=3.0))
    assert described["class"] == "Periodic"
    assert described["parameters"]["period"] == 3.0
    assert described["parameters"]["base_kernel.variance"] == 2.0
    json.dumps(described)
