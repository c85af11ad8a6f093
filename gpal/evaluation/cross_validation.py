"""Repeated stratified cross-validation that keeps every error bar with its source.

Each repeat divides the n sources into K folds; every source is predicted once per repeat by a model
that never saw it, so a repeat yields n out-of-fold predictions. A statistic T (a metric, a
confusion matrix) is computed on all n of them, and

    mean   average over repeats of T
    s.e.   average over repeats of the delete-a-fold jackknife (Efron & Tibshirani 1993, eq. 11.5)

               se² = (K − 1)/K Σ_k (T_(−k) − mean_k T_(−k))²,     T_(−k): without the fold k

For a T that averages over sources and folds of one size these are the mean over splits and the
standard deviation over splits / √K; for the calibration error and F1, which folds of few sources
would bias, they stay meaningful. Repeats divide the same sources again: they steady the mean but
are not new data, so they do not shrink the s.e. Folds share training sources, so no unbiased
estimate of this s.e. exists (Bengio & Grandvalet 2004, JMLR 5, 1089): read it as a scale. Models
are compared by paired differences, fold by fold on the same splits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold
from tqdm.auto import tqdm

from gpal.catalog.schema import close_matches
from gpal.errors import InputError, shown
from gpal.evaluation import any_classifier
from gpal.measurements import Measurements
from gpal.metrics import METRICS
from gpal.metrics.scores import Macro
from gpal.model.labels import holds_weights, labels_as_given
from gpal.parallel import in_parallel
from gpal.plain_values import warn_of_other_rows
from gpal.summary import Summary, counted, estimated

__all__ = ["CrossValidation", "Estimate", "cross_validate"]

SHOWN = ("nll", "error", "brier", "ece")  # in a summary

Statistic = Callable[[np.ndarray, np.ndarray], Any]
Task = tuple[str, int | None]  # a model, and the split that it is tried on; None: none


class Estimate(NamedTuple):
    """Mean and standard error of a statistic, of the statistic's own shape.

    Attributes
    ----------
    mean : array
    se : array

    Examples
    --------
    >>> from gpal.evaluation import Estimate
    >>> Estimate(0.3, 0.01).se
    0.01
    """

    mean: np.ndarray
    se: np.ndarray


@dataclass(frozen=True, repr=False)
class CrossValidation:
    """Out-of-fold predictions of several models on the same splits: R repeats of K folds.

    Attributes
    ----------
    y : array (n,) of int
        Class index into `classes`.
    classes : array (C,)
        Class names, sorted.
    fold : array (R, n) of int
        The fold in which a source was predicted.
    probabilities : mapping of str to array (R, n, C)
        By model.
    deviations : mapping of str to array (R, n, C)
        Standard deviation of the probabilities over the posterior, for models that have
        `predict_proba_std`.
    refitted : classifier, optional
        The model that was asked for, fitted to all the sources.

    Examples
    --------
    >>> import numpy as np
    >>> from gpal import cross_validate
    >>> from gpal.evaluation import logistic_regression
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(X[:, 0] > 0, "star", "quasar")
    >>> folds = cross_validate({"linear": logistic_regression()}, X, y, n_splits=3)
    >>> folds.out_of_fold("linear").shape
    (60, 2)
    """

    y: np.ndarray
    classes: np.ndarray
    fold: np.ndarray
    probabilities: Mapping[str, np.ndarray]
    deviations: Mapping[str, np.ndarray]
    refitted: Any = None

    @property
    def models(self) -> list[str]:
        """Their names, the one in question first."""
        return list(self.probabilities)

    def summary(self) -> Summary:
        """Sources and folds, and the scores of every model, mean ± standard error.

        Returns
        -------
        Summary
        """
        number = np.bincount(self.y, minlength=len(self.classes)).tolist()
        counts = zip(self.classes.tolist(), number, strict=True)
        repeats = "" if len(self.fold) == 1 else f", {len(self.fold)} times"
        facts = {
            "sources": f"{len(self.y):,}: {counted(dict(counts))}",
            "folds": f"{len(np.unique(self.fold[0]))}{repeats}",
        }
        rows = [
            [model, *(estimated(*self.estimate(METRICS[name], model)) for name in SHOWN)]
            for model in self.models
        ]
        return Summary("Cross-validation", facts, ["model", *SHOWN], rows)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def out_of_fold(self, model: str) -> np.ndarray:
        """Out-of-fold probabilities, averaged over repeats.

        Parameters
        ----------
        model : str

        Returns
        -------
        array (n, C)
        """
        return self.probabilities[model].mean(axis=0)

    def out_of_fold_std(self, model: str) -> np.ndarray:
        """Their standard deviation: within a repeat and between repeats (total variance).

        Parameters
        ----------
        model : str

        Returns
        -------
        array (n, C)
        """
        within = np.mean(self.deviations[model] ** 2, axis=0)
        return np.sqrt(within + self.probabilities[model].var(axis=0))

    def among(self, rows: np.ndarray) -> CrossValidation:
        """The same predictions, of some of the sources alone.

        Parameters
        ----------
        rows : array (n,) of bool

        Returns
        -------
        CrossValidation
            Without the refitted model.

        Raises
        ------
        InputError
            Where the sources are of fewer than two folds, so that no error can be told.
        """
        fold = self.fold[:, rows]
        if any(len(np.unique(of_repeat)) < 2 for of_repeat in fold):
            raise InputError(
                f"{fold.shape[1]} sources, all of one fold, have scores without errors; take more"
            )
        return replace(
            self,
            y=self.y[rows],
            fold=fold,
            probabilities={name: P[:, rows] for name, P in self.probabilities.items()},
            deviations={name: σ[:, rows] for name, σ in self.deviations.items()},
            refitted=None,
        )

    def estimate(self, statistic: Statistic, model: str, minus: str | None = None) -> Estimate:
        """Mean and standard error of a statistic for a model, or of its paired difference with
        another.

        Parameters
        ----------
        statistic : function
            Of y (n,) and P (n, C), such as those of `gpal.metrics`.
        model : str
        minus : str, optional
            The other model.

        Returns
        -------
        Estimate
            Of a mean over classes: over those that have a score in the whole sample, in every part
            of it; the error is NaN where one has none without a fold.
        """
        for name in (model, minus):
            if name is not None and name not in self.probabilities:
                raise InputError(f"no model '{shown(name)}'; {close_matches(name, self.models)}")
        of_classes = isinstance(statistic, Macro)
        if isinstance(statistic, Macro):
            statistic = statistic.per_class
        means, errors = [], []
        for repeat, fold in enumerate(self.fold):
            P = self.probabilities[model][repeat]
            Q = None if minus is None else self.probabilities[minus][repeat]

            def value(rows: np.ndarray, P: np.ndarray = P, Q: np.ndarray | None = Q) -> np.ndarray:
                first = np.asarray(statistic(self.y[rows], P[rows]), float)
                return first if Q is None else first - statistic(self.y[rows], Q[rows])

            folds = np.unique(fold)
            whole = value(np.full(len(fold), True))
            without = np.stack([value(fold != k) for k in folds])
            if of_classes:
                known = ~np.isnan(whole)
                whole = whole[known].mean() if known.any() else np.array(np.nan)
                without = without[:, known].mean(axis=1) if known.any() else without[:, 0]
            means.append(whole)
            errors.append(np.sqrt((len(folds) - 1) * without.var(axis=0)))
        return Estimate(np.mean(means, axis=0), np.mean(errors, axis=0))

    def per_fold(self, model: str) -> pd.DataFrame:
        """Every metric on every fold alone.

        Parameters
        ----------
        model : str

        Returns
        -------
        DataFrame
            One row per repeat and fold, with its number of sources.
        """
        return pd.DataFrame(
            {"repeat": repeat, "fold": k, "n": int(rows.sum())}
            | {
                name: metric(self.y[rows], self.probabilities[model][repeat][rows])
                for name, metric in METRICS.items()
            }
            for repeat, fold in enumerate(self.fold)
            for k in np.unique(fold)
            for rows in [fold == k]
        )


def cross_validate(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    X_err: Any = None,
    X_cov: Any = None,
    *,
    n_splits: int = 10,
    n_repeats: int = 1,
    random_state: int = 0,
    refit: Any = None,
    jobs: int = 1,
    progress: bool | None = None,
) -> CrossValidation:
    """Fit a clone of every model on every split's training sources and predict the rest.

    Whatever a model chooses (scaling, hyper-parameters) it chooses in `fit`, on training sources.

    Parameters
    ----------
    models : mapping of str to classifier
        Scikit-learn classifiers; each is told of the errors what it can take, see
        gpal.evaluation.any_classifier.
    X : Measurements or array (n, d)
        Sources, or their values.
    y : array (n,)
        Class names.
    X_err : array (n, d), (d,) or float, optional
        1-sigma errors of the values.
    X_cov : array (n, d, d), optional
        Covariances of the errors instead.
    n_splits, n_repeats : int
        Folds, and how often the sources are divided anew.
    random_state : int
        Seed of the folds.
    refit : str or classifier, optional
        The model that is fitted to all the sources as well, `refitted` of the result: one of
        `models` by its name, or another one.
    jobs : int
        Fits at a time, in this process and others; the numbers are the same.
    progress : bool, optional
        None shows a bar on a terminal only.

    Returns
    -------
    CrossValidation

    Raises
    ------
    InputError
        On one class only, on a class with fewer sources than folds, on a label that is missing or
        masked, on another number of labels than of sources, and on a composite that would hand a
        classifier in it values without their errors.

    Examples
    --------
    >>> import gpal
    >>> from gpal.evaluation import logistic_regression, random_forest
    >>> known = gpal.load_catalog("4fgl-dr4").labelled(["bll", "psr"])[::10]
    >>> models = {"linear": logistic_regression(), "forest": random_forest()}
    >>> folds = gpal.cross_validate(models, known.measurements, known.y, n_splits=3)
    >>> gap = folds.estimate(gpal.metrics.brier, "linear", minus="forest")
    >>> bool(abs(gap.mean) < 0.2)
    True
    """
    warn_of_other_rows(X, stacklevel=3, y=y)
    exact = isinstance(X, pd.DataFrame) and X_err is None and X_cov is None  # keeps its names
    sources = X if exact else any_classifier.as_sources(X, X_err, X_cov)
    y = np.asarray(labels_as_given(y))
    if isinstance(sources, Measurements):
        sources = sources.with_parts_alike()
    if holds_weights(y):
        raise InputError(
            "cross-validation is of sources of one known class: leave out those whose label is a"
            " set or has weights"
        )
    if y.shape != (len(sources),):
        raise InputError(
            f"y has shape {y.shape}: give one class for each of {len(sources)} sources"
        )
    classes, index = np.unique(y, return_inverse=True)
    _check(classes, index, n_splits, n_repeats)
    splitter = RepeatedStratifiedKFold(
        n_splits=n_splits, n_repeats=n_repeats, random_state=random_state
    )
    shape = (n_repeats, len(index), len(classes))
    fold = np.zeros(shape[:2], dtype=int)
    probabilities = {name: np.zeros(shape) for name in models}
    deviations = {
        name: np.zeros(shape) for name, m in models.items() if any_classifier.has_deviation(m)
    }
    splits = list(splitter.split(index, index))
    if isinstance(refit, str) and refit not in models:
        raise InputError(f"no model '{shown(refit)}' to refit; {close_matches(refit, models)}")
    tasks: list[Task] = [(name, k) for name in models for k in range(len(splits))]
    fitted_to_all = models[refit] if isinstance(refit, str) else refit
    if refit is not None:
        tasks.insert(0, ("all sources", None))
    run = partial(_run, models, fitted_to_all, sources, y, splits, list(deviations))
    refitted = None
    with tqdm(
        total=len(tasks),
        desc="cross-validation",
        unit="fit",
        disable=None if progress is None else not progress,
    ) as bar:
        for i, found in in_parallel(run, tasks, jobs):
            name, number = tasks[i]
            bar.set_postfix_str(name)
            bar.update()
            if number is None:
                refitted = found
                continue
            repeat, k = divmod(number, n_splits)
            test = splits[number][1]
            fold[repeat, test] = k
            probabilities[name][repeat, test], deviation = found
            if deviation is not None:
                deviations[name][repeat, test] = deviation
    return CrossValidation(index, classes, fold, probabilities, deviations, refitted)


def _run(
    models: Mapping[str, Any],
    fitted_to_all: Any,
    sources: any_classifier.Sources,
    y: np.ndarray,
    splits: list[tuple[np.ndarray, np.ndarray]],
    deviating: list[str],
    task: Task,
) -> Any:
    """Probabilities of a split's test sources by a model of its training sources, and their
    deviations, if the model is one of those that have some; without a split, the model of all."""
    name, number = task
    if number is None:
        return any_classifier.fit(clone(fitted_to_all), sources, y)
    train, test = splits[number]
    some, others = (any_classifier.rows_of(sources, rows) for rows in (train, test))
    fitted = any_classifier.fit(clone(models[name]), some, y[train])
    if name not in deviating:
        return any_classifier.predict_proba(fitted, others), None
    return any_classifier.predict_proba_with_std(fitted, others)


def _check(classes: np.ndarray, index: np.ndarray, n_splits: int, n_repeats: int) -> None:
    if n_splits < 2 or n_repeats < 1:
        raise InputError(
            f"cross-validation needs at least 2 folds and 1 repeat, got {n_splits} and {n_repeats};"
            " give n_splits=10, n_repeats=1"
        )
    if len(classes) < 2:
        raise InputError(
            f"the labelled sources have fewer than two classes: {classes.tolist()};"
            " name at least two classes that the catalog holds"
        )
    counts = np.bincount(index)
    if counts.min() < n_splits:
        remedy = f"take {counts.min()} folds or leave the class out"
        raise InputError(
            f"{n_splits} folds, but of class '{classes[counts.argmin()]}' labelled sources:"
            f" {counts.min()}; {remedy if counts.min() > 1 else 'leave the class out'}"
        )
