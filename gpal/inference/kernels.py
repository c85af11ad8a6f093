"""Kernels by name, with log-transformed parameters; one for all latent functions, or one each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.errors import InputError

__all__ = [
    "KERNELS",
    "describe_module",
    "has_active_dims",
    "has_kernel_each",
    "make_kernel",
    "make_kernels",
]

KERNELS = {
    "rbf": gpflow.kernels.SquaredExponential,
    "matern32": gpflow.kernels.Matern32,
    "matern52": gpflow.kernels.Matern52,
    "linear": gpflow.kernels.Linear,
    "isotropic_rbf": gpflow.kernels.SquaredExponential,
    "dot_product": gpflow.kernels.Linear,
}
ISOTROPIC = ("isotropic_rbf", "dot_product")  # one parameter for all features


POSITIVE = tfp.bijectors.Exp()


def positive(value: float | np.ndarray) -> gpflow.Parameter:
    """A positive parameter, optimised as its logarithm."""
    return gpflow.Parameter(value, transform=POSITIVE, dtype=tf.float64)


def make_kernel(
    kernel: str | gpflow.kernels.Kernel, num_features: int | None
) -> gpflow.kernels.Kernel:
    """A kernel from a name such as "rbf" or "rbf+linear"; a GPflow kernel is copied as it is.

    Named kernels have one lengthscale (linear: one variance) per feature, "isotropic_rbf" and
    "dot_product" one for all, in standardised units, and a constant added: its variance is that of
    the latent functions' offsets. "auto", which depends on the data (`gpal.model.fit`), stands for
    "rbf+linear" here. Of an unknown number of features, None, a kernel of one.

    Raises InputError for a name that is none, and for a kernel of other features than there are.
    """
    if isinstance(kernel, gpflow.kernels.Kernel):
        if num_features is not None:
            _check_features(kernel, num_features)
        return gpflow.utilities.deepcopy(kernel)
    num_features = num_features or 1
    parts = []
    for name in ("rbf+linear" if kernel == "auto" else str(kernel)).split("+"):
        if name not in KERNELS:
            raise InputError(f"no kernel '{name}'; there are: {', '.join(KERNELS)}, joined by '+'")
        part, shape = KERNELS[name](), [] if name in ISOTROPIC else [num_features]
        if isinstance(part, gpflow.kernels.Linear):
            part.variance = positive(np.full(shape, 1.0))
        else:
            part.variance = positive(4.0)
            part.lengthscales = positive(np.full(shape, np.sqrt(num_features)))
        parts.append(part)
    constant = gpflow.kernels.Constant()
    constant.variance = positive(1.0)
    return gpflow.kernels.Sum([*parts, constant])


def _check_features(kernel: gpflow.kernels.Kernel, num_features: int) -> None:
    """InputError unless all parts are kernels of features that there are: `active_dims` counts
    them from 0, and TensorFlow's own message names neither."""
    for part in (kernel, *kernel.submodules):
        dims = getattr(part, "active_dims", slice(None))
        if isinstance(dims, slice):
            used = [dims.start or 0, (dims.stop or num_features) - 1]
        else:
            used = np.ravel(dims).tolist()
        other = [j for j in used if not 0 <= j < num_features]
        if other:
            raise InputError(
                f"the kernel {type(part).__name__} is of feature {other[0]} (its active_dims), and"
                f" X has {num_features}, counted from 0"
            )
    points = any(isinstance(part, gpflow.kernels.ChangePoints) for part in kernel.submodules)
    if num_features != 1 and (points or isinstance(kernel, gpflow.kernels.ChangePoints)):
        raise InputError(
            f"GPflow's ChangePoints is of one feature, and X has {num_features}: take it out, or"
            " fit to that feature alone"
        )


def has_kernel_each(kernel: Any) -> bool:
    """Whether there is a list with a kernel for each of several latent functions."""
    return isinstance(kernel, list | tuple) and len(kernel) > 1


def make_kernels(
    kernel: Any, num_features: int | None, num_latent: int | None, shared: bool
) -> list[gpflow.kernels.Kernel]:
    """One kernel for all latent functions, or one each.

    kernel       a name or kernel for all, or a list with one for each latent function
    num_latent   None: not known yet, whatever number of them a list has
    shared       one for all, where `kernel` is no list
    """
    if isinstance(kernel, gpflow.kernels.LinearCoregionalization):
        raise InputError(
            "coregionalisation is a likelihood here: give kernel=[...] with a kernel for each"
            " function that is mixed, and likelihood=gpal.likelihoods.make_likelihood("
            "'coregionalized', number of classes, mixing=W)"
        )
    if isinstance(kernel, gpflow.kernels.MultioutputKernel):
        raise InputError(
            f"kernel is a {type(kernel).__name__}, which has several outputs: give a list of"
            " kernels, one for each latent function"
        )
    if not isinstance(kernel, list | tuple):
        number = 1 if shared or num_latent is None else num_latent
        return [make_kernel(kernel, num_features) for _ in range(number)]
    if not kernel or num_latent not in (None, len(kernel)):
        functions = "each latent function" if num_latent is None else f"{num_latent}"
        raise InputError(
            f"kernel is a list of {len(kernel)}, one is needed for {functions}: in the order of"
            " the sorted classes, and one in all where a likelihood tells two classes apart"
        )
    _refuse_tied(kernel)
    return [make_kernel(part, num_features) for part in kernel]


def _refuse_tied(kernels: Sequence[Any]) -> None:
    """InputError for a parameter of two different kernels: each of them is learned by itself."""
    owner: dict[int, int] = {}
    for k, kernel in enumerate(kernels):
        if not isinstance(kernel, gpflow.kernels.Kernel):
            continue
        for path, parameter in gpflow.utilities.parameter_dict(kernel).items():
            first = owner.setdefault(id(parameter), k)
            if kernels[first] is not kernel:
                raise InputError(
                    f"'{path.lstrip('.')}' of kernel {k} in the list is also kernel {first}'s, and"
                    " each would learn its own: give separate parameters, or one kernel for all"
                )


def has_active_dims(kernel: gpflow.kernels.Kernel) -> bool:
    """Whether it, or a part of it, is of some features only.

    GPflow's kernels of several outputs call `K` and `K_diag`, which take all features there.
    """
    parts = (kernel, *kernel.submodules)
    dims = [part.active_dims for part in parts if isinstance(part, gpflow.kernels.Kernel)]
    return not all(isinstance(each, slice) and each == slice(None) for each in dims)


def describe_module(module: gpflow.base.Module) -> dict:
    """Class and parameter values by path, of any kernel or likelihood: to read, not to rebuild it
    from."""
    return {"class": type(module).__name__, "parameters": _parameters(module)}


def _parameters(module: gpflow.base.Module) -> dict:
    return {
        path.lstrip("."): np.asarray(parameter).tolist()
        for path, parameter in gpflow.utilities.parameter_dict(module).items()
    }
