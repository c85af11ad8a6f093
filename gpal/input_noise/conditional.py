"""p(x | x̃): what a noisy measurement says about the true input under a Gaussian mixture.

    x̃ = x + D ε,  ε ~ N(0, I),  V = D Dᵀ      p(x) = Σ_j w_j N(x | m_j, P_j)

Written in units of the error, x = x̃ + D z, nothing is ever divided by an error:

    G_j = I + Dᵀ P_j⁻¹ D      z | x̃ ~ Σ_j s_j N(a_j, G_j⁻¹),    a_j = −G_j⁻¹ Dᵀ P_j⁻¹ (x̃ − m_j)
    s_j ∝ w_j N(x̃ | m_j, P_j + V)

so that an exact feature (a zero row of D) stays where it was measured, and a feature that was not
measured (an error of NO_MEASUREMENT widths of the population) takes the population's conditional
given the others, to a relative 1e-8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

__all__ = ["NO_MEASUREMENT", "Conditional", "Unconditioned", "condition", "error_root"]

NO_MEASUREMENT = 1e4


class Conditional(NamedTuple):
    """p(x | x̃) of n sources: x = X + root·z, z a mixture of J Gaussians.

    X       [n, d]        measurements
    root    [n, d, d]     D
    share   [n, J]        s_j
    mean    [n, J, d]     a_j
    factor  [n, J, d, d]  U_j with G_j⁻¹ = U_j U_jᵀ
    log_evidence [n]      log p(x̃)
    """

    X: tf.Tensor
    root: tf.Tensor
    share: tf.Tensor
    mean: tf.Tensor
    factor: tf.Tensor
    log_evidence: tf.Tensor

    @check_shapes("return[0]: [n, d]", "return[1]: [n, d, d]")
    def moments(self) -> tuple[tf.Tensor, tf.Tensor]:
        """E[x] [n, d] and a root R [n, d, d] of Cov[x] = R Rᵀ; columns of exact features are 0."""
        if self.share.shape[1] == 1:
            mean, factor = self.mean[:, 0], self.factor[:, 0]
        else:
            mean = tf.einsum("nj,njd->nd", self.share, self.mean)
            parts = tf.matmul(self.factor, self.factor, transpose_b=True)
            away = self.mean - mean[:, None]
            parts += away[..., :, None] * away[..., None, :]
            factor = tf.linalg.cholesky(tf.einsum("nj,njde->nde", self.share, parts))
        return self.X + tf.linalg.matvec(self.root, mean), tf.matmul(self.root, factor)


class Unconditioned(Conditional):
    """x ~ N(x̃, V), without a prior of x: J = 1, a = 0, U = 1."""

    @classmethod
    def of(cls, X: tf.Tensor, root: tf.Tensor) -> Unconditioned:
        X = tf.convert_to_tensor(X, tf.float64)
        one, zero = tf.ones_like(X[:, :1]), tf.zeros_like(X)[:, None]
        eye = tf.eye(X.shape[1], dtype=tf.float64) + zero[..., None]
        return cls(X, root, one, zero, eye, 0.0 * one[:, 0])

    def moments(self) -> tuple[tf.Tensor, tf.Tensor]:
        return self.X, self.root


@check_shapes(
    "X: [n, d]",
    "root: [n, d, d]",
    "weights: [J]",
    "means: [J, d]",
    "covariances: [J, d, d]",
    "return.share: [n, J]",
    "return.mean: [n, J, d]",
    "return.factor: [n, J, d, d]",
    "return.log_evidence: [n]",
)
def condition(
    X: tf.Tensor,
    root: tf.Tensor,
    weights: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
) -> Conditional:
    """p(x | x̃) for measurements X [n, d], error roots D [n, d, d] and a mixture [J], [J, d],
    [J, d, d]."""
    X, root = tf.convert_to_tensor(X, tf.float64), tf.convert_to_tensor(root, tf.float64)
    eye = tf.eye(X.shape[1], dtype=tf.float64)
    shares, centres, factors = [], [], []
    for weight, mean, covariance in zip(weights, means, covariances):
        precision = np.linalg.inv(covariance)
        away = X - mean
        Q = tf.matmul(tf.cast(precision, tf.float64)[None], root)  # P⁻¹ D
        L = tf.linalg.cholesky(eye + tf.matmul(root, Q, transpose_a=True))
        pull = tf.linalg.matvec(Q, away, transpose_a=True)
        half = tf.linalg.triangular_solve(L, pull[..., None])
        U = tf.linalg.matrix_transpose(tf.linalg.triangular_solve(L, eye + tf.zeros_like(L)))
        centres.append(-tf.matmul(U, half)[..., 0])
        factors.append(U)
        distance = tf.reduce_sum(away * tf.linalg.matvec(precision, away), axis=1)
        log_det = np.linalg.slogdet(2.0 * np.pi * covariance)[1] + 2.0 * tf.reduce_sum(
            tf.math.log(tf.linalg.diag_part(L)), axis=1
        )
        distance -= tf.reduce_sum(half[..., 0] ** 2, axis=1)
        shares.append(np.log(weight + 1e-300) - 0.5 * (distance + log_det))
    log_shares = tf.stack(shares, axis=1)
    log_evidence = tf.reduce_logsumexp(log_shares, axis=1)
    share = tf.exp(log_shares - log_evidence[:, None])
    return Conditional(X, root, share, tf.stack(centres, 1), tf.stack(factors, 1), log_evidence)


@check_shapes("X_err: [n, d]", "X_cov: [n, d, d]", "return: [n, d, d]")
def error_root(X_err: np.ndarray, X_cov: np.ndarray | None = None) -> np.ndarray:
    """D [n, d, d] with V = D Dᵀ: diag(X_err), or diag(X_err) times the Cholesky factor of the
    errors' correlation where a covariance is given. Errors beyond NO_MEASUREMENT are that, and a
    correlation that rounding to single precision has taken beyond 1 is 1."""
    error = np.minimum(X_err, NO_MEASUREMENT)
    eye = np.eye(error.shape[1])
    if X_cov is None:
        return error[:, :, None] * eye
    known = (X_err > 0) & (X_err < NO_MEASUREMENT)
    scale = np.where(known, X_err, 1.0)
    both = known[:, :, None] & known[:, None, :]
    # Off the diagonal only: there X_cov is infinite where a value was not measured.
    both &= eye == 0.0
    correlation = np.where(both, X_cov / (scale[:, :, None] * scale[:, None, :]), 0.0)
    correlation = correlation + eye
    lowest = np.linalg.eigvalsh(correlation).min(axis=1, initial=0.0)
    shift = np.maximum(1e-10, 1e-10 - lowest)[:, None, None]
    return error[:, :, None] * np.linalg.cholesky(correlation + shift * eye)
