"""Whether an estimator's settings make sense, asked before there is any data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpal.errors import InputError
from gpal.files.saved_data import whole_number
from gpal.inference.base import INFERENCES
from gpal.inference.capabilities import check
from gpal.inference.kernels import has_kernel_each, make_kernels
from gpal.inference.psi_statistics import check_kernel
from gpal.inference.single_latent import make_single_latent
from gpal.input_noise import make_input_noise
from gpal.input_noise.true_input import LEARN_ERRORS
from gpal.likelihoods import chosen_likelihood, is_auto, make_likelihood
from gpal.model.drawn_sample import FEWEST
from gpal.model.leaving_out import check_learn_by, check_temperature
from gpal.plain_values import plain

__all__ = [
    "check_classifier",
    "check_error_model",
    "check_inducing_points",
    "check_learn_from",
    "check_response",
    "check_values",
]


def check_classifier(options: Any, num_classes: int | None, num_features: int | None) -> None:
    """InputError for settings of a GPClassifier that could never be fitted."""
    classes = 2 if num_classes is None else num_classes  # every likelihood tells two classes apart
    likelihood = chosen_likelihood(options.likelihood, classes, has_kernel_each(options.kernel))
    latents = None
    if num_classes is not None or isinstance(likelihood, str):
        made = make_likelihood(likelihood, classes)
        latents = None if num_classes is None else made.latent_dim
    if num_classes is not None or not is_auto(options.likelihood):  # else it is still open
        check(likelihood, options.input_noise, options.inference, classes, options.learn_errors)
    check_values(options, num_features)
    _check_kernels(options, num_features, latents)


def check_response(options: Any, num_features: int | None) -> None:
    """InputError for settings of a NoisyInputGP that could never be fitted."""
    likelihood = make_single_latent(options.likelihood)
    check(likelihood, options.input_noise, options.inference, 0, options.learn_errors)
    check_values(options, num_features)
    _check_kernels(options, num_features, 1)


def check_values(options: Any, num_features: int | None = None) -> None:
    """InputError for a setting that makes no sense by itself, whatever goes with it."""
    in_rounds = INFERENCES.find(options.inference).in_rounds
    check_inducing_points(options, num_features)
    if options.dtype not in ("float64", "float32"):
        raise InputError(f"dtype must be 'float64' or 'float32', got {options.dtype!r}")
    if options.n_inducing is not None:
        whole_number(options.n_inducing, "n_inducing", 1)
    if not whole_number(options.max_rounds, "max_rounds") and not in_rounds:
        raise InputError(
            f"inference '{options.inference}' learns the kernel in its steps, not in rounds, and"
            " max_rounds=0 would not keep it: give a kernel object whose parameters are not"
            " trainable (gpflow.set_trainable(kernel, False)), or inference='sites'"
        )
    for name in ("shared_kernel", "packed", "verbose"):
        if not isinstance(getattr(options, name), bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {getattr(options, name)!r}")
    given = options.learn_inducing
    if not isinstance(given, bool | np.bool_ | None):
        raise InputError(f"learn_inducing must be True, False or None, got {given!r}")
    given = options.inference_options
    if not isinstance(given, Mapping | None):
        raise InputError(f"inference_options must be a mapping of names to values, got {given!r}")
    check_error_model(options, num_features)
    if hasattr(options, "learn_from"):
        check_learn_from(options)
        check_temperature(options.temperature)
        check_learn_by(options.learn_by)


def _check_kernels(options: Any, num_features: int | None, num_latent: int | None) -> None:
    shared = bool(options.shared_kernel)
    kernels = make_kernels(options.kernel, num_features, num_latent, shared)
    if make_input_noise(options.input_noise).closed_form_moments:
        for kernel in kernels:
            check_kernel(kernel)


def check_learn_from(options: Any) -> None:
    """InputError unless it is None or a number of sources that something can be learned from."""
    if options.learn_from is not None:
        whole_number(options.learn_from, "learn_from", FEWEST)


def check_inducing_points(options: Any, num_features: int | None) -> None:
    """InputError unless they are left open, or are [m, d] finite numbers."""
    if options.inducing_points is None:
        return
    Z = np.asarray(plain("inducing_points", options.inducing_points), float)
    if Z.ndim != 2 or not len(Z) or num_features not in (None, Z.shape[1]):
        wanted = "(m, d)" if num_features is None else f"(m, {num_features})"
        raise InputError(f"inducing_points have shape {Z.shape}, not {wanted}: one row each")
    if not np.isfinite(Z).all():
        i = int(np.argmin(np.isfinite(Z).all(axis=1)))
        raise InputError(f"row {i} of inducing_points is not finite: {Z[i]}")
    if options.n_inducing is not None:
        raise InputError("give either n_inducing or inducing_points, not both")


def check_error_model(options: Any, num_features: int | None) -> None:
    """error_scale, error_floor, learn_errors and population make sense."""
    for name in ("error_scale", "error_floor"):
        value = np.asarray(plain(name, getattr(options, name)), float)
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
