"""The main job: from a catalog to a folder with a calibrated probability for every source.

1. cross-validate the classifier, and logistic regression beside it, on the labelled sources;
2. fit the classifier to all labelled sources;
3. give every source of the release its probabilities: labelled ones their out-of-fold prediction,
   which never saw their own label, all others the full fit's; candidates, when asked, refer to the
   class fractions estimated on them;
4. write table, metrics, figures, model and report, all or nothing.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import astropy.units as u
import numpy as np
from astropy.coordinates import SkyCoord
from astropy.table import Table
from sklearn.base import clone

from gpal.errors import InputError
from gpal.evaluation import figures
from gpal.evaluation.baselines import logistic_regression, quadratic_logistic_regression
from gpal.evaluation.covariate_shift import outside_support
from gpal.evaluation.cross_validation import CrossValidation, cross_validate, takes_errors
from gpal.evaluation.metrics import METRICS, confusion_matrix, entropy, precision_recall_f1
from gpal.fits_file import write_fits
from gpal.jobs.class_fractions import add_uncorrected, check_prior, refer_to, target_fractions
from gpal.provenance import provenance, staged_folder, to_json
from gpal.report import render_report

if TYPE_CHECKING:
    from gpal.catalog import Catalog

__all__ = ["ClassificationResult", "classify", "predicted_class"]

MODEL = "GPClassifier"
REFERENCE = "logistic regression"
OUTPUTS = (
    *("report.html", "probabilities.fits", "probabilities.csv", "metrics.json", "model.npz"),
    *("confusion_matrix.png", "reliability.png", "sky_map.png", "features.png"),
)


@dataclass(frozen=True)
class ClassificationResult:
    """What `classify` made: the folder, the table in it, the scores, and the fitted classifier."""

    folder: Path
    table: Table
    metrics: dict[str, Any]
    cross_validation: CrossValidation
    classifier: Any


def predicted_class(P: np.ndarray, classes: Sequence[str], confidence: float) -> np.ndarray:
    """(n,) the most probable class, or MIXED where its probability is below `confidence`."""
    likeliest = np.asarray(classes, dtype=str)[P.argmax(axis=1)]
    return np.where(P.max(axis=1) >= confidence, likeliest, figures.MIXED)


def classify(
    catalog: Catalog,
    out: str | os.PathLike,
    *,
    classifier: Any = None,
    classes: Iterable[str] | Mapping[str, Iterable[str]] | None = None,
    n_splits: int = 10,
    n_repeats: int = 1,
    confidence: float = 0.6,
    prior: str | Mapping[str, float] = "train",
    random_state: int = 0,
    progress: bool | None = None,
) -> ClassificationResult:
    """Classify every source of `catalog` into `classes` and write the folder `out`.

    classes       as in Catalog.with_classes; None: the groups that the catalog has already, which
                  are bll, fsrq and psr for a Fermi-LAT release as loaded
    classifier    a scikit-learn classifier; None: GPClassifier(**RECOMMENDED_MODEL)
    n_splits      folds of the stratified cross-validation, repeated n_repeats times
    confidence    a source whose largest probability is below it is called MIXED
    prior         class fractions that the candidates' probabilities refer to: "train", those of the
                  labelled sources; "estimated", those of the candidates, estimated for each catalog
                  class of them; or class -> fraction. Other than "train" adds columns p_*_train
    progress      True or False; None shows a bar on a terminal only

    Files: OUTPUTS, model.npz if the classifier can `save` itself, features.png of two features or
    more. What an earlier run left of them is removed.
    Raises InputError, before any computation, on a folder that cannot be written to, one class
    only, and fewer labelled sources of a class than folds.
    """
    if not 0 <= confidence <= 1:
        raise InputError(f"confidence is a probability, got {confidence}; give one from 0 to 1")
    with staged_folder(out, OUTPUTS) as folder:
        if classifier is None:
            from gpal.classifier import GPClassifier
            from gpal.recommended import RECOMMENDED_MODEL

            classifier = GPClassifier(**RECOMMENDED_MODEL, random_state=random_state)
        catalog = catalog if classes is None else catalog.with_classes(classes)
        labelled = catalog.y != ""
        known = catalog[labelled]
        train = dict(zip(*np.unique(known.y, return_counts=True), strict=True))
        check_prior(prior, train, catalog.is_target)
        models = {
            MODEL: classifier,
            REFERENCE: logistic_regression(),
            "quadratic logistic regression": quadratic_logistic_regression(),
        }
        validation = cross_validate(
            models,
            known.X,
            known.y,
            known.X_err,
            n_splits=n_splits,
            n_repeats=n_repeats,
            random_state=random_state,
            progress=progress,
        )
        errors = takes_errors(classifier.fit)
        fitted = clone(classifier)
        fitted.fit(known.X, known.y, **({"X_err": known.X_err} if errors else {}))
        P_train, deviation = _probabilities(fitted, catalog, validation, labelled)
        fractions, estimates = target_fractions(
            prior, train, P_train, catalog.is_target, catalog.labels
        )
        P, deviation = refer_to(fractions, train, fitted, catalog, P_train, deviation)

        settings = {
            "classes": validation.classes.tolist(),
            "n_splits": n_splits,
            "n_repeats": n_repeats,
            "confidence": confidence,
            "prior": prior,
            "features": list(catalog.feature_names),
            "model": getattr(fitted, "settings_", None) or fitted.get_params(deep=False),
        }
        origin = provenance(catalog.provenance, settings, random_state)
        table = _table(catalog, labelled, P, deviation, validation.classes.tolist(), confidence)
        if prior != "train":
            add_uncorrected(table, P_train, validation.classes.tolist())
        metrics = _metrics(validation, catalog, table, settings, origin)
        metrics["priors"] = estimates
        write_tables(table, folder, origin)
        (folder / "metrics.json").write_text(to_json(metrics, indent=1) + "\n")
        _write_figures(validation, catalog, table, folder, origin)
        if hasattr(fitted, "save"):
            fitted.save(folder / "model.npz")
            _stamp_model(folder / "model.npz", origin)
        render_report(folder)
    return ClassificationResult(Path(out), table, metrics, validation, fitted)


def _probabilities(
    fitted: Any, catalog: Catalog, validation: CrossValidation, labelled: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, C) probabilities and their standard deviations (None if the model knows none)."""
    rest = catalog[~labelled]

    def combine(method: Any, out_of_fold: np.ndarray) -> np.ndarray:
        values = np.empty((len(labelled), len(validation.classes)))
        values[labelled] = out_of_fold
        if len(rest):
            values[~labelled] = method(
                rest.X, **({"X_err": rest.X_err} if takes_errors(method) else {})
            )
        return values

    P = combine(fitted.predict_proba, validation.out_of_fold(MODEL))
    if MODEL not in validation.deviations:
        return P, None
    return P, combine(fitted.predict_proba_std, validation.out_of_fold_std(MODEL))


