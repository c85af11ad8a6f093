"""The rows that meet the sites: covariances k_i = K(Z, x_i), streamed in chunks.

n sources, S nodes per source (S = 1 unless the input is integrated over), m inducing points, P
latent functions. Everything that touches n is here, as sums over rows, so that memory is bounded by
the chunk and a partition's statistics add up exactly:

    S_c = Σ_i θ_ic k_i k_iᵀ      ρ_c = Σ_i r_ic k_i      t_c = Σ_i θ_ic k(x_i, x_i)

Products are made one class at a time over chunks of about 512 rows: batched products and
three-operand einsum are several times slower in TensorFlow on CPU.
"""

from __future__ import annotations

from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from gpal.likelihoods import averaged

__all__ = [
    "CHUNK",
    "Data",
    "Sites",
    "Statistics",
    "add",
    "derivative_rows",
    "kernel_of",
    "meet",
    "rows_and_slopes",
]

CHUNK = 512


class Data(NamedTuple):
    """Training rows, or the measurements that a GP's `inputs` makes them of.

    X     [n·S, d]   nodes of a source stand next to each other; [n, d] measurements
    Y     [n, 1]     label
    root  [n, d, d]  R with Cov[x] = R Rᵀ, met to first order; of the measurement error where X is
                     the measurement
    """

    X: tf.Tensor
    Y: tf.Tensor
    root: tf.Tensor

    def sources(self, indices) -> Data:
        """The sources `indices` alone, with all their nodes."""
        per_source = self.X.shape[0] // self.Y.shape[0]
        rows = (np.asarray(indices)[:, None] * per_source + np.arange(per_source)).ravel()
        parts = (self.X, rows), (self.Y, indices), (self.root, indices)
        return Data(*(tf.gather(tensor, index) for tensor, index in parts))


class Statistics(NamedTuple):
    """Sums over rows (pure data: partitions simply add), stacked over the latent functions.

    gram        S_c  [P, m, m]
    projection  ρ_c  [P, m]
    diagonal    t_c  [P]
    slope_gram  [Σ_i θ_ic D_i V_i D_iᵀ] [P, m, m] with D_i = ∂k_i/∂x_i; [] for exact inputs
    """

    gram: tf.Tensor
    projection: tf.Tensor
    diagonal: tf.Tensor
    slope_gram: list[tf.Tensor]

    def mix(self, other: Statistics, step: float) -> Statistics:
        """(1 − step)·self + step·other: exact for mixed sites, the sums being linear in (θ, r)."""
        return tf.nest.map_structure(lambda a, b: (1.0 - step) * a + step * b, self, other)


def add(first: Statistics, second: Statistics) -> Statistics:
    """Statistics of the union of two disjoint sets of rows."""
    return tf.nest.map_structure(tf.add, first, second)


class Sites(NamedTuple):
    """Gaussian sites of all rows: precision θ and natural mean r, each [n·S, P]."""

    precision: tf.Tensor
    natural_mean: tf.Tensor

    def mix(self, other: Sites, step: tf.Tensor | float) -> Sites:
        """(1 − step)·self + step·other: a damped natural-gradient step."""
        return Sites(*((1.0 - step) * a + step * b for a, b in zip(self, other)))


def meet(rule, likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor, nodes: int):
    """Sites that meet the likelihood at q(f), and each source's term of the bound.

    With S nodes per source the term is a bound of `gpal.likelihoods.averaged`: the coupled one
    where rule and likelihood have it, else the separate one.
    Returns Sites [n·S, P] and terms [n]. The Gaussian that meets a likelihood that is not
    log-concave, or several nodes, may have θ < 0, which far from the optimum can leave no q: unless
    the rule is `signed`, precisions are clipped at zero.
    """
    rows_of_Y = Y if nodes == 1 else tf.repeat(Y, nodes, axis=0)
    if nodes > 1 and rule.couples(likelihood):
        *site, terms = averaged.coupled(likelihood, Fmu, Fvar, rows_of_Y, nodes)
        return _clipped(rule, Fmu, *site), terms
    *site, expectations = rule.meet(likelihood, Fmu, Fvar, rows_of_Y)
    sites = _clipped(rule, Fmu, *site)
    if nodes == 1:
        return sites, expectations
    *site, terms = averaged.separate(*sites, expectations, nodes)
    return Sites(*site), terms


