"""Kernels by name, with log-transformed parameters, and their plain-data form for model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.errors import InputError, shown
from gpal.files.saved_data import check_fields

__all__ = ["KERNELS", "describe_module", "kernel_from_data", "kernel_to_data", "make_kernel"]

KERNELS = {
    "rbf": gpflow.kernels.SquaredExponential,
    "matern32": gpflow.kernels.Matern32,
    "matern52": gpflow.kernels.Matern52,
    "linear": gpflow.kernels.Linear,
}


POSITIVE = tfp.bijectors.Exp()


def positive(value: float | np.ndarray) -> gpflow.Parameter:
    """A positive parameter, optimised as its logarithm."""
    return gpflow.Parameter(value, transform=POSITIVE, dtype=tf.float64)


def make_kernel(kernel: str | gpflow.kernels.Kernel, num_features: int) -> gpflow.kernels.Kernel:
    """A kernel from a name such as "rbf" or "rbf+linear"; a GPflow kernel is copied as it is.

    Named kernels have one lengthscale (linear: one variance) per feature, in standardised units,
    and a constant added: its variance is that of the latent functions' offsets.
    """
    if isinstance(kernel, gpflow.kernels.Kernel):
        return gpflow.utilities.deepcopy(kernel)
    parts = []
    for name in str(kernel).split("+"):
        if name not in KERNELS:
            raise InputError(f"no kernel '{name}'; there are: {', '.join(KERNELS)}, joined by '+'")
        part = KERNELS[name]()
        if name == "linear":
            part.variance = positive(np.full(num_features, 1.0))
        else:
            part.variance = positive(4.0)
            part.lengthscales = positive(np.full(num_features, np.sqrt(num_features)))
        parts.append(part)
    constant = gpflow.kernels.Constant()
    constant.variance = positive(1.0)
    return gpflow.kernels.Sum([*parts, constant])


def describe_module(module: gpflow.base.Module) -> dict:
    """Class and parameter values by path, of any kernel or likelihood: to read, not to rebuild it
    from."""
    return {"class": type(module).__name__, "parameters": _parameters(module)}


def _parameters(module: gpflow.base.Module) -> dict:
    return {
        path.lstrip("."): np.asarray(parameter).tolist()
        for path, parameter in gpflow.utilities.parameter_dict(module).items()
    }


# What the parameters and active dimensions describe completely.
NON_STATIONARY = (gpflow.kernels.Linear, gpflow.kernels.Constant, gpflow.kernels.White)
KEPT = {
    name: kind
    for name, kind in vars(gpflow.kernels).items()
    if isinstance(kind, type)
    and (issubclass(kind, gpflow.kernels.Stationary) or kind in NON_STATIONARY)
}
COMBINATIONS = {kind.__name__: kind for kind in (gpflow.kernels.Sum, gpflow.kernels.Product)}
FIELDS = {
    "class": set(KEPT),
    "parameters": dict,
    "fixed": [str],
    "logarithmic": [str],
    "active_dims": (dict, [int]),
}


def kernel_to_data(kernel: gpflow.kernels.Kernel) -> dict[str, Any]:
    """JSON-able description: class name, children or parameters. InputError where there is none.

    Of a parameter its value, whether it is learned, and whether as its logarithm; a prior has no
    name to be kept by.
    """
    name = type(kernel).__name__
    if type(kernel) in COMBINATIONS.values():
        return {"class": name, "kernels": [kernel_to_data(part) for part in kernel.kernels]}
    if KEPT.get(name) is not type(kernel):
        raise InputError(
            f"a model with the kernel class '{name}' cannot be saved: use sums and products of"
            " GPflow's stationary, Linear and Constant kernels"
        )
    dims = kernel.active_dims
    if isinstance(dims, slice):
        active: object = {"slice": [dims.start, dims.stop, dims.step]}
    else:
        active = np.asarray(dims).tolist()
    parameters = {
        path.lstrip("."): parameter
        for path, parameter in gpflow.utilities.parameter_dict(kernel).items()
    }
    for path, parameter in parameters.items():
        if parameter.prior is not None:
            raise InputError(
                f"a model whose kernel has a prior on '{path}' cannot be saved; fit without it"
            )
    return {
        "class": name,
        "parameters": _parameters(kernel),
        "fixed": [path for path, p in parameters.items() if not p.trainable],
        "logarithmic": [
            path for path, p in parameters.items() if isinstance(p.transform, tfp.bijectors.Exp)
        ],
        "active_dims": active,
    }


def kernel_from_data(data: Mapping[str, Any], num_features: int) -> gpflow.kernels.Kernel:
    """Inverse of `kernel_to_data`, for inputs of that many features."""
    if isinstance(data, dict) and "kernels" in data:
        check_fields(data, {"class": set(COMBINATIONS), "kernels": [dict]}, "the kernel")
        parts = [kernel_from_data(part, num_features) for part in data["kernels"]]
        return COMBINATIONS[data["class"]](parts)
    check_fields(data, FIELDS, "the kernel")
    active, features = data["active_dims"], np.arange(num_features)
    if isinstance(active, dict):
        check_fields(active, {"slice": [(int, None)]}, "the kernel's active_dims")
        dims: Any = slice(*active["slice"])
    else:
        dims = active
    used = len(features[dims])
    kernel = KEPT[data["class"]](active_dims=dims)
    names = [path.lstrip(".") for path in gpflow.utilities.parameter_dict(kernel)]
    check_fields(data["parameters"], dict.fromkeys(names, (float, [float])), "the kernel")
    for name, value in data["parameters"].items():
        number = np.asarray(value, dtype=float)
        transform = POSITIVE if name in data["logarithmic"] else getattr(kernel, name).transform
        if number.shape not in ((), (used,)) or not np.isfinite(transform.inverse(number)).all():
            raise InputError(f"'{name}' of the kernel is {shown(value)}, which it cannot be")
        parameter = gpflow.Parameter(number, transform=transform, dtype=tf.float64)
        gpflow.set_trainable(parameter, name not in data["fixed"])
        setattr(kernel, name, parameter)
    return kernel
