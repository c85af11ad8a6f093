"""Gaussian sites where inputs are Gaussian: psi statistics in place of kernel rows (E1, E2).

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

import tensorflow as tf

from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.graph import fold, graph
from gpal.inference.psi_statistics import check_kernel, psi_statistics
from gpal.inference.rows import Data, Sites, Statistics
from gpal.inference.sparse import CACHE_BYTES, SparseGP

__all__ = ["AnalyticGP"]

# Entries of Δ in a chunk: 16 MB in float64.
CHUNK_ENTRIES = 1 << 21


class AnalyticGP(SparseGP):
    """SparseGP whose rows are ψ1 and whose diagonals are ψ0; a chunk's third part holds [Δ], flat
    [rows, m²], per kernel. One node per source."""

    def __init__(self, kernels, Z, num_latent: int, **options) -> None:
        super().__init__(kernels, Z, num_latent, **options)
        for kernel in kernels:
            check_kernel(kernel)
        self.chunk = max(1, min(self.chunk, CHUNK_ENTRIES // self.Z.shape[0] ** 2))

    @property
    def gains_by_mixing(self) -> bool:
        """Not with a Δ for every row."""
        return super().gains_by_mixing and not self.noisy

    def _rows_at(self, X, root, noisy, rows) -> Chunk:
        if not noisy:
            return super()._rows_at(X, root, noisy, rows)
        count = len(self.kernels)
        if rows:
            return Chunk(rows[:count], rows[count:-count], [[flat] for flat in rows[-count:]])
        Z, columns = tf.convert_to_tensor(self.Z), tf.gather(root, noisy, axis=2)
        parts = [psi_statistics(kernel, X, columns, Z) for kernel in self.kernels]
        flat = [tf.reshape(p.covariance, [tf.shape(X)[0], self.Z.shape[0] ** 2]) for p in parts]
        return Chunk(
            [tf.cast(p.mean, self.dtype) for p in parts],
            [p.diagonal for p in parts],
            [[tf.cast(delta, self.dtype)] for delta in flat],
        )

    def marginals_at(self, posterior: SparsePosterior, X, root):
        """m, v [rows, P] at a few rows, to be differentiated: for the gradient path."""
        return self._chunk_marginals(self._rows_at(X, root, self.noisy, []), posterior)

    def _chunk_marginals(self, chunk: Chunk, posterior: SparsePosterior):
        mean, variance = super()._chunk_marginals(chunk._replace(slopes=[]), posterior)
        if not chunk.slopes:
            return mean, variance
        alpha = posterior.alpha
        W = self._flat(posterior.M + alpha[:, :, None] * alpha[:, None, :])
        parts = [tf.matmul(D, W[c], transpose_b=True) for c, D in self._covariances(chunk)]
        variance += tf.cast(tf.concat(parts, 1), tf.float64)
        return mean, tf.maximum(variance, 1e-10 * tf.stack(chunk.diagonals, axis=1))

    def _chunk_statistics(self, chunk: Chunk, sites: Sites) -> Statistics:
        total = super()._chunk_statistics(chunk._replace(slopes=[]), sites)
        if not chunk.slopes:
            return total
        theta = tf.cast(sites.precision, self.dtype)
        parts = [tf.matmul(theta[:, c], D, transpose_a=True) for c, D in self._covariances(chunk)]
        spread = tf.cast(tf.concat(parts, 0), tf.float64)
        return total._replace(gram=total.gram + tf.reshape(spread, total.gram.shape))

    def _chunk_gradient(self, chunk: Chunk, sites: Sites, back: Statistics) -> list:
        to_rows, to_diagonals, _ = super()._chunk_gradient(chunk._replace(slopes=[]), sites, back)
        theta, to_gram = tf.cast(sites.precision, self.dtype), self._flat(back.gram)
        families = self._covariances(chunk)
        return [to_rows, to_diagonals, [[tf.matmul(theta[:, c], to_gram[c])] for c, _ in families]]

    def _covariances(self, chunk: Chunk) -> list[tuple[slice, tf.Tensor]]:
        """Latent functions that share a kernel, and its Δ [rows, m²]."""
        shared = len(self.kernels) == 1
        return [
            (slice(None) if shared else slice(j, j + 1), D) for j, (D,) in enumerate(chunk.slopes)
        ]

    def _flat(self, square: tf.Tensor) -> tf.Tensor:
        """[P, m, m] as [P, m²] in the dtype of the products."""
        return tf.reshape(tf.cast(square, self.dtype), [self.num_latent, self.Z.shape[0] ** 2])

    def _zero_statistics(self) -> Statistics:
        return super()._zero_statistics()._replace(slope_gram=[])

    def refresh(self, data: Data) -> None:
        """ψ1, ψ0 and Δ for the present hyper-parameters, kept in memory where they fit."""
        m = self.Z.shape[0]
        entries = data.Y.shape[0] * len(self.kernels) * (m**2 + m)
        # Twice: the chunks, and what they are joined to.
        fits = 2 * entries * self.dtype.size <= CACHE_BYTES
        self._cache = self._all_rows(data) if fits else []
        self._cache_of = data.X

    @graph
    def _all_rows(self, data: Data) -> list[tf.Tensor]:
        if not self.noisy:
            return super()._all_rows(data)
        count = self._num_chunks(data)

        def body(i, arrays):
            chunk = self.chunk_of(*self._bounds(i, data), data, [])
            parts = [*chunk.rows, *chunk.diagonals, *(D for (D,) in chunk.slopes)]
            return [array.write(i, part) for array, part in zip(arrays, parts)]

        K, m = len(self.kernels), self.Z.shape[0]
        dtypes = K * [self.dtype] + K * [tf.float64] + K * [self.dtype]
        shapes = K * [[None, m]] + K * [[None]] + K * [[None, m**2]]
        arrays = [tf.TensorArray(dtype, count, infer_shape=False) for dtype in dtypes]
        arrays = fold(body, arrays, count)
        return [tf.ensure_shape(a.concat(), shape) for a, shape in zip(arrays, shapes)]
