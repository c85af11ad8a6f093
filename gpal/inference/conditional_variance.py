"""How many inducing points a kernel asks for, by conditional variance (Burt et al. 2020).

With sites of precision θ the sparse bound misses at least

    T(m) = ½ Σ_p mean_i θ_ip κ_ip(m),     κ_ip(m) = k(x_i, x_i) − k_iᵀ K⁻¹ k_i

nats per source, κ the variance of f(x_i) that m points leave open: a term of the bound itself. Burt
et al. bound the divergence from the exact posterior by its trace. Points are taken greedily, where
θ κ is largest (pivoted Cholesky of Θ^½ K Θ^½), among every second source; T is that of all, so that
sources near no point count as they will in the fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np

__all__ = ["half_trace", "points_needed"]


def points_needed(
    kernels: Sequence[gpflow.kernels.Kernel],
    X: np.ndarray,
    precision: np.ndarray,
    tolerance: float,
    largest: int,
) -> int:
    """The smallest m with T(m) ≤ tolerance; `largest` where none of up to so many is enough.

    X          [n, d] some sources
    precision  θ [n, P] of their sites; kernels are one for all P latent functions, or P of them
    """
    theta = np.maximum(precision, 0.0)
    if len(kernels) == 1:
        theta = theta.sum(axis=1, keepdims=True)
    largest = max(1, min(largest, (len(X) + 1) // 2))
    left = np.zeros(largest + 1)
    for kernel, weight in zip(kernels, theta.T, strict=True):
        left += half_trace(kernel(X).numpy(), weight, largest)
    enough = np.flatnonzero(left <= tolerance)
    return int(enough[0]) if len(enough) else largest


def half_trace(K: np.ndarray, weight: np.ndarray, number: int) -> np.ndarray:
    """½ mean_i w_i κ_i(m) for m = 0 ... `number`, by pivoted Cholesky of K [n, n]."""
    variance, columns = np.diag(K).copy(), np.zeros((number, len(K)))
    smallest = 1e-10 * variance.max()
    candidates = np.zeros(len(K))
    candidates[::2] = weight[::2]
    left = [0.5 * (weight * variance).mean()]
    for m in range(number):
        i = int(np.argmax(candidates * variance))
        if candidates[i] * variance[i] > 0 and variance[i] > smallest:
            column = K[i] - columns[:m, i] @ columns[:m]
            columns[m] = column / np.sqrt(variance[i])
            variance = np.maximum(variance - columns[m] ** 2, 0.0)
            variance[i] = 0.0
        left.append(0.5 * (weight * variance).mean())
    return np.array(left)
