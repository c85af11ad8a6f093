"""Scores of predicted class probabilities against the known classes.

n sources, C classes. Everywhere y is the (n,) class index 0 … C−1, or with `classes=` the class
names, and P the (n, C) matrix of probabilities with rows that sum to one.

    error   fraction of sources whose most probable class is not their class
    nll     −1/n Σ ln P[i, y_i]                       mean negative log predictive density, nats
    brier   1/n Σ_i Σ_c (P[i, c] − 1[y_i = c])²       from 0 to 2 (Brier 1950)
    ece     Σ_b n_b/n |accuracy_b − confidence_b|     expected calibration error of the top label,
                                                      15 bins of equal width (Guo et al. 2017)
    auc     P(p_c of a member > p_c of another source) + ½ P(=)    area under the ROC curve of a
                                                      class c against the rest; 1/2 by chance

Precision, recall and F1 are scikit-learn's; a class that is never predicted has precision 0. Of a
class without a source recall, F1 and row of the confusion matrix are NaN, as is the precision if it
is not predicted either; means leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu
from sklearn.metrics import confusion_matrix as count_confusions
from sklearn.metrics import precision_recall_fscore_support

from gpal.array_messages import as_numbers, refuse_masked
from gpal.errors import InputError, shown
from gpal.plain_values import first_other, refuse_other_columns, words_as_list

__all__ = [
    "ECE_BINS",
    "METRICS",
    "Macro",
    "brier",
    "class_index",
    "confusion_matrix",
    "entropy",
    "error",
    "expected_calibration_error",
    "macro_auc",
    "negative_log_predictive_density",
    "precision_recall_f1",
    "roc_auc",
]

ECE_BINS = 15
ROUNDING = 1e-4  # of a source's probabilities, whose sum is one

Classes = Sequence[str] | np.ndarray | None


def class_index(y: Any, P: Any, classes: Classes = None) -> tuple[np.ndarray, np.ndarray]:
    """(y, P) as every score takes them: indices of classes, and probabilities.

    Parameters
    ----------
    y : array (n,) of int or str
        Index of each source's class; or, where `classes` are given, its name.
    P : array (n, C)
        Probabilities of the C classes.
    classes : sequence of C str, optional
        Names in the order of the columns of `P`, as `classifier.classes_`.

    Returns
    -------
    y : array (n,) of int
    P : array (n, C) of float

    Raises
    ------
    InputError
        Where shapes do not fit, `P` holds no probabilities, or `y` a class that has no column.

    Examples
    --------
    >>> from gpal.metrics import class_index
    >>> y, P = class_index(["psr", "bll"], [[0.2, 0.8], [0.9, 0.1]], classes=["bll", "psr"])
    >>> y
    array([1, 0])
    """
    refuse_masked(y=y, P=P)
    refuse_other_order(y, P, classes)
    y, P = np.asarray(words_as_list(y)), as_numbers("P", P)
    if classes is not None and np.asarray(classes).dtype.kind == "f" and y.dtype.kind in "iu":
        y = y.astype(float)  # pandas makes whole numbers floats where one is missing
    kinds = set | frozenset | Mapping
    partial = [isinstance(label, kinds) for label in y.flat] if y.dtype == object else []
    if any(partial):
        raise InputError(
            f"the label of row {partial.index(True)} is a set of classes or has weights: scores are"
            " of sources of one known class, leave out the others"
        )
    if P.ndim != 2 or y.shape != P.shape[:1] or not len(y):
        raise InputError(
            f"y has shape {y.shape} and P {P.shape}: give one class per source, and a row of"
            " probabilities"
        )
    wrong = ~(P >= 0).all(axis=1) | ~(np.abs(P.sum(axis=1) - 1) < ROUNDING)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"row {row} of P holds no probabilities ({shown(P[row].tolist(), 60)}): they are"
            " positive, and their sum is one"
        )
    if classes is not None:
        names = [str(name) for name in classes]
        if len(names) != P.shape[1] or len(set(names)) < len(names):
            raise InputError(f"P has {P.shape[1]} columns: give as many different classes")
    numbered = classes is not None and np.asarray(classes).dtype.kind in "iu"
    if classes is not None and not numbered and y.dtype.kind in "iu":
        digits = all(name.isdigit() for name in names)
        if digits and names != [str(c) for c in range(len(names))]:
            raise InputError(
                f"y holds numbers and the classes are text, {shown(', '.join(names), 100)}: give y"
                " as text if these are meant, or leave `classes` out for indices"
            )
    # Integers are names only among classes that are numbers.
    if classes is not None and (y.dtype.kind not in "iu" or numbered):
        column = {name: c for c, name in enumerate(names)}
        unknown = sorted(set(y.astype(str).tolist()) - set(column))
        if unknown:
            raise InputError(
                f"class '{shown(unknown[0])}' of y is none of {shown(', '.join(names), 100)}"
            )
        return np.array([column[name] for name in y.astype(str).tolist()]), P
    if y.dtype.kind not in "iu":
        raise InputError("y holds no class indices: give `classes`, in the order of P's columns")
    if y.min() < 0 or y.max() >= P.shape[1]:
        raise InputError(
            f"y holds indices from {y.min()} to {y.max()}, P the probabilities of {P.shape[1]}"
            f" classes, 0 to {P.shape[1] - 1}"
        )
    return y, P


def check_bins(bins: Any) -> None:
    """InputError unless it is a number of bins."""
    if not isinstance(bins, int | np.integer) or isinstance(bins, bool) or bins < 1:
        raise InputError(f"bins is a whole number above 0, got {shown(repr(bins))}")


def refuse_other_order(y: Any, P: Any, classes: Classes) -> None:
    """InputError where columns or rows of a data frame say that they are those of others. Columns
    may be called as in gpal's tables, p_CLASS; rows that are only numbered say nothing."""
    if not isinstance(P, pd.DataFrame):
        return
    if classes is not None:
        names = [str(name) for name in classes]
        of_tables = [f"p_{name}" for name in names]
        refuse_other_columns("P", P, of_tables if "p_" + names[0] in P else names, "classes")
    if not isinstance(y, pd.Series) or len(y) != len(P) or isinstance(P.index, pd.RangeIndex):
        return
    if not y.index.equals(P.index) and y.index.is_unique and y.index.isin(P.index).all():
        i = first_other(P.index, y.index)
        raise InputError(
            f"row {i} of P is '{shown(P.index[i])}' and of y '{shown(y.index[i])}': give"
            " y.loc[P.index], or y.to_numpy() if the rows are in the same order"
        )


