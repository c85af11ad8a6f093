"""Whether an estimator's settings make sense, asked before there is any data."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpal.errors import InputError
from gpal.files.saved_data import whole_number
from gpal.inference.base import INFERENCES
from gpal.inference.capabilities import check
from gpal.inference.kernels import make_kernel
from gpal.inference.psi_statistics import check_kernel
from gpal.inference.single_latent import make_single_latent
from gpal.input_noise import make_input_noise
from gpal.input_noise.true_input import LEARN_ERRORS
from gpal.likelihoods import make_likelihood

__all__ = ["check_classifier", "check_error_model", "check_response"]


def check_classifier(options: Any, num_classes: int | None, num_features: int | None) -> None:
    """InputError for settings of a GPClassifier that could never be fitted."""
    classes = 2 if num_classes is None else num_classes  # every likelihood tells two classes apart
    likelihood = options.likelihood
    if num_classes is not None or isinstance(likelihood, str):
        make_likelihood(likelihood, classes)
    check(likelihood, options.input_noise, options.inference, classes, options.learn_errors)
    _check_common(options, num_features)


def check_response(options: Any, num_features: int | None) -> None:
    """InputError for settings of a NoisyInputGP that could never be fitted."""
    likelihood = make_single_latent(options.likelihood)
    check(likelihood, options.input_noise, options.inference, 0, options.learn_errors)
    _check_common(options, num_features)


def _check_common(options: Any, num_features: int | None) -> None:
    INFERENCES.find(options.inference)
    kernel = make_kernel(options.kernel, num_features or 1)
    if make_input_noise(options.input_noise).closed_form_moments:
        check_kernel(kernel)
    if options.dtype not in ("float64", "float32"):
        raise InputError(f"dtype must be 'float64' or 'float32', got {options.dtype!r}")
    if options.n_inducing is not None:
        whole_number(options.n_inducing, "n_inducing", 1)
    whole_number(options.max_rounds, "max_rounds")
    for name in ("learn_inducing", "packed", "verbose"):
        if not isinstance(getattr(options, name), bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {getattr(options, name)!r}")
    check_error_model(options, num_features)


def check_error_model(options: Any, num_features: int | None) -> None:
    """error_scale, error_floor, learn_errors and population make sense."""
    for name in ("error_scale", "error_floor"):
        value = np.asarray(getattr(options, name), float)
        fits = value.ndim == 0 or (
            value.ndim == 1 and (num_features is None or len(value) == num_features)
        )
        if not fits or not np.isfinite(value).all() or (value < 0).any():
            number = "one per feature" if num_features is None else f"{num_features} of them"
            raise InputError(f"{name} must be one number ≥ 0 or {number}, got {value}")
    if options.learn_errors not in LEARN_ERRORS:
        raise InputError(
            f"learn_errors must be one of {', '.join(LEARN_ERRORS)}, got {options.learn_errors!r}"
        )
    if options.learn_errors in ("scale", "both") and not np.all(
        np.asarray(options.error_scale) > 0
    ):
        raise InputError(
            f"learn_errors={options.learn_errors!r} starts from error_scale: give it more than 0"
        )
    population = options.population
    counts = isinstance(population, int | np.integer) and population > 0
    if not counts and population != "flat":
        raise InputError(f"population must be 'flat' or a number of Gaussians, got {population!r}")
