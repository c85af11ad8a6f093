"""Responses that are no classes: GPflow's likelihoods p(y | f) of one latent function.

Counts (Poisson), measurements with outliers (Student-t), grades (Ordinal) and so on; their
expectations are GPflow's, in closed form or by 20-point Gauss-Hermite quadrature. The engine needs
sites to start from as well. There is no curvature bound to take, so they are the ones that meet

    q(f_i) = N(m₀, 1),      m₀ = arg max_m Σ_i E_{N(m, 1)}[log p(y_i | f)],

the best constant function under a unit variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import likelihoods
from gpflow.likelihoods import ScalarLikelihood

from gpal.errors import InputError
from gpal.files.saved_data import check_fields
from gpal.inference.graph import compiled
from gpal.inference.parameters import assign_exactly, maximise
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.ordinal import Ordinal
from gpal.likelihoods.site_rules import SiteRule, make_site_rule, natural_gradient_sites

__all__ = [
    "OTHER",
    "QUADRATURE",
    "SINGLE_LATENT",
    "SingleLatent",
    "SingleLatentSites",
    "check_response",
    "facts_of",
    "make_single_latent",
    "response_likelihood_from_data",
    "response_likelihood_to_data",
    "site_rule",
]


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

        @compiled
        def value_and_gradient() -> tuple[tf.Tensor, list[tf.Tensor]]:
            with tf.GradientTape() as tape:
                total = tf.reduce_mean(self.bound(likelihood, constant * one, one, Y))
            return total, [tape.gradient(total, constant)]

        maximise([constant], value_and_gradient, iterations=50)
        mean = constant * one
        precision, natural_mean = natural_gradient_sites(likelihood, mean, one, Y)
        clipped = tf.maximum(precision, 1e-10)
        return clipped, natural_mean + (clipped - precision) * mean


@dataclass(frozen=True)
class SingleLatent:
    """One of GPflow's likelihoods, with the facts that those of gpal have on their classes.

    response   the kind of y
    """

    name: str
    kind: Any  # a class
    response: str
    expectation: str
    prediction: str
    log_concave: bool
    takes_sets: ClassVar[bool] = False
    classes: ClassVar[str] = ""  # it tells none apart
    site_rules: ClassVar[tuple[SiteRule[Any], ...]] = (SingleLatentSites(),)

    def is_coupled(self) -> bool:
        return False


# GPflow's probit has a floor of 10⁻³ for outliers: with it Bernoulli and Ordinal are not
# log-concave.
CLOSED, QUADRATURE = "closed form", "quadrature"
SINGLE_LATENT: Mapping[str, SingleLatent] = {
    name: SingleLatent(name, kind, response, expectation, prediction, log_concave)
    for name, kind, response, expectation, prediction, log_concave in (
        ("gaussian", likelihoods.Gaussian, "real", CLOSED, CLOSED, True),
        ("student_t", likelihoods.StudentT, "real, with outliers", QUADRATURE, QUADRATURE, False),
        ("poisson", likelihoods.Poisson, "counts", CLOSED, QUADRATURE, True),
        ("exponential", likelihoods.Exponential, "positive", CLOSED, QUADRATURE, True),
        ("gamma", likelihoods.Gamma, "positive", CLOSED, QUADRATURE, True),
        ("beta", likelihoods.Beta, "between 0 and 1", QUADRATURE, QUADRATURE, False),
        ("bernoulli", likelihoods.Bernoulli, "0 or 1", QUADRATURE, CLOSED, False),
        ("ordinal", likelihoods.Ordinal, "grades 0, 1, …", QUADRATURE, CLOSED, False),
    )
}
_OUTSIDE: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "poisson": lambda y: (y < 0) | (y != np.round(y)),
    "exponential": lambda y: y < 0,
    "gamma": lambda y: y < 0,
    "beta": lambda y: (y < 0) | (y > 1),
    "bernoulli": lambda y: ~np.isin(y, (0, 1)),
}
OTHER = SingleLatent("other", ScalarLikelihood, "any", "GPflow's", "GPflow's", False)


def facts_of(likelihood: ScalarLikelihood) -> SingleLatent:
    """Its row of `SINGLE_LATENT`, or OTHER: any further subclass of ScalarLikelihood."""
    rows = [row for row in SINGLE_LATENT.values() if isinstance(likelihood, row.kind)]
    return rows[0] if rows else OTHER


def make_single_latent(likelihood: Any) -> ScalarLikelihood:
    """A likelihood by name, with GPflow's defaults, or a copy of an object."""
    if isinstance(likelihood, ScalarLikelihood):
        _refuse_functions(likelihood)
        likelihood = gpflow.utilities.deepcopy(likelihood)
        if type(likelihood) is likelihoods.Ordinal:
            sigma, quadrature = likelihood.sigma, likelihood.quadrature
            likelihood = Ordinal(likelihood.bin_edges, quadrature=quadrature)
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
    return SINGLE_LATENT[likelihood].kind()


