"""What is done with some rows at a time: marginals, statistics of the sites, and the way back.

Everything that touches both n and m² is here. Products are made one class at a time: batched
products and three-operand einsum are several times slower in TensorFlow on CPU. What the latent
functions of one kernel share, and whatever is linear in m, is one operation for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from gpal.inference.fixed_order import product, product_of_rows
from gpal.inference.rows import Sites, Statistics

__all__ = ["Chunk", "SparsePosterior", "gradient", "marginals", "no_statistics", "statistics"]


class Chunk(NamedTuple):
    """Some rows: kernel rows [rows, m] and diagonals [rows] per kernel, and per kernel and noisy
    feature the derivative of the rows [rows, m] along a column of R.

    In a pass that carries a gradient back, in place of these the slope variance [rows, P] of the
    means of the kernel's P latent functions."""

    rows: list[tf.Tensor]
    diagonals: list[tf.Tensor]
    slopes: list[list[tf.Tensor]]


class SparsePosterior(NamedTuple):
    """q(u) as predictions need it.

    alpha [P, m] K⁻¹μ;  M [P, m, m] K⁻¹(Σ − K)K⁻¹;  kl [] KL(q(u) ‖ p(u)) summed over latents.
    """

    alpha: tf.Tensor
    M: tf.Tensor
    kl: tf.Tensor

    def tempered(self, temperature: float) -> SparsePosterior:
        """With the means of f divided by the temperature."""
        return self if temperature == 1.0 else self._replace(alpha=self.alpha / temperature)

    @classmethod
    def filled(cls, latents: int, m: int, value: float) -> SparsePosterior:
        """One value throughout; with 0 it is p(u)."""
        shapes: tuple[list[int], ...] = ([latents, m], [latents, m, m], [])
        return cls(*(tf.fill(shape, tf.constant(value, tf.float64)) for shape in shapes))


def _of_kernels(tensor: tf.Tensor, chunk: Chunk, axis: int = 0) -> list[tf.Tensor]:
    """What of a tensor over the latent functions belongs to each kernel: all of it where they share
    one."""
    number = len(chunk.rows)
    return [tensor] if number == 1 else tf.split(tensor, number, axis)


def _slopes(chunk: Chunk) -> list[list[tf.Tensor]]:
    return chunk.slopes or [[] for _ in chunk.rows]


def marginals(
    chunk: Chunk, posterior: SparsePosterior, latents: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """m, v [rows, P] of q(f), slope variance included."""
    dtype, each = chunk.rows[0].dtype, latents // len(chunk.rows)
    alphas, Ms = (_of_kernels(tf.cast(part, dtype), chunk) for part in posterior[:2])
    means, variances = [], []
    for K, k, slopes, alpha, M in zip(*chunk[:2], _slopes(chunk), alphas, Ms):
        columns = tf.transpose(tf.ensure_shape(alpha, [each, None]))
        means.append(product(K, columns))
        products = [product(K, square) for square in tf.unstack(M, each)]
        corrections = tf.stack([tf.reduce_sum(A * K, axis=1) for A in products], axis=1)
        prior = tf.expand_dims(k, 1)
        v = prior + tf.cast(corrections, tf.float64)
        # Rounding can leave the variance of a row at an inducing point slightly negative.
        v = tf.maximum(v, 1e-10 * prior)
        for D in slopes:
            v += tf.cast(product(D, columns), tf.float64) ** 2
        variances.append(v)
    return tf.cast(tf.concat(means, axis=1), tf.float64), tf.concat(variances, axis=1)


def statistics(chunk: Chunk, sites: Sites, latents: int) -> Statistics:
    """Sums over the rows of the chunk."""
    dtype, each = chunk.rows[0].dtype, latents // len(chunk.rows)
    precision, natural_mean = (tf.ensure_shape(s, [None, latents]) for s in sites)
    thetas, rs = (_of_kernels(s, chunk, 1) for s in (precision, natural_mean))
    gram, projection, diagonal, slope_gram = [], [], [], []
    for K, k, slopes, theta, r in zip(*chunk[:2], _slopes(chunk), thetas, rs):
        weights = tf.split(tf.cast(theta, dtype), each, axis=1)
        gram += [product_of_rows(K, weight * K) for weight in weights]
        projection.append(product_of_rows(tf.cast(r, dtype), K))
        diagonal.append(tf.linalg.matvec(theta, k, transpose_a=True))
        if slopes:
            slope_gram += [
                tf.add_n([product_of_rows(D, weight * D) for D in slopes]) for weight in weights
            ]
    return Statistics(
        tf.cast(tf.stack(gram), tf.float64),
        tf.cast(tf.concat(projection, axis=0), tf.float64),
        tf.concat(diagonal, axis=0),
        [tf.cast(tf.stack(slope_gram), tf.float64)] if slope_gram else [],
    )


def no_statistics(latents: int, m: int) -> Statistics:
    """Sums over no rows, of exact inputs."""
    square = tf.zeros([latents, m, m], tf.float64)
    return Statistics(
        square, tf.zeros([latents, m], tf.float64), tf.zeros([latents], tf.float64), []
    )


def gradient(chunk: Chunk, sites: Sites, back: Statistics, latents: int) -> Chunk:
    """∂J/∂(kernel rows, diagonals, slope variances) from back = ∂J/∂(statistics), its matrices
    symmetric: half of what a tape costs. Slope variances s enter J as −½ Σ_i θ_i s_i."""
    dtype, each = chunk.rows[0].dtype, latents // len(chunk.rows)
    squares = _of_kernels(2.0 * tf.cast(back.gram, dtype), chunk)
    projections = _of_kernels(tf.cast(back.projection, dtype), chunk)
    diagonals = _of_kernels(back.diagonal, chunk)
    thetas, rs = (_of_kernels(s, chunk, 1) for s in sites)
    to_rows, to_diagonals, to_slopes = [], [], []
    for j, (K, slopes) in enumerate(zip(chunk.rows, _slopes(chunk))):
        weights = tf.split(tf.cast(thetas[j], dtype), each, axis=1)
        grams = tf.unstack(squares[j], each)
        terms = [weight * product(K, S) for weight, S in zip(weights, grams)]
        to_rows.append(tf.add_n([*terms, product(tf.cast(rs[j], dtype), projections[j])]))
        to_diagonals.append(tf.linalg.matvec(thetas[j], diagonals[j]))
        if slopes:
            to_slopes.append([-0.5 * thetas[j]])
    return Chunk(to_rows, to_diagonals, to_slopes)
