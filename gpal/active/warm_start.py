"""Refit after a few labels: see `GPClassifier.refit`."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["can_refit", "refit"]


def can_refit(classifier: Any, y: np.ndarray, X_err: np.ndarray | None) -> bool:
    """Whether the classifier can refit to labels y and errors X_err."""
    if not hasattr(classifier, "can_refit"):
        return False
    X_err = None if X_err is None else np.asarray(X_err, float)
    values = np.zeros((len(y), 1)) if X_err is None else np.zeros(X_err.shape)
    return classifier.can_refit(values, y, X_err)


def refit(classifier: Any, X: np.ndarray, y: np.ndarray, X_err: np.ndarray | None = None) -> Any:
    """A new classifier with the hyper-parameters of `classifier`."""
    return classifier.refit(X, y, X_err)
