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

from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference import whitened
from gpal.inference.cholesky import Jitter, jittered_cholesky
from gpal.inference.graph import fold, graph
from gpal.inference.rows import (
    CHUNK,
    Data,
    Sites,
    Statistics,
    add,
    derivative_rows,
    kernel_of,
    meet,
)

__all__ = ["Chunk", "SparseGP", "SparsePosterior"]

# Kernel rows are kept between sweeps while they fit here; otherwise they are recomputed per chunk.
CACHE_BYTES = 1 << 30


class Chunk(NamedTuple):
    """Some rows: kernel rows [rows, m] and diagonals [rows] per kernel, and per kernel and noisy
    feature the derivative of the rows [rows, m] along a column of R."""

    rows: list[tf.Tensor]
    diagonals: list[tf.Tensor]
    slopes: list[list[tf.Tensor]]


class SparsePosterior(NamedTuple):
    """q(u) as predictions need it.

    alpha [P, m] K⁻¹μ;  M [P, m, m] K⁻¹(Σ − K)K⁻¹;  kl [] KL(q(u) ‖ p(u)) summed over latents.
    """

    alpha: tf.Tensor
    M: tf.Tensor
    kl: tf.Tensor


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
        self.chunk = max(1, CHUNK // nodes)

    # ---- rows ------------------------------------------------------------------------------------

    def _kernel_rows(self, X: tf.Tensor) -> list[tf.Tensor]:
        return [tf.cast(kernel(X, self.Z), self.dtype) for kernel in self.kernels]

    def _diagonals(self, X: tf.Tensor) -> list[tf.Tensor]:
        return [kernel.K_diag(X) for kernel in self.kernels]

    def _slope_rows(
        self, X: tf.Tensor, root: tf.Tensor, noisy: tuple[int, ...]
    ) -> list[list[tf.Tensor]]:
        """[kernel][feature of `noisy`] -> derivative rows; empty for exact inputs."""
        if not noisy:
            return []
        Z, tangents = tf.convert_to_tensor(self.Z), [root[:, :, d] for d in noisy]
        return [
            [tf.cast(D, self.dtype) for D in derivative_rows(kernel, X, Z, tangents)]
            for kernel in self.kernels
        ]

    def _chunk_marginals(
        self, chunk: Chunk, posterior: SparsePosterior
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f), slope variance included."""
        rows, diagonals, slopes = chunk
        means, variances = [], []
        for c in range(self.num_latent):
            j = kernel_of(self.kernels, c)
            alpha = tf.cast(posterior.alpha[c], self.dtype)[:, None]
            M = tf.cast(posterior.M[c], self.dtype)
            mean = tf.matmul(rows[j], alpha)[:, 0]
            correction = tf.reduce_sum(tf.matmul(rows[j], M) * rows[j], axis=1)
            v = diagonals[j] + tf.cast(correction, tf.float64)
            # Rounding can leave the variance of a row at an inducing point slightly negative.
            v = tf.maximum(v, 1e-10 * diagonals[j])
            for D in slopes[j] if slopes else []:
                v += tf.cast(tf.matmul(D, alpha)[:, 0], tf.float64) ** 2
            means.append(tf.cast(mean, tf.float64))
            variances.append(v)
        return tf.stack(means, axis=1), tf.stack(variances, axis=1)

    def _chunk_statistics(self, chunk: Chunk, sites: Sites) -> Statistics:
        rows, diagonals, slopes = chunk
        gram, projection, diagonal, slope_gram = [], [], [], []
        for c in range(self.num_latent):
            j = kernel_of(self.kernels, c)
            theta = tf.cast(sites.precision[:, c, None], self.dtype)
            r = tf.cast(sites.natural_mean[:, c, None], self.dtype)
            gram.append(tf.cast(tf.matmul(rows[j], theta * rows[j], transpose_a=True), tf.float64))
            projection.append(tf.cast(tf.matmul(rows[j], r, transpose_a=True)[:, 0], tf.float64))
            diagonal.append(tf.reduce_sum(sites.precision[:, c] * diagonals[j]))
            if self.noisy:
                products = [tf.matmul(D, theta * D, transpose_a=True) for D in slopes[j]]
                slope_gram.append(tf.cast(tf.add_n(products), tf.float64))
        return Statistics(
            tf.stack(gram),
            tf.stack(projection),
            tf.stack(diagonal),
            [tf.stack(slope_gram)] if self.noisy else [],
        )

    def _zero_statistics(self) -> Statistics:
        m, P = self.Z.shape[0], self.num_latent
        square = tf.zeros([P, m, m], tf.float64)
        line, point = tf.zeros([P, m], tf.float64), tf.zeros([P], tf.float64)
        return Statistics(square, line, point, [square] if self.noisy else [])

    def _bounds(self, i, data: Data):
        """Source range and row range of chunk i."""
        n = tf.shape(data.Y)[0]
        first, last = i * self.chunk, tf.minimum((i + 1) * self.chunk, n)
        return first, last, first * self.nodes, last * self.nodes

    def _chunk(self, i, data: Data, cache: list[tf.Tensor]) -> Chunk:
        first, last, row, end = self._bounds(i, data)
        X, root = self._inputs(data, first, last)
        root = tf.repeat(root, self.nodes, axis=0)
        rows = [K[row:end] for K in cache] if cache else self._kernel_rows(X)
        return Chunk(rows, self._diagonals(X), self._slope_rows(X, root, self.noisy))

    def _inputs(self, data: Data, first=0, last=None) -> tuple[tf.Tensor, tf.Tensor]:
        """(rows [·S, d], R [·, d, d]) of the sources first … last − 1."""
        if self.inputs is not None:
            return self.inputs(data.X[first:last], data.root[first:last])
        end = None if last is None else last * self.nodes
        return data.X[first * self.nodes : end], data.root[first:last]

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
        return self._statistics(data, sites, self._kept(data))

    @graph
    def _statistics(self, data: Data, sites: Sites, cache) -> Statistics:
        def body(i, total):
            _, _, row, end = self._bounds(i, data)
            chunk_sites = Sites(sites.precision[row:end], sites.natural_mean[row:end])
            part = self._chunk_statistics(self._chunk(i, data, cache), chunk_sites)
            return add(total, part)

        return fold(body, self._zero_statistics(), self._num_chunks(data))

    def solve(self, statistics: Statistics) -> SparsePosterior:
        """Combined statistics -> q(u)."""
        return self.jitter.run(
            lambda: self._solve(self._whiten(statistics, self.jitter.value), self.jitter.value),
            lambda q: q.alpha,
        )

    def whitened(self, statistics: Statistics) -> Statistics:
        """Statistics of the whitened rows: what stays valid while hyper-parameters move slowly."""
        return self.jitter.run(
            lambda: self._whiten(statistics, self.jitter.value), lambda w: w.projection
        )

    def solve_whitened(self, statistics: Statistics) -> SparsePosterior:
        """As `solve`, from whitened statistics."""
        return self.jitter.run(
            lambda: self._solve(statistics, self.jitter.value), lambda q: q.alpha
        )

    def _factors(self, jitter) -> tf.Tensor:
        """chol K(Z, Z), one per kernel: [1 or P, m, m]."""
        return tf.stack([jittered_cholesky(kernel(self.Z), jitter) for kernel in self.kernels])

    @graph
    def _whiten(self, statistics: Statistics, jitter) -> Statistics:
        return whitened.whiten(statistics, self._factors(jitter))

    @graph
    def _solve(self, statistics: Statistics, jitter) -> SparsePosterior:
        q = whitened.posterior(statistics)
        return SparsePosterior(*whitened.unwhiten(q, self._factors(jitter)), q.kl)

    # ---- one sweep: marginals, sites and statistics in a single pass -----------------------------

    def posterior(self, data: Data, sites: Sites) -> SparsePosterior:
        """q(u) for given sites."""
        return self.solve(self.statistics(data, sites))

    def sweep(self, rule, likelihood, data: Data, posterior: SparsePosterior, sites: Sites, step):
        """One natural-gradient step of all sites.

        Returns (new sites, new posterior, data term of the bound at the *given* posterior).
        """
        new_sites, statistics, terms = self.met_statistics(
            rule, likelihood, data, posterior, sites, step
        )
        return new_sites, self.solve(statistics), terms

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

        def body(i, state):
            total, precision, natural_mean, terms = state
            first, last, row, end = self._bounds(i, data)
            chunk = self._chunk(i, data, cache)
            mean, variance = self._chunk_marginals(chunk, posterior)
            target, evidence = meet(
                rule, likelihood, mean, variance, data.Y[first:last], self.nodes
            )
            old = Sites(sites.precision[row:end], sites.natural_mean[row:end])
            new = old.mix(target, step)
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
        return self._bound_and_gradient(data, sites, None, self.jitter.value)

    def held_gradient(self, data: Data, sites: Sites, whitened_statistics: Statistics):
        """The same for a batch of rows, with q(v) held at that of the given statistics of all."""
        return self._bound_and_gradient(data, sites, whitened_statistics, self.jitter.value)

    @graph
    def _bound_and_gradient(self, data: Data, sites: Sites, held: Statistics | None, jitter):
        variables = list(self.trainable_variables)
        statistics = self._statistics(data, sites, [])
        with tf.GradientTape() as tape:
            tape.watch(statistics)
            white = whitened.whiten(statistics, self._factors(jitter))
            if held is None:
                J = whitened.collapsed_bound(white)
            else:
                J = whitened.held_bound(white, whitened.posterior(held))
        to_statistics, gradients = tape.gradient(
            J, [statistics, variables], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )

        def body(i, gradients):
            _, _, row, end = self._bounds(i, data)
            chunk_sites = Sites(sites.precision[row:end], sites.natural_mean[row:end])
            with tf.GradientTape() as tape:
                chunk = self._chunk(i, data, [])
            back = self._chunk_gradient(chunk, chunk_sites, to_statistics)
            part = tape.gradient(
                [chunk.rows, chunk.diagonals, chunk.slopes],
                variables,
                output_gradients=back,
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            return [a + tf.convert_to_tensor(b) for a, b in zip(gradients, part)]

        gradients = [tf.convert_to_tensor(g) for g in gradients]
        return J, fold(body, gradients, self._num_chunks(data))

    def _chunk_gradient(self, chunk: Chunk, sites: Sites, back: Statistics) -> list:
        """∂J/∂(kernel rows, diagonals, slope rows), by hand: half of what a tape costs."""
        rows, diagonals, slopes = chunk
        to_rows = [tf.zeros_like(K) for K in rows]
        to_diagonals = [tf.zeros_like(d) for d in diagonals]
        to_slopes = [[tf.zeros_like(D) for D in family] for family in slopes]
        for c in range(self.num_latent):
            j = kernel_of(self.kernels, c)
            theta = tf.cast(sites.precision[:, c, None], self.dtype)
            r = tf.cast(sites.natural_mean[:, c, None], self.dtype)
            symmetric = tf.cast(back.gram[c] + tf.transpose(back.gram[c]), self.dtype)
            to_rows[j] += theta * tf.matmul(rows[j], symmetric)
            to_rows[j] += r * tf.cast(back.projection[c], self.dtype)[None, :]
            to_diagonals[j] += sites.precision[:, c] * back.diagonal[c]
            if self.noisy:
                symmetric = tf.cast(
                    back.slope_gram[0][c] + tf.transpose(back.slope_gram[0][c]), self.dtype
                )
                for k, D in enumerate(slopes[j]):
                    to_slopes[j][k] += theta * tf.matmul(D, symmetric)
        return [to_rows, to_diagonals, to_slopes]

    # ---- prediction ------------------------------------------------------------------------------

    def marginals(self, posterior: SparsePosterior, X, root=None) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f) at X [rows, d]; R [rows, d, d] enters to first order."""
        X = tf.convert_to_tensor(X, tf.float64)
        root = np.zeros([*X.shape, X.shape[1]]) if root is None else np.asarray(root)
        noisy = tuple(int(d) for d in np.flatnonzero((root != 0).any(axis=(0, 1))))
        parts = [
            self._marginals(posterior, X[i : i + CHUNK], tf.constant(root[i : i + CHUNK]), noisy)
            for i in range(0, X.shape[0], CHUNK)
        ]
        return tf.concat([m for m, _ in parts], 0), tf.concat([v for _, v in parts], 0)

    def data_marginals(self, data: Data, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [n·S, P] of q(f) at the rows of `data`."""
        X, root = self._inputs(data)
        root = tf.repeat(root, self.nodes, axis=0) if self.noisy else None
        return self.marginals(posterior, X, root)

    @graph
    def _marginals(self, posterior: SparsePosterior, X, root, noisy: tuple[int, ...]):
        slopes = self._slope_rows(X, root, noisy)
        return self._chunk_marginals(
            Chunk(self._kernel_rows(X), self._diagonals(X), slopes), posterior
        )
