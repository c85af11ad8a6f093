"""Gaussian sites on the full GP: no inducing points, no jitter.

K = K(X, X), sites Θ = diag(θ), r. With A = I + Θ^½ K Θ^½ (never K⁻¹; Rasmussen & Williams 2006,
section 3.4) the posterior of E1 with Z = X is

    α = K⁻¹μ = r − Θ^½ A⁻¹ Θ^½ K r            M = K⁻¹(Σ − K)K⁻¹ = −Θ^½ A⁻¹ Θ^½
    KL(q ‖ p) = ½ (log|A| − Σ_i θ_i v_i + αᵀμ)
    J = ½ rᵀμ − ½ log|A|  (E2, up to a constant of the sites)

so that predictions are the sparse ones with Z = X. Costs O(n³) per latent function and sweep.
White noise is a part of f at the training inputs alone: K(X, X) has it, K(x, X) of a prediction has
not, though the prediction may be at a training input.

Sites with θ < 0 come with their signs s. B = diag(s) + |Θ|^½ K |Θ|^½ stands for A in α and M,
log|A| = Σ log|λ(B)|, Σ_i θ_i v_i = n − tr(B⁻¹ diag(s)), and Σ is positive definite exactly if B has
as many negative eigenvalues as there are negative θ (Sylvester's law of inertia). Else q(f) and J
are NaN.
"""

from __future__ import annotations

from typing import ClassVar

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference.cholesky import Jitter
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.covariances import square_covariance
from gpal.inference.fixed_order import product
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.rows import Data, Sites, meet
from gpal.inference.shared_graph import shared_graph
from gpal.inference.sparse import SparseGP
from gpal.inference.streaming import pulled_back
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["FullGP"]


