"""Moments of covariances under a Gaussian input: x = b + R ε, ε ~ N(0, I), exact for R = 0.

    ψ0 = E[k(x, x)]      ψ1_j = E[k(z_j, x)]      Δ_jk = Cov[k(z_j, x), k(z_k, x)]

Δ = Ψ2 − ψ1 ψ1ᵀ stands in for the second moment Ψ2 (Titsias & Lawrence 2010): it vanishes with R
instead of being a difference of large numbers, and constants in the kernel drop out of it.
For one source, with a_j = (z_j − b)/ℓ and R̃ = R/ℓ per feature, H Hᵀ = I + R̃ᵀR̃,
G Gᵀ = I + 2 R̃ᵀR̃, s_j = H⁻¹R̃ᵀa_j and t_j = √2 G⁻¹R̃ᵀa_j, the squared exponential has

    log ψ1_j = log σ² − log|H| − ½|a_j|² + ½|s_j|²
    Δ_jk = ψ1_j ψ1_k (e^{δ_jk} − 1),    δ_jk = e_j + e_k + ½ t_jᵀt_k
    e_j = log|H| − ½ log|G| + ¼|t_j|² − ½|s_j|²,    E[ε k(z_j, x)] = ψ1_j h_j,  h_j = H⁻ᵀs_j

and a linear kernel is linear in ε, k(z_j, x) = const + l_jᵀε with l_j = Rᵀ(v ∘ z_j), so that
together Δ gains l_jᵀl_k + ψ1_j h_jᵀl_k + l_jᵀh_k ψ1_k. A matrix that is factored is I plus a
positive one: no inverse of a covariance.
"""

from __future__ import annotations

from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.input_noise.analytic import Analytic

__all__ = ["PsiStatistics", "check_kernel", "psi_statistics"]

# Below this log ψ1_j/σ² an inducing point has no Δ: it is less than ψ1_j σ², and δ could overflow.
FAR = -300.0


class PsiStatistics(NamedTuple):
    """ψ1 [n, m], ψ0 [n], Δ [n, m, m]."""

    mean: tf.Tensor
    diagonal: tf.Tensor
    covariance: tf.Tensor


def check_kernel(kernel: gpflow.kernels.Kernel) -> None:
    """InputError for a kernel without closed forms."""
    curved, _, _, other = _parts(kernel)
    if other or len(curved) > 1:
        names = ", ".join(type(part).__name__ for part in other or curved)
        raise InputError(
            f"{Analytic.kernel_gap}, not {names}; choose kernel='rbf', 'linear' or"
            " 'rbf+linear', or input_noise='integrated'"
        )


def psi_statistics(
    kernel: gpflow.kernels.Kernel, mean: tf.Tensor, root: tf.Tensor, Z: tf.Tensor
) -> PsiStatistics:
    """ψ1, ψ0 and Δ for b [n, d], R [n, d, e], Z [m, d]; a kernel that `check_kernel` passes."""
    curved, linear, constant, _ = _parts(kernel)
    tangents = tf.linalg.matrix_transpose(root)
    rows = [part(mean, Z) for part in linear + constant]
    diagonals = [part(mean, full_cov=False) for part in curved + linear + constant]
    diagonals += [tf.reduce_sum(part(tangents, full_cov=False), axis=1) for part in linear]
    covariances = []
    slope = tf.add_n([part(tangents, Z) for part in linear]) if linear else None  # l [n, e, m]
    if slope is not None:
        covariances.append(tf.matmul(slope, slope, transpose_a=True))
    for part in curved:
        psi1, drift, covariance = _squared_exponential(part, mean, tangents, Z)
        rows.append(psi1)
        covariances.append(covariance)
        if slope is not None:
            cross = tf.matmul(psi1[:, None] * drift, slope, transpose_a=True)
            covariances += [cross, tf.linalg.matrix_transpose(cross)]
    psi1 = tf.add_n(rows)
    none = tf.zeros_like(psi1)[:, :, None] * psi1[:, None, :]
    return PsiStatistics(psi1, tf.add_n(diagonals), tf.add_n(covariances) if covariances else none)


def _squared_exponential(
    kernel: gpflow.kernels.SquaredExponential, mean: tf.Tensor, tangents: tf.Tensor, Z: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """ψ1 [n, m], h [n, e, m] and Δ [n, m, m]; tangents Rᵀ [n, e, d]."""
    b, z = kernel.slice(mean, Z)
    R = kernel.slice(tangents)[0] / kernel.lengthscales  # type: ignore[call-overload]
    a = (z[None] - b[:, None]) / kernel.lengthscales
    pull = tf.matmul(R, a, transpose_b=True)
    gram = tf.matmul(R, R, transpose_b=True)
    eye = tf.eye(tf.shape(gram)[1], dtype=gram.dtype)
    H, G = tf.linalg.cholesky(eye + gram), tf.linalg.cholesky(eye + 2.0 * gram)
    s = tf.linalg.triangular_solve(H, pull)
    t = np.sqrt(2.0) * tf.linalg.triangular_solve(G, pull)
    log_H, log_G = (_log_det(factor)[:, None] for factor in (H, G))
    s_squared, t_squared = tf.reduce_sum(s**2, axis=1), tf.reduce_sum(t**2, axis=1)
    distance = tf.reduce_sum(a**2, axis=2)
    log_psi1 = 0.5 * (s_squared - distance) - log_H
    psi1 = kernel.variance * tf.exp(log_psi1)
    own = log_H - 0.5 * log_G + 0.25 * t_squared - 0.5 * s_squared
    near = log_psi1 > FAR
    own, t = tf.where(near, own, 0.0), tf.where(near[:, None], t, 0.0)
    # δ as one product of [t, e, 1] and [½t, 1, e]: quicker than sums of outer products.
    one, own = tf.ones_like(own)[:, None], own[:, None]
    delta = tf.matmul(
        tf.concat([t, own, one], 1), tf.concat([0.5 * t, one, own], 1), transpose_a=True
    )
    covariance = psi1[:, :, None] * (tf.exp(delta) - 1.0) * psi1[:, None, :]
    return psi1, tf.linalg.triangular_solve(H, s, adjoint=True), covariance


def _log_det(factor: tf.Tensor) -> tf.Tensor:
    """log|H| [n] of triangular matrices [n, e, e]."""
    return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)), axis=1)


def _parts(kernel: gpflow.kernels.Kernel) -> tuple[list[gpflow.kernels.Kernel], ...]:
    """Summands of a kernel: squared exponential, linear, constant, other."""
    if isinstance(kernel, gpflow.kernels.Sum):
        families = [_parts(part) for part in kernel.kernels]
        return tuple([part for family in parts for part in family] for parts in zip(*families))
    kinds = (gpflow.kernels.SquaredExponential, gpflow.kernels.Linear, gpflow.kernels.Constant)
    own = [type(kernel) is kind for kind in kinds]
    return tuple([kernel] if mine else [] for mine in (*own, not any(own)))
