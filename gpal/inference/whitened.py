"""The m × m algebra of a sparse posterior, in whitened coordinates v = L⁻¹u, K = L Lᵀ.

With S̃ = L⁻¹ S L⁻ᵀ, ρ̃ = L⁻¹ ρ and, for first-order input noise, S̃' = L⁻¹ S' L⁻ᵀ (else 0):

    A = I + S̃        q(v) = N(μ, A⁻¹)        μ = (A + S̃')⁻¹ ρ̃
    KL(q ‖ p) = ½ (tr A⁻¹ − m + |μ|² + log|A|)
    J = ½ ρ̃ᵀ (A + S̃')⁻¹ ρ̃ − ½ log|A| − ½ t + ½ tr S̃                        (E2, q at its optimum)
    F = ρ̃ᵀμ − ½ μᵀ(S̃ + S̃')μ − ½ t − ½ tr((A⁻¹ − I) S̃)                       (q held)

dJ/dϑ equals ∂F/∂ϑ at the optimal q (envelope theorem); F also serves a q that other rows have made.
So the gradient of J needs no derivative of a Cholesky factor. With W = ½ (I − A⁻¹ − μμᵀ), α = L⁻ᵀμ,

    ∂J/∂S = L⁻ᵀ W L⁻¹     ∂J/∂S' = −½ ααᵀ     ∂J/∂ρ = α     ∂J/∂t = −½     ∂J/∂K = L⁻ᵀ (W − ½ S̃) L⁻¹

∂J/∂S' is never formed: as S' = Σ_i θ_i D_i D_iᵀ it says that J depends on the slopes by
−½ Σ_i θ_i s_i alone, s_i = |D_iᵀ α|² the slope variance of the mean function, α held.

KL, J and F are sums over the latent functions. Everything is float64 and batched over them: unlike
the n × m products these are small, and a graph with one node per step is quicker to make.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from gpal.inference.fixed_order import product
from gpal.inference.rows import Statistics

__all__ = [
    "BoundGradient",
    "WhitenedPosterior",
    "collapsed_bound",
    "held_bound",
    "inverse_factor",
    "posterior",
    "unwhiten",
    "whiten",
    "whitened_bound",
]


class WhitenedPosterior(NamedTuple):
    """q(v) per latent function: mean [P, m, 1], covariance A⁻¹ [P, m, m]; KL summed over them."""

    mean: tf.Tensor
    covariance: tf.Tensor
    kl: tf.Tensor


def whiten(statistics: Statistics, factors: tf.Tensor) -> Statistics:
    """Statistics of the whitened rows L⁻¹ k_i; factors L [1 or P, m, m]."""

    def square(S: tf.Tensor) -> tf.Tensor:
        half = tf.linalg.triangular_solve(factors, S)
        return tf.linalg.triangular_solve(factors, tf.linalg.matrix_transpose(half))

    column = tf.expand_dims(statistics.projection, -1)
    return Statistics(
        square(statistics.gram),
        tf.squeeze(tf.linalg.triangular_solve(factors, column), -1),
        statistics.diagonal,
        [square(S) for S in statistics.slope_gram],
    )


def _factors(whitened: Statistics) -> tuple[tf.Tensor, tf.Tensor]:
    """Cholesky factors of A and of A + S̃'."""
    A = whitened.gram + _identity(whitened.gram)
    factor = tf.linalg.cholesky(A)
    if not whitened.slope_gram:
        return factor, factor
    return factor, tf.linalg.cholesky(A + whitened.slope_gram[0])


def _identity(S: tf.Tensor) -> tf.Tensor:
    """I [m, m] for matrices S [..., m, m]."""
    return tf.eye(S.shape[-1] or tf.shape(S)[-1], dtype=S.dtype)


def _inverse(factor: tf.Tensor) -> tf.Tensor:
    """(F Fᵀ)⁻¹"""
    half = tf.linalg.triangular_solve(factor, _identity(factor))
    return tf.linalg.triangular_solve(factor, half, adjoint=True)


def _log_det(factor: tf.Tensor) -> tf.Tensor:
    """log|A| summed over the latent functions."""
    return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))


def posterior(whitened: Statistics) -> WhitenedPosterior:
    """q(v) at its optimum for the sites behind the statistics."""
    factor, mean_factor = _factors(whitened)
    mean = tf.linalg.cholesky_solve(mean_factor, tf.expand_dims(whitened.projection, -1))
    covariance = _inverse(factor)
    trace = tf.reduce_sum(tf.linalg.diag_part(covariance) - 1.0)
    kl = 0.5 * (trace + tf.reduce_sum(mean**2) + _log_det(factor))
    return WhitenedPosterior(mean, covariance, kl)


