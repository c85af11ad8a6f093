"""A kernel that standardises its inputs itself: k((x − offset)/width, (x' − offset)/width)."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from gpal.inference.changed_input import ChangedInput

__all__ = ["AffineInput", "of_affine_input"]


class AffineInput(ChangedInput):
    """Any kernel of x in other units.

    base_kernel     in units of (x − offset)/width; its active dimensions are its own
    offset, width   [d]
    """

    def __init__(
        self, base_kernel: gpflow.kernels.Kernel, offset: ArrayLike, width: ArrayLike
    ) -> None:
        super().__init__(base_kernel)
        self.offset, self.width = np.array(offset, float), np.array(width, float)

    def inner(self, X: tf.Tensor) -> tf.Tensor:
        """(x − offset)/width."""
        return (X - self.offset) / self.width


def of_affine_input(
    kernel: gpflow.kernels.Kernel, offset: np.ndarray, width: np.ndarray
) -> gpflow.kernels.Kernel:
    """The kernel of x that `kernel` is of (x − offset)/width: wrapped at most once, and not at all
    where the units come out as the innermost kernel's own."""
    if type(kernel) is AffineInput:
        # ((x − o)/w − o')/w' = (x − (o + o' w))/(w w')
        offset, width = offset + kernel.offset * width, kernel.width * width
        kernel = kernel.base_kernel
    same = np.allclose(width, 1.0, rtol=1e-12, atol=0) and np.allclose(offset, 0.0, atol=1e-12)
    return kernel if same else AffineInput(kernel, offset, width)
