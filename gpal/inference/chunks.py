"""What is done with some rows at a time: marginals, statistics of the sites, and the way back.

Everything that touches both n and m² is here. Products are made one class at a time: batched
products and three-operand einsum are several times slower in TensorFlow on CPU. What the latent
functions of one kernel share, and whatever is linear in m, is one operation for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from gpal.inference.rows import Sites, Statistics

__all__ = ["Chunk", "SparsePosterior", "gradient", "marginals", "statistics"]


class Chunk(NamedTuple):
    """Some rows: kernel rows [rows, m] and diagonals [rows] per kernel, and per kernel and noisy
    feature the derivative of the rows [rows, m] along a column of R."""

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

    @classmethod
    def filled(cls, latents: int, m: int, value: float) -> SparsePosterior:
        """One value throughout; with 0 it is p(u)."""
        shapes: tuple[list[int], ...] = ([latents, m], [latents, m, m], [])
        return cls(*(tf.fill(shape, tf.constant(value, tf.float64)) for shape in shapes))


def _families(chunk: Chunk, latents: int) -> list[tuple[int, slice, int]]:
    """(kernel, latent functions that have it, their number): one shared kernel, or one each."""
    if len(chunk.rows) == 1:
        return [(0, slice(0, latents), latents)]
    return [(c, slice(c, c + 1), 1) for c in range(len(chunk.rows))]


def marginals(
    chunk: Chunk, posterior: SparsePosterior, latents: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """m, v [rows, P] of q(f), slope variance included."""
    rows, diagonals, slopes = chunk
    dtype = rows[0].dtype
    alpha, M = tf.cast(posterior.alpha, dtype), tf.cast(posterior.M, dtype)
    means, variances = [], []
    for j, own, number in _families(chunk, latents):
        K = rows[j]
        means.append(tf.matmul(K, alpha[own], transpose_b=True))
        products = [tf.matmul(K, square) for square in tf.unstack(M[own], number)]
        corrections = tf.stack([tf.reduce_sum(A * K, axis=1) for A in products], axis=1)
        v = diagonals[j][:, None] + tf.cast(corrections, tf.float64)
        # Rounding can leave the variance of a row at an inducing point slightly negative.
        v = tf.maximum(v, 1e-10 * diagonals[j][:, None])
        for D in slopes[j] if slopes else []:
            v += tf.cast(tf.matmul(D, alpha[own], transpose_b=True), tf.float64) ** 2
        variances.append(v)
    return tf.cast(tf.concat(means, axis=1), tf.float64), tf.concat(variances, axis=1)


def statistics(chunk: Chunk, sites: Sites, latents: int) -> Statistics:
    """Sums over the rows of the chunk."""
    rows, diagonals, slopes = chunk
    shape = [None, latents]
    theta, r = (tf.ensure_shape(tf.cast(s, rows[0].dtype), shape) for s in sites)
    gram, projection, diagonal, slope_gram = [], [], [], []
    for j, own, number in _families(chunk, latents):
        K, weights = rows[j], tf.unstack(theta[:, own, None], number, axis=1)
        gram += [tf.matmul(K, weight * K, transpose_a=True) for weight in weights]
        projection.append(tf.matmul(r[:, own], K, transpose_a=True))
        precision = tf.ensure_shape(sites.precision, shape)[:, own]
        diagonal.append(tf.linalg.matvec(precision, diagonals[j], transpose_a=True))
        if slopes:
            slope_gram += [
                tf.add_n([tf.matmul(D, weight * D, transpose_a=True) for D in slopes[j]])
                for weight in weights
            ]
    return Statistics(
        tf.cast(tf.stack(gram), tf.float64),
        tf.cast(tf.concat(projection, axis=0), tf.float64),
        tf.concat(diagonal, axis=0),
        [tf.cast(tf.stack(slope_gram), tf.float64)] if slopes else [],
    )


def gradient(chunk: Chunk, sites: Sites, back: Statistics, latents: int) -> Chunk:
    """∂J/∂(kernel rows, diagonals, slopes) from back = ∂J/∂(statistics): half of what a tape
    costs."""
    rows, _, slopes = chunk
    dtype = rows[0].dtype
    theta, r = (tf.cast(s, dtype) for s in sites)
    squares = [tf.cast(S, dtype) for S in (back.gram, *back.slope_gram)]
    squares = [S + tf.linalg.matrix_transpose(S) for S in squares]
    projection = tf.cast(back.projection, dtype)
    to_rows, to_diagonals, to_slopes = [], [], []
    for j, own, number in _families(chunk, latents):
        weights = tf.unstack(theta[:, own, None], number, axis=1)
        grams = [tf.unstack(S[own], number) for S in squares]
        terms = [weight * tf.matmul(rows[j], S) for weight, S in zip(weights, grams[0])]
        to_rows.append(tf.add_n([*terms, tf.matmul(r[:, own], projection[own])]))
        to_diagonals.append(tf.linalg.matvec(sites.precision[:, own], back.diagonal[own]))
        if slopes:
            to_slopes.append(
                [
                    tf.add_n([w * tf.matmul(D, S) for w, S in zip(weights, grams[1])])
                    for D in slopes[j]
                ]
            )
    return Chunk(to_rows, to_diagonals, to_slopes)
