"""Kernels as plain data, for model files: classes by name, parameters, and what they are made of.

    {"class": "Periodic", "options": {}, "parts": [{"class": "Matern32", ...}], "active_dims": null,
     "parameters": {"period": 1.0}, "fixed": [], "bijectors": {"period": "exp"}, "priors": {}}

Every kernel of GPflow that is a function of real X and of its parameters, nested as one likes, and
gpal's own `AffineInput` and `PowerInput`.
What has no name to be found again by is refused: classes from elsewhere, bijectors other than
GPflow's own and the logarithm, priors other than those of `PRIORS`, one parameter in two places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.errors import InputError, shown
from gpal.files.saved_data import check_fields, check_keys
from gpal.inference.affine_input import AffineInput
from gpal.inference.kernels import POSITIVE
from gpal.inference.parameters import assign_exactly
from gpal.inference.power_input import PowerInput

__all__ = ["kernel_from_data", "kernel_to_data"]

_k, _d = gpflow.kernels, tfp.distributions
CLASSES: dict[str, Any] = {
    **vars(_k),
    "AffineInput": AffineInput,
    "PowerInput": PowerInput,
}
# Of each class the arguments of its constructor that are no parameters, with their kind.
KEPT: dict[str, dict[str, Any]] = {
    **{
        name: {}
        for name, kind in vars(_k).items()
        if isinstance(kind, type) and issubclass(kind, _k.Stationary)
    },
    **{name: {} for name in ("Linear", "Constant", "White", "Sum", "Product", "Periodic")},
    "Polynomial": {"degree": float},
    "ArcCosine": {"order": int},
    "ChangePoints": {"locations": int},
    "AffineInput": {"offset": [float], "width": [float]},
    "PowerInput": {},
}
BIJECTORS = {"exp": POSITIVE, "identity": tfp.bijectors.Identity()}
MADE_OF_ONE = ("Periodic", "AffineInput", "PowerInput")
MADE_OF_SOME = ("Sum", "Product", "ChangePoints")
PRIORS = {
    kind.__name__: kind
    for kind in (
        *(_d.Normal, _d.LogNormal, _d.HalfNormal, _d.Gamma, _d.InverseGamma, _d.Exponential),
        *(_d.Beta, _d.Uniform, _d.StudentT, _d.Cauchy, _d.HalfCauchy, _d.Laplace),
    )
}
FIELDS = {
    "class": set(KEPT),
    "options": dict,
    "parts": [dict],
    "parameters": dict,
    "fixed": [str],
    "bijectors": dict,
    "priors": dict,
    "active_dims": (dict, [int], None),
}
MOST = 1 << 12  # of change points


def kernel_to_data(kernel: gpflow.kernels.Kernel) -> dict[str, Any]:
    """JSON-able description; InputError, naming it, for what no file can hold."""
    _check_untied(kernel)
    return _to_data(kernel)


def _to_data(kernel: gpflow.kernels.Kernel) -> dict[str, Any]:
    name = type(kernel).__name__
    if name not in KEPT or CLASSES[name] is not type(kernel):
        raise InputError(
            f"a model with the kernel class '{name}' cannot be saved: use GPflow's own kernels of"
            " one output, and sums and products of them"
        )
    parts, parameters = _parts(kernel), _own_parameters(kernel)
    data: dict[str, Any] = {
        "class": name,
        "options": _options(kernel),
        "parts": [_to_data(part) for part in parts],
        "parameters": {path: np.asarray(value).tolist() for path, value in parameters.items()},
        "fixed": [path for path, value in parameters.items() if not value.trainable],
        "bijectors": {path: _bijector_of(value) for path, value in parameters.items()},
        "priors": {
            path: _prior_to_data(value, path)
            for path, value in parameters.items()
            if value.prior is not None
        },
        "active_dims": None if parts else _dims_to_data(kernel.active_dims),
    }
    for path, plain in _own_parameters(_made(data)).items():
        usual = parameters[path].transform == plain.transform
        if data["bijectors"][path] == "usual" and not usual:
            raise InputError(
                f"a model whose kernel has a bijector of its own on '{path}' cannot be saved; leave"
                " GPflow's, or take the exponential"
            )
    return data


def kernel_from_data(data: Mapping[str, Any], num_features: int) -> gpflow.kernels.Kernel:
    """Inverse of `kernel_to_data`, for inputs of that many features."""
    check_fields(data, FIELDS, "the kernel")
    name, features = data["class"], np.arange(num_features)
    check_fields(data["options"], KEPT[name], "the kernel")
    wanted = {
        **dict.fromkeys(MADE_OF_ONE, 1),
        "ChangePoints": data["options"].get("locations", 0) + 1,
    }
    if name in ("Sum", "Product"):
        wanted[name] = max(1, len(data["parts"]))
    if len(data["parts"]) != wanted.get(name, 0):
        raise InputError(f"the kernel {name} is not made of {len(data['parts'])} kernels")
    if (data["active_dims"] is None) != bool(data["parts"]):
        raise InputError(f"'active_dims' of the kernel {name} are {shown(data['active_dims'])}")
    for size in (value for value in data["options"].values() if isinstance(value, int)):
        if not 0 <= size <= MOST:
            raise InputError(f"the kernel {name} has options {shown(data['options'])}")
    if name == "AffineInput":
        scaling = [data["options"]["offset"], data["options"]["width"]]
        if {len(part) for part in scaling} != {num_features} or not (
            np.isfinite(scaling).all() and np.all(scaling[1])
        ):
            raise InputError(f"the kernel {name} has options {shown(data['options'])}")
    parts = [kernel_from_data(part, num_features) for part in data["parts"]]
    kernel = _made(data, parts)
    used = len(features[kernel.active_dims])
    own = _own_parameters(kernel)
    check_keys(data["parameters"], own, "the kernel")
    bijectors = data["bijectors"]
    check_fields(bijectors, {path: {"usual", *BIJECTORS} for path in own}, "the kernel")
    for path, value in data["parameters"].items():
        number = np.asarray(value, dtype=float)
        transform = (
            own[path].transform if bijectors[path] == "usual" else BIJECTORS[bijectors[path]]
        )
        shapes = [tuple(own[path].shape), (), (used,)]
        if path == "steepness":  # one for each change point
            shapes.append((data["options"]["locations"],))
        inside = number if transform is None else transform.inverse(number)
        possible = np.isfinite(inside).all()
        if name == "PowerInput" and path in ("unit", "width"):
            possible = possible and (number > 0).all()
        if number.shape not in shapes or not possible:
            raise InputError(f"'{path}' of the kernel is {shown(value)}, which it cannot be")
        prior, on = _prior_from_data(data["priors"].get(path))
        parameter = gpflow.Parameter(
            number, transform=transform, prior=prior, prior_on=on, dtype=tf.float64
        )
        assign_exactly(parameter, number)
        gpflow.set_trainable(parameter, path not in data["fixed"])
        setattr(kernel, path, parameter)
    return kernel


def _made(data: Mapping[str, Any], parts: Sequence[Any] | None = None) -> gpflow.kernels.Kernel:
    """The kernel of that description, with parameters as its class has them at first."""
    kind = CLASSES[data["class"]]
    if parts is None:
        parts = [_made(part) for part in data["parts"]]
    options = dict(data["options"])
    if data["class"] in MADE_OF_ONE:
        return kind(*parts, **options)
    if data["class"] == "ChangePoints":
        return kind(parts, np.zeros(options["locations"]))
    if parts:
        return kind(parts, **options)
    return kind(**options, active_dims=_dims_from_data(data["active_dims"]))


def _parts(kernel: gpflow.kernels.Kernel) -> list[gpflow.kernels.Kernel]:
    name = type(kernel).__name__
    if name in MADE_OF_ONE:
        return [kernel.base_kernel]
    return list(kernel.kernels) if name in MADE_OF_SOME else []


def _options(kernel: gpflow.kernels.Kernel) -> dict[str, Any]:
    kinds = KEPT[type(kernel).__name__]
    if "locations" in kinds:
        return {"locations": int(kernel.locations.shape[0])}
    return {
        name: kind(getattr(kernel, name)) if callable(kind) else getattr(kernel, name).tolist()
        for name, kind in kinds.items()
    }


def _own_parameters(kernel: gpflow.kernels.Kernel) -> dict[str, gpflow.Parameter]:
    """Not those of the kernels that it is made of."""
    return {
        path: value for path, value in vars(kernel).items() if isinstance(value, gpflow.Parameter)
    }


def _check_untied(kernel: gpflow.kernels.Kernel) -> None:
    """InputError for a parameter in two places, which would come back as two."""
    found: list[gpflow.kernels.Kernel] = [kernel]
    seen: set[int] = set()
    while found:
        part = found.pop()
        for path, parameter in _own_parameters(part).items():
            if id(parameter) in seen:
                raise InputError(
                    f"a model whose kernel has one '{path}' in two places cannot be saved; give"
                    " each its own"
                )
            seen.add(id(parameter))
        found += _parts(part)


def _bijector_of(parameter: gpflow.Parameter) -> str:
    """ "usual": what GPflow gives a parameter of that name."""
    own = [name for name, bijector in BIJECTORS.items() if parameter.transform == bijector]
    return own[0] if own else "usual"


def _dims_to_data(dims: Any) -> Any:
    if isinstance(dims, slice):
        return {"slice": [dims.start, dims.stop, dims.step]}
    return np.asarray(dims).tolist()


def _dims_from_data(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    check_fields(data, {"slice": [(int, None)]}, "the kernel's active_dims")
    return slice(*data["slice"])


def _prior_to_data(parameter: gpflow.Parameter, path: str) -> dict[str, Any]:
    prior: Any = parameter.prior
    name = type(prior).__name__
    numbers = {
        key: np.asarray(value, dtype=float).tolist()
        for key, value in prior.parameters.items()
        if value is not None and not isinstance(value, bool | str)
    }
    if PRIORS.get(name) is not type(prior):
        raise InputError(
            f"a model whose kernel has the prior {name} on '{path}' cannot be saved; take one of"
            f" {', '.join(PRIORS)}, or fit without it"
        )
    return {"class": name, "parameters": numbers, "on": parameter.prior_on.value}


def _prior_from_data(data: Any) -> tuple[Any, Any]:
    if data is None:
        return None, None
    fields = {"class": set(PRIORS), "parameters": dict, "on": {"constrained", "unconstrained"}}
    check_fields(data, fields, "a prior of the kernel")
    numbers = {}
    for key, value in data["parameters"].items():
        number = np.asarray(value, dtype=float)
        if not np.isfinite(number).all():
            raise InputError(f"'{shown(key)}' of a prior of the kernel is {shown(value)}")
        numbers[key] = tf.constant(number, tf.float64)
    return PRIORS[data["class"]](**numbers), data["on"]
