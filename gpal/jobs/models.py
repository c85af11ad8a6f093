"""The models of a job: the classifier it is about, and the plain ones that it has to beat."""

from __future__ import annotations

from typing import Any

from gpal.evaluation.baselines import logistic_regression, quadratic_logistic_regression
from gpal.recommended import RECOMMENDED_MODEL

__all__ = ["MODEL", "REFERENCE", "compared", "recommended"]

MODEL = "GPClassifier"
REFERENCE = "logistic regression"


def recommended(random_state: int = 0) -> Any:
    """The classifier of gpal's commands, unless told otherwise."""
    from gpal.classifier import GPClassifier

    return GPClassifier(**RECOMMENDED_MODEL, random_state=random_state)


def compared(classifier: Any) -> dict[str, Any]:
    """Name -> classifier, the one in question first."""
    return {
        MODEL: classifier,
        REFERENCE: logistic_regression(),
        "quadratic logistic regression": quadratic_logistic_regression(),
    }
