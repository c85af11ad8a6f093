"""Derivatives of kernel rows in their inputs, along given tangents."""

from __future__ import annotations

import gpflow
import tensorflow as tf

from gpal.inference.covariances import covariance
from gpal.inference.fixed_order import inner_products

__all__ = ["rows_and_derivatives", "rows_and_slopes"]


def rows_and_derivatives(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, tangents: list[tf.Tensor]
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """K(X, Z) [n, m], and Σ_d t_id ∂k(x_i, z_j)/∂x_id for each field t [n, d] of tangents: a list
    of [n, m].

    Any GPflow kernel. Closed form for the squared exponential, whose derivatives are made of the
    rows themselves, linear and constant kernels and their sums. Otherwise forward-mode
    differentiation: row i of K(X, Z) depends on x_i alone, so that one product per field is enough.
    """
    if type(kernel) is gpflow.kernels.Sum:
        parts = [rows_and_derivatives(part, X, Z, tangents) for part in kernel.kernels]
        families = zip(*(derivatives for _, derivatives in parts))
        return tf.add_n([K for K, _ in parts]), [tf.add_n(along) for along in families]
    K = covariance(kernel, X, Z)
    if isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None):
        if type(kernel) is gpflow.kernels.SquaredExponential:
            scaled = [t / kernel.lengthscales**2 for t in tangents]
            return K, [
                (inner_products(t, Z) - tf.reduce_sum(t * X, 1, keepdims=True)) * K for t in scaled
            ]
        if type(kernel) is gpflow.kernels.Linear:
            return K, [inner_products(t * kernel.variance, Z) for t in tangents]
        if type(kernel) is gpflow.kernels.Constant:
            return K, [tf.zeros([tf.shape(X)[0], tf.shape(Z)[0]], X.dtype) for _ in tangents]
    return K, [_forward_derivative(kernel, X, Z, t) for t in tangents]


def rows_and_slopes(
    kernel: gpflow.kernels.Kernel,
    X: tf.Tensor,
    Z: tf.Tensor,
    tangents: list[tf.Tensor],
    alpha: tf.Tensor,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """K(X, Z) [n, m] and the slopes Σ_d t_id ∂(K(X, Z) α)/∂x_id [n, P] along the tangents.

    For m × P numbers α. Of the squared exponential the gradient is one product with the same rows,
    (K (α ∘ z_d) − x_d K α) / ℓ_d², where `rows_and_derivatives` fills a matrix [n, m] per field.
    """
    if isinstance(kernel, gpflow.kernels.Sum):
        parts = [rows_and_slopes(part, X, Z, tangents, alpha) for part in kernel.kernels]
        slopes = [tf.add_n(along) for along in zip(*(slopes for _, slopes in parts))]
        return tf.add_n([K for K, _ in parts]), slopes
    K = kernel(X, Z)
    all_features = isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None)
    if type(kernel) is not gpflow.kernels.SquaredExponential or not all_features:
        return K, [tf.matmul(D, alpha) for D in rows_and_derivatives(kernel, X, Z, tangents)[1]]
    weights = tf.concat([Z[:, :, None] * alpha[:, None], alpha[:, None]], axis=1)
    flat = tf.reshape(weights, [tf.shape(Z)[0], -1])
    sums = tf.reshape(tf.matmul(K, flat), [-1, Z.shape[1] + 1, alpha.shape[1]])
    gradient = sums[:, :-1] - X[:, :, None] * sums[:, -1:]
    scaled = [(t / kernel.lengthscales**2)[:, :, None] for t in tangents]
    return K, [tf.reduce_sum(t * gradient, axis=1) for t in scaled]


def _forward_derivative(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, tangent: tf.Tensor
) -> tf.Tensor:
    with tf.autodiff.ForwardAccumulator(X, tangent) as accumulator:
        K = kernel(X, Z)
    return accumulator.jvp(K, unconnected_gradients=tf.UnconnectedGradients.ZERO)
