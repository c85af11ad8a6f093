"""Gaussian sites met through inducing variables (methods: E1, E2).

q(u) = N(μ, Σ) at m inducing points Z, K = K(Z, Z) = L Lᵀ. For sites (θ, r) with statistics
S, ρ, t of `rows.py`, everything m × m is whitened and in float64:

    A = I + L⁻¹ S L⁻ᵀ        Σ = L A⁻¹ Lᵀ        μ = L A⁻¹ L⁻¹ ρ                              (E1)
    J = ½ (L⁻¹ρ)ᵀ A⁻¹ (L⁻¹ρ) − ½ log|A| − ½ t + ½ tr(L⁻¹ S L⁻ᵀ)                               (E2)

and a row needs two products, m_i = k_iᵀ α with α = K⁻¹μ and v_i = k_ii + k_iᵀ M k_i with
M = K⁻¹ (Σ − K) K⁻¹ = L⁻ᵀ (A⁻¹ − I) L⁻¹. So a sweep costs 4 n m² flops per latent function.

First-order input noise adds the slope variance s_i = (∂m_i/∂x)ᵀ R_i R_iᵀ (∂m_i/∂x) to v_i, where
R Rᵀ is the covariance of x. Since s_i is quadratic in μ, its optimum only changes the mean:
A → A + L⁻¹ S' L⁻ᵀ in the solve for μ and in the first term of J, with S' = Σ_i θ_i D_i D_iᵀ and
D_i = (∂k_i/∂x_i) R_i. No term is neglected.
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference import chunks, mixed_precision, whitened
from gpal.inference.cholesky import Jitter, jittered
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.graph import fold, graph
from gpal.inference.rows import (
    CHUNK,
    Data,
    Sites,
    Statistics,
    add,
    derivative_rows,
    meet,
)

__all__ = ["Chunk", "SparseGP", "SparsePosterior"]

# Kernel rows are kept between sweeps while they fit here; otherwise they are recomputed per chunk.
CACHE_BYTES = 1 << 30
# Kernel elements up to which hyper-parameter gradients keep all rows: 2²¹ are 20,000 rows of 100.
RESIDENT_ELEMENTS = 1 << 21


class SparseGP(tf.Module):
    """P independent latent functions with one shared kernel or one each, on shared inducing points.

    kernels      list of 1 or P GPflow kernels
    Z            [m, d] inducing points
    num_latent   P
    learn_Z      make the inducing points trainable
    jitter       relative jitter to start from (None: 1e-8 in float64, 1e-4 with float32 products)
    dtype        of the n × m products; m × m algebra is always float64
    noisy        features (indices) whose error bars enter to first order; () for exact inputs
    nodes        rows per source (more than one when the input is integrated over)
    inputs       module that makes (rows [n·S, d], R [n, d, d]) from measurements (X, root); None
                 where the data hold the rows themselves, since nothing about the noise is learned
    """

    def __init__(
        self,
        kernels: list[gpflow.kernels.Kernel],
        Z,
        num_latent: int,
        *,
        nodes: int = 1,
        learn_Z: bool = False,
        jitter: float | None = None,
        dtype: tf.DType = tf.float64,
        noisy: tuple[int, ...] = (),
        inputs: tf.Module | None = None,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.kernels = kernels
        self.Z = gpflow.Parameter(Z, trainable=learn_Z, dtype=tf.float64)
        self.num_latent, self.nodes = num_latent, nodes
        self.dtype, self.noisy = dtype, tuple(noisy)
        self.jitter = Jitter(jitter or (1e-8 if dtype == tf.float64 else 1e-4))
        self._cache: list[tf.Tensor] = []
        self._cache_of: tf.Tensor | None = None
        # As many bytes whatever the dtype: what is done once per chunk costs float32 products more.
        self.chunk = max(1, CHUNK * tf.float64.size // dtype.size // nodes)
        self.resident_elements = RESIDENT_ELEMENTS

    # ---- rows ------------------------------------------------------------------------------------

    def _kernel_rows(self, X: tf.Tensor) -> list[tf.Tensor]:
        return [tf.cast(kernel(X, self.Z), self.dtype) for kernel in self.kernels]

    def _diagonals(self, X: tf.Tensor) -> list[tf.Tensor]:
        return [kernel.K_diag(X) for kernel in self.kernels]

    def _slope_rows(
        self, X: tf.Tensor, root: tf.Tensor | None, noisy: tuple[int, ...]
    ) -> list[list[tf.Tensor]]:
        """[kernel][feature of `noisy`] -> derivative rows; empty for exact inputs."""
        if root is None or not noisy:
            return []
        Z, tangents = tf.convert_to_tensor(self.Z), [root[:, :, d] for d in noisy]
        return [
            [tf.cast(D, self.dtype) for D in derivative_rows(kernel, X, Z, tangents)]
            for kernel in self.kernels
        ]

    def _rows_at(
        self, X: tf.Tensor, root: tf.Tensor | None, noisy: tuple[int, ...], rows: list[tf.Tensor]
    ) -> Chunk:
        """What is known of the rows X with roots R; `rows` are kept kernel rows, or none."""
        rows = rows or self._kernel_rows(X)
        return Chunk(rows, self._diagonals(X), self._slope_rows(X, root, noisy))

    def _chunk_marginals(
        self, chunk: Chunk, posterior: SparsePosterior
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return chunks.marginals(chunk, posterior, self.num_latent)

    def _chunk_statistics(self, chunk: Chunk, sites: Sites) -> Statistics:
        return chunks.statistics(chunk, sites, self.num_latent)

    def _chunk_gradient(self, chunk: Chunk, sites: Sites, back: Statistics) -> list:
        return list(chunks.gradient(chunk, sites, back, self.num_latent))

    def _zero_statistics(self) -> Statistics:
        m, P = self.Z.shape[0], self.num_latent
        square = tf.zeros([P, m, m], tf.float64)
        line, point = tf.zeros([P, m], tf.float64), tf.zeros([P], tf.float64)
        return Statistics(square, line, point, [square] if self.noisy else [])

    def _bounds(self, i, data: Data) -> tuple[tf.Tensor, tf.Tensor]:
        """First and last source of chunk i, the last one excluded."""
        first = i * self.chunk
        return first, tf.minimum(first + self.chunk, tf.shape(data.Y)[0])

    def _of(self, first, last, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """What of tensors [n·S, ...] belongs to the sources first … last − 1."""
        if self.nodes > 1:
            first, last = first * self.nodes, last * self.nodes
        return [tensor[first:last] for tensor in tensors]

    def chunk_of(self, first, last, data: Data, cache: list[tf.Tensor]) -> Chunk:
        """The rows of the sources first … last − 1; of `cache` where there is one."""
        X, root = self._inputs(data, first, last)
        return self._rows_at(X, root, self.noisy, self._of(first, last, *cache))

    def all_rows(self, data: Data) -> Chunk:
        return self._rows_at(*self._inputs(data), self.noisy, [])

    def _inputs(self, data: Data, first=0, last=None) -> tuple[tf.Tensor, tf.Tensor | None]:
        """(rows [·S, d], R [·S, d, d], None for exact inputs) of the sources first … last − 1."""
        X, root = data.X, data.root
        if self.inputs is not None:
            X, root = self.inputs(X[first:last], root[first:last])
        elif last is not None:
            (X,) = self._of(first, last, X)
            root = root[first:last] if self.noisy else root
        if not self.noisy:
            return X, None
        return X, root if self.nodes == 1 else tf.repeat(root, self.nodes, axis=0)

    def _num_chunks(self, data: Data):
        return (tf.shape(data.Y)[0] + self.chunk - 1) // self.chunk

    def refresh(self, data: Data) -> None:
        """Kernel rows for the present hyper-parameters, kept in memory where they fit."""
        size = data.Y.shape[0] * self.nodes * self.Z.shape[0] * self.dtype.size * len(self.kernels)
        self._cache = self._all_rows(data) if size <= CACHE_BYTES else []
        self._cache_of = data.X

    def forget_rows(self) -> None:
        """Compute kernel rows anew from now on: for data that change between calls."""
        self._cache = []

    def _kept(self, data: Data) -> list[tf.Tensor]:
        """The kept rows where they are those of `data`, not of another partition."""
        return self._cache if self._cache_of is data.X else []

    @graph
    def _all_rows(self, data: Data) -> list[tf.Tensor]:
        return self._kernel_rows(self._inputs(data)[0])

    # ---- the pure functions: statistics -> combine -> solve --------------------------------------

    def statistics(self, data: Data, sites: Sites) -> Statistics:
        """Sums over the rows of `data`, one partition of many perhaps (`rows.add` combines)."""
        return self._statistics(data, sites, self._kept(data), None)

    @graph
    def _statistics(self, data: Data, sites: Sites, cache, inverse) -> Statistics:
        """Of whitened rows where L⁻¹ is given."""

        def body(i, total):
            where = self._bounds(i, data)
            chunk = mixed_precision.whiten(self.chunk_of(*where, data, cache), inverse)
            own = Sites(*self._of(*where, *sites))
            return add(total, self._chunk_statistics(chunk, own))

        return fold(body, self._zero_statistics(), self._num_chunks(data))

    def solve(self, statistics: Statistics) -> SparsePosterior:
        """Combined statistics -> q(u)."""
        return self.jitter.run(
            lambda: self._solve(statistics, self.jitter.value), lambda q: q.alpha
        )

    def whitened(self, statistics: Statistics) -> Statistics:
        """Statistics of the whitened rows: what stays valid while hyper-parameters move slowly."""
        return self.jitter.run(
            lambda: self._whiten(statistics, self.jitter.value), lambda w: w.projection
        )

    def solve_whitened(self, statistics: Statistics) -> SparsePosterior:
        """As `solve`, from whitened statistics."""
        return self.jitter.run(
            lambda: self._solve_whitened(statistics, self.jitter.value), lambda q: q.alpha
        )

    def _factors(self, jitter) -> tf.Tensor:
        """chol K(Z, Z), one per kernel: [1 or P, m, m]."""
        return tf.linalg.cholesky(self.kernel_matrices(jitter))

    def kernel_matrices(self, jitter) -> tf.Tensor:
        """K(Z, Z), one per kernel: [1 or P, m, m]."""
        return tf.stack([jittered(kernel(self.Z), jitter) for kernel in self.kernels])

    @graph
    def _whiten(self, statistics: Statistics, jitter) -> Statistics:
        return whitened.whiten(statistics, self._factors(jitter))

    @graph
    def _solve(self, statistics: Statistics, jitter) -> SparsePosterior:
        factors = self._factors(jitter)
        return _posterior(whitened.whiten(statistics, factors), factors)

    @graph
    def _solve_whitened(self, statistics: Statistics, jitter) -> SparsePosterior:
        return _posterior(statistics, self._factors(jitter))

    # ---- one sweep: marginals, sites and statistics in a single pass -----------------------------

    def posterior(self, data: Data, sites: Sites) -> SparsePosterior:
        """q(u) for given sites; NaN where θ < 0 leaves no positive definite Σ."""
        return self._solved(self.statistics(data, sites), sites)

    def _solved(self, statistics: Statistics, sites: Sites) -> SparsePosterior:
        if not bool(tf.reduce_any(sites.precision < 0)):
            return self.solve(statistics)
        try:
            return self._solve(statistics, self.jitter.value)
        except tf.errors.InvalidArgumentError:  # K itself has been factorised before
            return SparsePosterior.filled(self.num_latent, self.Z.shape[0], np.nan)

    def sweep(self, rule, likelihood, data: Data, posterior: SparsePosterior, sites: Sites, step):
        """One natural-gradient step of all sites.

        Returns (new sites, new posterior, data term of the bound at the *given* posterior).
        """
        new_sites, statistics, terms = self.met_statistics(
            rule, likelihood, data, posterior, sites, step
        )
        return new_sites, self._solved(statistics, new_sites), terms

    def met_statistics(self, rule, likelihood, data, posterior, sites: Sites, step):
        """As `sweep`, up to the solve: (new sites, their statistics, data term of the bound)."""
        step, cache = tf.constant(step, tf.float64), self._kept(data)
        statistics, precision, natural_mean, terms = self._sweep(
            rule, likelihood, data, posterior, sites, step, cache
        )
        return Sites(precision, natural_mean), statistics, terms

    @graph
    def _sweep(self, rule, likelihood, data, posterior, sites, step, cache):
        count = self._num_chunks(data)
        alpha, M = (tf.cast(part, self.dtype) for part in posterior[:2])
        posterior = posterior._replace(alpha=alpha, M=M)  # once, not in every chunk

        def body(i, state):
            total, precision, natural_mean, terms = state
            first, last = self._bounds(i, data)
            chunk = self.chunk_of(first, last, data, cache)
            mean, variance = self._chunk_marginals(chunk, posterior)
            target, evidence = meet(
                rule, likelihood, mean, variance, data.Y[first:last], self.nodes
            )
            new = Sites(*self._of(first, last, *sites)).mix(target, step)
            part = self._chunk_statistics(chunk, new)
            return (
                add(total, part),
                precision.write(i, new.precision),
                natural_mean.write(i, new.natural_mean),
                terms + tf.reduce_sum(evidence),
            )

        arrays = [tf.TensorArray(tf.float64, count, infer_shape=False) for _ in range(2)]
        state = (self._zero_statistics(), *arrays, tf.zeros([], tf.float64))
        total, precision, natural_mean, terms = fold(body, state, count)
        shape = [None, self.num_latent]
        return (
            total,
            tf.ensure_shape(precision.concat(), shape),
            tf.ensure_shape(natural_mean.concat(), shape),
            terms,
        )

    # ---- hyper-parameters: the collapsed bound with sites held -----------------------------------

    def bound_and_gradient(self, data: Data, sites: Sites):
        """J (E2) up to a constant of the sites, and its gradient in `trainable_variables`.

        Two passes over the rows: one for the statistics, one that carries ∂J/∂S, ∂J/∂ρ, ∂J/∂t back
        to the kernel rows, 2 n m² flops each; memory stays bounded by a chunk.
        """
        return self.collapsed(data, sites)[:2]

    def collapsed(self, data: Data, sites: Sites, mixed: bool = False):
        """As `bound_and_gradient`, and q(u), which is found on the way.

        mixed   in mixed precision, where that saves time
        """
        resident = data.Y.shape[0] <= self.resident_sources
        mixed = mixed and self.gains_by_mixing
        *found, q = self._bound_and_gradient(data, sites, None, self.jitter.value, resident, mixed)
        return *found, SparsePosterior(*q)

    def held_gradient(self, data: Data, sites: Sites, whitened_statistics: Statistics):
        """The same for a batch of rows, with q(v) held at that of the given statistics of all."""
        resident = data.Y.shape[0] <= self.resident_sources
        jitter = self.jitter.value
        found = self._bound_and_gradient(data, sites, whitened_statistics, jitter, resident, False)
        return found[:2]

    @property
    def gains_by_mixing(self) -> bool:
        """Whether mixed precision saves time, and is of use with `dtype`."""
        return self.dtype == tf.float64 and mixed_precision.pays(self.num_latent, len(self.kernels))

    @property
    def resident_sources(self) -> int:
        """Up to so many sources with exact inputs are one chunk whose kernel rows, with what their
        derivatives need, stay in memory: a second pass and the making of its graph are saved."""
        if self.noisy:
            return 0
        return self.resident_elements // (self.nodes * self.Z.shape[0] * len(self.kernels))

    @graph
    def _bound_and_gradient(
        self, data: Data, sites: Sites, held: Statistics | None, jitter, resident: bool, mixed: bool
    ):
        with tf.GradientTape() as tape:
            K = self.kernel_matrices(jitter)
            chunk = self.all_rows(data) if resident else Chunk([], [], [])
        inverse = whitened.inverse_factor(K) if mixed else None

        def bound(statistics, K):
            if held is not None:
                return whitened.held_bound(statistics, K, whitened.posterior(held))
            if inverse is not None:
                return whitened.whitened_bound(statistics, inverse)
            return whitened.collapsed_bound(statistics, K)

        def carried_back(white, sites, back):
            to_white = self._chunk_gradient(white, sites, back)
            return mixed_precision.unwhiten_gradient(to_white, inverse)

        if resident:
            white = mixed_precision.whiten(chunk, inverse)
            J, back, to_K, q = bound(self._chunk_statistics(white, sites), K)
            to_chunk = carried_back(white, sites, back)
            return J, self.to_variables(tape, [K, *chunk], [to_K, *to_chunk]), q
        J, back, to_K, q = bound(self._statistics(data, sites, [], inverse), K)

        def body(i, gradients):
            where = self._bounds(i, data)
            with tf.GradientTape() as tape:
                chunk = self.chunk_of(*where, data, [])
            own = Sites(*self._of(*where, *sites))
            to_chunk = carried_back(mixed_precision.whiten(chunk, inverse), own, back)
            part = self.to_variables(tape, list(chunk), to_chunk)
            return [a + b for a, b in zip(gradients, part)]

        gradients = fold(body, self.to_variables(tape, K, to_K), self._num_chunks(data))
        return J, gradients, q

    def to_variables(self, tape: tf.GradientTape, results, gradients) -> list[tf.Tensor]:
        """∂J/∂(trainable variables) from ∂J/∂results."""
        found = tape.gradient(
            results,
            list(self.trainable_variables),
            output_gradients=gradients,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(g) for g in found]

    # ---- prediction ------------------------------------------------------------------------------

    def marginals(self, posterior: SparsePosterior, X, root=None) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f) at X [rows, d]; R [rows, d, d] enters to first order."""
        X = tf.convert_to_tensor(X, tf.float64)
        root = np.zeros([*X.shape, 0]) if root is None else np.asarray(root)
        noisy = tuple(int(d) for d in np.flatnonzero((root != 0).any(axis=(0, 1))))
        step = self.chunk * self.nodes
        parts = [
            self._marginals(posterior, X[i : i + step], tf.constant(root[i : i + step]), noisy)
            for i in range(0, X.shape[0], step)
        ]
        return tf.concat([m for m, _ in parts], 0), tf.concat([v for _, v in parts], 0)

    def data_marginals(self, data: Data, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [n·S, P] of q(f) at the rows of `data`."""
        return self.marginals(posterior, *self._inputs(data))

    @graph
    def _marginals(self, posterior: SparsePosterior, X, root, noisy: tuple[int, ...]):
        return self._chunk_marginals(self._rows_at(X, root, noisy, []), posterior)


def _posterior(whitened_statistics: Statistics, factors: tf.Tensor) -> SparsePosterior:
    q = whitened.posterior(whitened_statistics)
    return SparsePosterior(*whitened.unwhiten(q, factors), q.kl)
