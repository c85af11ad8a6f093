"""Hamiltonian Monte Carlo over f, for any likelihood that is smooth in f.

In whitened coordinates, f_c = R_c v_c with K_c = R_c R_cᵀ, so that the prior's correlations do not
shorten the steps,

    log p(v | y) = Σ_i log p(y_i | f_i) − ½ |v|² + const.

by the No-U-Turn sampler (Hoffman & Gelman 2014) of TensorFlow Probability, its step size adapted
during the burn-in to an acceptance of .8. Trajectories of a fixed length do not do: where data say
little v is nearly N(0, I), and ten adapted steps led back to where they had begun.

With the Dirichlet likelihood p(y | f) is its Gaussian of the targets, as it is fitted.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.inference.reference import REFERENCES, ChainSchedule, Reference

__all__ = ["HamiltonianMonteCarlo"]

MAX_TREE_DEPTH = 6
FIRST_STEP = 0.2


@REFERENCES.register
class HamiltonianMonteCarlo(Reference):
    """No-U-Turn sampler of the whitened latent functions."""

    name: ClassVar[str] = "hmc"
    summary: ClassVar[str] = "Hamiltonian Monte Carlo on whitened f (No-U-Turn)"
    source: ClassVar[str] = "Hoffman & Gelman 2014"

    @classmethod
    def why_not(cls, likelihood: Any) -> str:
        if likelihood.smooth:
            return ""
        return f"'{cls.name}' follows gradients, and log p(y | f) of '{likelihood.name}' has steps"

    def sample(
        self, roots: np.ndarray, likelihood: Any, labels: np.ndarray, schedule: ChainSchedule
    ) -> np.ndarray:
        R = tf.constant(roots)
        Y = tf.constant(labels[:, None], tf.float64)
        shape = [schedule.chains, likelihood.latent_dim, len(labels)]

        def latent(v: tf.Tensor) -> tf.Tensor:
            """f [..., n, P] of v [..., P, n]."""
            return tf.linalg.matrix_transpose(tf.linalg.matvec(R, v))

        def log_density(v: tf.Tensor) -> tf.Tensor:
            log_p = tf.reduce_sum(likelihood.log_prob(None, latent(v), Y), axis=-1)
            return log_p - 0.5 * tf.reduce_sum(v**2, axis=[-1, -2])

        kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
            tfp.mcmc.NoUTurnSampler(
                log_density, step_size=np.float64(FIRST_STEP), max_tree_depth=MAX_TREE_DEPTH
            ),
            num_adaptation_steps=int(0.8 * schedule.burn_in),
            target_accept_prob=np.float64(0.8),
        )

        @tf.function(autograph=False)
        def run() -> tf.Tensor:
            return tfp.mcmc.sample_chain(
                schedule.draws,
                tf.random.stateless_normal(shape, [schedule.seed, 0], dtype=tf.float64),
                kernel=kernel,
                num_burnin_steps=schedule.burn_in,
                num_steps_between_results=schedule.thin - 1,
                trace_fn=None,
                seed=[schedule.seed, 1],
            )

        return latent(run()).numpy()
