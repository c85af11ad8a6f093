"""Kernels by name, and their way into a file and back."""

from __future__ import annotations

import json

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp

from gpal.errors import InputError
from gpal.inference.kernels import KERNELS, describe_module, make_kernel, make_kernels
from gpal.inference.power_input import PowerInput
from gpal.inference.saved_kernels import KEPT, kernel_from_data, kernel_to_data

k = gpflow.kernels
X = np.random.default_rng(0).normal(size=(6, 3))

SAVED = {
    **{name: lambda name=name: make_kernel(name, 3) for name in KERNELS},
    "sum by name": lambda: make_kernel("matern52+linear", 3),
    "ard": lambda: k.SquaredExponential(1.7, [0.3, 2.0, 1.1]),
    "active list": lambda: k.Matern32(0.4, [0.3, 2.0], active_dims=[2, 0]),
    "active slice": lambda: k.SquaredExponential(0.4, active_dims=slice(1, 3)),
    "rational quadratic": lambda: k.RationalQuadratic(1.2, 0.7, alpha=2.3),
    "periodic": lambda: k.Periodic(k.Matern32(0.4, [0.3, 2.0], active_dims=[2, 0]), [1.5, 0.7]),
    "polynomial": lambda: k.Polynomial(2.0, [0.3, 0.2, 0.1], offset=0.4),
    "arc cosine": lambda: k.ArcCosine(1, 0.8, [0.3, 0.2, 0.1], 0.4),
    "cosine": lambda: k.Cosine(0.8, [0.3, 0.2, 0.1]),
    "change points": lambda: k.ChangePoints([k.Matern12(), k.Linear() * k.White(0.1)], [0.2], 3.0),
    "several change points": lambda: k.ChangePoints(
        [k.Matern12(), k.Matern32(), k.Linear()], [-0.3, 0.2], [3.0, 2.0]
    ),
    "white in a product of sums": lambda: (
        (k.White(0.3) + k.Periodic(k.SquaredExponential()))
        * (k.Polynomial(3.0) + k.Exponential(lengthscales=[1.0, 2.0, 3.0]))
    ),
    "powers": lambda: PowerInput(make_kernel("rbf+linear", 3), [0.3, 1.0, -2.0], 0.4, 0.5),
    "nested": lambda: (k.Matern12(0.5) + k.Linear([0.1, 0.2, 0.3])) * k.Constant(3.0),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_kernel_survives_the_file(name):
    kernel = SAVED[name]()
    for i, variable in enumerate(kernel.trainable_variables):
        variable.assign_add(0.1 * (i + 1) * np.ones(variable.shape))
    at = X[:, :1] if "change points" in name else X
    back = kernel_from_data(json.loads(json.dumps(kernel_to_data(kernel))), at.shape[1])
    np.testing.assert_allclose(back(at), kernel(at), rtol=1e-12)
    assert len(back.trainable_variables) == len(kernel.trainable_variables)


def test_every_kernel_of_gpflow_is_kept_or_has_a_reason_not_to_be():
    """A new class of GPflow's is to be thought about, not lost in silence."""
    several = (k.Kernel, k.Static, k.Stationary, k.IsotropicStationary, k.AnisotropicStationary)
    not_of_x = {
        "Convolutional",
        "Coregion",
        "MultioutputKernel",
        "IndependentLatent",
        "Combination",
    }
    not_of_x |= {"SharedIndependent", "SeparateIndependent", "LinearCoregionalization"}
    hierarchical = {"ArcHierarchical", "WedgeHierarchical", "HierarchicalEmbeddingKernel"}
    for name, kind in vars(k).items():
        if isinstance(kind, type) and issubclass(kind, k.Kernel) and kind not in several:
            if name in not_of_x | hierarchical:
                continue
            assert kind.__name__ in KEPT


def test_priors_and_what_is_fixed_come_back():
    kernel = k.Matern32(0.4, [0.3, 2.0, 1.0]) + k.Constant()
    prior = tfp.distributions.Gamma(np.float64(2.0), np.array([3.0, 1.0, 0.5]))
    kernel.kernels[0].lengthscales.prior = prior
    kernel.kernels[1].variance.prior = tfp.distributions.LogNormal(np.float64(0.1), np.float64(2))
    kernel.kernels[1].variance.prior_on = "unconstrained"
    gpflow.set_trainable(kernel.kernels[0].variance, False)
    back = kernel_from_data(json.loads(json.dumps(kernel_to_data(kernel))), 3)
    for got, want in zip(back.parameters, kernel.parameters, strict=True):
        assert got.trainable == want.trainable
        if want.prior is not None:
            np.testing.assert_allclose(
                got.log_prior_density(), want.log_prior_density(), rtol=1e-12
            )


def tied():
    first, second = k.Matern32(), k.Matern12()
    second.lengthscales = first.lengthscales
    return first + second


def bounded():
    kernel = k.SquaredExponential()
    low, high = np.float64(0.1), np.float64(3.0)
    kernel.lengthscales = gpflow.Parameter(1.0, transform=tfp.bijectors.Sigmoid(low, high))
    return kernel


def with_a_prior_of_its_own():
    kernel = k.SquaredExponential()
    kernel.variance.prior = tfp.distributions.Weibull(np.float64(1.0), np.float64(1.0))
    return kernel


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda: type("OwnKernel", (k.SquaredExponential,), {})(), "class 'OwnKernel'"),
        (lambda: type("RBF", (k.SquaredExponential,), {})() + k.White(), "class 'RBF'"),
        (lambda: k.SharedIndependent(k.RBF(), 2), "class 'SharedIndependent'"),
        (tied, "one 'lengthscales' in two places"),
        (bounded, "bijector of its own on 'lengthscales'"),
        (with_a_prior_of_its_own, "the prior Weibull on 'variance'"),
    ],
)
def test_a_kernel_that_would_not_come_back_is_refused(kernel, message):
    with pytest.raises(InputError, match=message):
        kernel_to_data(kernel())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": []}, "not made of 0 kernels"),
        ({"options": {"locations": 7}}, "not made of 2 kernels"),
        ({"active_dims": [0]}, "'active_dims'"),
        ({"priors": {"steepness": {"class": "Zipf", "parameters": {}, "on": "x"}}}, "a prior"),
        ({"parameters": {"locations": [0.0, 1.0], "steepness": 1.0}}, "'locations'"),
    ],
)
def test_a_description_that_is_none_is_refused(changes, message):
    data = kernel_to_data(SAVED["change points"]())
    with pytest.raises(InputError, match=message):
        kernel_from_data({**data, **changes}, 3)