def _table(
    catalog: Catalog,
    labelled: np.ndarray,
    P: np.ndarray,
    deviation: np.ndarray | None,
    classes: Sequence[str],
    confidence: float,
) -> Table:
    """One row per source of the release, in its order."""
    position = SkyCoord(catalog.ra * u.deg, catalog.dec * u.deg, frame="icrs").galactic
    table = Table()

    def column(name: str, values: Any, description: str, unit: u.Unit | None = None) -> None:
        table[name] = values
        table[name].description, table[name].unit = description, unit

    column("name", np.asarray(catalog.names, str), "source name as in the release")
    column("ra", np.asarray(catalog.ra, float), "right ascension, J2000", u.deg)
    column("dec", np.asarray(catalog.dec, float), "declination, J2000", u.deg)
    column("glon", position.l.deg, "Galactic longitude", u.deg)
    column("glat", position.b.deg, "Galactic latitude", u.deg)
    column("catalog_class", np.asarray(catalog.original_labels, str), "class in the release")
    column("label", np.asarray(catalog.y, str), "class used for training, empty if none")
    for c, name in enumerate(classes):
        column(f"p_{name}", P[:, c], f"probability of {name}")
        if deviation is not None:
            column(f"p_{name}_std", deviation[:, c], f"standard deviation of p_{name}")
    column(
        "prediction",
        predicted_class(P, classes, confidence),
        f"most probable class, {figures.MIXED} below a probability of {confidence:g}",
    )
    column("entropy", entropy(P), "predictive entropy, nats")
    column(
        "outside_support",
        ~labelled & outside_support(catalog.X[labelled], catalog.X),
        "true: far from every labelled source",
    )
    column("candidate", catalog.is_target, "true: a source whose class is asked for")
    column("out_of_fold", labelled, "true: predicted by a model that did not see its label")
    return table