def error(y: Any, P: Any, classes: Classes = None) -> float:
    """Fraction of sources whose most probable class is wrong.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from gpal.metrics import error
    >>> error([0, 0, 1], [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    0.3333333333333333
    """
    y, P = class_index(y, P, classes)
    return float(np.mean(P.argmax(axis=1) != y))


def negative_log_predictive_density(y: Any, P: Any, classes: Classes = None) -> float:
    """−1/n Σ ln P[i, y_i] in nats: the mean surprise at the class that was true.

    A probability of exactly zero counts as the smallest normal float64, 2.2e-308 (708 nats), so
    that one impossible event makes a score terrible but finite.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    float
        0 is best; ln C is that of equal probabilities.

    Examples
    --------
    >>> from gpal.metrics import negative_log_predictive_density
    >>> round(negative_log_predictive_density([0, 1], [[0.8, 0.2], [0.5, 0.5]]), 3)
    0.458
    """
    y, P = class_index(y, P, classes)
    return float(-np.mean(np.log(np.maximum(P[np.arange(len(y)), y], np.finfo(float).tiny))))


def brier(y: Any, P: Any, classes: Classes = None) -> float:
    """1/n Σ_i Σ_c (P[i, c] − 1[y_i = c])², the multi-class form, from 0 to 2.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    float
        0 is best.

    Examples
    --------
    >>> from gpal.metrics import brier
    >>> round(brier(["star"], [[0.8, 0.2]], classes=["star", "quasar"]), 3)
    0.08
    """
    y, P = class_index(y, P, classes)
    return float(np.mean(np.sum((P - np.eye(P.shape[1])[y]) ** 2, axis=1)))


def expected_calibration_error(
    y: Any, P: Any, bins: int = ECE_BINS, classes: Classes = None
) -> float:
    """Mean gap between confidence (largest probability) and accuracy, over bins of equal width.

    The sampling scatter of the accuracies alone makes it positive: about
    Σ_b √(2 n_b a_b(1−a_b)/π) / n for a perfectly calibrated model. Compare it at equal n only.

    Parameters
    ----------
    y, P : arrays (n,) and (n, C)
        See `class_index`.
    bins : int
        Bins of confidence on [0, 1].
    classes : sequence of C str, optional
        See `class_index`.

    Returns
    -------
    float
        0 is best.

    Examples
    --------
    >>> from gpal.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 0, 1], [[0.75, 0.25]] * 4), 3)
    0.0
    """
    y, P = class_index(y, P, classes)
    check_bins(bins)
    confidence = P.max(axis=1)
    gap = (P.argmax(axis=1) == y) - confidence
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(bin_of, weights=gap, minlength=bins)).sum() / len(y))


