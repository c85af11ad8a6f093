"""Scores of predicted class probabilities against the known classes.

n sources, C classes. Everywhere y is the (n,) class index 0 … C−1 and P the (n, C) matrix of
probabilities with rows that sum to one.

    error   fraction of sources whose most probable class is not their class
    nll     −1/n Σ ln P[i, y_i]                       mean negative log predictive density, nats
    brier   1/n Σ_i Σ_c (P[i, c] − 1[y_i = c])²       from 0 to 2 (Brier 1950)
    ece     Σ_b n_b/n |accuracy_b − confidence_b|     expected calibration error of the top label,
                                                      15 bins of equal width (Guo et al. 2017)

Precision, recall and F1 are scikit-learn's; a class that is never predicted has precision 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import confusion_matrix as count_confusions
from sklearn.metrics import precision_recall_fscore_support

__all__ = [
    "ECE_BINS",
    "METRICS",
    "brier",
    "confusion_matrix",
    "entropy",
    "error",
    "expected_calibration_error",
    "negative_log_predictive_density",
    "precision_recall_f1",
]

ECE_BINS = 15


def error(y: np.ndarray, P: np.ndarray) -> float:
    """Fraction of sources whose most probable class is wrong."""
    return float(np.mean(P.argmax(axis=1) != y))


def negative_log_predictive_density(y: np.ndarray, P: np.ndarray) -> float:
    """−1/n Σ ln P[i, y_i] in nats.

    A probability of exactly zero counts as the smallest normal float64, 2.2e-308 (708 nats), so
    that one impossible event makes a score terrible but finite.
    """
    return float(-np.mean(np.log(np.maximum(P[np.arange(len(y)), y], np.finfo(float).tiny))))


def brier(y: np.ndarray, P: np.ndarray) -> float:
    """1/n Σ_i Σ_c (P[i, c] − 1[y_i = c])², the multi-class form, from 0 to 2."""
    return float(np.mean(np.sum((P - np.eye(P.shape[1])[y]) ** 2, axis=1)))


def expected_calibration_error(y: np.ndarray, P: np.ndarray, bins: int = ECE_BINS) -> float:
    """Mean gap between confidence (largest probability) and accuracy, over bins of equal width.

    The sampling scatter of the accuracies alone makes it positive: about
    Σ_b √(2 n_b a_b(1−a_b)/π) / n for a perfectly calibrated model. Compare it at equal n only.
    """
    confidence = P.max(axis=1)
    gap = (P.argmax(axis=1) == y) - confidence
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(bin_of, weights=gap, minlength=bins)).sum() / len(y))


def precision_recall_f1(y: np.ndarray, P: np.ndarray) -> np.ndarray:
    """(3, C): precision, recall and F1 of each class, the most probable class being predicted."""
    scores = precision_recall_fscore_support(
        y, P.argmax(axis=1), labels=np.arange(P.shape[1]), zero_division=0.0
    )
    return np.stack(scores[:3])


def confusion_matrix(y: np.ndarray, P: np.ndarray) -> np.ndarray:
    """(C, C): row = true class, column = predicted class, every row normalised to one."""
    return count_confusions(y, P.argmax(axis=1), labels=np.arange(P.shape[1]), normalize="true")


def entropy(P: np.ndarray) -> np.ndarray:
    """(n,) predictive entropy −Σ_c P ln P in nats: 0 certain, ln C no idea."""
    return -np.sum(P * np.log(np.where(P > 0, P, 1.0)), axis=1)


def _macro(row: int) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda y, P: float(precision_recall_f1(y, P)[row].mean())


# name in metrics.json -> function of (y, P)
METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "error": error,
    "nll": negative_log_predictive_density,
    "brier": brier,
    "ece": expected_calibration_error,
    "macro_precision": _macro(0),
    "macro_recall": _macro(1),
    "macro_f1": _macro(2),
}