def _metrics(
    validation: CrossValidation,
    catalog: Catalog,
    table: Table,
    settings: dict[str, Any],
    origin: dict[str, Any],
) -> dict[str, Any]:
    """The content of metrics.json: per model and metric {"mean", "se"}, then what was done."""

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


def _axis_label(catalog: Catalog, feature: int) -> str:
    name, unit = catalog.feature_names[feature], catalog.measurements.units[feature]
    written_out = catalog.schema.features[name].label
    return written_out or (f"{name} [{unit}]" if unit else name)


def write_tables(table: Table, folder: Path, origin: dict[str, Any]) -> None:
    """probabilities.fits with units and a header, probabilities.csv with # comment lines first."""
    stamped = table.copy(copy_data=False)
    stamped.meta = {
        "CREATOR": f"gpal {origin['gpal']}",
        "DATE": origin["date"],
        "CATALOG": str(origin["catalog"].get("catalog", "")),
        "CATSHA": str(origin["catalog"].get("sha256", "")),
        "SEED": origin["random_state"],
        "PROVENAN": to_json(origin),
    }
    write_fits(stamped, folder / "probabilities.fits")
    with open(folder / "probabilities.csv", "w", encoding="utf-8") as file:
        file.write(f"# provenance: {to_json(origin)}\n")
        for column in table.itercols():
            unit = f" [{column.unit}]" if column.unit else ""
            file.write(f"# {column.name}{unit}: {column.description}\n")
        table.to_pandas().to_csv(file, index=False, quoting=csv.QUOTE_NONNUMERIC)


def _stamp_model(path: Path, origin: dict[str, Any]) -> None:
    """Add provenance.json to the model file: an .npz is a zip archive, and the model itself does
    not know which catalog it was fitted to."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo("provenance.json"), to_json(origin))


def _write_figures(
    validation: CrossValidation,
    catalog: Catalog,
    table: Table,
    folder: Path,
    origin: dict[str, Any],
) -> None:
    classes, labelled = validation.classes.tolist(), np.asarray(table["out_of_fold"])
    prediction, candidate = np.asarray(table["prediction"]), np.asarray(table["candidate"])
    measurements = catalog.measurements
    drawn = {
        "confusion_matrix.png": figures.confusion_figure(
            validation.estimate(confusion_matrix, MODEL),
            classes,
            np.bincount(validation.y).tolist(),
        ),
        "reliability.png": figures.reliability_figure(
            validation.y, validation.out_of_fold(MODEL), classes
        ),
        "sky_map.png": figures.sky_figure(
            table["glon"], table["glat"], prediction, candidate, classes
        ),
    }
    if len(measurements.names) > 1:
        pair = figures.most_informative_pair(catalog.X[labelled], validation.y)
        shown = measurements.select([measurements.names[j] for j in pair])
        drawn["features.png"] = figures.feature_figure(
            shown.X,
            shown.X_err,
            [_axis_label(catalog, j) for j in pair],
            catalog.y,
            prediction,
            candidate,
            classes,
        )
    for name, figure in drawn.items():
        figures.save_figure(figure, folder / name, origin)
