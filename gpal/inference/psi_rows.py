"""Rows where inputs are Gaussian: psi statistics in place of kernel rows (E1, E2).

With x_i ~ N(b_i, R_i R_iᵀ) and ψ0, ψ1, Δ of `psi_statistics.py`, the moments of f(x_i) over x_i
and q(f) are

    m_i = ψ1_iᵀ α        v_i = ψ0_i + ψ1_iᵀ M ψ1_i + tr((M + α αᵀ) Δ_i)

The expectation of a quadratic in f over x_i depends on nothing else, so that E1 and E2 hold as
they stand with S = Σ_i θ_i (ψ1_i ψ1_iᵀ + Δ_i), ρ = Σ_i r_i ψ1_i, t = Σ_i θ_i ψ0_i. For a Gaussian
likelihood the bound is therefore exact: that of q(f) Π_i p(x_i | x̃_i). Any other likelihood meets
f(x_i) as if it were Gaussian with these moments.

This is first-order input noise without the linearisation: for small R, Δ → (∂k/∂x) R Rᵀ (∂k/∂x)ᵀ.
There only the mean function spreads, here the uncertainty of f at x_i is averaged as well.
Δ costs n m² exponentials, and as many numbers in memory where it is kept between sweeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference import chunks
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.covariances import covariance
from gpal.inference.fixed_order import product_of_rows
from gpal.inference.graph import fold
from gpal.inference.psi_statistics import check_kernel, psi_statistics
from gpal.inference.rows import Data, Sites, Statistics
from gpal.inference.shared_graph import shared_graph
from gpal.inference.streaming import Rows

__all__ = ["PsiRows"]

# Entries of Δ in a chunk: 16 MB in float64.
CHUNK_ENTRIES = 1 << 21


class PsiRows(Rows):
    """A chunk holds ψ1, ψ0 and, in its third part, [Δ] per kernel, flat [rows, m²]; at inputs that
    are exact, k_i and k(x_i, x_i). One node per source."""

    kind: ClassVar[str] = "psi"
    products: ClassVar[bool] = False

    def __init__(
        self,
        kernels: Sequence[gpflow.kernels.Kernel],
        Z: np.ndarray | tf.Tensor,
        num_latent: int,
        **options: Any,
    ) -> None:
        super().__init__(kernels, Z, num_latent, **options)
        for kernel in self.kernels:
            check_kernel(kernel)
        self.chunk = max(1, min(self.chunk, CHUNK_ENTRIES // self.Z.shape[0] ** 2))

    def at(
        self,
        X: tf.Tensor,
        root: tf.Tensor | None,
        noisy: tuple[int, ...],
        kept: Sequence[tf.Tensor] = (),
    ) -> Chunk:
        if root is None or not noisy:
            rows = list(kept) or self._exact_rows(X)
            return Chunk(rows, [kernel(X, full_cov=False) for kernel in self.kernels], [])
        count = len(self.kernels)
        if kept:
            flat = [[delta] for delta in kept[-count:]]
            return Chunk(list(kept[:count]), list(kept[count:-count]), flat)
        Z, columns = tf.convert_to_tensor(self.Z), tf.gather(root, noisy, axis=2)
        parts = [psi_statistics(kernel, X, columns, Z) for kernel in self.kernels]
        deltas = [tf.reshape(p.covariance, [tf.shape(X)[0], self.Z.shape[0] ** 2]) for p in parts]
        return Chunk(
            [tf.cast(p.mean, self.dtype) for p in parts],
            [p.diagonal for p in parts],
            [[tf.cast(delta, self.dtype)] for delta in deltas],
        )

    def _exact_rows(self, X: tf.Tensor) -> list[tf.Tensor]:
        Z = tf.convert_to_tensor(self.Z)
        return [tf.cast(covariance(kernel, X, Z), self.dtype) for kernel in self.kernels]

    def marginals(self, chunk: Chunk, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        P = self.num_latent
        mean, variance = chunks.marginals(chunk._replace(slopes=[]), posterior, P)
        if not chunk.slopes:
            return mean, variance
        alpha = posterior.alpha
        W = self._flat(posterior.M + alpha[:, :, None] * alpha[:, None, :])
        # m² numbers a row: a product with a vector has one order, one with a few has not.
        parts = [
            tf.linalg.matvec(D, w) for c, D in self._covariances(chunk) for w in tf.unstack(W[c])
        ]
        variance += tf.cast(tf.stack(parts, 1), tf.float64)
        return mean, tf.maximum(variance, 1e-10 * tf.stack(chunk.diagonals, axis=1))

    def statistics(self, chunk: Chunk, sites: Sites) -> Statistics:
        total = chunks.statistics(chunk._replace(slopes=[]), sites, self.num_latent)
        if not chunk.slopes:
            return total
        theta = tf.cast(sites.precision, self.dtype)
        parts = [product_of_rows(theta[:, c], D) for c, D in self._covariances(chunk)]
        spread = tf.cast(tf.concat(parts, 0), tf.float64)
        return total._replace(gram=total.gram + tf.reshape(spread, total.gram.shape))

    def gradient(self, chunk: Chunk, sites: Sites, back: Statistics) -> Chunk:
        exact = chunks.gradient(chunk._replace(slopes=[]), sites, back, self.num_latent)
        theta, to_gram = tf.cast(sites.precision, self.dtype), self._flat(back.gram)
        families = self._covariances(chunk)
        return exact._replace(slopes=[[tf.matmul(theta[:, c], to_gram[c])] for c, _ in families])

    def _covariances(self, chunk: Chunk) -> list[tuple[slice, tf.Tensor]]:
        """Latent functions that share a kernel, and its Δ [rows, m²]."""
        shared = len(self.kernels) == 1
        return [
            (slice(None) if shared else slice(j, j + 1), D) for j, (D,) in enumerate(chunk.slopes)
        ]

    def _flat(self, square: tf.Tensor) -> tf.Tensor:
        """[P, m, m] as [P, m²] in the dtype of the products."""
        return tf.reshape(tf.cast(square, self.dtype), [self.num_latent, self.Z.shape[0] ** 2])

    def no_statistics(self) -> Statistics:
        return chunks.no_statistics(self.num_latent, self.Z.shape[0])

    @shared_graph
    def all_kept(self, data: Data) -> list[tf.Tensor]:
        if not self.noisy:
            return self._exact_rows(self.positions(data)[0])

        def body(i: tf.Tensor, arrays: list[tf.TensorArray]) -> list[tf.TensorArray]:
            chunk = self.chunk_of(*self.bounds(i, data), data)
            parts = [*chunk.rows, *chunk.diagonals, *(D for (D,) in chunk.slopes)]
            return [array.write(i, part) for array, part in zip(arrays, parts)]

        count, K, m = self.number(data), len(self.kernels), self.Z.shape[0]
        dtypes = K * [self.dtype] + K * [tf.float64] + K * [self.dtype]
        shapes = K * [[None, m]] + K * [[None]] + K * [[None, m**2]]
        arrays = [tf.TensorArray(dtype, count, infer_shape=False) for dtype in dtypes]
        arrays = fold(body, arrays, count)
        return [tf.ensure_shape(a.concat(), shape) for a, shape in zip(arrays, shapes)]

    def bytes_kept(self, sources: int) -> int:
        m = self.Z.shape[0]
        # Twice: the chunks, and what they are joined to.
        return 2 * sources * len(self.kernels) * (m**2 + m) * self.dtype.size
