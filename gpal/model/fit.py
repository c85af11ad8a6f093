"""From standardised measurements and labels to a fitted model, and from there to probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from threadpoolctl import threadpool_limits

from gpal.errors import InputError
from gpal.inference.base import INFERENCES, Fit, Problem
from gpal.inference.capabilities import check
from gpal.inference.first_lengthscale import choose_lengthscale
from gpal.inference.held_out import choose_settings
from gpal.inference.input_rows import InputRows
from gpal.inference.kernels import describe_module, has_kernel_each, make_kernels
from gpal.inference.predictive_learning import learn_by_leaving_out
from gpal.inference.rows import Data
from gpal.inference.single_latent import (
    check_response,
    make_single_latent,
    site_rule,
)
from gpal.inference.sites import SiteEngine
from gpal.input_noise.base import make_input_noise
from gpal.input_noise.censored import fit_population
from gpal.input_noise.error_scaling import scaled_errors
from gpal.input_noise.none import NoInputNoise
from gpal.input_noise.true_input import TrueInput
from gpal.likelihoods import chosen_likelihood, make_likelihood
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.partial_labels import PartialLabels
from gpal.measurements import Measurements
from gpal.model.fitted import FittedModel
from gpal.model.gaussian_process import FULL_GP_UP_TO, make_gp, noisy_features
from gpal.model.heavy_tails import with_powers
from gpal.model.labels import are_weights, number_of_classes
from gpal.model.leaving_out import (
    BOUND,
    BY_LABELS,
    chosen_temperature,
    leaves_out,
    where_open,
)
from gpal.model.trial import (
    INDUCING_POINTS,
    LEARNED_ABOVE,
    TRIAL_SOURCES,
    best_trial,
    most_points,
)

__all__ = ["FitModel", "RunInference", "fit_model", "fit_response_model"]

# Numbers that the labels tell, n (C − 1), for each feature, from which on kernel="auto" learns a
# lengthscale and a linear variance for each (docs/defaults.md).
NUMBERS_PER_FEATURE = 25

# `fit_model` and `fit_response_model`; and what finds q(f), as `run_inference` does.
FitModel = Callable[..., FittedModel]
RunInference = Callable[[Any, Problem, int], Fit]


def fit_model(
    options: Any,
    sources: Measurements,
    labels: np.ndarray,
    seed: int,
    *,
    floor: np.ndarray | float = 0.0,
    Z: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    run: RunInference | None = None,
) -> FittedModel:
    """Fit a GPClassifier's model to standardised sources and labels: class indices [n], or weights
    [n, C] (`gpal.model.labels`).

    floor: τ of the error bars in the same units; Z [m, d]: inducing points, None: chosen here;
    weight [n]: how many times a source counts, None: once; run: what finds q(f), None:
    the inference of that name.
    """
    num_classes, partial_labels = number_of_classes(labels), are_weights(labels)
    input_noise = make_input_noise(options.input_noise)
    if options.learn_errors == "none" and not (sources.X_err > 0).any() and not np.any(floor):
        input_noise = NoInputNoise()  # as below: no treatment stands in the way of exact inputs
    one_each = partial_labels or has_kernel_each(options.kernel)
    given = chosen_likelihood(options.likelihood, num_classes, one_each)
    check(given, input_noise, options.inference, num_classes, options.learn_errors, partial_labels)
    likelihood = make_likelihood(given, num_classes)
    if likelihood is options.likelihood:  # what is learned must not reach the next fit
        likelihood = gpflow.utilities.deepcopy(likelihood)
    of_labels = PartialLabels(likelihood) if partial_labels else likelihood
    model = fit_likelihood_model(
        options,
        of_labels,
        sources,
        labels,
        seed,
        floor=floor,
        Z=Z,
        weight=weight,
        run=run,
        temperature=where_open(options.temperature, options.likelihood, 1.0),
        learn_by=where_open(options.learn_by, options.likelihood, BOUND),
    )
    return replace(model, likelihood=likelihood)


def fit_response_model(
    options: Any,
    sources: Measurements,
    y: np.ndarray,
    seed: int,
    *,
    floor: np.ndarray | float = 0.0,
    Z: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    run: RunInference | None = None,
) -> FittedModel:
    """Fit a NoisyInputGP's model to standardised sources and responses y [n] as given."""
    likelihood = make_single_latent(options.likelihood)
    check(likelihood, options.input_noise, options.inference, 0, options.learn_errors)
    check_response(likelihood, y)
    return fit_likelihood_model(
        options, likelihood, sources, y, seed, floor=floor, Z=Z, weight=weight, run=run
    )


