"""Kernels of other inputs: k(φ(x), φ(x')) with φ fixed, and one feature for one feature."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes

__all__ = ["ChangedInput"]


class ChangedInput(gpflow.kernels.Kernel):
    """A subclass says what φ is.

    base_kernel     of φ(x); its active dimensions are its own
    """

    def __init__(self, base_kernel: gpflow.kernels.Kernel) -> None:
        super().__init__()
        self.base_kernel = base_kernel

    @inherit_check_shapes
    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        return self.base_kernel(self.inner(X), None if X2 is None else self.inner(X2))

    @inherit_check_shapes
    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        return self.base_kernel(self.inner(X), full_cov=False)

    def inner(self, X: tf.Tensor) -> tf.Tensor:
        """φ(x), of the shape of X."""
        raise NotImplementedError
