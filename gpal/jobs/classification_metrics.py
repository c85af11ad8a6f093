"""The metrics of a classification: the content of its metrics.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.catalog.class_tree import place_in_words
from gpal.errors import InputError
from gpal.evaluation.cross_validation import CrossValidation
from gpal.jobs.galactic_plane import by_latitude
from gpal.jobs.models import MODEL
from gpal.jobs.purity import candidates_of, purity_lists
from gpal.metrics import (
    METRICS,
    Level,
    confusion_matrix,
    precision_recall_f1,
    reliability_table,
    roc_auc,
)

__all__ = ["classification_metrics"]

PLANE = 5.0  # degrees from the Galactic plane, within which sources of the Galaxy are common
APART = ("nll", "error", "brier", "ece", "macro_auc")  # near the plane and far from it
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
        by_class = validation.estimate(_of_classes, model)
        return {name: estimate(metric, model) for name, metric in METRICS.items()} | {
            "per_class": {
                str(name): {
                    score: {"mean": by_class.mean[i, c], "se": by_class.se[i, c]}
                    for i, score in enumerate(("precision", "recall", "f1", "auc"))
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

    targets, own = np.asarray(table["candidate"]), bool(settings.get("faint"))
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
        "purity": _purity(validation, table, own),
        "by_latitude": _apart(validation, table, own),
        "near_plane": _near_plane(table[targets]),
        "not_given": _not_given(catalog, table),
        "measured": _measured(catalog),
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


def _of_classes(y: np.ndarray, P: np.ndarray) -> np.ndarray:
    """(4, C) precision, recall, F1 and area under the ROC curve of each class."""
    return np.vstack([precision_recall_f1(y, P), roc_auc(y, P)])


def _purity(
    validation: CrossValidation, table: Table, own: bool, rows: np.ndarray | None = None
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Model -> class -> lists of stated purities; with candidates those of MODEL, the only one that
    is asked about them.

    own   whether candidates have a threshold of their own
    rows  (n,) bool of the table: whose candidates; None: all
    """
    classes = validation.classes.tolist()
    asked = candidates_of(table if rows is None else table[rows], classes)

    def lists(model: str) -> dict[str, list[dict[str, Any]]]:
        P = validation.out_of_fold(model)
        if model != MODEL:
            return purity_lists(validation.y, P, classes)
        return purity_lists(validation.y, P, classes, *asked, own)

    return {model: lists(model) for model in validation.models}


def _apart(validation: CrossValidation, table: Table, own: bool) -> dict[str, dict[str, Any]]:
    """Part of the sky -> counts, scores of every model, and lists with thresholds of its own.

    A part whose sources are all of one fold, or none, has no scores.
    """
    found = {}
    labelled, targets = (np.asarray(table[name]) for name in ("out_of_fold", "candidate"))
    for name, rows in by_latitude(table["glat"]).items():
        inside = rows[labelled]
        y = validation.y[inside]
        of: dict[str, Any] = {
            "n_labelled": len(y),
            "n_labelled_per_class": dict(
                zip(
                    validation.classes.tolist(),
                    np.bincount(y, minlength=len(validation.classes)).tolist(),
                    strict=True,
                )
            ),
            "n_targets": int((rows & targets).sum()),
            "scores": {},
            "purity": {},
        }
        try:
            part = validation.among(inside)
        except InputError:
            found[name] = of
            continue
        of["purity"] = _purity(part, table, own, rows)
        for model in part.models:
            area = part.estimate(roc_auc, model)
            of["scores"][model] = {
                metric: part.estimate(METRICS[metric], model)._asdict() for metric in APART
            } | {
                "per_class": {
                    str(c): {"auc": {"mean": area.mean[k], "se": area.se[k]}}
                    for k, c in enumerate(part.classes)
                }
            }
        found[name] = of
    return found


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


def _measured(catalog: Catalog) -> dict[str, dict[str, dict[str, int]]]:
    """Feature -> of the labelled sources and of the candidates, how many have a value of it, and of
    how many others a limit is known."""
    sources = catalog.measurements
    limited = np.zeros(sources.X.shape, bool) if sources.limits is None else sources.limits.given
    sets = {"labelled": catalog.y != "", "candidates": catalog.is_target}
    return {
        name: {
            of: {
                "measured": int(sources.measured[rows, j].sum()),
                "limits": int(limited[rows, j].sum()),
            }
            for of, rows in sets.items()
        }
        for j, name in enumerate(catalog.feature_names)
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
