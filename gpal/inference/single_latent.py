"""Responses that are no classes: GPflow's likelihoods p(y | f) of one latent function.

Counts (Poisson), measurements with outliers (Student-t), grades (Ordinal) and so on; their
expectations are GPflow's, in closed form or by 20-point Gauss-Hermite quadrature. The engine needs
sites to start from as well. There is no curvature bound to take, so they are the ones that meet

    q(f_i) = N(m₀, 1),      m₀ = arg max_m Σ_i E_{N(m, 1)}[log p(y_i | f)],

the best constant function under a unit variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import ScalarLikelihood

from gpal.errors import InputError
from gpal.inference.parameters import maximise
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.ordinal import Ordinal
from gpal.likelihoods.site_rules import SiteRule, make_site_rule, natural_gradient_sites

__all__ = [
    "SINGLE_LATENT",
    "SingleLatentSites",
    "check_response",
    "make_single_latent",
    "name_of",
    "response_likelihood_from_data",
    "response_likelihood_to_data",
    "site_rule",
]

SINGLE_LATENT: Mapping[str, type] = {
    "gaussian": gpflow.likelihoods.Gaussian,
    "student_t": gpflow.likelihoods.StudentT,
    "poisson": gpflow.likelihoods.Poisson,
    "exponential": gpflow.likelihoods.Exponential,
    "gamma": gpflow.likelihoods.Gamma,
    "beta": gpflow.likelihoods.Beta,
    "bernoulli": gpflow.likelihoods.Bernoulli,
    "ordinal": gpflow.likelihoods.Ordinal,
}


def make_single_latent(likelihood: Any) -> gpflow.likelihoods.ScalarLikelihood:
    """A likelihood by name, with GPflow's defaults, or a copy of an object."""
    if isinstance(likelihood, gpflow.likelihoods.ScalarLikelihood):
        likelihood = gpflow.utilities.deepcopy(likelihood)
        if type(likelihood) is gpflow.likelihoods.Ordinal:
            sigma, likelihood = likelihood.sigma, Ordinal(likelihood.bin_edges)
            likelihood.sigma = sigma
        return likelihood
    if likelihood == "ordinal":
        raise InputError(
            "the ordinal likelihood needs its bin edges: give gpflow.likelihoods.Ordinal(bin_edges)"
        )
    if not isinstance(likelihood, str) or likelihood not in SINGLE_LATENT:
        raise InputError(
            f"no single-latent likelihood {likelihood!r}: choose one of"
            f" {', '.join(SINGLE_LATENT)}, or a gpflow.likelihoods.ScalarLikelihood"
        )
    return SINGLE_LATENT[likelihood]()


def name_of(likelihood: gpflow.likelihoods.ScalarLikelihood) -> str:
    """Its row of `gpal.inference.capabilities.SINGLE_LATENT`."""
    names = [name for name, kind in SINGLE_LATENT.items() if isinstance(likelihood, kind)]
    return names[0] if names else "other"


# What GPflow's constructors take beside the parameters; an inverse link stays GPflow's default.
_CONSTRUCTOR = {"StudentT": {"df": "df"}, "Poisson": {"binsize": "binsize"}}


def response_likelihood_to_data(likelihood: gpflow.likelihoods.Likelihood) -> dict[str, Any]:
    """JSON-able description of one of GPflow's likelihoods; InputError for any other class.

    Classes of other packages and inverse links other than the default have no name to be kept by.
    """
    kind = type(likelihood)
    own = kind is Ordinal or kind in SINGLE_LATENT.values()
    options = {
        argument: float(getattr(likelihood, attribute))
        for argument, attribute in _CONSTRUCTOR.get(kind.__name__, {}).items()
    }
    if isinstance(likelihood, gpflow.likelihoods.Ordinal):
        options["bin_edges"] = np.asarray(likelihood.bin_edges).tolist()
    parameters = gpflow.utilities.parameter_dict(likelihood)
    plain = _made(kind, options) if own else None
    if (
        plain is None
        or getattr(plain, "invlink", None) is not getattr(likelihood, "invlink", None)
        or set(gpflow.utilities.parameter_dict(plain)) != set(parameters)
    ):
        raise InputError(
            f"a model with the likelihood {kind.__name__} cannot be saved as it is: use one of"
            f" {', '.join(SINGLE_LATENT)} with the inverse link and the parameters that GPflow"
            " gives it"
        )
    return {
        "class": kind.__name__,
        "options": options,
        "parameters": {path: np.asarray(value).tolist() for path, value in parameters.items()},
        "fixed": [path for path, value in parameters.items() if not value.trainable],
    }


def response_likelihood_from_data(data: Mapping[str, Any]) -> gpflow.likelihoods.Likelihood:
    """Inverse of `response_likelihood_to_data`."""
    kinds = {kind.__name__: kind for kind in SINGLE_LATENT.values()} | {"Ordinal": Ordinal}
    likelihood = _made(kinds[data["class"]], data["options"])
    parameters = gpflow.utilities.parameter_dict(likelihood)
    for path, value in data["parameters"].items():
        parameters[path].assign(np.asarray(value))
        gpflow.set_trainable(parameters[path], path not in data["fixed"])
    return likelihood


def _made(kind: type, options: Mapping[str, Any]) -> gpflow.likelihoods.Likelihood:
    return kind(**{n: np.asarray(v) if isinstance(v, list) else v for n, v in options.items()})


def check_response(likelihood: gpflow.likelihoods.ScalarLikelihood, y: np.ndarray) -> None:
    """InputError for a response that the likelihood gives no density."""
    Y = tf.constant(y[:, None], tf.float64)
    log_p = likelihood.variational_expectations(None, tf.zeros_like(Y), tf.ones_like(Y), Y)
    bad = ~np.isfinite(log_p.numpy())
    if isinstance(likelihood, Ordinal):
        bad |= ~np.isin(y, np.arange(likelihood.num_bins))
    if bad.any():
        i = int(np.argmax(bad))
        name = type(likelihood).__name__
        raise InputError(f"y of row {i} is {y[i]:g}, which has no density under {name}")


class SingleLatentSites(SiteRule[ScalarLikelihood]):
    """Natural-gradient sites of any likelihood of one latent function, with sites to start from."""

    name = "natural_gradient"

    def sites(
        self, likelihood: ScalarLikelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return natural_gradient_sites(likelihood, Fmu, Fvar, Y)

    def bound(
        self, likelihood: ScalarLikelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        return likelihood.variational_expectations(None, Fmu, Fvar, Y)

    def initial_sites(
        self, likelihood: ScalarLikelihood, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        constant = tf.Variable(0.0, dtype=tf.float64)
        one = tf.ones_like(Y)

        @tf.function(autograph=False)
        def value_and_gradient() -> tuple[tf.Tensor, list[tf.Tensor]]:
            with tf.GradientTape() as tape:
                total = tf.reduce_mean(self.bound(likelihood, constant * one, one, Y))
            return total, [tape.gradient(total, constant)]

        maximise([constant], value_and_gradient, iterations=50)
        mean = constant * one
        precision, natural_mean = natural_gradient_sites(likelihood, mean, one, Y)
        clipped = tf.maximum(precision, 1e-10)
        return clipped, natural_mean + (clipped - precision) * mean


def site_rule(name: str | None, likelihood: gpflow.likelihoods.Likelihood) -> SiteRule[Any]:
    """The likelihood's rule of that name, None: its default; GPflow's likelihoods have but one."""
    if isinstance(likelihood, ClassificationLikelihood):
        return make_site_rule(name, likelihood)
    return SingleLatentSites()
