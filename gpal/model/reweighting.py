"""Probabilities under other class fractions: p_c ∝ p_c π_c / π_train,c."""

from __future__ import annotations

import numpy as np

__all__ = ["reweighted"]


def reweighted(P: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """P [..., C] times the ratio of fractions π/π_train [C], normalised."""
    # Not by check_shapes: it imports TensorFlow, and estimators need this before they have a model.
    weighted = P * ratio
    # All that is possible may have a probability too small for a number.
    lost = weighted.sum(axis=-1, keepdims=True) == 0
    if lost.any():
        weighted = np.where(lost, np.maximum(P, np.finfo(float).tiny) * ratio, weighted)
    return weighted / weighted.sum(axis=-1, keepdims=True)