def precision_recall_f1(y: Any, P: Any, classes: Classes = None) -> np.ndarray:
    """Precision, recall and F1 of each class, the most probable class being predicted.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    array (3, C)
        NaN for recall and F1 of a class that has no source, and for its precision if it is not
        predicted either.

    Examples
    --------
    >>> from gpal.metrics import precision_recall_f1
    >>> precision_recall_f1([0, 0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7], [0.1, 0.9]])[:2]
    array([[1.        , 0.66666667],
           [0.5       , 1.        ]])
    """
    y, P = class_index(y, P, classes)
    scores = precision_recall_fscore_support(
        y, P.argmax(axis=1), labels=np.arange(P.shape[1]), zero_division=0.0
    )
    found = np.stack(scores[:3])
    empty = scores[3] == 0
    found[1:, empty] = np.nan
    found[0, empty & ~np.isin(np.arange(P.shape[1]), P.argmax(axis=1))] = np.nan
    return found


def confusion_matrix(y: Any, P: Any, classes: Classes = None) -> np.ndarray:
    """How often sources of one class are taken for another, every row normalised to one.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    array (C, C)
        Row: true class, NaN where it has no source; column: most probable class.

    Examples
    --------
    >>> from gpal.metrics import confusion_matrix
    >>> confusion_matrix([0, 0, 1], [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    y, P = class_index(y, P, classes)
    counts = count_confusions(y, P.argmax(axis=1), labels=np.arange(P.shape[1]))
    sources = counts.sum(axis=1, keepdims=True)
    return np.where(sources > 0, counts / np.maximum(sources, 1), np.nan)


def roc_auc(y: Any, P: Any, classes: Classes = None) -> np.ndarray:
    """Area under the ROC curve of each class against the rest: how well its probability ranks.

    It says nothing of what the probabilities are worth as such: any growing function of them has
    the same area.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    array (C,)
        NaN for a class that has no source, or all of them.

    Examples
    --------
    >>> from gpal.metrics import roc_auc
    >>> roc_auc([0, 0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]])
    array([0.75, 0.75])
    """
    y, P = class_index(y, P, classes)
    found = np.full(P.shape[1], np.nan)
    for c, p in enumerate(P.T):
        inside, outside = p[y == c], p[y != c]
        if pairs := len(inside) * len(outside):
            # U, the pairs in which the member ranks higher: a third of roc_auc_score's time.
            found[c] = mannwhitneyu(inside, outside, method="asymptotic").statistic / pairs
    return found


def macro_auc(y: Any, P: Any, classes: Classes = None) -> float:
    """Mean of `roc_auc` over the classes that have one.

    Parameters
    ----------
    y, P, classes : arrays (n,), (n, C) and names of the C classes
        See `class_index`.

    Returns
    -------
    float
        NaN where all sources are of one class.

    Examples
    --------
    >>> from gpal.metrics import macro_auc
    >>> macro_auc([0, 1], [[0.8, 0.2], [0.5, 0.5]])
    1.0
    """
    return Macro(roc_auc)(*class_index(y, P, classes))


def entropy(P: Any) -> np.ndarray:
    """Predictive entropy −Σ_c P ln P in nats: 0 certain, ln C no idea.

    Parameters
    ----------
    P : array (n, C)
        Probabilities.

    Returns
    -------
    array (n,)

    Examples
    --------
    >>> from gpal.metrics import entropy
    >>> entropy([[1.0, 0.0], [0.5, 0.5]]).round(3) + 0.0
    array([0.   , 0.693])
    """
    refuse_masked(P=P)
    P = np.asarray(P, float)
    return -np.sum(P * np.log(np.where(P > 0, P, 1.0)), axis=1)


class Macro:
    """The mean of a score over the classes that have one.

    per_class   function of (y, P), with NaN (C,) for the classes that have none
    """

    def __init__(self, per_class: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self.per_class = per_class

    def __call__(self, y: np.ndarray, P: np.ndarray) -> float:
        found = self.per_class(y, P)
        return float(np.nanmean(found)) if not np.isnan(found).all() else np.nan


# name in metrics.json -> function of (y, P)
METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "error": error,
    "nll": negative_log_predictive_density,
    "brier": brier,
    "ece": expected_calibration_error,
    "macro_precision": Macro(lambda y, P: precision_recall_f1(y, P)[0]),
    "macro_recall": Macro(lambda y, P: precision_recall_f1(y, P)[1]),
    "macro_f1": Macro(lambda y, P: precision_recall_f1(y, P)[2]),
    "macro_auc": Macro(roc_auc),
}
