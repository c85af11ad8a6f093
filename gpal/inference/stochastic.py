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
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tf_keras
from tqdm import tqdm

from gpal.inference.base import INFERENCES, Fit, Inference, Problem, known_options
from gpal.inference.rows import Data, Sites, Statistics, meet
from gpal.inference.sites import fit_sites
from gpal.inference.sparse import SparseGP

__all__ = ["StochasticCavi", "StochasticSites", "fit_stochastic_sites"]


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
        gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
        given = {"seed": seed, "progress": None if verbose else False}
        given |= known_options(self.name, options, fit_stochastic_sites)
        return fit_stochastic_sites(gp, likelihood, rule, data, **given)


@INFERENCES.register
class StochasticCavi(StochasticSites):
    """Mini-batches with the sites of the augmented logistic-softmax."""

    name = "stochastic_cavi"
    summary = "cavi on mini-batches"
    source = "Galy-Fajou et al. 2019"
    rule = "cavi"


def fit_stochastic_sites(
    gp: SparseGP,
    likelihood,
    rule,
    data: Data,
    *,
    steps: int = 500,
    batch_size: int = 256,
    delay: float = 1.0,
    forgetting: float = 0.6,
    learning_rate: float = 0.02,
    seed: int = 0,
    progress: bool | None = False,
    callback: Callable[[Any, int], None] | None = None,
    callback_every: int = 50,
) -> Fit:
    """Fit q(u) and, where learning_rate > 0, the hyper-parameters of `gp` from mini-batches.

    forgetting   exponent in (½, 1] of the step schedule; delay ≥ 1 slows the first steps
    callback     called as callback(posterior, step) every `callback_every` steps
    """
    n, nodes = int(data.Y.shape[0]), gp.nodes
    batch_size = min(batch_size, n)
    scale = n / batch_size
    variables = list(gp.trainable_variables)
    descent = tf_keras.optimizers.Adam(learning_rate)
    likelihood_descent = tf_keras.optimizers.Adam(learning_rate)
    generator = np.random.default_rng(seed)

    def batch() -> Data:
        return data.sources(generator.choice(n, batch_size, replace=False))

    def scaled(statistics: Statistics) -> Statistics:
        return tf.nest.map_structure(lambda a: scale * a, statistics)

    first = batch()
    precision, natural_mean = rule.initial_sites(likelihood, first.Y)
    sites = Sites(*(tf.repeat(s / nodes, nodes, axis=0) for s in (precision, natural_mean)))
    gp.rows.forget()
    statistics = gp.whitened(scaled(gp.statistics(first, sites)))
    posterior = gp.solve_whitened(statistics)

    @tf.function(autograph=False)
    def likelihood_step(rows: Data, mean, variance):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(meet(rule, likelihood, mean, variance, rows.Y, nodes)[1])
        own = likelihood.trainable_variables
        likelihood_descent.apply_gradients(zip(tape.gradient(loss, own), own))

    bar = tqdm(
        range(steps),
        desc="stochastic sites",
        leave=False,
        disable=True if progress is False else None,
    )
    for t in bar:
        rows = batch()
        old = Sites(*(tf.zeros([batch_size * nodes, gp.num_latent], tf.float64),) * 2)
        met, new, _ = gp.met_statistics(rule, likelihood, rows, posterior, old, 1.0)
        statistics = statistics.mix(gp.whitened(scaled(new)), (t + 1.0 + delay) ** -forgetting)
        if learning_rate > 0:
            if likelihood.trainable_variables:
                likelihood_step(rows, *gp.data_marginals(rows, posterior))
            _, gradients = gp.held_gradient(rows, met, statistics)
            descent.apply_gradients((-g / batch_size, v) for g, v in zip(gradients, variables))
        posterior = gp.solve_whitened(statistics)
        if callback is not None and (t + 1) % callback_every == 0:
            callback(posterior, t + 1)
    return fit_sites(
        gp, likelihood, rule, data, rounds=0, initial_sweeps=0, final_sweeps=2, start=posterior
    )
