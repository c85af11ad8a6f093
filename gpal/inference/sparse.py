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

from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference import mixed_precision, whitened
from gpal.inference.cholesky import Jitter
from gpal.inference.chunks import SparsePosterior
from gpal.inference.collapsed import bound_and_gradient
from gpal.inference.graph import fold
from gpal.inference.rows import Data, Sites, Statistics, add, meet
from gpal.inference.shared_graph import shared_graph
from gpal.inference.streaming import Rows
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["SparseGP"]


class SparseGP(tf.Module):
    """q(u) from sums over rows that are streamed through memory: statistics, combine, solve.

    rows     KernelRows or PsiRows
    jitter   relative jitter to start from (None: 1e-8 in float64, 1e-4 with float32 products)
    """

    kind: ClassVar[str] = "sparse"
    has_noise_of_its_own: ClassVar[bool] = False
    unread_by_graphs: ClassVar[tuple[str, ...]] = ("jitter",)

    def __init__(self, rows: Rows, jitter: float | None = None) -> None:
        super().__init__()
        self.rows = rows
        self.jitter = Jitter(jitter or (1e-8 if rows.dtype == tf.float64 else 1e-4))

    # ---- of the rows, for users of a GP ----------------------------------------------------------

    @property
    def kernels(self) -> list[gpflow.kernels.Kernel]:
        return self.rows.kernels

    @property
    def Z(self) -> gpflow.Parameter:
        return self.rows.Z

    @property
    def num_latent(self) -> int:
        return self.rows.num_latent

    @property
    def nodes(self) -> int:
        return self.rows.nodes

    @property
    def noisy(self) -> tuple[int, ...]:
        return self.rows.noisy

    @property
    def sums_by_label(self) -> bool:
        """Whether sites that depend on the label alone may be summed over the rows of each class
        first: where all latent functions have the same rows, and sums are products of these."""
        return self.rows.products and len(self.kernels) == 1

    def as_sparse(self) -> SparseGP:
        return self

    def refresh(self, data: Data) -> None:
        self.rows.refresh(data)

    # ---- the pure functions: statistics -> combine -> solve --------------------------------------

    def statistics(self, data: Data, sites: Sites) -> Statistics:
        """Sums over the rows of `data`, one partition of many perhaps (`rows.add` combines)."""
        return self._statistics(data, sites, self.rows.kept(data))

    @shared_graph
    def _statistics(self, data: Data, sites: Sites, kept: list[tf.Tensor]) -> Statistics:
        def body(i: tf.Tensor, total: Statistics) -> Statistics:
            where = self.rows.bounds(i, data)
            chunk = self.rows.chunk_of(*where, data, kept)
            own = Sites(*self.rows.part(*where, *sites))
            return add(total, self.rows.statistics(chunk, own))

        return fold(body, self.rows.no_statistics(), self.rows.number(data))

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

    def _factors(self, jitter: tf.Tensor) -> tf.Tensor:
        """chol K(Z, Z), one per kernel: [1 or P, m, m]."""
        return tf.linalg.cholesky(self.rows.kernel_matrices(jitter))

    @shared_graph
    def _whiten(self, statistics: Statistics, jitter: tf.Tensor) -> Statistics:
        return whitened.whiten(statistics, self._factors(jitter))

    @shared_graph
    def _solve(self, statistics: Statistics, jitter: tf.Tensor) -> SparsePosterior:
        factors = self._factors(jitter)
        return _posterior(whitened.whiten(statistics, factors), factors)

    @shared_graph
    def _solve_whitened(self, statistics: Statistics, jitter: tf.Tensor) -> SparsePosterior:
        return _posterior(statistics, self._factors(jitter))

    # ---- a sweep: the sites that meet the likelihood, and q(u) for them --------------------------

    def posterior(self, data: Data, sites: Sites) -> SparsePosterior:
        """q(u) for given sites; NaN where θ < 0 leaves no positive definite Σ."""
        return self.solved(self.statistics(data, sites), _signed(sites))

    def solved(self, statistics: Statistics, signed: bool) -> SparsePosterior:
        """As `solve`; NaN where sites with θ < 0 (`signed`) leave no q(u)."""
        if not signed:
            return self.solve(statistics)
        try:
            return self._solve(statistics, self.jitter.value)
        except tf.errors.InvalidArgumentError:  # K itself has been factorised before
            return SparsePosterior.filled(self.num_latent, self.Z.shape[0], np.nan)

    def met(
        self,
        rule: SiteRule,
        likelihood: gpflow.likelihoods.Likelihood,
        data: Data,
        posterior: SparsePosterior,
    ) -> tuple[Sites, tf.Tensor]:
        kept = self.rows.kept(data)
        sites, _, terms = self._met(rule, likelihood, data, posterior, kept, False)
        return sites, terms

    def met_statistics(
        self,
        rule: SiteRule,
        likelihood: gpflow.likelihoods.Likelihood,
        data: Data,
        posterior: SparsePosterior,
    ) -> tuple[Sites, Statistics, tf.Tensor]:
        """As `met`, with the statistics of these sites, in one pass: for rows that are not kept."""
        return self._met(rule, likelihood, data, posterior, self.rows.kept(data), True)

    @shared_graph
    def _met(
        self,
        rule: SiteRule,
        likelihood: gpflow.likelihoods.Likelihood,
        data: Data,
        posterior: SparsePosterior,
        kept: list[tf.Tensor],
        sums: bool,
    ) -> tuple[Sites, Any, tf.Tensor]:
        """Statistics of the sites only with `sums`."""
        rows, count = self.rows, self.rows.number(data)
        alpha, M = (tf.cast(part, rows.dtype) for part in posterior[:2])
        posterior = posterior._replace(alpha=alpha, M=M)  # once, not in every chunk

        def body(i: tf.Tensor, state: tuple) -> tuple:
            total, *arrays, terms = state
            first, last = rows.bounds(i, data)
            chunk = rows.chunk_of(first, last, data, kept)
            mean, variance = rows.marginals(chunk, posterior)
            sites, evidence = meet(
                *(rule, likelihood, mean, variance, data.Y[first:last], self.nodes),
                data.weights(first, last),
            )
            if sums:
                total = add(total, rows.statistics(chunk, sites))
            arrays = [array.write(i, part) for array, part in zip(arrays, sites)]
            return (total, *arrays, terms + tf.reduce_sum(evidence))

        arrays = [tf.TensorArray(tf.float64, count, infer_shape=False) for _ in range(2)]
        state = (rows.no_statistics() if sums else (), *arrays, tf.zeros([], tf.float64))
        total, *arrays, terms = fold(body, state, count)
        shape = [None, self.num_latent]
        sites = Sites(*(tf.ensure_shape(array.concat(), shape) for array in arrays))
        return sites, total, terms

    # ---- hyper-parameters ------------------------------------------------------------------------

    def bound_and_gradient(self, data: Data, sites: Sites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        return self.collapsed(data, sites)[:2]

    def collapsed(
        self, data: Data, sites: Sites, mixed: bool = False
    ) -> tuple[tf.Tensor, list[tf.Tensor], SparsePosterior | None]:
        mixed = mixed and self.gains_by_mixing
        return bound_and_gradient(self.rows, data, sites, self.jitter.value, mixed=mixed)

    @property
    def gains_by_mixing(self) -> bool:
        """Whether mixed precision saves time, and is of use: not with a Δ for every row."""
        rows = self.rows
        if rows.dtype != tf.float64 or not (rows.products or not rows.noisy):
            return False
        return mixed_precision.pays(self.num_latent, len(self.kernels))

    # ---- prediction ------------------------------------------------------------------------------

    def marginals(
        self,
        posterior: SparsePosterior,
        X: np.ndarray | tf.Tensor,
        root: np.ndarray | tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return self.rows.predict(posterior, X, root)

    def data_marginals(self, data: Data, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        return self.marginals(posterior, *self.rows.positions(data))

    def open_variance(self, data: Data) -> tf.Tensor:
        return self.data_marginals(data, self._known(self.jitter.value))[1]

    @shared_graph
    def _known(self, jitter: tf.Tensor) -> SparsePosterior:
        """q(u) without variance, at zero: M = −K⁻¹."""
        K = self.rows.kernel_matrices(jitter)
        identity = tf.eye(self.Z.shape[0], batch_shape=[K.shape[0]], dtype=K.dtype)
        M = -tf.linalg.cholesky_solve(tf.linalg.cholesky(K), identity)
        M = tf.broadcast_to(M, [self.num_latent, *M.shape[1:]])
        return SparsePosterior(tf.zeros(M.shape[:2], M.dtype), M, tf.zeros([], M.dtype))


def _signed(sites: Sites) -> bool:
    return bool(tf.reduce_any(sites.precision < 0))


def _posterior(whitened_statistics: Statistics, factors: tf.Tensor) -> SparsePosterior:
    q = whitened.posterior(whitened_statistics)
    return SparsePosterior(*whitened.unwhiten(q, factors), q.kl)
