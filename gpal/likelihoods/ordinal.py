"""GPflow's ordinal likelihood with finite outermost edges.

    p(y = k | f) = Φ((a_{k+1} − f)/σ) − Φ((a_k − f)/σ),      a_0 = −∞, a_K = ∞

GPflow evaluates the two at infinity, where TensorFlow's double-precision erf is NaN (TensorFlow
issue 108483, versions up to 2.21 at least): every source of the lowest and of the highest grade.
Here they are a million σ away.
"""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.likelihoods.utils import inv_probit

__all__ = ["Ordinal"]

FAR = 1e6


class Ordinal(gpflow.likelihoods.Ordinal):
    """Same parameters and values."""

    def _below(self, F: tf.Tensor) -> tf.Tensor:
        """P(y < k | f) for k = 0 … K, along a new last axis."""
        far = tf.constant([FAR], tf.float64)
        edges = tf.concat([-far, self.bin_edges / self.sigma, far], axis=0)
        return inv_probit(edges - F[..., None] / self.sigma)

    @inherit_check_shapes
    def _scalar_log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        below = self._below(F)
        p = below[..., 1:] - below[..., :-1]
        grade = tf.one_hot(tf.cast(Y, tf.int32), self.num_bins, dtype=p.dtype)
        return tf.math.log(tf.reduce_sum(p * grade, axis=-1) + 1e-6)

    @check_shapes(
        "F: [batch..., latent_dim]",
        "return: [batch_and_latent_dim, num_bins]",
    )
    def _make_phi(self, F: tf.Tensor) -> tf.Tensor:
        below = tf.reshape(self._below(F), [-1, self.num_bins + 1])
        return below[:, 1:] - below[:, :-1]
