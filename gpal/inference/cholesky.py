"""Cholesky factors with a jitter that escalates and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

__all__ = ["Jitter", "jittered", "jittered_cholesky"]

logger = logging.getLogger("gpal")
Result = TypeVar("Result")


def jittered(K: tf.Tensor, jitter: tf.Tensor) -> tf.Tensor:
    """K + jitter · mean(diag K) · I: relative, so that it means the same for every kernel."""
    diagonal = tf.linalg.diag_part(K)
    return tf.linalg.set_diag(K, diagonal + tf.cast(jitter, K.dtype) * tf.reduce_mean(diagonal))


def jittered_cholesky(K: tf.Tensor, jitter: tf.Tensor) -> tf.Tensor:
    """Its lower factor."""
    return tf.linalg.cholesky(jittered(K, jitter))


class Jitter:
    """The current relative jitter. `run` repeats a computation with ten times as much after each
    Cholesky failure (NaN; in older TensorFlow an exception), up to `largest`, and logs every
    step."""

    def __init__(self, initial: float, largest: float = 1e-2) -> None:
        self.relative, self.largest = float(initial), largest

    @property
    def value(self) -> tf.Tensor:
        """As a tensor, so that a graph does not depend on its value."""
        return tf.constant(self.relative, tf.float64)

    def run(
        self, computation: Callable[[], Result], check: Callable[[Result], tf.Tensor]
    ) -> Result:
        """`computation()`; `check(result)` is a tensor that must be finite."""
        while True:
            try:
                result = computation()
                if bool(tf.reduce_all(tf.math.is_finite(check(result)))):
                    return result
            except tf.errors.InvalidArgumentError as error:
                if "Cholesky" not in str(error):
                    raise
            jitter = max(10.0 * self.relative, 1e-10)
            if jitter > self.largest:
                raise FloatingPointError(
                    f"the kernel matrix is not positive definite with jitter {self.largest:g}; "
                    "remove duplicate inducing points or constant features"
                )
            logger.warning("Cholesky failed: relative jitter raised to %g", jitter)
            self.relative = jitter
