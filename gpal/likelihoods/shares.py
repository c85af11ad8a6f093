"""E[g_c / Σ_k g_k] of independent positive g_k = exp ℓ(f_k), f_k ~ N(m_k, v_k): one integral.

As 1/Σ_k g_k = ∫ e^{−λ Σ_k g_k} dλ, and as the g_k are independent, with λ = e^{−t}

    E[g_c / Σ_k g_k] = ∫ λ E[g_c e^{−λ g_c}] Π_{k≠c} E[e^{−λ g_k}] dt

whatever the number of classes. For the softmax, ℓ(f) = f, that is Gumbel's: the integrand is the
density of f_c plus Gumbel noise, times the distribution functions of the others. Expectations over
f_k are Gauss-Hermite sums. The integral over t is a trapezoidal sum, which for an analytic
integrand converges exponentially, over t = x + e^{x − x₀}: from where the product is below e^{−12}
to x₀, where every g has all but 2·10⁻⁴ of its mass, evenly, and twelve units further, down the tail
e^{−t} of the densities, in a few steps. Every term is positive, so small shares are right in
relative terms as well.

Nodes follow the largest deviation √v of a row. What is left, over 120 rows each of 2, 3 and 10
classes, with means spread by 1.5 times that deviation or 2 (`workflows/likelihoods/
softmax_tails.py`; in brackets by 128 quasi-random points, whose mean p is too small for p < .01):

    largest √v       2             4             8            16           32           64
    log p, p < .01   .0001 (.01)   .006 (.4)     .02 (2)      .02 (8)      .04 (27)     .03 (57)
    p, rms           .0001 (.0007) .0011 (.0029) .003 (.005)  .002 (.006)  .003 (.009)  .004 (.009)

The largest error of log p was .7, and .2 up to a deviation of 8.

Source: the Laplace transform of log-normal variables as in Asmussen, Jensen & Rojas-Nandayapa
(2016), "On the Laplace transform of the lognormal distribution"; the identity is the reason for the
Gumbel-max trick.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

__all__ = ["expected_shares"]

# Largest deviation of a row, nodes of t, nodes of f.
RULES = (
    (2.0, 12, 8),
    (4.0, 16, 10),
    (8.0, 24, 15),
    (16.0, 48, 32),
    (32.0, 96, 80),
    (np.inf, 160, 128),
)
BLOCK = 10_000_000
LARGEST_EXPONENT = 300.0  # its square is still a number
SMALLEST = 1e-300
VARIANCE_FLOOR = 1e-12  # rounding can leave v ≤ 0, where √v has no derivative


@check_shapes("Fmu: [batch..., C]", "Fvar: [batch..., C]", "return: [batch..., C]")
def expected_shares(
    log_g: Callable[[tf.Tensor], tf.Tensor], Fmu: tf.Tensor, Fvar: tf.Tensor
) -> tf.Tensor:
    """E[g_c / Σ_k g_k] for g = exp ℓ(f), ℓ increasing and taking C in the last but one place.

    Rows sum to one. In float64 whatever the dtype of the marginals, which the result has.
    """
    classes = Fmu.shape[-1]
    mean = tf.reshape(tf.cast(Fmu, tf.float64), [-1, classes])
    variance = tf.maximum(tf.reshape(tf.cast(Fvar, tf.float64), [-1, classes]), VARIANCE_FLOOR)
    deviation = tf.sqrt(variance)
    largest = tf.reduce_max(deviation, axis=1)
    # No rule is for NaN, which stays.
    shares = tf.where(tf.math.is_nan(mean + deviation), mean + deviation, tf.zeros_like(mean))
    lower = 0.0
    for upper, nodes_t, nodes_f in RULES:
        rows = tf.where((largest > lower) & (largest <= upper))
        size = max(1, BLOCK // (classes * nodes_t * nodes_f))
        number = rows.shape[0] if rows.shape[0] is not None else size  # unknown in a graph
        for first in range(0, number, size):
            block = rows[first : first + size] if number > size else rows
            m, s = tf.gather_nd(mean, block), tf.gather_nd(deviation, block)
            shares = tf.tensor_scatter_nd_update(
                shares, block, _integral(log_g, m, s, nodes_t, nodes_f)
            )
        lower = upper
    return tf.cast(tf.reshape(shares, tf.shape(Fmu)), Fmu.dtype)


def _integral(
    log_g: Callable[[tf.Tensor], tf.Tensor],
    mean: tf.Tensor,
    deviation: tf.Tensor,
    nodes_t: int,
    nodes_f: int,
) -> tf.Tensor:
    """The formula above for rows [n, C]."""
    points, weights = _gauss_hermite(nodes_f)
    t, dt = _nodes(log_g, mean, deviation, nodes_t)
    middle = tf.reduce_mean(t, axis=1)
    log_nodes = log_g(mean[..., None] + deviation[..., None] * points)
    g = tf.exp(_clipped(log_nodes - middle[:, None, None]))  # [n, C, M]
    scale = tf.exp(_clipped(middle[:, None] - t))  # λ in units of exp(−middle), [n, T]
    survival = tf.exp(-scale[:, None, :, None] * g[:, :, None, :])
    sums = tf.matmul(survival, tf.stack([tf.broadcast_to(weights, tf.shape(g)), weights * g], -1))
    transform, weighted = sums[..., 0], sums[..., 1]  # E[e^{−λg}] and E[g e^{−λg}], [n, C, T]
    log_transform = tf.math.log(tf.maximum(transform, SMALLEST))
    others = tf.exp(tf.reduce_sum(log_transform, axis=1, keepdims=True) - log_transform)
    shares = tf.reduce_sum(weighted * others * (scale * dt)[:, None, :], axis=2)
    return shares / tf.reduce_sum(shares, axis=1, keepdims=True)


def _nodes(
    log_g: Callable[[tf.Tensor], tf.Tensor], mean: tf.Tensor, deviation: tf.Tensor, number: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """t and dt, [n, T]. The tail of p moves what matters down by up to v, but never by more than
    some deviations."""
    shift = tf.minimum(0.5 * deviation, 2.0) + 3.0
    low = tf.reduce_max(log_g((mean - shift * deviation)[..., None]), axis=(1, 2)) - 2.0
    high = tf.reduce_max(log_g((mean + 2.5 * deviation)[..., None]), axis=(1, 2))
    step = (high + 2.2 - low) / (number - 1)
    x = low[:, None] + step[:, None] * np.arange(number)
    tail = tf.exp(x - high[:, None])
    return x + tail, step[:, None] * (1.0 + tail)


def _clipped(exponent: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT)


@functools.lru_cache(maxsize=16)
def _gauss_hermite(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of N(0, 1)."""
    points, weights = np.polynomial.hermite_e.hermegauss(number)
    return points, weights / weights.sum()
