"""Learning hyper-parameters: those of kernel and errors by the collapsed bound with the sites held,
the likelihood's own by its terms of the bound with q(f) held."""

from __future__ import annotations

from functools import cached_property

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference.chunks import SparsePosterior
from gpal.inference.graph import compiled
from gpal.inference.parameters import Coordinates, LogPrior, log_prior_of, maximise, pack
from gpal.inference.protocol import GaussianProcess
from gpal.inference.quasi_newton import Curvature, ascend
from gpal.inference.rows import Data, Sites, meet
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["HyperParameters", "fit_hyper_parameters", "fit_likelihood"]


class HyperParameters:
    """Those of a GP and its likelihood, and what is known of them from round to round: to look for
    them anew takes longer than many a step."""

    def __init__(self, gp: GaussianProcess, likelihood: gpflow.likelihoods.Likelihood) -> None:
        self.rows, self.likelihood = gp.rows, likelihood
        self.curvature = Curvature()

    @cached_property
    def coordinates(self) -> Coordinates:
        """Of those that are learned by the collapsed bound."""
        return Coordinates(self.rows)

    @cached_property
    def variables(self) -> list[tf.Variable]:
        return [*self.coordinates.variables, *self.likelihood.trainable_variables]

    @cached_property
    def log_priors(self) -> tuple[LogPrior, LogPrior]:
        """Of the rows and of the likelihood."""
        return log_prior_of(self.rows), log_prior_of(self.likelihood)

    @property
    def log_prior(self) -> float:
        """Of all, at their present values."""
        return sum(float(at_present()[0]) for at_present in self.log_priors)


def fit_hyper_parameters(
    gp: GaussianProcess,
    data: Data,
    sites: Sites,
    iterations: int,
    mixed_precision: bool,
    known: HyperParameters,
) -> SparsePosterior | None:
    """A few quasi-Newton steps on the collapsed bound and the log prior; in none of them a
    coordinate moves by more than one.

    Coordinates of positive parameters are logarithms, so that is a factor of e at most: the sites
    were met at the old values and a far step would leave their neighbourhood. Returns q at the new
    values where the last evaluation has it, else None.
    """
    n, variables = data.size, known.coordinates.variables
    if not variables:
        return None
    seen: list = []  # the last point and its posterior

    def per_source() -> tuple[tf.Tensor, list[tf.Tensor]]:
        J, gradients, posterior = gp.collapsed(data, sites, mixed_precision)
        seen[:] = pack(variables), posterior
        prior, to_prior = known.log_priors[0]()
        return (J + prior) / n, [(g + p) / n for g, p in zip(gradients, to_prior, strict=True)]

    ascend(
        known.coordinates,
        per_source,
        known.curvature,
        iterations=iterations,
        longest=1.0,
        # The noise of J per source in mixed precision.
        tolerance=1e-7 if mixed_precision else 2.2e-9,
    )
    return seen[1] if np.array_equal(seen[0], pack(variables)) else None


def fit_likelihood(
    rule: SiteRule,
    likelihood: gpflow.likelihoods.Likelihood,
    Fmu: tf.Tensor,
    Fvar: tf.Tensor,
    Y: tf.Tensor,
    nodes: int = 1,
    iterations: int = 10,
    weight: tf.Tensor | None = None,
) -> None:
    """The likelihood's own parameters (such as the label noise δ), q(f) held fixed."""
    variables = likelihood.trainable_variables
    n = float(len(Y) if weight is None else tf.reduce_sum(weight))
    prior_at_present = log_prior_of(likelihood)

    @compiled
    def value_and_gradient() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            terms = meet(rule, likelihood, Fmu, Fvar, Y, nodes, weight)[1]
            total = tf.reduce_sum(terms) / tf.cast(n, terms.dtype)
        gradients = tape.gradient(
            total, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        prior, to_prior = prior_at_present()
        return total + prior / n, [g + p / n for g, p in zip(gradients, to_prior, strict=True)]

    maximise(variables, value_and_gradient, iterations=iterations)
