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
from typing import Any

import numpy as np
from astropy.table import Table

from gpal import plot
from gpal.catalog import Catalog
from gpal.catalog.columns import numbers
from gpal.catalog.cuts import sentinels_of
from gpal.catalog.sentinels import is_sentinel
from gpal.errors import InputError
from gpal.evaluation import any_classifier, covariate_shift
from gpal.evaluation.baselines import gradient_boosting, random_forest
from gpal.evaluation.prospective import (
    CORRECTIONS,
    Classes,
    ProspectiveValidation,
    prospective_split,
    prospective_validation,
)
from gpal.files.output import staged_folder
from gpal.jobs.class_counts import MOST, SAMPLES
from gpal.jobs.models import MODEL, compared, recommended, taught, taught_faint
from gpal.jobs.probability_catalogue import add_column, write_tables
from gpal.jobs.result_folder import RESULT_FILES, refuse_survey
from gpal.jobs.validation_metrics import validation_metrics
from gpal.names import check_run, check_seed, check_words, probability_column
from gpal.provenance import provenance, to_json
from gpal.report import render_report
from gpal.summary import Summary, counted, estimated

__all__ = ["ValidationResult", "validate"]

UCDS = {
    "name": "meta.id;meta.main",
    "ra": "pos.eq.ra;meta.main",
    "dec": "pos.eq.dec;meta.main",
    "origin": "src.class",
    "new_name": "meta.id",
    "new_class": "src.class",
    "new_catalog_class": "src.class",
    "outcome": "meta.code",
    "significance": "stat.snr",
}


@dataclass(frozen=True, repr=False)
class ValidationResult:
    """What `validate` made: the folder, the table of all targets, the scores, the predictions.

    Attributes
    ----------
    folder : Path
    table : Table
        One row per target of the old release.
    metrics : dict
        The content of metrics.json.
    variants : dict of str to ProspectiveValidation
        Choice of features -> predictions; the first is the main one.
    """

    folder: Path
    table: Table
    metrics: dict[str, Any]
    variants: dict[str, ProspectiveValidation]

    def summary(self) -> Summary:
        """What was examined, and the scores of every model with all features, mean ± s.e.

        Returns
        -------
        Summary
            The NLL with the labelled sources' class fractions, then the scores with those that are
            recommended: estimated for each origin, and left open with a class `other`.
        """
        of = self.metrics
        facts = {
            "labelled": f"{of['n_labelled']:,}: {counted(of['n_labelled_per_class'])}",
            "targets": f"{of['n_targets']:,}",
            "examined": f"{of['n_examined']:,}: {counted(of['n_examined_per_class'])}",
            "outcomes": counted(of["outcomes"]["all targets"]),
            "report": str(self.folder / "report.html"),
        }
        main = next(iter(of["variants"].values()))
        recommended = of["settings"]["correction"]
        shown = [("train", "nll"), *((recommended, name) for name in ("nll", "error", "brier"))]
        rows = [
            [m, *(estimated(main[c][m][name]["mean"], main[c][m][name]["se"]) for c, name in shown)]
            for m in of["models"]
        ]
        return Summary("Validation", facts, ["model", *(f"{n}, {c}" for c, n in shown)], rows)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


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
    faint: bool | None = None,
    beside: Sequence[str] = (),
    random_state: int = 0,
    progress: bool | None = None,
) -> ValidationResult:
    """Train on what an old release labels, test on what a new one identified since, and write a
    folder.

    Files: report.html, probabilities.fits and .csv, metrics.json and figures; the probabilities are
    those of every target.

    Parameters
    ----------
    old, new : Catalog
    out : str or path
        The folder.
    classifier : classifier, optional
        Scikit-learn's kind; None: GPClassifier(**RECOMMENDED_MODEL).
    classes : iterable of str, or mapping of str to iterables of str, optional
        As in Catalog.with_classes, for both releases; None: their current groups.
    without : sequence of str, optional
        Features to leave out in a second run; None: those named after variability.
    significance : str
        Column of `old` along which calibration is shown, where there is one.
    fallback_radius : float
        Degrees, the 95 % radius of a source without a position error.
    n_seeds : int
        Fits of every model; scores are averages over them.
    faint : bool, optional
        Learn from labelled sources also as they would look if as faint as the targets, as in
        `classify`; of the plain classifiers none does.
    beside : sequence of str
        Further plain classifiers, of packages that are installed: "tabpfn", "tabicl", see
        gpal.evaluation.baselines.pretrained.
    random_state : int
        The first seed.
    progress : bool, optional
        None shows a bar on a terminal only.

    Returns
    -------
    ValidationResult

    Raises
    ------
    InputError
        Before any fit, on a folder that cannot be written to, names that cannot be written (see
        gpal.names), releases without a common source, and classes that one of them lacks.

    Examples
    --------
    >>> import gpal
    >>> from gpal.evaluation import logistic_regression
    >>> old, new = (gpal.load_catalog(name, features=["index"]) for name in ("4fgl", "4fgl-dr4"))
    >>> options = {"classifier": logistic_regression(), "n_seeds": 1}
    >>> result = gpal.validate(old[::10], new, "validation", **options)
    >>> result.metrics["n_examined"] > 0
    True
    """
    if n_seeds < 1:
        raise InputError(f"n_seeds must be at least 1, got {n_seeds}")
    for seed in (random_state, random_state + n_seeds - 1):
        check_seed(seed)
    if classes is not None:
        classes = classes if isinstance(classes, Mapping) else list(classes)
        old, new = old.with_classes(classes), new.with_classes(classes)
    split = prospective_split(old, new, fallback_radius=fallback_radius)
    features = split.labelled.feature_names
    check_run(split.classes.tolist(), features, old.names, out)
    check_words("source name in the new release", new.names)
    check_words("class in the old release", split.origin)
    S = _significance(split.targets, significance)
    if without is not None and set(features) <= set(without):
        raise InputError(f"without {', '.join(without)} no feature is left: keep one")
    refuse_survey(out)
    with staged_folder(out, RESULT_FILES) as folder:
        if classifier is None:
            classifier = recommended()
        if without is None:
            without = [name for name in features if "variability" in name]
        any_classifier.check_settings(classifier, len(split.classes), len(features))
        faint = taught_faint(old, classifier, faint)
        models = compared(taught(classifier, old, faint), beside) | {
            "random forest": random_forest(),
            "gradient boosting": gradient_boosting(),
        }
        variants: dict[str, ProspectiveValidation] = {}
        for variant, chosen in _variants(features, without).items():
            counted_too = not variants and len(split.targets) <= MOST  # the main one
            variants[variant] = prospective_validation(
                split,
                {name: (model, chosen) for name, model in models.items()},
                n_seeds=n_seeds,
                n_draws=SAMPLES if counted_too else 0,
                random_state=random_state,
                progress=progress,
            )
        settings = {
            "classes": split.classes.tolist(),
            "groups": {name: list(labels) for name, labels in old.groups.items()},
            "new_groups": {name: list(labels) for name, labels in new.groups.items()},
            "features": list(features),
            "without": list(without),
            "n_seeds": n_seeds,
            "fallback_radius": fallback_radius,
            "correction": split.recommended,
            "faint": faint,
            "model": classifier.get_params(deep=False),
        }
        origin = provenance(old.provenance, settings, random_state)
        origin["new_catalog"] = new.provenance
        table = _table(next(iter(variants.values())))
        if S is not None:
            described = f"{significance} in the old release"
            add_column(table, "significance", S, described, ucd=UCDS["significance"])
        metrics = validation_metrics(variants, table, new, settings, origin)
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


