"""The rows of a GP, made in chunks of the data, and kept where they fit.

Whatever a GP does with n sources is a sum over chunks of up to 240 rows, so that memory stays that
of a chunk and the order of every sum is known (`fixed_order.py`). What a chunk holds, and how its
marginals and its sums are made, is the affair of `kernel_rows.py` and `psi_rows.py`; the solvers
(`sparse.py`, `full.py`) do not ask which it is.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference.cholesky import jittered
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.covariances import square_covariance
from gpal.inference.device import check_products
from gpal.inference.fixed_order import WIDE
from gpal.inference.graph import fold
from gpal.inference.rows import Data, Sites, Statistics
from gpal.inference.shared_graph import shared_graph

__all__ = ["CACHE_BYTES", "CHUNK", "Rows", "pulled_back"]

CHUNK = WIDE
# Rows are kept between sweeps while they fit here; otherwise they are recomputed per chunk.
CACHE_BYTES = 1 << 30
# Kernel elements up to which hyper-parameter gradients keep all rows: 2²¹ are 20,000 rows of 100.
RESIDENT_ELEMENTS = 1 << 21


class _Kept(threading.local):
    """What a thread keeps, and of which data: two refits of one model are of different ones."""

    of: tf.Tensor | None = None
    rows: Sequence[tf.Tensor] = ()

    def __reduce__(self) -> tuple[type[_Kept], tuple]:
        """A copy of the rows has them to make."""
        return type(self), ()


class Rows(tf.Module, ABC):
    """P independent latent functions with one shared kernel or one each, on shared points Z.

    kernels      list of 1 or P GPflow kernels
    Z            [m, d] inducing points
    num_latent   P
    learn_Z      make the inducing points trainable
    dtype        of the n × m products; m × m algebra is always float64
    noisy        features (indices) whose error bars enter; () for exact inputs
    nodes        rows per source (more than one when the input is integrated over)
    inputs       module that makes (rows [n·S, d], R [n, d, d]) from measurements (X, root); None
                 where the data hold the rows themselves, since nothing about the noise is learned

    A subclass says how rows are made (`at`, `all_kept`) and what is done with them. `products`: all
    its sums are products of kernel rows, with nothing added for an input that is a distribution.
    """

    kind: ClassVar[str]
    products: ClassVar[bool]
    unread_by_graphs: ClassVar[tuple[str, ...]] = ("_kept",)

    def __init__(
        self,
        kernels: Sequence[gpflow.kernels.Kernel],
        Z: np.ndarray | tf.Tensor,
        num_latent: int,
        *,
        nodes: int = 1,
        learn_Z: bool = False,
        dtype: tf.DType = tf.float64,
        noisy: Sequence[int] = (),
        inputs: tf.Module | None = None,
    ) -> None:
        super().__init__()
        check_products(dtype)
        self.inputs = inputs
        self.kernels = list(kernels)
        self.Z = gpflow.Parameter(Z, trainable=learn_Z, dtype=tf.float64)
        self.num_latent, self.nodes = num_latent, nodes
        self.dtype, self.noisy = dtype, tuple(noisy)
        self._kept = _Kept()
        self.chunk = max(1, CHUNK // nodes)
        self.resident_elements = RESIDENT_ELEMENTS

    # ---- what a subclass is ----------------------------------------------------------------------

    @abstractmethod
    def at(
        self,
        X: tf.Tensor,
        root: tf.Tensor | None,
        noisy: tuple[int, ...],
        kept: Sequence[tf.Tensor] = (),
    ) -> Chunk:
        """What is known of the rows X with roots R; `kept` are those of `all_kept`, or none."""

    @abstractmethod
    def marginals(self, chunk: Chunk, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f)."""

    def marginals_at(
        self, X: tf.Tensor, root: tf.Tensor, noisy: tuple[int, ...], posterior: SparsePosterior
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """`marginals` of rows of which nothing else is wanted."""
        return self.marginals(self.at(X, root, noisy), posterior)

    @abstractmethod
    def statistics(self, chunk: Chunk, sites: Sites) -> Statistics:
        """Sums over the rows of the chunk."""

    @abstractmethod
    def gradient(self, chunk: Chunk, sites: Sites, back: Statistics) -> Chunk:
        """∂J/∂chunk from back = ∂J/∂(statistics)."""

    @abstractmethod
    def no_statistics(self) -> Statistics:
        """Sums over no rows."""

    @abstractmethod
    def all_kept(self, data: Data) -> list[tf.Tensor]:
        """What of all rows is worth keeping between sweeps."""

    @abstractmethod
    def bytes_kept(self, sources: int) -> int:
        """Memory that this takes."""

    # ---- chunks ----------------------------------------------------------------------------------

    def number(self, data: Data) -> tf.Tensor:
        """Of chunks."""
        return (tf.shape(data.Y)[0] + self.chunk - 1) // self.chunk

    def bounds(self, i: tf.Tensor, data: Data) -> tuple[tf.Tensor, tf.Tensor]:
        """First and last source of chunk i, the last one excluded; chunks differ by one source."""
        n, number = tf.shape(data.Y)[0], self.number(data)

        def start(i: tf.Tensor) -> tf.Tensor:
            return i * (n // number) + tf.minimum(i, n % number)

        return start(i), start(i + 1)

    def part(self, first: tf.Tensor, last: tf.Tensor, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """What of tensors [n·S, ...] belongs to the sources first … last − 1."""
        if self.nodes > 1:
            first, last = first * self.nodes, last * self.nodes
        return [tensor[first:last] for tensor in tensors]

    def chunk_of(
        self, first: tf.Tensor, last: tf.Tensor, data: Data, kept: Sequence[tf.Tensor] = ()
    ) -> Chunk:
        """The rows of the sources first … last − 1; those kept where there are such."""
        X, root = self.positions(data, first, last)
        return self.at(X, root, self.noisy, self.part(first, last, *kept))

    def differentiable(
        self, first: tf.Tensor, last: tf.Tensor, data: Data, alpha: tf.Tensor | None
    ) -> Chunk:
        """`chunk_of` for a gradient; alpha [P, m] K⁻¹μ of the q that is held."""
        return self.chunk_of(first, last, data)

    def all_of(self, data: Data) -> Chunk:
        """The rows of all sources as one chunk."""
        return self.at(*self.positions(data), self.noisy)

    def positions(
        self, data: Data, first: tf.Tensor | int = 0, last: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """(x [·S, d], R [·S, d, d], None for exact inputs) of the sources first … last − 1."""
        X, root = data.X, data.root
        if self.inputs is not None:
            X, root = self.inputs(X[first:last], root[first:last])
        elif last is not None:
            (X,) = self.part(first, last, X)
            root = root[first:last] if self.noisy else root
        if not self.noisy:
            return X, None
        return X, root if self.nodes == 1 else tf.repeat(root, self.nodes, axis=0)

    @property
    def resident_sources(self) -> int:
        """Of up to so many sources with exact inputs all rows are made at once and stay in memory,
        for a second pass."""
        if self.noisy:
            return 0
        return self.resident_elements // (self.nodes * self.Z.shape[0] * len(self.kernels))

    def to_variables(
        self,
        data: Data,
        gradient: Callable[[tf.Tensor, tf.Tensor, Chunk], Chunk],
        start: list[tf.Tensor],
        alpha: tf.Tensor | None = None,
    ) -> list[tf.Tensor]:
        """`start` and, summed over the chunks, ∂J/∂(trainable variables) from
        gradient(first, last, chunk) = ∂J/∂chunk, of chunks that are `differentiable`."""

        def body(i: tf.Tensor, total: list[tf.Tensor]) -> list[tf.Tensor]:
            where = self.bounds(i, data)
            with tf.GradientTape() as tape:
                chunk = self.differentiable(*where, data, alpha)
            part = pulled_back(self, tape, list(chunk), list(gradient(*where, chunk)))
            # The check keeps TensorFlow's optimiser from drawing the sums of a chunk and this one
            # together: with many inducing points and several threads between operations such a sum
            # ended in AlreadyExistsError (2.21).
            return [a + tf.ensure_shape(b, a.shape) for a, b in zip(total, part)]

        return fold(body, start, self.number(data))

    # ---- rows that stay between sweeps -----------------------------------------------------------

    def refresh(self, data: Data) -> None:
        """Rows for the present hyper-parameters, kept for this thread where they fit in memory."""
        fits = self.bytes_kept(data.Y.shape[0]) <= CACHE_BYTES
        self._kept.rows = self.all_kept(data) if fits else ()
        self._kept.of = data.X

    def forget(self) -> None:
        """Make rows anew from now on: for data that change between calls."""
        self._kept.rows = ()

    def kept(self, data: Data) -> list[tf.Tensor]:
        """The kept rows where they are those of `data`, not of another partition."""
        own: _Kept | None = self._kept  # None in a copy that stands for others in a graph
        return list(own.rows) if own is not None and own.of is data.X else []

    # ---- points, and prediction ------------------------------------------------------------------

    def kernel_matrices(self, jitter: tf.Tensor) -> tf.Tensor:
        """K(Z, Z), one per kernel: [1 or P, m, m]."""
        Z = tf.convert_to_tensor(self.Z)
        return tf.stack([jittered(square_covariance(k, Z), jitter) for k in self.kernels])

    def predict(
        self,
        posterior: SparsePosterior,
        X: np.ndarray | tf.Tensor,
        root: np.ndarray | tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f) at X [rows, d]; R [rows, d, d], or none for exact inputs."""
        X = tf.convert_to_tensor(X, tf.float64)
        root = np.zeros([*X.shape, 0]) if root is None else np.asarray(root)
        some = {int(d) for d in np.flatnonzero((root != 0).any(axis=(0, 1)))}
        # Those of training, too, where there are any: not a graph for each batch that lacks some.
        noisy = tuple(sorted(some | set(self.noisy))) if some else ()
        return self._predict(posterior, X, tf.constant(root), noisy)

    @shared_graph
    def _predict(
        self, posterior: SparsePosterior, X: tf.Tensor, root: tf.Tensor, noisy: tuple[int, ...]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        step = self.chunk * self.nodes
        number = (tf.shape(X)[0] + step - 1) // step
        moments = tf.TensorArray(tf.float64, number, element_shape=[None, 2 * self.num_latent])

        def body(i: tf.Tensor, moments: tf.TensorArray) -> tf.TensorArray:
            rows = slice(i * step, (i + 1) * step)
            found = self.marginals_at(X[rows], root[rows], noisy, posterior)
            return moments.write(i, tf.concat(found, axis=1))

        mean, variance = tf.split(fold(body, moments, number).concat(), 2, axis=1)
        return mean, variance


def pulled_back(
    module: tf.Module, tape: tf.GradientTape, results: Any, gradients: Sequence | tf.Tensor
) -> list[tf.Tensor]:
    """∂J/∂(trainable variables) of the module from ∂J/∂results."""
    found = tape.gradient(
        results,
        list(module.trainable_variables),
        output_gradients=gradients,
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return [tf.convert_to_tensor(g) for g in found]
