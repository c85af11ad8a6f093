"""The standard normal density φ and distribution function Φ of a tensor."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

__all__ = ["normal_cdf", "normal_pdf"]


def normal_cdf(x: tf.Tensor) -> tf.Tensor:
    """Φ(x); exact in the lower tail too."""
    return 0.5 * tf.math.erfc(-np.sqrt(0.5) * x)


def normal_pdf(x: tf.Tensor) -> tf.Tensor:
    """φ(x)."""
    return np.sqrt(0.5 / np.pi) * tf.exp(-0.5 * x**2)