def _significance(targets: Catalog, column: str) -> np.ndarray | None:
    """(n,) numbers of the column, NaN where a sentinel stands; None where there is none."""
    if column not in targets.table.colnames:
        return None
    S, absent = numbers(targets.table, column), sentinels_of(targets.table, targets.schema, column)
    return np.where(is_sentinel(S, absent), np.nan, S)


def _table(validation: ProspectiveValidation) -> Table:
    """One row per target of the old release, in its order; probabilities of the first seed."""
    split = validation.split
    targets, labelled = split.targets, split.labelled
    table = Table()

    def column(name: str, values: Any, description: str, unit: str | None = None) -> None:
        ucd = "stat.probability" if name.startswith("p_") else UCDS.get(name, "")
        add_column(table, name, values, description, unit, ucd)

    column("name", np.asarray(targets.names, str), "source name in the old release")
    column("ra", np.asarray(targets.ra, float), "right ascension, J2000", "deg")
    column("dec", np.asarray(targets.dec, float), "declination, J2000", "deg")
    column("origin", np.asarray(split.origin, str), "what the old release called it")
    column("new_name", np.asarray(split.new_names, str), "source name in the new release")
    column("new_class", np.asarray(split.truth, str), "class in the new release, empty if none")
    printed = np.asarray(split.new_labels, str)
    column("new_catalog_class", printed, "class as the new release prints it")
    column("outcome", np.asarray(split.outcome, str), "what became of the source")
    for correction, suffix in (("train", ""), (split.recommended, "_prior")):
        P = validation.corrected(MODEL, correction)[0]
        for c, name in enumerate(split.classes.tolist()):
            described = f"probability of {name}, class fractions: {CORRECTIONS[correction]}"
            column(probability_column(name, suffix), P[:, c], described)
    column(
        "outside_support",
        covariate_shift.outside_support(labelled.measurements, targets.measurements),
        "true: far from every labelled source",
    )
    spread = np.nanstd(labelled.X, axis=0)
    column(
        "error_size",
        covariate_shift.error_size(targets.measurements, spread),
        "root mean square error in units of the labelled sources' spread",
    )
    return table


def _write_figures(
    variants: Mapping[str, ProspectiveValidation],
    metrics: Mapping[str, Any],
    folder: Path,
    origin: Mapping[str, Any],
) -> None:
    main = next(iter(variants.values()))
    recommended = main.split.recommended
    made = {
        "scores.png": plot.scores(metrics["variants"]),
        "calibration.png": plot.calibration(metrics, correction=recommended),
        "reliability_by_origin.png": plot.reliability_by_origin(metrics),
        "reliability.png": plot.reliability(main, model=MODEL),
        "roc.png": plot.roc(main, model=MODEL, correction=recommended),
        "purity_completeness.png": plot.purity_completeness(
            main, model=MODEL, correction=recommended
        ),
        "reliability_corrected.png": plot.reliability(main, model=MODEL, correction=recommended),
    }
    for name, axes in made.items():
        plot.save(axes, folder / name, origin)
