"""Softmax: p(y = c | f) = exp f_c / Σ_k exp f_k.

    E_q[log p(y | f)] = m_y − E_q[logsumexp f]

The expectation has no closed form; it is taken over a fixed antithetic Sobol set of standard-normal
points ε_s, f_s = m + √v ε_s, the same for every source and every call, so that the bound is a
deterministic function. Bonnet's and Price's identities give the sites on the same points:

    ∂E/∂m_c = 1[y = c] − E[p_c],     θ_c = −2 ∂E/∂v_c = E[p_c (1 − p_c)] ≥ 0.

Start at the curvature bound θ = ½, r = y − 1/C (Böhning 1992): from θ = 0 many classes diverge.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.quasi_random import antithetic_normal

__all__ = ["Softmax"]


class Softmax(ClassificationLikelihood):
    """Softmax likelihood with quasi-random expectations.

    num_classes  C ≥ 2
    num_points   points of the fixed set in training (even); prediction uses four times as many
    seed         of the scrambled Sobol sequence
    """

    def __init__(self, num_classes: int, num_points: int = 32, seed: int = 0) -> None:
        super().__init__(num_classes, latent_dim=num_classes)
        self.num_points, self.seed = num_points, seed
        self._training_points = antithetic_normal(num_points, num_classes, seed)
        self._prediction_points = antithetic_normal(4 * num_points, num_classes, seed)

    def _conditional_probabilities(self, F):
        return tf.nn.softmax(F, axis=-1)

    def _samples(self, Fmu, Fvar, points: np.ndarray):
        """f_s = m + √v ε_s, shape [S, N, C]."""
        epsilon = tf.constant(points, dtype=Fmu.dtype)[:, None, :]
        return Fmu + tf.sqrt(Fvar) * epsilon

    @inherit_check_shapes
    def _variational_expectations(self, X, Fmu, Fvar, Y):
        samples = self._samples(Fmu, Fvar, self._training_points)
        normaliser = tf.reduce_mean(tf.reduce_logsumexp(samples, axis=-1), axis=0)
        return tf.reduce_sum(self._one_hot(Y, Fmu.dtype) * Fmu, axis=-1) - normaliser

    def _predict_proba(self, Fmu, Fvar):
        samples = self._samples(Fmu, Fvar, self._prediction_points)
        return tf.reduce_mean(tf.nn.softmax(samples, axis=-1), axis=0)

    def _sites(self, Fmu, Fvar, Y):
        p = tf.nn.softmax(self._samples(Fmu, Fvar, self._training_points), axis=-1)
        precision = tf.maximum(tf.reduce_mean(p * (1.0 - p), axis=0), 1e-10)
        gradient = self._one_hot(Y, Fmu.dtype) - tf.reduce_mean(p, axis=0)
        return precision, gradient + precision * Fmu

    def initial_sites(self, Y):
        one_hot = self._one_hot(Y, tf.float64)
        return 0.5 * tf.ones_like(one_hot), one_hot - 1.0 / self.num_classes
