"""How good are the probabilities: metrics, reliability, cross-validation, baselines, figures."""

from __future__ import annotations

from gpal.evaluation.baselines import logistic_regression, quadratic_logistic_regression
from gpal.evaluation.calibration import ReliabilityCurve, reliability_curve
from gpal.evaluation.cross_validation import CrossValidation, Estimate, cross_validate
from gpal.evaluation.metrics import METRICS

__all__ = [
    "METRICS",
    "CrossValidation",
    "Estimate",
    "ReliabilityCurve",
    "cross_validate",
    "logistic_regression",
    "quadratic_logistic_regression",
    "reliability_curve",
]
