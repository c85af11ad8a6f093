"""Pólya-Gamma variables, which make a logistic function Gaussian in its argument (Polson, Scott &
Windle 2013); what Jaakkola and Jordan's bound and the augmented logistic-softmax share.

    σ(f) = ½ e^{f/2} E_ω[e^{−ω f²/2}],     ω ~ PG(1, 0),     q(ω) = PG(1, c),     c² = E[f²]
"""

from __future__ import annotations

import tensorflow as tf

__all__ = ["log_two_cosh", "polya_gamma_mean", "second_moment_root"]


def second_moment_root(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """c = √(m² + v), off zero, where tanh(c/2)/(2c) = ¼ is no longer computed as 0/0."""
    return tf.sqrt(tf.maximum(mean**2 + variance, 1e-12))


def polya_gamma_mean(c: tf.Tensor) -> tf.Tensor:
    """E[ω] = tanh(c/2)/(2c) of the Pólya-Gamma distribution PG(1, c)."""
    return tf.tanh(0.5 * c) / (2.0 * c)


def log_two_cosh(c: tf.Tensor) -> tf.Tensor:
    """log 2cosh(c/2), c ≥ 0."""
    return 0.5 * c + tf.math.softplus(-c)
