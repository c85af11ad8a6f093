"""The metrics of a classification: the content of its metrics.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.evaluation.cross_validation import CrossValidation
from gpal.jobs.models import MODEL
from gpal.metrics import METRICS, confusion_matrix, precision_recall_f1

__all__ = ["classification_metrics"]


def classification_metrics(
    validation: CrossValidation,
    catalog: Catalog,
    table: Table,
    settings: Mapping[str, Any],
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """Per model and metric {"mean", "se"}, then what was done.

    table  the probability catalogue
    """

    def estimate(*arguments: Any) -> dict[str, Any]:
        mean, se = validation.estimate(*arguments)
        return {"mean": mean.tolist(), "se": se.tolist()}

    def scores(model: str) -> dict[str, Any]:
        by_class = validation.estimate(precision_recall_f1, model)
        return {name: estimate(metric, model) for name, metric in METRICS.items()} | {
            "per_class": {
                str(name): {
                    score: {"mean": by_class.mean[i, c], "se": by_class.se[i, c]}
                    for i, score in enumerate(("precision", "recall", "f1"))
                }
                for c, name in enumerate(validation.classes)
            },
            "confusion_matrix": estimate(confusion_matrix, model),
        }

    targets = np.asarray(table["candidate"])
    named = zip(*np.unique(table["prediction"][targets], return_counts=True), strict=True)
    return {model: scores(model) for model in validation.models} | {
        "models": validation.models,
        "differences": {
            f"{MODEL} - {other}": {
                name: estimate(metric, MODEL, other) for name, metric in METRICS.items()
            }
            for other in validation.models
            if other != MODEL
        },
        "class_names": {
            name: catalog.schema.classes.names.get(name, name) for name in validation.classes
        },
        "n_sources": len(table),
        "n_labelled": len(validation.y),
        "n_targets": int(targets.sum()),
        "n_labelled_per_class": dict(
            zip(validation.classes, np.bincount(validation.y), strict=True)
        ),
        "n_targets_per_prediction": dict(named),
        "decisions": [
            {"column": d.column, "count": d.count, "rule": d.rule} for d in catalog.decisions
        ],
        "settings": settings,
        "provenance": origin,
    }
