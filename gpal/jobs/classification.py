"""The main job: from a catalog to a folder with a calibrated probability for every source.

1. cross-validate the classifier, and logistic regression beside it, on the labelled sources;
2. fit the classifier to all labelled sources, at the same time;
3. give every source of the release its probabilities: labelled ones their out-of-fold prediction,
   which never saw their own label, all others the full fit's; candidates, when asked, refer to the
   class fractions estimated on them. Where one of the classes is `other` the full fit has also
   learned how labelled sources would look if as faint as the candidates;
4. write table, metrics, figures, model and report, all or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table
from tqdm import tqdm

from gpal.catalog import Catalog
from gpal.errors import InputError
from gpal.evaluation import any_classifier
from gpal.evaluation.cross_validation import CrossValidation, cross_validate
from gpal.files.output import staged_folder
from gpal.jobs.class_counts import candidate_counts
from gpal.jobs.class_fractions import check_prior, refer_to, target_fractions
from gpal.jobs.classification_figures import write_figures
from gpal.jobs.classification_metrics import classification_metrics
from gpal.jobs.models import MODEL, compared, recommended, taught, taught_faint
from gpal.jobs.probability_catalogue import (
    add_uncorrected,
    probability_catalogue,
    write_tables,
)
from gpal.jobs.result_folder import RESULT_FILES, refuse_survey
from gpal.names import check_run, check_seed, check_words
from gpal.parallel import in_parallel, kept_processes
from gpal.plot.style import check_math
from gpal.provenance import provenance, to_json
from gpal.report import render_report
from gpal.summary import Summary, counted

__all__ = ["ClassificationResult", "classify"]

BLOCK = 10_000  # sources between two steps of the progress bar


@dataclass(frozen=True, repr=False)
class ClassificationResult:
    """What `classify` made: the folder, the table in it, the scores, and the fitted classifier.

    Attributes
    ----------
    folder : Path
    catalog : Catalog
        With the classes that were told apart.
    table : Table
        One row per source, as in probabilities.fits.
    metrics : dict
        The content of metrics.json.
    cross_validation : CrossValidation
        Of the classifier, and of the plain ones beside it.
    classifier : classifier
        Fitted to all labelled sources.
    """

    folder: Path
    catalog: Catalog
    table: Table
    metrics: dict[str, Any]
    cross_validation: CrossValidation
    classifier: Any

    def summary(self) -> Summary:
        """Sources, predictions, and the scores of every model, mean ± standard error.

        Returns
        -------
        Summary
        """
        of, scores = self.metrics, self.cross_validation.summary()
        release = self.catalog.schema.title or self.catalog.schema.name
        facts = {
            "sources": f"{of['n_sources']:,}",
            "labelled": f"{of['n_labelled']:,}: {counted(of['n_labelled_per_class'])}",
            "candidates": f"{of['n_targets']:,}: {counted(of['n_targets_per_prediction'])}",
            "folds": scores.facts["folds"],
            "report": str(self.folder / "report.html"),
        }
        return Summary(f"Classification of {release}", facts, scores.columns, scores.rows)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


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
    faint: bool | None = None,
    beside: Sequence[str] = (),
    random_state: int = 0,
    jobs: int = 1,
    progress: bool | None = None,
) -> ClassificationResult:
    """Classify every source of a catalog and write a folder of results.

    Files: report.html, probabilities.fits and .csv, metrics.json and figures, features.png of two
    features or more, spectra.png of a release with bands; model.npz if the classifier can `save`
    itself. Results that were there before, of whichever job, are removed.

    Parameters
    ----------
    catalog : Catalog
    out : str or path
        The folder.
    classifier : classifier, optional
        Scikit-learn's kind; None: GPClassifier(**RECOMMENDED_MODEL).
    classes : iterable of str, or mapping of str to iterables of str, optional
        As in Catalog.with_classes; None: the groups that the catalog has already, which are bll,
        fsrq and psr for a Fermi-LAT release as loaded.
    n_splits, n_repeats : int
        Folds of the stratified cross-validation, and how often it is repeated.
    confidence : float
        A source whose largest probability is below it is called MIXED.
    prior : str or mapping of str to float
        Class fractions that the candidates' probabilities refer to: "train", those of the labelled
        sources; "estimated", those of the candidates, estimated for each catalog class of them; or
        class -> fraction. With "train" candidates of a class whose fractions are known, see
        Catalog.known_fractions, have those. Where any differ from those of the labelled sources,
        columns p_*_train have the probabilities as they were.
    faint : bool, optional
        Learn from labelled sources also as they would look if as faint as the candidates, see
        gpal.catalog.Fainter; None: where one of the classes is `other` and the schema says how.
    beside : sequence of str
        Further plain classifiers in the cross-validation, of packages that are installed: "tabpfn",
        "tabicl", see gpal.evaluation.baselines.pretrained.
    random_state : int
        Seed of folds and model.
    jobs : int
        Fits of the cross-validation at a time; the numbers are the same.
    progress : bool, optional
        None shows a bar on a terminal only.

    Returns
    -------
    ClassificationResult

    Raises
    ------
    InputError
        Before any computation, on a folder that cannot be written to, names that cannot be written
        (see gpal.names), one class only, fewer labelled sources of a class than folds, and a
        classifier that has class fractions of its own.

    Examples
    --------
    >>> import gpal
    >>> from gpal.evaluation import logistic_regression
    >>> catalog = gpal.load_catalog("4fgl-dr4", features=["index", "flux"])[::20]
    >>> result = gpal.classify(catalog, "results", classifier=logistic_regression(), n_splits=2)
    >>> result.metrics["n_sources"], len(result.table)
    (360, 360)
    >>> gpal.plot.save(gpal.plot.reliability(result, width="page"), "reliability.pdf", result)
    """
    if not 0 <= confidence <= 1:
        raise InputError(f"confidence is a probability, got {confidence}; give one from 0 to 1")
    catalog = catalog if classes is None else catalog.with_classes(classes)
    check_seed(random_state)
    check_run(catalog.classes, catalog.feature_names, catalog.names, out)
    check_words("class in the catalog", catalog.original_labels)
    for name in catalog.feature_names:
        check_math(catalog.schema.features[name].label)
    refuse_survey(out)
    with staged_folder(out, RESULT_FILES) as folder, kept_processes(jobs):
        if classifier is None:
            classifier = recommended(random_state)
        any_classifier.refuse_own_fractions(classifier)
        labelled = catalog.y != ""
        known = catalog[labelled]
        train = dict(zip(*np.unique(known.y, return_counts=True), strict=True))
        check_prior(prior, train, catalog.is_target, catalog.leaves_none_out)
        any_classifier.check_settings(classifier, len(train), len(catalog.feature_names))
        faint = taught_faint(catalog, classifier, faint)
        validation = cross_validate(
            compared(classifier, beside),
            known.measurements,
            known.y,
            n_splits=n_splits,
            n_repeats=n_repeats,
            random_state=random_state,
            refit=taught(classifier, catalog, faint, random_state),
            jobs=jobs,
            progress=progress,
        )
        fitted = validation.refitted.classifier_ if faint else validation.refitted
        P_train, deviation = _probabilities(fitted, catalog, validation, labelled, progress)
        known_fractions = catalog.known_fractions() if prior == "train" else {}
        fractions, estimates = target_fractions(
            prior, train, P_train, catalog.is_target, catalog.labels, known_fractions
        )
        P, deviation = refer_to(fractions, train, fitted, catalog.measurements, P_train, deviation)

        settings = {
            "classes": validation.classes.tolist(),
            "groups": {name: list(labels) for name, labels in catalog.groups.items()},
            "n_splits": n_splits,
            "n_repeats": n_repeats,
            "confidence": confidence,
            "prior": prior,
            "faint": faint,
            "features": list(catalog.feature_names),
            "model": getattr(fitted, "settings_", None) or fitted.get_params(deep=False),
        }
        origin = provenance(catalog.provenance, settings, random_state)
        table = probability_catalogue(
            catalog, P, deviation, validation.classes.tolist(), confidence
        )
        if prior != "train" or known_fractions:
            add_uncorrected(table, P_train, validation.classes.tolist())
        estimated = prior == "estimated"
        side_by_side = [
            partial(
                candidate_counts,
                *(fitted, catalog, P_train, train, fractions, estimated, random_state),
            ),
            partial(_tables_and_figures, validation, catalog, table, settings, folder, origin),
        ]
        counts, metrics = (
            found for _, found in sorted(in_parallel(_call, side_by_side, jobs), key=itemgetter(0))
        )
        metrics["priors"], metrics["known_fractions"] = estimates, known_fractions
        metrics["counts"] = counts
        (folder / "metrics.json").write_text(to_json(metrics, indent=1) + "\n")
        any_classifier.save(fitted, folder / "model.npz", origin)
        render_report(folder)
    return ClassificationResult(Path(out), catalog, table, metrics, validation, fitted)


def _call(task: Callable[[], Any]) -> Any:
    return task()


def _tables_and_figures(
    validation: CrossValidation,
    catalog: Catalog,
    table: Table,
    settings: Mapping[str, Any],
    folder: Path,
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """Written into the folder; and the metrics."""
    write_tables(table, folder, origin)
    write_figures(validation, catalog, table, folder, origin)
    return classification_metrics(validation, catalog, table, settings, origin)


def _probabilities(
    fitted: Any,
    catalog: Catalog,
    validation: CrossValidation,
    labelled: np.ndarray,
    progress: bool | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, C) probabilities and their standard deviations (None if the model knows none)."""
    C = len(validation.classes)
    knows_deviation = MODEL in validation.deviations
    P, deviation = np.empty((2, len(labelled), C))
    P[labelled] = validation.out_of_fold(MODEL)
    if knows_deviation:
        deviation[labelled] = validation.out_of_fold_std(MODEL)
    rest = np.flatnonzero(~labelled)
    hidden = True if progress is False or not len(rest) else None
    with tqdm(total=len(rest), desc="predicting", unit="source", disable=hidden) as bar:
        for first in range(0, len(rest), BLOCK):
            rows = rest[first : first + BLOCK]
            sources = catalog.measurements[rows]
            if knows_deviation:
                P[rows], deviation[rows] = any_classifier.predict_proba_with_std(fitted, sources)
            else:
                P[rows] = any_classifier.predict_proba(fitted, sources)
            bar.update(len(rows))
    return P, deviation if knows_deviation else None