def fit_likelihood_model(
    options: Any,
    likelihood: Any,
    sources: Measurements,
    y: np.ndarray,
    seed: int,
    *,
    floor: np.ndarray | float,
    Z: np.ndarray | None,
    weight: np.ndarray | None,
    run: RunInference | None,
    temperature: Any = 1.0,
    learn_by: str = BOUND,
) -> FittedModel:
    """What all models have in common, once there is a likelihood."""
    inference = INFERENCES.find(options.inference)
    if weight is not None and not inference.takes_weights:
        raise InputError(
            f"inference '{options.inference}' takes no sample_weight: choose inference='sites'"
        )
    input_noise = make_input_noise(options.input_noise)
    true_input = make_true_input(options, sources, floor, seed, weight)
    exact = not (sources.X_err > 0).any() and not true_input.adds_noise
    if exact:
        input_noise = NoInputNoise()
    inputs = InputRows(true_input, input_noise)
    data = inputs.data(sources, y, weight)
    num_latent = likelihood.latent_dim or 1
    kernel = chosen_kernel(options.kernel, data, num_latent, exact)
    kernels = make_kernels(kernel, data.X.shape[1], num_latent, options.shared_kernel)
    rule = site_rule(inference.rule, likelihood)
    check_priors([*kernels, likelihood], options.inference)
    noisy = noisy_features(inputs, sources, data)
    points = options.n_inducing or INDUCING_POINTS
    largest = most_points(len(sources), num_latent)
    given = Z is not None or run is not None or not exact
    starts = _lengthscale_is_open(options, run)
    are_open = not given and _points_are_open(options, data, rule)
    learn_Z = bool(options.learn_inducing)
    if options.learn_inducing is None and are_open:
        learn_Z = len(sources) > LEARNED_ABOVE
    asked, alternatives, trial = are_open and largest > points, [kernels], None
    if not given and learn_by == "auto" and _kernel_is_open(options):
        alternatives = with_powers(kernels, data, -options.offset_ / options.width_)
    if asked or len(alternatives) > 1:
        some = np.random.default_rng(seed).permutation(len(sources))[:TRIAL_SOURCES]
        few = data.sources(np.sort(some))
        gps = [
            make_gp(options, each, inputs, few, num_latent, points, seed, learn_Z=learn_Z)
            for each in alternatives
        ]
        problems = [Problem(gp, likelihood, rule, few, input_noise) for gp in gps]
        trial = best_trial(problems, options.max_rounds, seed, starts=starts)
        kernels, points = trial.kernels, trial.enough_points(largest) if asked else points
        if len(sources) > TRIAL_SOURCES:
            # Learned from where few sources have taken it, the bound of all ended lower.
            trial.put_back()
    gp = make_gp(options, kernels, inputs, data, num_latent, points, seed, Z, learn_Z, noisy)
    problem = Problem(gp, likelihood, rule, data, input_noise)
    if starts and trial is None:
        choose_lengthscale(problem, seed)
    fitted = (run or run_inference)(options, problem, seed)
    by_bound = fitted
    if run is None and leaves_out(learn_by, options, problem, fitted, exact):
        fitted = learn_by_leaving_out(problem, fitted, seed, options.inference_options)
    temperature, left_out = chosen_temperature(temperature, problem, fitted, seed, exact)
    settings = {
        "gp": gp.kind,
        "inducing_points": int(gp.Z.shape[0]),
        "relative_jitter": float(gp.jitter.value),
        "dtype": gp.rows.dtype.name,
        "input_noise": input_noise.name,
        "treatment": input_noise.to_data(),
        "error_scale": true_input.scale.numpy().tolist(),
        "error_floor": true_input.floor.numpy().tolist(),
        "likelihood": _described(likelihood),
        "kernels": [describe_module(kernel) for kernel in gp.kernels],
        "learning": {
            "sources": len(sources),
            "converged": fitted.converged,
            "bounds": [bound / data.size for bound in fitted.rounds],
        },
        "learn_by": BOUND if fitted is by_bound else BY_LABELS,
        "temperature": temperature,
        "leave_one_out": left_out,
        "seed": seed,
        "device": tf.config.list_logical_devices()[-1].device_type,
    }
    return FittedModel(
        gp,
        fitted.posterior,
        likelihood,
        input_noise,
        true_input,
        options.inference,
        fitted.bound / data.size,
        settings,
        temperature,
    )


