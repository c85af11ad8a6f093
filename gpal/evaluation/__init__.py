"""How good are the probabilities: cross-validation, validation between releases, class fractions
and baselines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpal.evaluation.noise_controls import NOISE_CONTROLS, noise_controls

if TYPE_CHECKING:
    from gpal.evaluation.baselines import (
        gradient_boosting,
        logistic_regression,
        quadratic_logistic_regression,
        random_forest,
    )
    from gpal.evaluation.cross_validation import CrossValidation, Estimate, cross_validate
    from gpal.evaluation.faint_training import FaintTraining
    from gpal.evaluation.list_comparison import ListComparison, compare_lists
    from gpal.evaluation.prior_shift import PriorEstimate, estimate_prior, reweight
    from gpal.evaluation.probability_list import ProbabilityList
    from gpal.evaluation.prospective import prospective_split, prospective_validation
    from gpal.metrics import METRICS, ReliabilityCurve, reliability_curve

# Loaded on first use: a question of a campaign needs `any_classifier` and none of the baselines.
_PUBLIC = {
    "compare_lists": "gpal.evaluation.list_comparison",
    "cross_validate": "gpal.evaluation.cross_validation",
    "CrossValidation": "gpal.evaluation.cross_validation",
    "Estimate": "gpal.evaluation.cross_validation",
    "estimate_prior": "gpal.evaluation.prior_shift",
    "FaintTraining": "gpal.evaluation.faint_training",
    "gradient_boosting": "gpal.evaluation.baselines",
    "ListComparison": "gpal.evaluation.list_comparison",
    "logistic_regression": "gpal.evaluation.baselines",
    "METRICS": "gpal.metrics",
    "PriorEstimate": "gpal.evaluation.prior_shift",
    "ProbabilityList": "gpal.evaluation.probability_list",
    "prospective_split": "gpal.evaluation.prospective",
    "prospective_validation": "gpal.evaluation.prospective",
    "quadratic_logistic_regression": "gpal.evaluation.baselines",
    "random_forest": "gpal.evaluation.baselines",
    "reliability_curve": "gpal.metrics",
    "ReliabilityCurve": "gpal.metrics",
    "reweight": "gpal.evaluation.prior_shift",
}

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


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