def _refuse_functions(likelihood: ScalarLikelihood) -> None:
    for name, part in vars(likelihood).items():
        if isinstance(part, gpflow.functions.Function):
            raise InputError(
                f"the {name} of the likelihood {type(likelihood).__name__} is a function of X, a"
                f" {type(part).__name__}: give a number; errors of single inputs go into X_err"
            )


# What GPflow's constructors take beside the parameters; an inverse link stays GPflow's default.
_CONSTRUCTOR: dict[str, dict[str, str]] = {
    "StudentT": {"df": "df"},
    "Poisson": {"binsize": "binsize"},
}


def response_likelihood_to_data(likelihood: likelihoods.Likelihood) -> dict[str, Any]:
    """JSON-able description of one of GPflow's likelihoods; InputError for any other class.

    Classes of other packages and inverse links other than the default have no name to be kept by.
    """
    kind = type(likelihood)
    own = kind is Ordinal or kind in [row.kind for row in SINGLE_LATENT.values()]
    options: dict[str, Any] = {
        argument: float(getattr(likelihood, attribute))
        for argument, attribute in _CONSTRUCTOR.get(kind.__name__, {}).items()
    }
    if isinstance(likelihood, likelihoods.Ordinal):
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


def response_likelihood_from_data(data: Mapping[str, Any]) -> likelihoods.Likelihood:
    """Inverse of `response_likelihood_to_data`."""
    kinds = {kind.__name__: kind for kind in [row.kind for row in SINGLE_LATENT.values()]} | {
        "Ordinal": Ordinal
    }
    fields = {"class": set(kinds), "options": dict, "parameters": dict, "fixed": [str]}
    check_fields(data, fields, "the likelihood")
    taken: dict[str, Any] = {"bin_edges": [float]} if data["class"] == "Ordinal" else {}
    taken |= dict.fromkeys(_CONSTRUCTOR.get(data["class"], ()), float)
    check_fields(data["options"], taken, "the likelihood")
    likelihood = _made(kinds[data["class"]], data["options"])
    parameters = gpflow.utilities.parameter_dict(likelihood)
    check_fields(data["parameters"], dict.fromkeys(parameters, (float, list)), "the likelihood")
    for path, value in data["parameters"].items():
        assign_exactly(parameters[path], np.asarray(value))
        gpflow.set_trainable(parameters[path], path not in data["fixed"])
    return likelihood


def _made(kind: Any, options: Mapping[str, Any]) -> likelihoods.Likelihood:
    return kind(**{n: np.asarray(v) if isinstance(v, list) else v for n, v in options.items()})


def check_response(likelihood: ScalarLikelihood, y: np.ndarray) -> None:
    """InputError for a response that the likelihood gives no density."""
    Y = tf.constant(y[:, None], tf.float64)
    log_p = likelihood.variational_expectations(None, tf.zeros_like(Y), tf.ones_like(Y), Y)
    bad = ~np.isfinite(log_p.numpy()) | _outside(likelihood, y)
    if bad.any():
        i = int(np.argmax(bad))
        name, response = type(likelihood).__name__, facts_of(likelihood).response
        raise InputError(
            f"y of row {i} is {y[i]:g}, which has no density under {name}; give y that is"
            f" {response}"
        )


def _outside(likelihood: ScalarLikelihood, y: np.ndarray) -> np.ndarray:
    """Where y is none of the likelihood's responses, some of which GPflow rounds or clips."""
    if isinstance(likelihood, Ordinal):
        return ~np.isin(y, np.arange(likelihood.num_bins))
    rule = _OUTSIDE.get(facts_of(likelihood).name)
    return np.zeros(len(y), bool) if rule is None else rule(y)


def site_rule(name: str | None, likelihood: likelihoods.Likelihood) -> SiteRule[Any]:
    """The likelihood's rule of that name, None: its default; GPflow's likelihoods have but one."""
    if isinstance(likelihood, ClassificationLikelihood):
        return make_site_rule(name, likelihood)
    return SingleLatentSites()
