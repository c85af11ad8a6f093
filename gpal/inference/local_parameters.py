"""vi-JJ-full and vi-JJ-hybrid: the sites' local parameters as numerical variables (paper 002).

A quadratic rule bounds the likelihood with local parameters ξ, and q(f) is optimal for them, so
that the bound is a function Ĵ(ϑ, ξ) of hyper-parameters and local parameters alone:

    full     L-BFGS on (ϑ, ξ) together
    hybrid   alternate the closed-form ξ (three sweeps) with L-BFGS on (ϑ, ξ)

By the envelope theorem ∂Ĵ/∂ξ is the derivative of Σ_i E_q[quadratic_i(f; ξ_i)] with q held, and
∂Ĵ/∂ϑ that of the collapsed bound with the sites held: one solve gives both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
import tensorflow as tf

from gpal.inference.base import INFERENCES, Fit, Inference, Problem, make_schedule
from gpal.inference.parameters import assign, pack
from gpal.inference.rows import Sites
from gpal.inference.sites import Schedule, fit_sites
from gpal.likelihoods.site_rules import QuadraticRule

__all__ = [
    "JaakkolaJordanFull",
    "JaakkolaJordanHybrid",
    "LocalSchedule",
    "fit_local_parameters",
]


# By how much the loss per source is above that at a round's start where a step was so long that
# there is no q(f). With much more the search would go on in steps that are too short.
WALL = 10.0


@dataclass(frozen=True, kw_only=True)
class LocalSchedule:
    """`rounds` of `iterations` of L-BFGS on (ϑ, ξ); if hybrid, each after closed-form `sweeps`."""

    rounds: int = 10
    iterations: int = 10
    sweeps: int = 3


@INFERENCES.register
class JaakkolaJordanHybrid(Inference):
    """Closed-form ξ and L-BFGS in turns."""

    name: ClassVar[str] = "jaakkola_jordan_hybrid"
    summary: ClassVar[str] = (
        "vi-JJ-hybrid: closed-form local parameters, then L-BFGS on them and the kernel"
    )
    source: ClassVar[str] = "Izmailov & Kropotov 2016"
    rule = "jaakkola_jordan"
    one_node = "has one local parameter per source, not per node"
    exact_inputs = True
    full_gp = True
    takes_weights = False
    hybrid: ClassVar[bool] = True

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        given = {"rounds": min(rounds, LocalSchedule.rounds)}
        schedule = make_schedule(LocalSchedule, self.name, options, given)
        return fit_local_parameters(problem, schedule, hybrid=self.hybrid)


@INFERENCES.register
class JaakkolaJordanFull(JaakkolaJordanHybrid):
    """L-BFGS alone."""

    name = "jaakkola_jordan_full"
    summary = "vi-JJ-full: L-BFGS on local parameters and kernel together"
    hybrid = False


def fit_local_parameters(
    problem: Problem, schedule: LocalSchedule | None = None, *, hybrid: bool
) -> Fit:
    """The fit, with the bound after every round.

    One node per source; ξ is one array [n, P] (Jaakkola-Jordan's c).
    """
    schedule = schedule or LocalSchedule()
    gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
    assert isinstance(rule, QuadraticRule)
    fit = fit_sites(problem, Schedule(rounds=0, initial_sweeps=1, final_sweeps=0))
    marginals = gp.data_marginals(data, fit.posterior)
    xi = rule.local_parameters(likelihood, *marginals, data.Y).numpy()
    variables = list(gp.trainable_variables)

    @tf.function(autograph=False)
    def local_terms(
        xi: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(xi)
            terms = rule.quadratic(likelihood, xi, data.Y).expectation(mean, variance)
            total = tf.reduce_sum(terms)
        return total, tape.gradient(total, xi)

    def sites_at(xi: np.ndarray) -> Sites:
        quadratic = rule.quadratic(likelihood, tf.constant(xi), data.Y)
        return Sites(quadratic.precision, quadratic.natural_mean)

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        assign(variables, x[: -xi.size])
        local = x[-xi.size :].reshape(xi.shape)
        gp.refresh(data)
        sites = sites_at(local)
        posterior = gp.posterior(data, sites)
        total, to_local = local_terms(tf.constant(local), *gp.data_marginals(data, posterior))
        _, gradients = gp.bound_and_gradient(data, sites)
        gradient = np.concatenate([*(np.ravel(g) for g in gradients), np.ravel(to_local)])
        n = len(data.Y)
        return -float(total - posterior.kl) / n, -gradient / n

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        jitter = gp.jitter.relative
        try:
            value, gradient = loss(x)
        except (FloatingPointError, tf.errors.InvalidArgumentError):
            value, gradient = np.nan, np.zeros_like(x)
        if np.isfinite(value) and np.isfinite(gradient).all():
            return value, gradient
        gp.jitter.relative = jitter  # what a step too far needs is none of the others'
        return WALL - bounds[-1] / len(data.Y), np.zeros_like(x)

    bounds = list(fit.bounds)
    for _ in range(schedule.rounds):
        if hybrid:
            for _ in range(schedule.sweeps):
                posterior = gp.posterior(data, sites_at(xi))
                marginals = gp.data_marginals(data, posterior)
                xi = rule.local_parameters(likelihood, *marginals, data.Y).numpy()
        start = np.concatenate([pack(variables), xi.ravel()])
        result = scipy.optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": schedule.iterations}
        )
        assign(variables, result.x[: -xi.size])
        xi = result.x[-xi.size :].reshape(xi.shape)
        gp.refresh(data)
        bounds.append(-result.fun * len(data.Y))
        if bounds[-1] - bounds[-2] < 1e-5 * len(data.Y):
            break
    sites = sites_at(xi)
    return Fit(gp.posterior(data, sites), bounds, sites)