class FullGP(tf.Module):
    """The GP at its own training inputs, which are taken as exact.

    rows   at Z = X, one node per source
    """

    kind: ClassVar[str] = "full"
    sums_by_label: ClassVar[bool] = False
    nodes: ClassVar[int] = 1
    noisy: ClassVar[tuple[int, ...]] = ()
    unread_by_graphs: ClassVar[tuple[str, ...]] = ("jitter", "_K")

    def __init__(self, rows: KernelRows) -> None:
        super().__init__()
        self.rows = rows
        self.jitter = Jitter(0.0, largest=0.0)
        self._K: list[tf.Tensor] = []

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
    def has_noise_of_its_own(self) -> bool:
        """Whether a kernel has white noise, which K(X, Z) is without though Z = X."""
        x = self.Z[:1]
        return not all(np.allclose(kernel(x), kernel(x, x)) for kernel in self.kernels)

    def as_sparse(self) -> SparseGP:
        """Its sources become the inducing points, which lose the noise that is their own."""
        return SparseGP(self.rows)

    def _kernel_of(self, latent: int) -> int:
        """Index of the kernel that a latent function uses: one shared kernel, or one each."""
        return 0 if len(self.kernels) == 1 else latent

    def refresh(self, data: Data) -> None:
        """K for the present hyper-parameters: kept whatever its size, as every step needs it."""
        self._K = self._matrices(data.X)

    @shared_graph
    def _matrices(self, X: tf.Tensor) -> list[tf.Tensor]:
        """K(X, X) per kernel; of a pair of inputs, K(X, Z), a White kernel would be zero."""
        X = tf.ensure_shape(X, self.Z.shape)
        return [square_covariance(kernel, X) for kernel in self.kernels]

    def posterior(self, data: Data, sites: Sites) -> SparsePosterior:
        """q(f) for given sites; NaN where θ < 0 leaves no positive definite Σ."""
        return self._posterior(sites, self._K, _any_negative(sites))[0]

    @shared_graph
    def _posterior(
        self, sites: Sites, matrices: list[tf.Tensor], signed: bool
    ) -> tuple[SparsePosterior, tf.Tensor]:
        """q(f), and J up to a constant of the sites."""
        alphas, Ms, kl, J = [], [], tf.zeros([], tf.float64), tf.zeros([], tf.float64)
        n = self.Z.shape[0]
        for c in range(self.num_latent):
            K = tf.ensure_shape(matrices[self._kernel_of(c)], [n, n])
            theta, r = sites.precision[:, c], sites.natural_mean[:, c, None]
            root = tf.sqrt(tf.abs(theta))[:, None]
            if signed:
                inverse, log_det, explained = _signed_inverse(K, theta)
            else:
                factor = _factor(K, theta)[1]
                inverse = tf.linalg.cholesky_solve(factor, tf.eye(tf.shape(K)[0], dtype=K.dtype))
                log_det = _log_det(factor)
                # θ_i v_i summed is tr(I − A⁻¹), as Θ^½ Σ Θ^½ = I − A⁻¹.
                explained = tf.reduce_sum(1.0 - tf.linalg.diag_part(inverse))
            alpha = r - root * tf.matmul(inverse, root * tf.matmul(K, r))
            M = -root * inverse * tf.transpose(root)
            mean = tf.matmul(K, alpha)
            kl += 0.5 * (log_det - explained + tf.reduce_sum(alpha * mean))
            J += 0.5 * (tf.reduce_sum(r * mean) - log_det)
            alphas.append(alpha[:, 0])
            Ms.append(M)
        return SparsePosterior(tf.stack(alphas), tf.stack(Ms), kl), J

    def met(
        self,
        rule: SiteRule,
        likelihood: gpflow.likelihoods.Likelihood,
        data: Data,
        posterior: SparsePosterior,
    ) -> tuple[Sites, tf.Tensor]:
        return self._met(rule, likelihood, data, posterior, self._K)

    @shared_graph
    def _met(
        self,
        rule: SiteRule,
        likelihood: gpflow.likelihoods.Likelihood,
        data: Data,
        posterior: SparsePosterior,
        matrices: list[tf.Tensor],
    ) -> tuple[Sites, tf.Tensor]:
        mean, variance = self._marginals(posterior, matrices)
        sites, terms = meet(rule, likelihood, mean, variance, data.Y, 1, data.weight)
        return sites, tf.reduce_sum(terms)

    @shared_graph
    def _marginals(
        self, posterior: SparsePosterior, matrices: list[tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        chunk = Chunk(matrices, [tf.linalg.diag_part(K) for K in matrices], [])
        return self.rows.marginals(chunk, posterior)

    def bound_and_gradient(self, data: Data, sites: Sites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        return self.collapsed(data, sites)[:2]

    def collapsed(
        self, data: Data, sites: Sites, mixed: bool = False
    ) -> tuple[tf.Tensor, list[tf.Tensor], SparsePosterior | None]:
        """In float64 always."""
        J, gradients, q = self._bound_and_gradient(data, sites, _any_negative(sites))
        return J, gradients, SparsePosterior(*q)

    @shared_graph
    def _bound_and_gradient(
        self, data: Data, sites: Sites, signed: bool
    ) -> tuple[tf.Tensor, list[tf.Tensor], tuple]:
        """By ∂J/∂K = ½ (M + ααᵀ)."""
        with tf.GradientTape() as tape:
            K = self._matrices(data.X)
        q, J = self._posterior(sites, K, signed)
        to_K = [0.5 * (q.M[c] + q.alpha[c][:, None] * q.alpha[c]) for c in range(self.num_latent)]
        if len(K) == 1:
            to_K = [tf.add_n(to_K)]
        return J, pulled_back(self, tape, K, to_K), tuple(q)

    def marginals(
        self,
        posterior: SparsePosterior,
        X: np.ndarray | tf.Tensor,
        root: np.ndarray | tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return self.rows.predict(posterior, X, root)

    def data_marginals(self, data: Data, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        return self._marginals(posterior, self._K)

    def open_variance(self, data: Data) -> tf.Tensor:
        return tf.zeros([len(data.Y), self.num_latent], tf.float64)


def _factor(K: tf.Tensor, theta: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Θ^½ as a column, and the Cholesky factor of A = I + Θ^½ K Θ^½."""
    root = tf.sqrt(theta)[:, None]
    A = tf.eye(tf.shape(K)[0], dtype=K.dtype) + root * K * tf.transpose(root)
    return root, tf.linalg.cholesky(A)


def _any_negative(sites: Sites) -> bool:
    return bool(tf.reduce_any(sites.precision < 0))


def _signed(K: tf.Tensor, theta: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """|Θ|^½ as a column, and B."""
    root = tf.sqrt(tf.abs(theta))[:, None]
    return root, root * K * tf.transpose(root) + tf.linalg.diag(_sign(theta))


def _sign(theta: tf.Tensor) -> tf.Tensor:
    return tf.where(theta < 0, -tf.ones_like(theta), tf.ones_like(theta))


def _exists(eigenvalues: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
    """Whether Σ is positive definite, by the eigenvalues of B."""
    negative = tf.reduce_sum(tf.cast(eigenvalues < 0, tf.int32))
    return tf.equal(negative, tf.reduce_sum(tf.cast(theta < 0, tf.int32)))


def _signed_inverse(K: tf.Tensor, theta: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """B⁻¹, log|A| and Σ_i θ_i v_i; NaN where Σ is not positive definite."""
    values, vectors = tf.linalg.eigh(_signed(K, theta)[1])
    values = tf.where(_exists(values, theta), values, np.nan * tf.ones_like(theta))
    inverse = product(vectors / values, tf.transpose(vectors))
    explained = tf.reduce_sum(1.0 - _sign(theta) * tf.linalg.diag_part(inverse))
    return inverse, tf.reduce_sum(tf.math.log(tf.abs(values))), explained


def _log_det(factor: tf.Tensor) -> tf.Tensor:
    return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
