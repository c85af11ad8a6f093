"""Probabilities under other class fractions: p_c ∝ p_c π_c / π_train,c."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpal.errors import as_python

__all__ = ["reweighted", "systematic", "warn_of_sum"]

NEARLY = 0.011  # three thirds written as 0.33 sum to 0.99


def reweighted(P: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """P [..., C] times the ratio of fractions π/π_train [C], normalised."""
    # Not by check_shapes: it imports TensorFlow, and estimators need this before they have a model.
    weighted = P * ratio
    # All that is possible may have a probability too small for a number.
    lost = weighted.sum(axis=-1, keepdims=True) == 0
    if lost.any():
        weighted = np.where(lost, np.maximum(P, np.finfo(float).tiny) * ratio, weighted)
    return weighted / weighted.sum(axis=-1, keepdims=True)


def systematic(weight: np.ndarray) -> np.ndarray:
    """(n, T) which of the T nodes of each source stand for nodes of `weight` [n, T], 1/T each:
    those at (t + 1/2)/T of the summed weights."""
    nodes = weight.shape[1]
    below = np.cumsum(weight, axis=1)
    share = below / below[:, -1:]
    at = (np.arange(nodes) + 0.5) / nodes
    return np.minimum((share[:, None, :] <= at[:, None]).sum(axis=2), nodes - 1)


def warn_of_sum(fractions: Mapping[Any, float], stacklevel: int = 3) -> None:
    """Of class fractions that do not sum to one: as like as not, one of them is mistyped. Whole
    numbers above 1 are counts, whose ratios are meant."""
    values = [float(value) for value in fractions.values()]
    total, counts = sum(values), max(values) > 1 and all(value.is_integer() for value in values)
    if abs(total - 1) > NEARLY and not counts:
        warnings.warn(
            f"the class fractions {as_python(fractions)} sum to {total:g}; they are divided by"
            " that",
            stacklevel=stacklevel,
        )
