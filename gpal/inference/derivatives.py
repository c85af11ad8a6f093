"""Derivatives of kernel rows in their inputs: along given tangents, or of sums of the rows."""

from __future__ import annotations

import gpflow
import tensorflow as tf

from gpal.inference.covariances import covariance, parts_of_sum
from gpal.inference.fixed_order import inner_products, product

__all__ = ["rows_and_derivatives", "rows_and_gradients", "rows_and_slope_variance"]


def rows_and_derivatives(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, tangents: list[tf.Tensor]
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """K(X, Z) [n, m], and Σ_d t_id ∂k(x_i, z_j)/∂x_id for each field t [n, d] of tangents: a list
    of [n, m]. Not to be differentiated: the sums of its derivative have no fixed order.

    Any GPflow kernel. Closed form for the squared exponential, whose derivatives are made of the
    rows themselves, linear and constant kernels and their sums. Otherwise forward-mode
    differentiation: row i of K(X, Z) depends on x_i alone, so that one product per field is enough.
    """
    if type(kernel) is gpflow.kernels.Sum:
        parts, constants = parts_of_sum(kernel)
        rows, derivatives = zip(*(rows_and_derivatives(part, X, Z, tangents) for part in parts))
        along = [tf.add_n(family) for family in zip(*derivatives)]
        return sum(constants, tf.add_n(rows)), along
    K = covariance(kernel, X, Z)
    if isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None):
        if type(kernel) is gpflow.kernels.SquaredExponential:
            scaled = tf.stack(tangents) / tf.square(kernel.lengthscales)  # [fields, n, d]
            flat = product(tf.reshape(scaled, [-1, Z.shape[1]]), tf.transpose(Z))
            along = tf.reshape(flat, [len(tangents), -1, Z.shape[0]])
            along -= tf.reduce_sum(scaled * X, 2, keepdims=True)
            return K, tf.unstack(along * K, len(tangents))
        if type(kernel) is gpflow.kernels.Linear:
            return K, [inner_products(t * kernel.variance, Z) for t in tangents]
        if type(kernel) is gpflow.kernels.Constant:
            return K, [tf.zeros([tf.shape(X)[0], tf.shape(Z)[0]], X.dtype) for _ in tangents]
    return K, [_forward_derivative(kernel, X, Z, t) for t in tangents]


def rows_and_gradients(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, alpha: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """K(X, Z) [n, m] and the gradients ∂(K(X, Z) α)/∂x_i [n, d, P], for m × P numbers α.

    Any GPflow kernel. Of the squared exponential the gradient is one product with the same rows,
    (K (α ∘ z_d) − x_d K α) / ℓ_d², of a polynomial (u + c)^p, u = Σ_d s_d x_d x'_d, one with those
    of the next lower degree, s_d p (u + c)^(p−1) (α ∘ z_d), and of a linear kernel it is the same
    everywhere. Otherwise reverse-mode differentiation, once for each column of α;
    `rows_and_derivatives` fills a matrix [n, m] for each feature.
    """
    if type(kernel) is gpflow.kernels.Sum:
        parts, constants = parts_of_sum(kernel)
        rows, gradients = zip(*(rows_and_gradients(part, X, Z, alpha) for part in parts))
        return sum(constants, tf.add_n(rows)), tf.add_n(gradients)
    if isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None):
        if type(kernel) is gpflow.kernels.SquaredExponential:
            K = covariance(kernel, X, Z)
            one_and_Z = tf.pad(Z, [[0, 0], [1, 0]], constant_values=1.0)
            mean, sums = tf.split(_weighted_sums(K, one_and_Z, alpha), [1, -1], axis=1)
            gradient = sums - X[:, :, None] * mean
            return K, gradient / (tf.ones_like(X) * tf.square(kernel.lengthscales))[:, :, None]
        if type(kernel) is gpflow.kernels.Linear:
            # A sum along an axis: of many inducing points a product has no fixed order.
            terms = (Z * kernel.variance)[:, :, None] * alpha[:, None]
            gradient = tf.reduce_sum(terms, axis=0)
            return covariance(kernel, X, Z), tf.ones_like(X)[:, :, None] * gradient
        if type(kernel) is gpflow.kernels.Polynomial:
            base = gpflow.kernels.Linear.K(kernel, X, Z) + kernel.offset
            lower = kernel.degree * base ** (kernel.degree - 1.0)
            scale = (tf.ones_like(X) * kernel.variance)[:, :, None]
            return base**kernel.degree, scale * _weighted_sums(lower, Z, alpha)
    return _reverse_gradients(kernel, X, Z, alpha)


def rows_and_slope_variance(
    kernel: gpflow.kernels.Kernel,
    X: tf.Tensor,
    Z: tf.Tensor,
    alpha: tf.Tensor,
    root: tf.Tensor,
    noisy: tuple[int, ...],
) -> tuple[tf.Tensor, tf.Tensor]:
    """K(X, Z) [n, m] and Σ_t (R_iᵀ ∂(K(X, Z) α)/∂x_i)_t² [n, P] over the columns t in `noisy` of
    the roots R [n, d, d]."""
    rows, gradients = rows_and_gradients(kernel, X, Z, alpha)
    R = root if len(noisy) == root.shape[2] else tf.gather(root, noisy, axis=2)
    return rows, tf.reduce_sum(tf.square(tf.matmul(gradients, R, transpose_a=True)), axis=2)


def _weighted_sums(rows: tf.Tensor, Z: tf.Tensor, alpha: tf.Tensor) -> tf.Tensor:
    """Σ_j rows_ij z_jd α_jp [n, d, P]."""
    (m, d), P = Z.shape, alpha.shape[1]
    weights = tf.reshape(Z[:, :, None] * alpha[:, None], [m, d * P])
    return tf.reshape(_times(rows, weights), [-1, d, P])


def _times(rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """A product whose derivative has one order of sums as well."""
    return inner_products(rows, tf.transpose(columns))


def _reverse_gradients(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, alpha: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        K = kernel(X, Z)
        columns = tf.unstack(_times(K, alpha), axis=1)
    zero = tf.UnconnectedGradients.ZERO
    gradients = [tape.gradient(column, X, unconnected_gradients=zero) for column in columns]
    return K, tf.stack(gradients, axis=2)


def _forward_derivative(
    kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor, tangent: tf.Tensor
) -> tf.Tensor:
    with tf.autodiff.ForwardAccumulator(X, tangent) as accumulator:
        K = kernel(X, Z)
    return accumulator.jvp(K, unconnected_gradients=tf.UnconnectedGradients.ZERO)