def unwhiten(q: WhitenedPosterior, factors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """α = L⁻ᵀ μ [P, m] and M = L⁻ᵀ (A⁻¹ − I) L⁻¹ [P, m, m], as the rows need them."""
    eye = _identity(factors)
    inverse = tf.linalg.triangular_solve(factors, eye)
    alpha = tf.squeeze(tf.matmul(inverse, q.mean, transpose_a=True), -1)
    return alpha, _unwhitened(inverse, q.covariance - eye)


def _unwhitened(inverse: tf.Tensor, S: tf.Tensor) -> tf.Tensor:
    """L⁻ᵀ S L⁻¹ from L⁻¹."""
    return product(tf.linalg.matrix_transpose(inverse), product(S, inverse))


class BoundGradient(NamedTuple):
    """A bound with its derivatives in the statistics (without S') and in K [1 or P, m, m], α of the
    q it is that of, and α, M and the KL of it, if that is not a given one."""

    bound: tf.Tensor
    to_statistics: Statistics
    to_K: tf.Tensor
    alpha: tf.Tensor
    posterior: tuple[tf.Tensor, tf.Tensor, tf.Tensor] | None = None


def inverse_factor(K: tf.Tensor) -> tf.Tensor:
    """L⁻¹ of K = L Lᵀ, [1 or P, m, m]."""
    return tf.linalg.triangular_solve(tf.linalg.cholesky(K), _identity(K))


def whitened_bound(white: Statistics, inverse: tf.Tensor) -> BoundGradient:
    """J: the bound with q at its optimum, up to a constant of the sites; L⁻¹ [1 or P, m, m].

    white   S̃, ρ̃, S̃' and, for its diagonal, what is not explained: t − tr S̃
    ∂J/∂(statistics) is that in S̃, ρ̃ and t: W, μ and −½.
    """
    factor, mean_factor = _factors(white)
    mean = tf.linalg.cholesky_solve(mean_factor, tf.expand_dims(white.projection, -1))
    fit = tf.reduce_sum(white.projection * tf.squeeze(mean, -1))
    log_det = _log_det(factor)
    J = 0.5 * (fit - log_det - tf.reduce_sum(white.diagonal))

    middle, square = _inverse(factor) - _identity(factor), mean * tf.linalg.matrix_transpose(mean)
    to_statistics = Statistics(
        -0.5 * (middle + square),
        tf.squeeze(mean, -1),
        -0.5 * tf.ones_like(white.diagonal),
        [],
    )
    to_K = -0.5 * (middle + square + white.gram)
    if inverse.shape[0] == 1:
        to_K = tf.reduce_sum(to_K, axis=0, keepdims=True)
    alpha = tf.squeeze(tf.matmul(inverse, mean, transpose_a=True), -1)
    kl = 0.5 * (tf.linalg.trace(tf.reduce_sum(middle, 0)) + tf.reduce_sum(mean**2) + log_det)
    posterior = alpha, _unwhitened(inverse, middle), kl
    return BoundGradient(J, to_statistics, _unwhitened(inverse, to_K), alpha, posterior)


def collapsed_bound(statistics: Statistics, K: tf.Tensor) -> BoundGradient:
    """The same by S, ρ, t, S' of the rows themselves; K [1 or P, m, m].

    L⁻ᵀ W L⁻¹ = −½ (M + ααᵀ): no product more than the posterior needs.
    """
    L = tf.linalg.cholesky(K)
    white = whiten(statistics, L)
    unexplained = statistics.diagonal - tf.linalg.trace(white.gram)
    inverse = tf.linalg.triangular_solve(L, _identity(K))
    found = whitened_bound(white._replace(diagonal=unexplained), inverse)
    assert found.posterior is not None
    alpha, M, _ = found.posterior
    outer = tf.expand_dims(alpha, 2) * tf.expand_dims(alpha, 1)
    to_statistics = found.to_statistics._replace(gram=-0.5 * (M + outer), projection=alpha)
    return found._replace(to_statistics=to_statistics)


def held_bound(statistics: Statistics, K: tf.Tensor, q: WhitenedPosterior) -> BoundGradient:
    """F: the data term of the bound with q(v) held."""
    with tf.GradientTape() as tape:
        tape.watch([statistics, K])
        L = tf.linalg.cholesky(K)
        white = whiten(statistics, L)
        S = white.gram
        for_mean = tf.add_n([S, *white.slope_gram])
        linear = tf.reduce_sum(white.projection * tf.squeeze(q.mean, -1))
        quadratic = tf.reduce_sum(q.mean * tf.matmul(for_mean, q.mean))
        spread = tf.reduce_sum((q.covariance - _identity(S)) * S)
        F = linear - 0.5 * (quadratic + tf.reduce_sum(white.diagonal) + spread)
    to_statistics, to_K = tape.gradient(F, [statistics, K])
    alpha = tf.squeeze(tf.linalg.triangular_solve(L, q.mean, adjoint=True), -1)
    return BoundGradient(F, to_statistics._replace(slope_gram=[]), to_K, alpha)
