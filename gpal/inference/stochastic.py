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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tf_keras
from tqdm import tqdm

from gpal.inference.base import INFERENCES, Fit, Inference, Problem, make_schedule
from gpal.inference.chunks import SparsePosterior
from gpal.inference.rows import Data, Sites, Statistics, first_sites, meet
from gpal.inference.sites import CaviSites, Schedule, fit_sites
from gpal.inference.sparse import SparseGP

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


def fit_stochastic_sites(problem: Problem, schedule: StochasticSchedule | None = None) -> Fit:
    """Fit q(u) and the hyper-parameters of a sparse GP from mini-batches."""
    schedule = schedule or StochasticSchedule()
    gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
    assert isinstance(gp, SparseGP)
    learning_rate = schedule.learning_rate
    n, nodes = int(data.Y.shape[0]), gp.nodes
    batch_size = min(schedule.batch_size, n)
    scale = n / batch_size
    variables = list(gp.trainable_variables)
    descent = tf_keras.optimizers.Adam(learning_rate)
    likelihood_descent = tf_keras.optimizers.Adam(learning_rate)
    generator = np.random.default_rng(schedule.seed)

    def batch() -> Data:
        return data.sources(generator.choice(n, batch_size, replace=False))

    def scaled(statistics: Statistics) -> Statistics:
        return tf.nest.map_structure(lambda a: scale * a, statistics)

    first = batch()
    sites = first_sites(rule, likelihood, first.Y, nodes, first.weight)
    gp.rows.forget()
    statistics = gp.whitened(scaled(gp.statistics(first, sites)))
    posterior = gp.solve_whitened(statistics)

    @tf.function(autograph=False)
    def likelihood_step(rows: Data, mean: tf.Tensor, variance: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            met = meet(rule, likelihood, mean, variance, rows.Y, nodes, rows.weight)
            loss = -tf.reduce_mean(met[1])
        own = likelihood.trainable_variables
        likelihood_descent.apply_gradients(zip(tape.gradient(loss, own), own))

    bar = tqdm(
        range(schedule.steps),
        desc="stochastic sites",
        leave=False,
        disable=True if schedule.progress is False else None,
    )
    for t in bar:
        rows = batch()
        rate = (t + 1.0 + schedule.delay) ** -schedule.forgetting
        old = Sites(*(tf.zeros([batch_size * nodes, gp.num_latent], tf.float64),) * 2)
        met, new, _ = gp.met_statistics(rule, likelihood, rows, posterior, old, 1.0)
        statistics = statistics.mix(gp.whitened(scaled(new)), rate)
        if learning_rate > 0:
            if likelihood.trainable_variables:
                likelihood_step(rows, *gp.data_marginals(rows, posterior))
            _, gradients = gp.held_gradient(rows, met, statistics)
            descent.apply_gradients((-g / batch_size, v) for g, v in zip(gradients, variables))
        posterior = gp.solve_whitened(statistics)
        if schedule.callback is not None and (t + 1) % schedule.callback_every == 0:
            schedule.callback(posterior, t + 1)
    return fit_sites(problem, Schedule(rounds=0, initial_sweeps=0, final_sweeps=2), posterior)
