"""Stochastic sites: the engine on mini-batches (Hoffman et al. 2013; paper 004's stochastic CAVI).

The whitened statistics of all n rows are tracked by a decaying average of the batches' own,

    S̃ ← (1 − ρ_t) S̃ + ρ_t (n/|B|) L⁻¹ S_B L⁻ᵀ,      ρ_t = (t + delay)^(−forgetting),

which is a natural-gradient step of length ρ_t on q(v), as S̃ and ρ̃ are its natural parameters; being
whitened they stay meaningful while the kernel moves. Hyper-parameters follow Adam on the bound's
gradient with q(v) held, the batch standing for all rows. Last sweeps over all rows remove what the
average still remembers of older hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
import tf_keras
from tqdm import tqdm

from gpal.inference import whitened
from gpal.inference.base import INFERENCES, Fit, Inference, Problem, check_between, make_schedule
from gpal.inference.chunks import SparsePosterior
from gpal.inference.collapsed import bound_and_gradient
from gpal.inference.rows import Data, Statistics, first_sites, meet
from gpal.inference.shared_graph import shared_graph
from gpal.inference.sites import CaviSites, Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["StochasticCavi", "StochasticSchedule", "StochasticSites", "fit_stochastic_sites"]


@INFERENCES.register
class StochasticSites(Inference):
    """Mini-batches with the likelihood's own rule."""

    name: ClassVar[str] = "stochastic_sites"
    summary: ClassVar[str] = "natural-gradient sites on mini-batches"
    source: ClassVar[str] = "Hoffman et al. 2013"

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        given = {"seed": seed, "progress": None if verbose else False}
        schedule = make_schedule(StochasticSchedule, self.name, options, given)
        return fit_stochastic_sites(problem, schedule)


@INFERENCES.register
class StochasticCavi(StochasticSites):
    """Mini-batches with the sites of the augmented logistic-softmax."""

    name = "stochastic_cavi"
    summary = "cavi on mini-batches"
    source = "Galy-Fajou et al. 2019"
    rule = "cavi"
    one_node = CaviSites.one_node


@dataclass(frozen=True, kw_only=True)
class StochasticSchedule:
    """How many steps, and how long they are.

    forgetting   exponent in (½, 1] of the step schedule; delay ≥ 1 slows the first steps
    learning_rate  of Adam; 0 keeps the hyper-parameters as they are
    seed         of the batches
    progress     False silent, None a bar on a terminal only
    callback     called as callback(posterior, step) every `callback_every` steps
    """

    steps: int = 500
    batch_size: int = 256
    delay: float = 1.0
    forgetting: float = 0.6
    learning_rate: float = 0.02
    seed: int = 0
    progress: bool | None = False
    callback: Callable[[SparsePosterior, int], None] | None = None
    callback_every: int = 50

    def __post_init__(self) -> None:
        check_between("learning_rate", self.learning_rate, 0.0)
        check_between("forgetting", self.forgetting, 0.5, 1.0, open_below=True)
        check_between("delay", self.delay, 1.0)


def fit_stochastic_sites(problem: Problem, schedule: StochasticSchedule | None = None) -> Fit:
    """Fit q(u) and the hyper-parameters of a sparse GP from mini-batches."""
    schedule = schedule or StochasticSchedule()
    gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
    assert isinstance(gp, SparseGP)
    n = int(data.Y.shape[0])
    batch_size = min(schedule.batch_size, n)
    scale = tf.constant(n / batch_size, tf.float64)  # a tensor: the graph serves any n
    generator = np.random.default_rng(schedule.seed)
    variables = [*gp.trainable_variables, *likelihood.trainable_variables]
    descent = tf_keras.optimizers.Adam(schedule.learning_rate)
    descent.build(variables)
    descend = tf.function(
        lambda *gradients: descent.apply_gradients(zip(gradients, variables)), autograph=False
    ).get_concrete_function(*(tf.TensorSpec(v.shape, v.dtype) for v in variables))
    learns = schedule.learning_rate > 0 and len(variables) > 0

    def batch() -> Data:
        return data.sources(generator.choice(n, batch_size, replace=False))

    def step(batch: Data, old: Statistics, rate: tf.Tensor) -> tuple[Statistics, list[tf.Tensor]]:
        return gp.jitter.run(
            lambda: _step(
                gp, rule, likelihood, batch, old, rate, scale, gp.jitter.value, batch_size, learns
            ),
            lambda found: found[0].projection,
        )

    first = batch()
    sites = first_sites(rule, likelihood, first.Y, gp.nodes, first.weight)
    gp.rows.forget()
    statistics = gp.whitened(_scaled(gp.statistics(first, sites), scale))
    bar = tqdm(
        range(schedule.steps),
        desc="stochastic sites",
        leave=False,
        disable=True if schedule.progress is False else None,
    )
    for t in bar:
        rate = (t + 1.0 + schedule.delay) ** -schedule.forgetting
        statistics, gradients = step(batch(), statistics, tf.constant(rate, tf.float64))
        if learns:
            descend(*gradients)
        if schedule.callback is not None and (t + 1) % schedule.callback_every == 0:
            schedule.callback(gp.solve_whitened(statistics), t + 1)
    posterior = gp.solve_whitened(statistics)
    met = fit_sites(problem, Schedule(rounds=0, initial_sweeps=0, final_sweeps=2), posterior)
    return replace(met, rounds=[], converged=None)  # it has taken the steps it was given


@shared_graph
def _step(
    gp: SparseGP,
    rule: SiteRule,
    likelihood: gpflow.likelihoods.Likelihood,
    batch: Data,
    statistics: Statistics,
    rate: tf.Tensor,
    scale: tf.Tensor,
    jitter: tf.Tensor,
    batch_size: int,
    learns: bool,
) -> tuple[Statistics, list[tf.Tensor]]:
    """Statistics after the step, and −∂(bound per source)/∂(hyper-parameters) at their q(v).

    scale   n/|B|
    """
    batch = batch._replace(Y=tf.ensure_shape(batch.Y, [batch_size, batch.Y.shape[1]]))
    factors = tf.linalg.cholesky(gp.rows.kernel_matrices(jitter))
    q = whitened.posterior(statistics)
    posterior = SparsePosterior(*whitened.unwhiten(q, factors), q.kl)
    sites, new, _ = gp.met_statistics(rule, likelihood, batch, posterior)
    new = whitened.whiten(_scaled(new, scale), factors)
    statistics = statistics.mix(new, rate)
    if not learns:
        return statistics, []
    _, gradients, _ = bound_and_gradient(gp.rows, batch, sites, jitter, held=statistics)
    own = likelihood.trainable_variables
    if own:
        marginals = gp.rows.marginals(gp.rows.all_of(batch), posterior)
        with tf.GradientTape() as tape:
            terms = meet(rule, likelihood, *marginals, batch.Y, gp.nodes, batch.weight)[1]
        gradients = [*gradients, *tape.gradient(terms, own)]
    return statistics, [-g / batch_size for g in gradients]


def _scaled(statistics: Statistics, scale: tf.Tensor) -> Statistics:
    return tf.nest.map_structure(lambda sums: scale * sums, statistics)
