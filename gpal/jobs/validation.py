"""`gpal validate OLD NEW`: from two releases to a folder that says how far probabilities hold.

1. cross-match; the old release's labelled sources train every model, n_seeds times;
2. every target of the old release is predicted, and its class fractions are estimated;
3. the targets that the new release classifies examine the predictions;
4. table, metrics, figures and report are written, all or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from astropy.table import Table

from gpal.errors import InputError
from gpal.evaluation import covariate_shift, figures, validation_figures
from gpal.evaluation.baselines import (
    gradient_boosting,
    logistic_regression,
    quadratic_logistic_regression,
    random_forest,
)
from gpal.evaluation.prior_shift import estimate_prior, estimate_prior_by_origin
from gpal.evaluation.prospective import (
    CORRECTIONS,
    Classes,
    ProspectiveSplit,
    ProspectiveValidation,
    prospective_split,
    prospective_validation,
)
from gpal.jobs.classification import MODEL, REFERENCE, write_tables
from gpal.provenance import provenance, staged_folder, to_json
from gpal.recommended import RECOMMENDED_MODEL
from gpal.report import render_report

if TYPE_CHECKING:
    from gpal.catalog import Catalog

__all__ = ["RECOMMENDED", "ValidationResult", "validate"]

# Chosen on 4FGL and 4FGL -> 4FGL-DR2 (workflows/validation/frozen.toml), before any other pair.
RECOMMENDED = "by origin"
OUTPUTS = (
    *("report.html", "probabilities.fits", "probabilities.csv", "metrics.json", "scores.png"),
    *("reliability.png", "reliability_corrected.png", "reliability_by_origin.png"),
    "calibration.png",
)
SURPRISES = 20
DECILES = 10


@dataclass(frozen=True)
class ValidationResult:
    """What `validate` made: the folder, the table of all targets, the scores, the predictions."""

    folder: Path
    table: Table
    metrics: dict[str, Any]
    variants: dict[str, ProspectiveValidation]


def validate(
    old: Catalog,
    new: Catalog,
    out: str | os.PathLike,
    *,
    classifier: Any = None,
    classes: Classes | None = None,
    without: Sequence[str] | None = None,
    significance: str = "Signif_Avg",
    fallback_radius: float = 0.1,
    n_seeds: int = 3,
    random_state: int = 0,
    progress: bool | None = None,
) -> ValidationResult:
    """Train on what `old` labels, test on what `new` identified since, and write the folder `out`.

    classifier       a scikit-learn classifier; None: GPClassifier(**RECOMMENDED_MODEL)
    classes          as in Catalog.with_classes, for both releases; None: their current groups
    without          features to leave out in a second run; None: those named after variability
    significance     column of `old` along which calibration is shown, where there is one
    fallback_radius  degrees, the 95 % radius of a source without a position error
    n_seeds          fits of every model; scores are averages over them

    Files: OUTPUTS; the probabilities are those of every target.
    Raises InputError, before any fit, on a folder that cannot be written to, releases without a
    common source, and classes that one of them lacks.
    """
    if n_seeds < 1:
        raise InputError(f"n_seeds must be at least 1, got {n_seeds}")
    with staged_folder(out, OUTPUTS) as folder:
        if classifier is None:
            from gpal.classifier import GPClassifier

            classifier = GPClassifier(**RECOMMENDED_MODEL)
        split = prospective_split(old, new, classes, fallback_radius=fallback_radius)
        features = split.labelled.feature_names
        if without is None:
            without = [name for name in features if "variability" in name]
        models = {
            MODEL: classifier,
            REFERENCE: logistic_regression(),
            "quadratic logistic regression": quadratic_logistic_regression(),
            "random forest": random_forest(),
            "gradient boosting": gradient_boosting(),
        }
        variants = {
            variant: prospective_validation(
                split,
                {name: (model, chosen) for name, model in models.items()},
                n_seeds=n_seeds,
                random_state=random_state,
                progress=progress,
            )
            for variant, chosen in _variants(features, without).items()
        }
        settings = {
            "classes": split.classes.tolist(),
            "features": list(features),
            "without": list(without),
            "n_seeds": n_seeds,
            "fallback_radius": fallback_radius,
            "correction": RECOMMENDED,
            "model": classifier.get_params(deep=False),
        }
        origin = provenance(old.provenance, settings, random_state)
        origin["new_catalog"] = new.provenance
        table = _table(next(iter(variants.values())), significance)
        metrics = _metrics(variants, table, new, settings, origin)
        write_tables(table, folder, origin)
        (folder / "metrics.json").write_text(to_json(metrics, indent=1) + "\n")
        _write_figures(variants, metrics, folder, origin)
        render_report(folder)
    return ValidationResult(Path(out), table, metrics, variants)


def _variants(features: Sequence[str], without: Sequence[str]) -> dict[str, list[str]]:
    """Name of a variant -> its features; the first one is the main one."""
    for name in without:
        if name not in features:
            raise InputError(f"without '{name}': no such feature; there are: {', '.join(features)}")
    variants = {"all features": list(features)}
    rest = [name for name in features if name not in without]
    if without and rest:
        variants[f"without {', '.join(without)}"] = rest
    return variants


def _table(validation: ProspectiveValidation, significance: str) -> Table:
    """One row per target of the old release, in its order; probabilities of the first seed."""
    split = validation.split
    targets, labelled = split.targets, split.labelled
    table = Table()

    def column(name: str, values: Any, description: str, unit: str | None = None) -> None:
        table[name] = values
        table[name].description, table[name].unit = description, unit

    column("name", np.asarray(targets.names, str), "source name in the old release")
    column("ra", np.asarray(targets.ra, float), "right ascension, J2000", "deg")
    column("dec", np.asarray(targets.dec, float), "declination, J2000", "deg")
    column("origin", np.asarray(split.origin, str), "what the old release called it")
    column("new_name", np.asarray(split.new_names, str), "source name in the new release")
    column("new_class", np.asarray(split.truth, str), "class in the new release, empty if none")
    for correction, suffix in (("train", ""), (RECOMMENDED, "_prior")):
        P = validation.corrected(MODEL, correction)[0]
        for c, name in enumerate(split.classes.tolist()):
            described = f"probability of {name}, class fractions: {CORRECTIONS[correction]}"
            column(f"p_{name}{suffix}", P[:, c], described)
    column(
        "outside_support",
        covariate_shift.outside_support(labelled.X, targets.X),
        "true: far from every labelled source",
    )
    spread = np.nanstd(labelled.X, axis=0)
    column(
        "error_size",
        covariate_shift.error_size(targets.X_err, spread),
        "root mean square error in units of the labelled sources' spread",
    )
    if significance in targets.table.colnames:
        values = np.ma.filled(np.ma.asarray(targets.table[significance], float), np.nan)
        column("significance", values, f"{significance} in the old release")
    return table


def _metrics(
    variants: Mapping[str, ProspectiveValidation],
    table: Table,
    new: Catalog,
    settings: dict[str, Any],
    origin: dict[str, Any],
) -> dict[str, Any]:
    """The content of metrics.json."""
    main = next(iter(variants.values()))
    split, models = main.split, main.models
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
                for c in ("train", RECOMMENDED)
            }
            if (origins == name).any()
            else {},
            "reliability": main.reliability(MODEL, RECOMMENDED, origins == name),
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
        "features": {
            name: covariate_shift.overlap(labelled.X[:, j], targets.X[:, j])
            for j, name in enumerate(labelled.feature_names)
        },
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
        overlaps = [
            covariate_shift.overlap(labelled.X[:, j], targets.X[rows, j])["overlap"]
            for j in range(labelled.X.shape[1])
        ]
        found["deciles"].append(
            {
                "from": float(significance[rows].min()),
                "to": float(significance[rows].max()),
                "n": int(rows.sum()),
                "n_examined": int((rows & split.examined).sum()),
                "n_outside_support": int((rows & outside).sum()),
                "overlap": dict(zip(labelled.feature_names, overlaps, strict=True)),
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
        for correction in ("train", RECOMMENDED)
    }


def _surprises(validation: ProspectiveValidation, table: Table) -> list[dict[str, Any]]:
    """The examined sources to whose true class the model gave the least probability."""
    split = validation.split
    rows = np.flatnonzero(split.examined)
    P = {c: validation.corrected(MODEL, c)[0] for c in ("train", RECOMMENDED)}
    of_truth = P[RECOMMENDED][rows, split.y]
    worst = np.argsort(of_truth, kind="stable")[:SURPRISES]
    return [
        {
            "name": str(table["name"][i]),
            "new_name": str(table["new_name"][i]),
            "origin": str(table["origin"][i]),
            "new_class": str(table["new_class"][i]),
            "predicted": str(split.classes[P[RECOMMENDED][i].argmax()]),
            "p_predicted": float(P[RECOMMENDED][i].max()),
            "p_truth": float(P[RECOMMENDED][i, c]),
            "p_truth_train": float(P["train"][i, c]),
            "outside_support": bool(table["outside_support"][i]),
            "significance": (
                float(table["significance"][i]) if "significance" in table.colnames else None
            ),
        }
        for i, c in zip(rows[worst], split.y[worst], strict=True)
    ]


def _write_figures(
    variants: Mapping[str, ProspectiveValidation],
    metrics: Mapping[str, Any],
    folder: Path,
    origin: Mapping[str, Any],
) -> None:
    main = next(iter(variants.values()))
    split, classes = main.split, main.split.classes.tolist()
    labels = {
        "significance": "significance in the old release (sigma)",
        "error_size": "error size, in units of the spread",
    }
    along = {labels[name]: rows for name, rows in metrics["calibration"][RECOMMENDED].items()}
    drawn = {
        "scores.png": validation_figures.score_figure(metrics["variants"]),
        "calibration.png": validation_figures.calibration_figure(along),
        "reliability_by_origin.png": validation_figures.origin_reliability_figure(
            metrics["by_origin"], classes
        ),
    }
    for name, correction in (("reliability", "train"), ("reliability_corrected", RECOMMENDED)):
        P = main.corrected(MODEL, correction)[0][split.examined]
        drawn[f"{name}.png"] = figures.reliability_figure(split.y, P, classes)
    for name, figure in drawn.items():
        figures.save_figure(figure, folder / name, origin)