def test_a_list_has_one_kernel_for_each_latent_function():
    mine = ["rbf", k.Matern32()]
    kernels = make_kernels(mine, 3, 2, shared=True)
    assert isinstance(kernels[0], k.Sum) and type(kernels[1]) is k.Matern32
    assert len(make_kernels("rbf", 3, 4, shared=False)) == 4
    with pytest.raises(InputError, match="list of 2, one is needed for 3"):
        make_kernels(mine, 3, 3, shared=True)
    with pytest.raises(InputError, match="several outputs: give a list"):
        make_kernels(k.SharedIndependent(k.RBF(), 2), 3, 2, shared=True)


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


@pytest.mark.parametrize("dims", [[5], [-1], slice(1, 9), slice(2, None)])
def test_a_kernel_of_a_feature_that_is_not_there(dims):
    """TensorFlow's own message names neither the kernel nor the feature; a slice it cuts."""
    part = gpflow.kernels.Matern32(active_dims=dims)
    for kernel in (
        part,
        gpflow.kernels.Matern32() + part,
        gpflow.kernels.ChangePoints([part] * 2, [0.0]),
    ):
        with pytest.raises(InputError, match=r"Matern32 is of feature .* and X has 2"):
            make_kernel(kernel, 2)
    make_kernel(part, None)
    make_kernel(gpflow.kernels.Matern32(active_dims=[1]), 2)
