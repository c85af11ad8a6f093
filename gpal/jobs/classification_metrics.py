"""The metrics of a classification: the content of its metrics.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.catalog.class_tree import place_in_words
from gpal.evaluation.cross_validation import CrossValidation
from gpal.jobs.models import MODEL
from gpal.metrics import (
    METRICS,
    Level,
    confusion_matrix,
    precision_recall_f1,
    reliability_table,
)

__all__ = ["classification_metrics"]

PLANE = 5.0  # degrees from the Galactic plane, within which sources of the Galaxy are common
KINDS = {"U": "text", "b": "mark"}  # of carried columns, by NumPy's codes; else numbers


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

    def at(members: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Scores of coarser classes, and how reliable the probabilities are that MODEL gives."""
        level = Level.of(validation.classes, members)
        y, P = level.place[validation.y], level.sums(validation.out_of_fold(MODEL))
        return {
            "classes": {name: list(inside) for name, inside in members.items()},
            "scores": {
                model: {name: estimate(level.at(m), model) for name, m in METRICS.items()}
                for model in validation.models
            },
            "confusion_matrix": estimate(level.at(confusion_matrix), MODEL),
            "reliability": {
                name: reliability_table(y == k, P[:, k]) for k, name in enumerate(level.names)
            },
        }

    targets = np.asarray(table["candidate"])
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
        "n_targets_per_prediction": _counts(table["prediction"][targets]),
        "levels": [at(members) for members in catalog.levels],
        "near_plane": _near_plane(table[targets]),
        "not_given": _not_given(catalog, table),
        "carried": [
            {
                "name": name,
                "kind": KINDS.get(column.dtype.kind, "number"),
                "label": column.description,
                "unit": str(column.unit or ""),
            }
            for name, column in catalog.carried.items()
        ],
        "links": asdict(catalog.schema.links),
        "decisions": [
            {"column": d.column, "count": d.count, "rule": d.rule} for d in catalog.decisions
        ],
        "settings": settings,
        "provenance": origin,
    }


def _counts(values: Any) -> dict[str, int]:
    """Value -> how many there are."""
    names, counts = np.unique(np.asarray(values, dtype=str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist()))


def _near_plane(candidates: Table) -> dict[str, Any]:
    """How many candidates lie within PLANE degrees of the Galactic plane, and as what."""
    near = np.abs(np.asarray(candidates["glat"])) < PLANE
    return {
        "degrees": PLANE,
        "n": int(near.sum()),
        "n_per_prediction": _counts(candidates["prediction"][near]),
    }


def _not_given(catalog: Catalog, table: Table) -> list[dict[str, Any]]:
    """Per known class that is none of those told apart: its sources by their prediction.

    The model has not seen such a class and can only call its sources by another name; how often it
    is sure of that name says how far to trust it on sources of unknown class.
    """
    other = (catalog.y == "") & ~catalog.is_target
    of = catalog.schema.classes
    found = [
        {
            "class": label,
            "name": of.names.get(label, label),
            "place": place_in_words(of.tree, of.sets, label),
            "n": n,
            "n_per_prediction": _counts(table["prediction"][other & (catalog.labels == label)]),
        }
        for label, n in _counts(catalog.labels[other]).items()
    ]
    return sorted(found, key=lambda line: (-line["n"], line["class"]))
