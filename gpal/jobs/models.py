"""The models of a job: the classifier it is about, and the plain ones that it has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpal.catalog import Catalog, Fainter
from gpal.errors import InputError
from gpal.evaluation import any_classifier
from gpal.evaluation.baselines import (
    logistic_regression,
    pretrained,
    quadratic_logistic_regression,
)
from gpal.evaluation.faint_training import FaintTraining
from gpal.recommended import RECOMMENDED_MODEL

__all__ = ["MODEL", "REFERENCE", "compared", "recommended", "taught", "taught_faint"]

MODEL = "GPClassifier"
REFERENCE = "logistic regression"


def recommended(random_state: int = 0) -> Any:
    """The classifier of gpal's commands, unless told otherwise."""
    from gpal.classifier import GPClassifier

    return GPClassifier(**RECOMMENDED_MODEL, random_state=random_state)


def taught_faint(catalog: Catalog, classifier: Any, asked: bool | None) -> bool:
    """Whether labelled sources are also learned from as if they were as faint as the targets: as
    asked, and without being asked where the classes leave none out and it can be done.

    Frozen in workflows/validation/frozen_open.toml. InputError where it is asked for in vain.
    """
    possible = any_classifier.takes_weights(classifier)
    if asked is None:
        known = bool(catalog.schema.significance) and bool(catalog.is_target.any())
        return catalog.leaves_none_out and possible and known
    if asked and not possible:
        raise InputError(
            f"{type(classifier).__name__} takes no weights, which training on fainter copies needs;"
            " leave it out"
        )
    return asked


def taught(classifier: Any, catalog: Catalog, faint: bool, random_state: int = 0) -> Any:
    """The classifier as it is to be fitted to labelled sources of the catalog."""
    return FaintTraining(classifier, Fainter.of(catalog), random_state) if faint else classifier


def compared(classifier: Any, beside: Sequence[str] = ()) -> dict[str, Any]:
    """Name -> classifier, the one in question first; those of `beside` are `pretrained`.

    Raises InputError for one of these that is not installed.
    """
    return {
        MODEL: classifier,
        REFERENCE: logistic_regression(),
        "quadratic logistic regression": quadratic_logistic_regression(),
        **{name: pretrained(name) for name in beside},
    }
