"""What the treatments of the gradient path share: q(x_i), from which every step draws one x_i.

    x_i = b_i + R_i z_i,    z_i = a_i + s_i ∘ ε_i,    ε_i ~ N(0, I)

with b_i, R_i R_iᵀ the mean and covariance of p(x | x̃_i), so that z ~ N(0, I) is p(x | x̃_i) itself
(of a mixture, its moments). The terms of source i in the bound (Villacampa-Calvo et al. 2021,
eqs. 8-10), E_q log N(x̃_i | x_i, V_i) − KL(q(x_i) ‖ p(x_i)), are then

    log p(x̃_i) − KL_i,    KL_i = ½ Σ_d (a_id² + s_id² − 1 − log s_id²)

where nothing is divided by an error: V = 0 is exact. The bound here is that of p(y | x̃), as for
`integrated`: log p(x̃_i) is a constant where the errors are given, and where they are learned it
would mostly pull them back to those that the population was deconvolved with.

Prediction averages over the fixed nodes of p(x | x̃), as for `integrated` (their eqs. 11, 12).
"""

from __future__ import annotations

from abc import abstractmethod

import tensorflow as tf
from check_shapes import check_shapes

from gpal.input_noise.integrated import Integrated

__all__ = ["Drawn", "InputPosterior"]


class InputPosterior(tf.Module):
    """q(x_i) = p(x | x̃_i); a subclass moves it away from there."""

    def parameters_of(
        self, sources: tf.Tensor, b: tf.Tensor, root: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(a, log s) [B, d] of the sources with these indices, moments and labels."""
        return tf.zeros_like(b), tf.zeros_like(b)

    @check_shapes(
        "b: [B, d]",
        "root: [B, d, d]",
        "Y: [B, K]",
        "normal: [draws..., broadcast B, d]",
        "return[0]: [draws..., B, d]",
        "return[1]: [B]",
    )
    def draw(
        self, sources: tf.Tensor, b: tf.Tensor, root: tf.Tensor, Y: tf.Tensor, normal: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(x [..., B, d], KL [B]) for standard normal numbers ε [..., B, d]."""
        a, log_s = self.parameters_of(sources, b, root, Y)
        s = tf.exp(log_s)
        z = a + s * normal
        x = b + tf.reduce_sum(root * z[..., None, :], axis=-1)
        return x, tf.reduce_sum(0.5 * (a**2 + s**2 - 1.0) - log_s, axis=1)


class Drawn(Integrated):
    """A treatment whose training draws x from q(x_i)."""

    gradient_only = True

    @abstractmethod
    def posterior(self, n: int, d: int, num_classes: int | None, seed: int) -> InputPosterior:
        """q(x_i) of n sources before training; num_classes None where Y [n, 1] is no class."""
