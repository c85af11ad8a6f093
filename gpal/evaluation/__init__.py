"""How good are the probabilities: metrics, reliability, cross-validation, baselines, figures."""

from __future__ import annotations

from gpal.evaluation.baselines import (
    gradient_boosting,
    logistic_regression,
    quadratic_logistic_regression,
    random_forest,
)
from gpal.evaluation.cross_validation import CrossValidation, Estimate, cross_validate
from gpal.evaluation.faint_training import FaintTraining
from gpal.evaluation.list_comparison import ListComparison, compare_lists
from gpal.evaluation.noise_controls import NOISE_CONTROLS, noise_controls
from gpal.evaluation.prior_shift import PriorEstimate, estimate_prior, reweight
from gpal.evaluation.probability_list import ProbabilityList
from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.metrics import METRICS, ReliabilityCurve, reliability_curve

__all__ = [
    "METRICS",
    "NOISE_CONTROLS",
    "CrossValidation",
    "Estimate",
    "FaintTraining",
    "ListComparison",
    "PriorEstimate",
    "ProbabilityList",
    "ReliabilityCurve",
    "compare_lists",
    "cross_validate",
    "estimate_prior",
    "gradient_boosting",
    "logistic_regression",
    "noise_controls",
    "prospective_split",
    "prospective_validation",
    "quadratic_logistic_regression",
    "random_forest",
    "reliability_curve",
    "reweight",
]
