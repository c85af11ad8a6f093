"""Learning hyper-parameters: those of kernel and errors by the collapsed bound with the sites held,
the likelihood's own by its terms of the bound with q(f) held."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference.chunks import SparsePosterior
from gpal.inference.graph import compiled
from gpal.inference.parameters import log_prior_of, maximise, pack
from gpal.inference.protocol import GaussianProcess
from gpal.inference.quasi_newton import Curvature, ascend
from gpal.inference.rows import Data, Sites, meet
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["fit_hyper_parameters", "fit_likelihood"]


def fit_hyper_parameters(
    gp: GaussianProcess,
    data: Data,
    sites: Sites,
    iterations: int,
    mixed_precision: bool,
    curvature: Curvature,
) -> SparsePosterior | None:
    """A few quasi-Newton steps on the collapsed bound and the log prior; in none of them a
    coordinate moves by more than one.

    Coordinates of positive parameters are logarithms, so that is a factor of e at most: the sites
    were met at the old values and a far step would leave their neighbourhood. Returns q at the new
    values where the last evaluation has it, else None.
    """
    n, variables = data.size, gp.trainable_variables
    if not variables:
        return None
    seen: list = []  # the last point and its posterior
    prior_at_present = log_prior_of(gp.rows)

    def per_source() -> tuple[tf.Tensor, list[tf.Tensor]]:
        J, gradients, posterior = gp.collapsed(data, sites, mixed_precision)
        seen[:] = pack(variables), posterior
        prior, to_prior = prior_at_present()
        return (J + prior) / n, [(g + p) / n for g, p in zip(gradients, to_prior, strict=True)]

    ascend(
        gp.rows,
        per_source,
        curvature,
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
