"""Kernel rows k_i = K(Z, x_i), with first-order input noise.

The slope variance s_i = (∂m_i/∂x)ᵀ R_i R_iᵀ (∂m_i/∂x) of an uncertain input, R Rᵀ the covariance
of x, needs the derivative of a row along each column of R: D_i = (∂k_i/∂x_i) R_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import tensorflow as tf

from gpal.inference import chunks
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.covariances import covariance
from gpal.inference.derivatives import rows_and_derivatives, rows_and_slope_variance
from gpal.inference.rows import Data, Sites, Statistics
from gpal.inference.shared_graph import shared_graph
from gpal.inference.streaming import Rows

__all__ = ["KernelRows"]


class KernelRows(Rows):
    """A chunk holds k_i, k(x_i, x_i) and the columns of D_i. Several nodes per source, or one."""

    kind: ClassVar[str] = "kernel"
    products: ClassVar[bool] = True

    def at(
        self,
        X: tf.Tensor,
        root: tf.Tensor | None,
        noisy: tuple[int, ...],
        kept: Sequence[tf.Tensor] = (),
    ) -> Chunk:
        rows, slopes = self._kept_parts(kept) if kept else self._rows(X, root, noisy)
        return Chunk(rows, self.diagonals(X), slopes)

    def differentiable(
        self, first: tf.Tensor, last: tf.Tensor, data: Data, alpha: tf.Tensor | None
    ) -> Chunk:
        """With the slope variances in place of D_i: J depends on no more of the slopes
        (`whitened.py`)."""
        X, root = self.positions(data, first, last)
        if root is None or alpha is None:
            return self.at(X, root, self.noisy)
        return self._with_slope_variances(X, root, self.noisy, alpha)

    def _with_slope_variances(
        self, X: tf.Tensor, root: tf.Tensor, noisy: tuple[int, ...], alpha: tf.Tensor
    ) -> Chunk:
        Z, each = tf.convert_to_tensor(self.Z), self.num_latent // len(self.kernels)
        chunk = Chunk([], self.diagonals(X), [])
        for kernel, own in zip(self.kernels, tf.split(alpha, len(self.kernels))):
            columns = tf.transpose(tf.ensure_shape(own, [each, None]))
            K, slope_variance = rows_and_slope_variance(kernel, X, Z, columns, root, noisy)
            chunk.rows.append(tf.cast(K, self.dtype))
            chunk.slopes.append([slope_variance])
        return chunk

    def _rows(
        self, X: tf.Tensor, root: tf.Tensor | None, noisy: tuple[int, ...]
    ) -> tuple[list[tf.Tensor], list[list[tf.Tensor]]]:
        """K(X, Z) per kernel, and [kernel][feature of `noisy`] -> derivative rows; none of these
        for exact inputs."""
        Z = tf.convert_to_tensor(self.Z)
        if root is None or not noisy:
            return [tf.cast(covariance(kernel, X, Z), self.dtype) for kernel in self.kernels], []
        columns = tf.unstack(root, axis=2)
        tangents = [columns[d] for d in noisy]
        found = [rows_and_derivatives(kernel, X, Z, tangents) for kernel in self.kernels]
        rows, slopes = zip(*tf.nest.map_structure(lambda part: tf.cast(part, self.dtype), found))
        return list(rows), list(slopes)

    def _kept_parts(
        self, kept: Sequence[tf.Tensor]
    ) -> tuple[list[tf.Tensor], list[list[tf.Tensor]]]:
        """`_rows` from the list of `all_kept`: the rows, then the derivatives kernel by kernel."""
        number, each = len(self.kernels), len(self.noisy)
        slopes = [
            list(kept[number + j * each : number + (j + 1) * each]) for j in range(number) if each
        ]
        return list(kept[:number]), slopes

    def diagonals(self, X: tf.Tensor) -> list[tf.Tensor]:
        """k(x, x) [rows] per kernel."""
        return [kernel(X, full_cov=False) for kernel in self.kernels]

    def marginals(self, chunk: Chunk, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        return chunks.marginals(chunk, posterior, self.num_latent)

    def marginals_at(
        self, X: tf.Tensor, root: tf.Tensor, noisy: tuple[int, ...], posterior: SparsePosterior
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Without D_i: of the slopes those of the means alone are wanted, (∂m_i/∂x)ᵀ R_i."""
        if not noisy:
            return super().marginals_at(X, root, noisy, posterior)
        chunk = self._with_slope_variances(X, root, noisy, posterior.alpha)
        mean, variance = self.marginals(chunk._replace(slopes=[]), posterior)
        return mean, variance + tf.concat([s for (s,) in chunk.slopes], axis=1)

    def statistics(self, chunk: Chunk, sites: Sites) -> Statistics:
        return chunks.statistics(chunk, sites, self.num_latent)

    def gradient(self, chunk: Chunk, sites: Sites, back: Statistics) -> Chunk:
        return chunks.gradient(chunk, sites, back, self.num_latent)

    def no_statistics(self) -> Statistics:
        total = chunks.no_statistics(self.num_latent, self.Z.shape[0])
        return total._replace(slope_gram=[total.gram] if self.noisy else [])

    @shared_graph
    def all_kept(self, data: Data) -> list[tf.Tensor]:
        rows, slopes = self._rows(*self.positions(data), self.noisy)
        return [*rows, *(D for family in slopes for D in family)]

    def bytes_kept(self, sources: int) -> int:
        numbers = sources * self.nodes * self.Z.shape[0] * len(self.kernels)
        return (1 + len(self.noisy)) * numbers * self.dtype.size
