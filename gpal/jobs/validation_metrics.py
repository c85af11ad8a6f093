"""The metrics of a validation: the content of its metrics.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.evaluation import covariate_shift
from gpal.evaluation.outcomes import count_outcomes
from gpal.evaluation.prior_shift import estimate_prior, estimate_prior_by_origin
from gpal.evaluation.prospective import CORRECTIONS, ProspectiveSplit, ProspectiveValidation
from gpal.jobs.class_counts import target_counts
from gpal.jobs.galactic_plane import by_latitude, galactic_latitude
from gpal.jobs.models import MODEL
from gpal.jobs.purity import purity_lists

__all__ = ["validation_metrics"]

SURPRISES = 20
DECILES = 10


def validation_metrics(
    variants: Mapping[str, ProspectiveValidation],
    table: Table,
    new: Catalog,
    settings: Mapping[str, Any],
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """Scores under every correction, class fractions, shift, calibration, and what was done.

    variants  name -> predictions with some of the features; the first is the main one
    table     the probability catalogue of the targets
    """
    main = next(iter(variants.values()))
    split, models = main.split, main.models
    recommended = split.recommended
    examined, origins = split.examined, split.origin[split.examined]
    scores = {
        variant: {c: {m: v.scores(m, c) for m in models} for c in CORRECTIONS}
        for variant, v in variants.items()
    }
    differences = {
        variant: {
            c: {f"{MODEL} - {m}": v.scores(MODEL, c, minus=(m, c)) for m in models if m != MODEL}
            for c in CORRECTIONS
        }
        for variant, v in variants.items()
    }
    by_origin = {
        str(name): {
            "n_targets": int((split.origin == name).sum()),
            "n_examined": int((origins == name).sum()),
            "n_per_class": _counts(split.truth[examined][origins == name], split.classes),
            "scores": {
                c: {m: main.scores(m, c, rows=origins == name) for m in models}
                for c in ("train", recommended)
            }
            if (origins == name).any()
            else {},
            "reliability": main.reliability(MODEL, recommended, origins == name),
        }
        for name in np.unique(split.origin)
    }
    return _main_scores(scores, models) | {
        "kind": "validation",
        "models": models,
        "corrections": CORRECTIONS,
        "variants": scores,
        "differences": differences,
        "by_origin": by_origin,
        "outcomes": _outcomes(split),
        "counts": {
            c: target_counts(main, MODEL, c, main.random_state) for c in ("train", recommended)
        },
        "purity": _purity(main),
        "by_latitude": _apart(main),
        "priors": {variant: _priors(v) for variant, v in variants.items()},
        "covariate_shift": _shift(split, table),
        "calibration": _calibration(main, table),
        "surprises": _surprises(main, table),
        "class_names": {
            name: new.schema.classes.names.get(name, name) for name in split.classes.tolist()
        },
        "n_matched": split.matched,
        "n_labelled": len(split.labelled),
        "n_labelled_per_class": _counts(split.labelled.y, split.classes),
        "n_targets": len(split.targets),
        "n_examined": int(examined.sum()),
        "n_examined_per_class": _counts(split.truth[examined], split.classes),
        "settings": settings,
        "provenance": origin,
    }


def _purity(
    validation: ProspectiveValidation, rows: np.ndarray | None = None
) -> dict[str, dict[str, dict[str, Any]]]:
    """Correction -> model -> class -> lists of stated purities; those of the first seed.

    rows  (n,) bool, some of the targets; None: all
    """
    split = validation.split
    rows = np.full(len(split.targets), True) if rows is None else rows
    y = split.y[rows[split.examined]]

    def lists(P: np.ndarray) -> dict[str, list[dict[str, Any]]]:
        return purity_lists(y, P[split.examined & rows], split.classes.tolist(), P[rows])

    return {
        correction: {
            model: lists(validation.corrected(model, correction)[0]) for model in validation.models
        }
        for correction in ("train", validation.split.recommended)
    }


def _apart(validation: ProspectiveValidation) -> dict[str, dict[str, Any]]:
    """Part of the sky -> counts, scores of every model, and lists with thresholds of its own."""
    split = validation.split
    examined = split.examined
    parts = by_latitude(galactic_latitude(split.targets.ra, split.targets.dec))
    return {
        name: {
            "n_targets": int(rows.sum()),
            "n_examined": int((rows & examined).sum()),
            "n_per_class": _counts(split.truth[rows & examined], split.classes),
            "scores": {
                c: {m: validation.scores(m, c, rows=rows[examined]) for m in validation.models}
                for c in ("train", validation.split.recommended)
            }
            if (rows & examined).any()
            else {},
            "purity": _purity(validation, rows),
        }
        for name, rows in parts.items()
    }


def _outcomes(split: ProspectiveSplit) -> dict[str, Any]:
    """What became of the targets: outcome -> how many, of all and of each origin."""
    every = count_outcomes(split.outcome, split.classes.tolist())
    return {
        "all targets": every,
        "by origin": {
            str(name): {o: int(np.sum(split.outcome[split.origin == name] == o)) for o in every}
            for name in np.unique(split.origin)
        },
    }


def _main_scores(scores: Mapping[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """Model -> metric -> estimate with all features and no correction, as every command has it."""
    first = next(iter(scores.values()))
    return {model: first["train"][model] for model in models}


def _counts(labels: np.ndarray, classes: np.ndarray) -> dict[str, int]:
    return {str(name): int((labels == name).sum()) for name in classes}


def _priors(validation: ProspectiveValidation) -> dict[str, Any]:
    """Class fractions of labelled sources, targets, and examined sources, estimated and true."""
    split = validation.split
    train, P, examined = split.train_fractions, validation.probabilities[MODEL][0], split.examined
    classes = split.classes.tolist()
    every, each = estimate_prior_by_origin(P, train, split.origin)
    return {
        "labelled": dict(zip(classes, train, strict=True)),
        "all targets": every.as_dict(classes),
        "by origin": {name: estimate.as_dict(classes) for name, estimate in each.items()},
        "examined only": estimate_prior(P[examined], train).as_dict(classes),
        "examined, true": {name: float(np.mean(split.truth[examined] == name)) for name in classes},
    }


def _shift(split: ProspectiveSplit, table: Table) -> dict[str, Any]:
    """Overlap of labelled and target sources per feature, and support per significance decile."""
    labelled, targets = split.labelled, split.targets
    outside = np.asarray(table["outside_support"])
    found: dict[str, Any] = {
        "features": covariate_shift.overlap_by_feature(labelled.measurements, targets.measurements),
        "median_error": {
            name: {
                who: float(np.median(e[np.isfinite(e)])) if np.isfinite(e).any() else None
                for who, e in (
                    ("labelled", labelled.X_err[:, j]),
                    ("target", targets.X_err[:, j]),
                )
            }
            for j, name in enumerate(labelled.feature_names)
        },
        "n_outside_support": int(outside.sum()),
        "deciles": [],
    }
    if "significance" not in table.colnames:
        return found
    significance = np.asarray(table["significance"])
    number = covariate_shift.quantile_bins(significance, DECILES)
    for decile in range(DECILES):
        rows = number == decile
        if not rows.any():
            continue
        overlaps = covariate_shift.overlap_by_feature(
            labelled.measurements, targets.measurements[rows]
        )
        found["deciles"].append(
            {
                "from": float(significance[rows].min()),
                "to": float(significance[rows].max()),
                "n": int(rows.sum()),
                "n_examined": int((rows & split.examined).sum()),
                "n_outside_support": int((rows & outside).sum()),
                "overlap": {name: found["overlap"] for name, found in overlaps.items()},
            }
        )
    return found


def _calibration(validation: ProspectiveValidation, table: Table) -> dict[str, Any]:
    """Correction -> quantity -> calibration in bins of it, first seed."""
    split = validation.split
    quantities = [name for name in ("significance", "error_size") if name in table.colnames]
    return {
        correction: {
            name: covariate_shift.calibration_by(
                split.y,
                validation.corrected(MODEL, correction)[0][split.examined],
                np.asarray(table[name])[split.examined],
            )
            for name in quantities
        }
        for correction in ("train", validation.split.recommended)
    }


def _surprises(validation: ProspectiveValidation, table: Table) -> list[dict[str, Any]]:
    """The examined sources to whose true class the model gave the least probability."""
    split = validation.split
    rows = np.flatnonzero(split.examined)
    P = {c: validation.corrected(MODEL, c)[0] for c in ("train", validation.split.recommended)}
    of_truth = P[validation.split.recommended][rows, split.y]
    worst = np.argsort(of_truth, kind="stable")[:SURPRISES]
    return [
        {
            "name": str(table["name"][i]),
            "new_name": str(table["new_name"][i]),
            "origin": str(table["origin"][i]),
            "new_class": str(table["new_class"][i]),
            "predicted": str(split.classes[P[validation.split.recommended][i].argmax()]),
            "p_predicted": float(P[validation.split.recommended][i].max()),
            "p_truth": float(P[validation.split.recommended][i, c]),
            "p_truth_train": float(P["train"][i, c]),
            "outside_support": bool(table["outside_support"][i]),
            "significance": (
                float(table["significance"][i]) if "significance" in table.colnames else None
            ),
        }
        for i, c in zip(rows[worst], split.y[worst], strict=True)
    ]
