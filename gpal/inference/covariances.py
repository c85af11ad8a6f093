"""Covariances K(X, Z) of GPflow's kernels, with derivatives whose sums have one order.

Values are those of the kernel. Its own graph leaves the order of the sums in the derivative to the
number of threads; here the scalar products of stationary and linear kernels, alone, in sums and
products or of changed inputs, are those of `fixed_order.py`. Any other kernel is called as it is.
"""

from __future__ import annotations

import functools

import gpflow
import tensorflow as tf
from gpflow.kernels import IsotropicStationary

from gpal.inference.changed_input import ChangedInput
from gpal.inference.fixed_order import WIDE, inner_products

__all__ = ["covariance", "parts_of_sum", "square_covariance"]


def covariance(kernel: gpflow.kernels.Kernel, X: tf.Tensor, Z: tf.Tensor) -> tf.Tensor:
    """K(X, Z) [rows, m] for X [rows, d], at most as many rows as in a chunk, and Z [m, d].

    More rows where no derivative is asked for.
    """
    m = Z.shape[0]
    if m > WIDE:  # a derivative in the variance, say, is a sum over all elements
        blocks = [covariance(kernel, X, Z[i : i + WIDE]) for i in range(0, m, WIDE)]
        return tf.concat(blocks, 1)
    if type(kernel) is gpflow.kernels.Sum:
        parts, constants = parts_of_sum(kernel)
        return sum(constants, tf.add_n([covariance(part, X, Z) for part in parts]))
    if type(kernel) is gpflow.kernels.Product:
        return functools.reduce(tf.multiply, [covariance(part, X, Z) for part in kernel.kernels])
    if isinstance(kernel, ChangedInput):
        return covariance(kernel.base_kernel, kernel.inner(X), kernel.inner(Z))
    if type(kernel) is gpflow.kernels.Linear:
        X, Z = kernel.slice(X, Z)
        return inner_products(X * kernel.variance, Z)
    if _isotropic(kernel):
        X, Z = (kernel.scale(part) for part in kernel.slice(X, Z))
        lengths = tf.reduce_sum(tf.square(X), 1)[:, None] + tf.reduce_sum(tf.square(Z), 1)
        return kernel.K_r2(lengths - 2.0 * inner_products(X, Z))
    return kernel(X, Z)


def parts_of_sum(
    kernel: gpflow.kernels.Sum,
) -> tuple[list[gpflow.kernels.Kernel], list[tf.Tensor]]:
    """The kernels that have a matrix of their own, and the variances of the constant ones, which
    are added to it: none of these where there are no others."""
    constants = [part for part in kernel.kernels if type(part) is gpflow.kernels.Constant]
    others = [part for part in kernel.kernels if type(part) is not gpflow.kernels.Constant]
    if not others:
        return constants, []
    return others, [part.variance for part in constants]


def square_covariance(kernel: gpflow.kernels.Kernel, Z: tf.Tensor) -> tf.Tensor:
    """K(Z, Z) [m, m]: off the diagonal K(z, z'), on it k(z, z), with the noise of a White kernel.

    In blocks of rows as large as chunks.
    """
    m = Z.shape[0]
    blocks = [covariance(kernel, Z[i : i + WIDE], Z) for i in range(0, m, WIDE)]
    K = blocks[0] if len(blocks) == 1 else tf.concat(blocks, 0)
    return tf.linalg.set_diag(K, kernel(Z, full_cov=False))


def _isotropic(kernel: gpflow.kernels.Kernel) -> bool:
    """A function of the scaled distance, and nothing else."""
    kind = type(kernel)
    return (
        isinstance(kernel, IsotropicStationary)
        and kind.__module__.startswith("gpflow.")
        and kind.K is IsotropicStationary.K
    )
