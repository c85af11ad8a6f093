"""GPflow's ordinal likelihood with finite outermost edges, and its predictions in closed form.

    p(y = k | f) = Φ((a_{k+1} − f)/σ) − Φ((a_k − f)/σ),      a_0 = −∞, a_K = ∞

    ∫ p(y = k | f) N(f | m, v) df = Φ((a_{k+1} − m)/s) − Φ((a_k − m)/s),      s² = σ² + v

GPflow evaluates the outermost edges at infinity, where TensorFlow's double-precision erf is NaN
(TensorFlow issue 108483, versions up to 2.21 at least): every source of the lowest and of the
highest grade. Here they are a million σ away. GPflow predicts by 20 Gauss-Hermite points, which
miss the steps of a σ below √v. Φ has GPflow's floor, and p another of 10⁻⁶ in its logarithm.
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

    def _of_grades(self, F: tf.Tensor, variance: Any = 0.0) -> tf.Tensor:
        """P(y = k | f), or under N(F, variance), along a new last axis."""
        width = tf.sqrt(self.sigma**2 + variance) * tf.ones_like(F)
        steps = inv_probit((self.bin_edges - F[..., None]) / width[..., None])
        far = FAR * tf.ones_like(F[..., None])
        below = tf.concat([inv_probit(-far), steps, inv_probit(far)], axis=-1)
        return below[..., 1:] - below[..., :-1]

    def _log_of(self, p: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        grade = tf.one_hot(tf.cast(Y, tf.int32), self.num_bins, dtype=p.dtype)
        return tf.math.log(tf.reduce_sum(p * grade, axis=-1) + 1e-6)

    @inherit_check_shapes
    def _scalar_log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return self._log_of(self._of_grades(F), Y)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        return tf.reduce_sum(self._log_of(self._of_grades(Fmu, Fvar), Y), axis=-1)

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        p, grades = self._of_grades(Fmu, Fvar), tf.range(self.num_bins, dtype=Fmu.dtype)
        p = p / tf.reduce_sum(p, axis=-1, keepdims=True)  # GPflow's Φ is never below 1e-3
        mean = tf.reduce_sum(p * grades, axis=-1)
        return mean, tf.reduce_sum(p * grades**2, axis=-1) - mean**2

    @check_shapes(
        "F: [batch..., latent_dim]",
        "return: [batch_and_latent_dim, num_bins]",
    )
    def _make_phi(self, F: tf.Tensor) -> tf.Tensor:
        return tf.reshape(self._of_grades(F), [-1, self.num_bins])
