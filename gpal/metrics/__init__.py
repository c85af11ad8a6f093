"""Scores of class probabilities, and their reliability: plain functions of arrays.

    from gpal.metrics import brier, reliability_curve

Everywhere y (n,) holds class indices 0 … C−1, and P (n, C) probabilities whose rows sum to one.
With `classes=`, the C names in the order of P's columns, y holds names.
"""

from gpal.metrics.counts import ClassCounts, class_counts
from gpal.metrics.forecast import expected_nll
from gpal.metrics.levels import Level, coarser
from gpal.metrics.purity import PureList, PurityCurve, promised_threshold, pure_list, purity_curve
from gpal.metrics.reliability import ReliabilityCurve, reliability_curve, reliability_table
from gpal.metrics.scores import (
    ECE_BINS,
    METRICS,
    brier,
    class_index,
    confusion_matrix,
    entropy,
    error,
    expected_calibration_error,
    macro_auc,
    negative_log_predictive_density,
    precision_recall_f1,
    roc_auc,
)

__all__ = [
    "ECE_BINS",
    "METRICS",
    "ClassCounts",
    "Level",
    "PureList",
    "PurityCurve",
    "ReliabilityCurve",
    "brier",
    "class_counts",
    "class_index",
    "coarser",
    "confusion_matrix",
    "entropy",
    "error",
    "expected_calibration_error",
    "expected_nll",
    "macro_auc",
    "negative_log_predictive_density",
    "precision_recall_f1",
    "promised_threshold",
    "pure_list",
    "purity_curve",
    "reliability_curve",
    "reliability_table",
    "roc_auc",
]
