"""The m × m algebra of a sparse posterior, in whitened coordinates v = L⁻¹u, K = L Lᵀ.

With S̃ = L⁻¹ S L⁻ᵀ, ρ̃ = L⁻¹ ρ and, for first-order input noise, S̃' = L⁻¹ S' L⁻ᵀ (else 0):

    A = I + S̃        q(v) = N(μ, A⁻¹)        μ = (A + S̃')⁻¹ ρ̃
    KL(q ‖ p) = ½ (tr A⁻¹ − m + |μ|² + log|A|)
    J = ½ ρ̃ᵀ (A + S̃')⁻¹ ρ̃ − ½ log|A| − ½ t + ½ tr S̃                        (E2, q at its optimum)
    F = ρ̃ᵀμ − ½ μᵀ(S̃ + S̃')μ − ½ t − ½ tr((A⁻¹ − I) S̃)                       (q held)

dJ/dϑ equals ∂F/∂ϑ at the optimal q (envelope theorem); F also serves a q that other rows have made.
All of these are sums over the latent functions. Everything is float64.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from gpal.inference.rows import Statistics, kernel_of

__all__ = ["WhitenedPosterior", "collapsed_bound", "held_bound", "posterior", "unwhiten", "whiten"]


class WhitenedPosterior(NamedTuple):
    """q(v) per latent function: mean [m, 1], covariance A⁻¹ [m, m]; KL summed over them."""

    mean: list[tf.Tensor]
    covariance: list[tf.Tensor]
    kl: tf.Tensor


def whiten(statistics: Statistics, factors: list[tf.Tensor]) -> Statistics:
    """Statistics of the whitened rows L⁻¹ k_i."""

    def square(c: int, S: tf.Tensor) -> tf.Tensor:
        L = factors[kernel_of(factors, c)]
        return tf.linalg.triangular_solve(L, tf.transpose(tf.linalg.triangular_solve(L, S)))

    return Statistics(
        [square(c, S) for c, S in enumerate(statistics.gram)],
        [
            tf.linalg.triangular_solve(factors[kernel_of(factors, c)], rho[:, None])[:, 0]
            for c, rho in enumerate(statistics.projection)
        ],
        statistics.diagonal,
        [square(c, S) for c, S in enumerate(statistics.slope_gram)],
    )


def _factors(whitened: Statistics, c: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Cholesky factors of A and of A + S̃'."""
    S = whitened.gram[c]
    A = tf.linalg.set_diag(S, tf.linalg.diag_part(S) + 1.0)
    factor = tf.linalg.cholesky(A)
    if not whitened.slope_gram:
        return factor, factor
    return factor, tf.linalg.cholesky(A + whitened.slope_gram[c])


def _log_det(factor: tf.Tensor) -> tf.Tensor:
    return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))


def posterior(whitened: Statistics) -> WhitenedPosterior:
    """q(v) at its optimum for the sites behind the statistics."""
    means, covariances, kl = [], [], tf.zeros([], tf.float64)
    for c, rho in enumerate(whitened.projection):
        factor, mean_factor = _factors(whitened, c)
        mean = tf.linalg.cholesky_solve(mean_factor, rho[:, None])
        covariance = tf.linalg.cholesky_solve(factor, tf.eye(rho.shape[0], dtype=rho.dtype))
        trace = tf.reduce_sum(tf.linalg.diag_part(covariance) - 1.0)
        kl += 0.5 * (trace + tf.reduce_sum(mean**2) + _log_det(factor))
        means.append(mean)
        covariances.append(covariance)
    return WhitenedPosterior(means, covariances, kl)


def unwhiten(q: WhitenedPosterior, factors: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """α = L⁻ᵀ μ [P, m] and M = L⁻ᵀ (A⁻¹ − I) L⁻¹ [P, m, m], as the rows need them."""
    inverses = [tf.linalg.triangular_solve(L, tf.eye(L.shape[0], dtype=L.dtype)) for L in factors]
    alphas, Ms = [], []
    for c, (mean, covariance) in enumerate(zip(q.mean, q.covariance)):
        inverse = inverses[kernel_of(factors, c)]
        middle = tf.linalg.set_diag(covariance, tf.linalg.diag_part(covariance) - 1.0)
        alphas.append(tf.matmul(inverse, mean, transpose_a=True)[:, 0])
        Ms.append(tf.matmul(inverse, tf.matmul(middle, inverse), transpose_a=True))
    return tf.stack(alphas), tf.stack(Ms)


def collapsed_bound(whitened: Statistics) -> tf.Tensor:
    """J: the bound with q at its optimum, up to a constant of the sites."""
    J = tf.zeros([], tf.float64)
    for c, rho in enumerate(whitened.projection):
        factor, mean_factor = _factors(whitened, c)
        fit = tf.reduce_sum(tf.linalg.triangular_solve(mean_factor, rho[:, None]) ** 2)
        explained = tf.linalg.trace(whitened.gram[c]) - whitened.diagonal[c]
        J += 0.5 * (fit - _log_det(factor) + explained)
    return J


def held_bound(whitened: Statistics, q: WhitenedPosterior) -> tf.Tensor:
    """F: the data term of the bound with q(v) held."""
    F = tf.zeros([], tf.float64)
    for c, (rho, S) in enumerate(zip(whitened.projection, whitened.gram)):
        mean, covariance = q.mean[c], q.covariance[c]
        for_mean = S + whitened.slope_gram[c] if whitened.slope_gram else S
        F += tf.reduce_sum(rho * mean[:, 0])
        F -= 0.5 * tf.reduce_sum(mean * tf.matmul(for_mean, mean))
        F -= 0.5 * (whitened.diagonal[c] + tf.reduce_sum(covariance * S) - tf.linalg.trace(S))
    return F