def check_priors(modules: list[Any], inference: str) -> None:
    """InputError for a prior of a learned hyper-parameter that the inference would ignore."""
    if INFERENCES.find(inference).takes_priors:
        return
    for module in modules:
        for path, parameter in gpflow.utilities.parameter_dict(module).items():
            if parameter.trainable and parameter.prior is not None:
                raise InputError(
                    f"inference '{inference}' would ignore the prior on '{path.lstrip('.')}':"
                    " choose inference='sites', or take the prior away"
                )


def _described(likelihood: gpflow.likelihoods.Likelihood) -> dict[str, Any]:
    if isinstance(likelihood, ClassificationLikelihood):
        return likelihood.to_data()
    return describe_module(likelihood)


def make_true_input(
    options: Any,
    sources: Measurements,
    floor: np.ndarray | float,
    seed: int,
    weight: np.ndarray | None = None,
) -> TrueInput:
    """The model of the errors, with the population fitted under it."""
    X, X_err, X_cov = sources.X, sources.X_err, sources.covariance
    if sources.limits is not None and options.learn_errors != "none":
        raise InputError(
            "learn_errors together with limits is not supported: give learn_errors='none', or drop"
            " the limits with dataclasses.replace(sources, limits=None)"
        )
    flat = options.population == "flat"
    components = 1 if flat else int(options.population)
    scaled, X_cov = scaled_errors(X_err, X_cov, np.asarray(options.error_scale, float), floor)
    with threadpool_limits(1):  # several would add up in another order
        population = fit_population(
            X,
            scaled,
            X_cov,
            sources.limits,
            num_components=components,
            seed=seed,
            weight=weight,
        )
    return TrueInput(
        population,
        flat=flat,
        scale=np.asarray(options.error_scale, float),
        floor=floor,
        learn=options.learn_errors,
    )


def chosen_kernel(kernel: Any, data: Data, num_latent: int, exact: bool) -> Any:
    """What "auto" is for these data; any other kernel as it is.

    "rbf" where inputs have errors. Where they are exact it has a linear part: "rbf+linear", or
    "isotropic_rbf+dot_product" where features have few labels to learn from.
    """
    if not (isinstance(kernel, str) and kernel == "auto"):
        return kernel
    if not exact:
        return "rbf"
    numbers = data.size * max(1, num_latent - 1)
    few = numbers < NUMBERS_PER_FEATURE * data.X.shape[1]
    return "isotropic_rbf+dot_product" if few else "rbf+linear"


def _kernel_is_open(options: Any) -> bool:
    """Whether the labels may choose the kernel: by the site engine, where it is to be learned."""
    is_auto = isinstance(options.kernel, str) and options.kernel == "auto"
    return is_auto and options.inference == "sites" and options.max_rounds > 0


def _lengthscale_is_open(options: Any, run: RunInference | None) -> bool:
    """Whether learning may start from another lengthscale: not from that of a kernel object."""
    by_sites = run is None and issubclass(INFERENCES.find(options.inference), SiteEngine)
    return by_sites and isinstance(options.kernel, str) and options.max_rounds > 0


def _points_are_open(options: Any, data: Data, rule: Any) -> bool:
    """Whether the number of inducing points is to be found: by the site engine, where
    hyper-parameters are learned and sites depend on q(f)."""
    sparse = options.n_inducing is None and len(data.Y) > FULL_GP_UP_TO
    by_sites = options.inference == "sites" and not rule.constant
    return sparse and by_sites and options.max_rounds > 0


def run_inference(options: Any, problem: Problem, seed: int) -> Fit:
    """By the inference of that name, once the likelihood has chosen what is open in it."""
    choose_settings(problem, options.max_rounds, seed)
    return INFERENCES.find(options.inference)().fit(
        problem,
        options.inference_options or {},
        rounds=options.max_rounds,
        seed=seed,
        verbose=options.verbose,
    )
