"""Variables as one flat vector, for SciPy's optimisers, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

__all__ = ["assign", "pack"]


def pack(variables: Sequence[tf.Variable]) -> np.ndarray:
    """All values, one after another."""
    return np.concatenate([np.zeros(0), *(np.ravel(v.numpy()) for v in variables)])


def assign(variables: Sequence[tf.Variable], x: np.ndarray) -> None:
    """Inverse of `pack`."""
    sizes = [int(np.prod(v.shape)) for v in variables]
    for variable, part in zip(variables, np.split(x, np.cumsum(sizes)[:-1])):
        variable.assign(part.reshape(variable.shape))
