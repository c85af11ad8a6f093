"""An estimator's constructor arguments as JSON-able data, and back.

Plain values stay as they are. What JSON has no word for becomes a table with a "type":

    array         {"type": "array", "values": [...]}            error scales per feature
    mapping       {"type": "mapping", "items": [[key, value], ...]}   keys of any plain type
    likelihood, response likelihood, kernel, input noise
                  {"type": ..., "data": its own to_data}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import numpy as np

from gpal.errors import InputError
from gpal.files.saved_data import check_fields
from gpal.inference.saved_kernels import kernel_from_data, kernel_to_data
from gpal.inference.single_latent import response_likelihood_from_data, response_likelihood_to_data
from gpal.input_noise.base import InputNoise, input_noise_from_data, input_noise_to_data
from gpal.likelihoods import likelihood_from_data, likelihood_to_data, of_gpflow
from gpal.likelihoods.base import ClassificationLikelihood

__all__ = ["parameters_from_data", "parameters_to_data"]


def parameters_to_data(
    parameters: Mapping[str, Any], *, of_classes: bool = False
) -> dict[str, Any]:
    """InputError, naming the argument, for a value that no file can hold.

    of_classes  whether a likelihood of GPflow's is one of classes, of which gpal's own is kept
    """
    if of_classes and isinstance(parameters.get("likelihood"), gpflow.likelihoods.Likelihood):
        parameters = {**parameters, "likelihood": of_gpflow(parameters["likelihood"])}
    return {name: _to_data(value, name) for name, value in parameters.items()}


def parameters_from_data(data: Mapping[str, Any], num_features: int) -> dict[str, Any]:
    """Inverse of `parameters_to_data`, for an estimator of that many features."""
    return {name: _from_data(value, num_features) for name, value in data.items()}


def _to_data(value: Any, name: str) -> Any:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"type": "array", "values": value.tolist()}
    if isinstance(value, list | tuple):
        return [_to_data(item, name) for item in value]
    if isinstance(value, Mapping):
        items = [[_to_data(key, name), _to_data(item, name)] for key, item in value.items()]
        return {"type": "mapping", "items": items}
    if type(value) in (gpflow.likelihoods.Softmax, gpflow.likelihoods.MultiClass):
        value = of_gpflow(value)
    if isinstance(value, ClassificationLikelihood):
        return {"type": "likelihood", "data": likelihood_to_data(value)}
    if isinstance(value, gpflow.likelihoods.Likelihood):
        return {"type": "response likelihood", "data": response_likelihood_to_data(value)}
    if isinstance(value, gpflow.kernels.Kernel):
        return {"type": "kernel", "data": kernel_to_data(value)}
    if isinstance(value, InputNoise):
        return {"type": "input noise", "data": input_noise_to_data(value)}
    raise InputError(
        f"{name} holds a {type(value).__name__}, which cannot be kept in a model file; give plain"
        " values, or an object of a registered class"
    )


def _from_data(value: Any, num_features: int) -> Any:
    if isinstance(value, list):
        return [_from_data(item, num_features) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind == "array":
        check_fields(value, {"type": str, "values": (list, float)}, "an argument")
        return np.array(value["values"], dtype=float)
    if kind == "mapping":
        check_fields(value, {"type": str, "items": [list]}, "an argument")
        pairs = [_from_data(pair, num_features) for pair in value["items"]]
        return {key: item for key, item in pairs}
    check_fields(value, {"type": set(_OBJECTS), "data": dict}, "an argument")
    return _OBJECTS[value["type"]](value["data"], num_features)


_OBJECTS: Mapping[str, Callable[[Any, int], Any]] = {
    "likelihood": lambda data, _: likelihood_from_data(data),
    "response likelihood": lambda data, _: response_likelihood_from_data(data),
    "kernel": kernel_from_data,
    "input noise": lambda data, _: input_noise_from_data(data),
}