def _clipped(rule, Fmu: tf.Tensor, precision: tf.Tensor, natural_mean: tf.Tensor) -> Sites:
    if rule.signed:
        return Sites(precision, natural_mean)
    clipped = tf.maximum(precision, tf.cast(1e-10, precision.dtype))
    return Sites(clipped, natural_mean + (clipped - precision) * Fmu)


def kernel_of(kernels: list[gpflow.kernels.Kernel], latent: int) -> int:
    """Index of the kernel that a latent function uses: one shared kernel, or one each."""
    return 0 if len(kernels) == 1 else latent


def derivative_rows(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, tangents: list[tf.Tensor]
) -> list[tf.Tensor]:
    """Σ_d t_id ∂k(x_i, z_j)/∂x_id for each field t [n, d] of tangents: a list of [n, m].

    Any GPflow kernel. Closed form for the squared exponential, linear and constant kernels and
    their sums. Otherwise forward-mode differentiation: row i of K(X, Z) depends on x_i alone, so
    that one product per field is enough.
    """
    if isinstance(kernel, gpflow.kernels.Sum):
        families = [derivative_rows(part, X, Z, tangents) for part in kernel.kernels]
        return [tf.add_n(parts) for parts in zip(*families)]
    if isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None):
        if type(kernel) is gpflow.kernels.SquaredExponential:
            K, scaled = kernel(X, Z), [t / kernel.lengthscales**2 for t in tangents]
            return [
                (tf.matmul(t, Z, transpose_b=True) - tf.reduce_sum(t * X, 1, keepdims=True)) * K
                for t in scaled
            ]
        if type(kernel) is gpflow.kernels.Linear:
            return [tf.matmul(t * kernel.variance, Z, transpose_b=True) for t in tangents]
        if type(kernel) is gpflow.kernels.Constant:
            return [tf.zeros([tf.shape(X)[0], tf.shape(Z)[0]], X.dtype) for _ in tangents]
    return [_forward_derivative(kernel, X, Z, t) for t in tangents]


def rows_and_slopes(
    kernel: gpflow.kernels.Kernel,
    X: tf.Tensor,
    Z: tf.Tensor,
    tangents: list[tf.Tensor],
    alpha: tf.Tensor,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """K(X, Z) [n, m] and the slopes Σ_d t_id ∂(K(X, Z) α)/∂x_id [n, P] along the tangents.

    For m × P numbers α. Of the squared exponential the gradient is one product with the same rows,
    (K (α ∘ z_d) − x_d K α) / ℓ_d², where `derivative_rows` fills a matrix [n, m] per field.
    """
    if isinstance(kernel, gpflow.kernels.Sum):
        parts = [rows_and_slopes(part, X, Z, tangents, alpha) for part in kernel.kernels]
        slopes = [tf.add_n(along) for along in zip(*(slopes for _, slopes in parts))]
        return tf.add_n([K for K, _ in parts]), slopes
    K = kernel(X, Z)
    all_features = isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None)
    if type(kernel) is not gpflow.kernels.SquaredExponential or not all_features:
        return K, [tf.matmul(D, alpha) for D in derivative_rows(kernel, X, Z, tangents)]
    weights = tf.concat([Z[:, :, None] * alpha[:, None], alpha[:, None]], axis=1)
    flat = tf.reshape(weights, [tf.shape(Z)[0], -1])
    sums = tf.reshape(tf.matmul(K, flat), [-1, Z.shape[1] + 1, alpha.shape[1]])
    gradient = sums[:, :-1] - X[:, :, None] * sums[:, -1:]
    scaled = [(t / kernel.lengthscales**2)[:, :, None] for t in tangents]
    return K, [tf.reduce_sum(t * gradient, axis=1) for t in scaled]


def _forward_derivative(kernel, X: tf.Tensor, Z: tf.Tensor, tangent: tf.Tensor) -> tf.Tensor:
    with tf.autodiff.ForwardAccumulator(X, tangent) as accumulator:
        K = kernel(X, Z)
    return accumulator.jvp(K, unconnected_gradients=tf.UnconnectedGradients.ZERO)
