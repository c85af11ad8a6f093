"""y at the door: what was seen of a source, as its likelihood under each class.

An entry of y is a class, a `set` or `frozenset` of classes of which the source is one, or a mapping
class -> weight, the likelihood of what was seen if the source is of that class,

    w_c ∝ p(what was seen | y = c) ≥ 0,      scaled to max_c w_c = 1.

A class c is {c: 1}, a set S is equal weights of its classes, and equal weights of all classes say
nothing. A class of weight 0 is as if it were not named. The engine takes `labels`,

    class indices [n]     where every source is of one class
    w [n, C]              else

Weights are no probabilities of the classes: those have the class fractions in them, p(y = c | what
was seen) ∝ π_c w_c, which the model multiplies in a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets

from gpal.array_messages import refuse_masked, refuse_missing_labels, refuse_mixed_labels
from gpal.errors import InputError, as_python, shown
from gpal.plain_values import words_as_list

__all__ = [
    "are_weights",
    "as_labels",
    "as_whole_numbers",
    "check_labels",
    "check_single",
    "class_counts",
    "classes_of",
    "holds_weights",
    "labels_as_given",
    "number_of_classes",
    "single_where_possible",
    "unknown_in",
]

NUMBER = int | float | np.integer | np.floating
LARGEST = float(np.finfo(float).max)
SHARING = 1000, 1e-9  # rounds at most, and the change at which they end, of all sources

# ---- labels --------------------------------------------------------------------------------------


def are_weights(labels: np.ndarray) -> bool:
    """Whether labels are weights [n, C], and not class indices [n]."""
    return labels.ndim == 2


def single_where_possible(weights: np.ndarray) -> np.ndarray:
    """Class indices [n], if all of these [n, C] are of one class each."""
    return np.argmax(weights, axis=1) if (np.count_nonzero(weights, axis=1) == 1).all() else weights


def number_of_classes(labels: np.ndarray) -> int:
    """C of weights; one more than the highest class index that occurs."""
    return labels.shape[1] if are_weights(labels) else int(labels.max()) + 1


def class_counts(
    labels: np.ndarray,
    weight: np.ndarray | None,
    num_classes: int,
    before: np.ndarray | float = 0.0,
) -> np.ndarray:
    """How often each class occurs [C], a source with weights being shared out by Bayes:

        n_c = n⁰_c + Σ_i s_i w_ic (n_c + 1) / Σ_b w_ib (n_b + 1)

    weight   s [n], how many times each source counts; None: once
    before   n⁰ [C], of sources that were counted earlier

    The class fractions in it are the most probable ones given all labels, under the prior of one
    more source of each class (α = 2). By expectation maximisation, of a concave function.
    """
    times = np.ones(len(labels)) if weight is None else weight
    if not are_weights(labels):
        return before + np.bincount(labels, weights=times, minlength=num_classes)
    one = np.count_nonzero(labels, axis=1) == 1
    alone = before + times[one] @ (labels[one] > 0)
    counts, (rounds, change) = alone, SHARING
    for _ in range(rounds):
        shares = labels[~one] * (counts + 1.0)
        new = alone + times[~one] @ (shares / shares.sum(axis=1, keepdims=True))
        if np.abs(new - counts).max() <= change * new.sum():
            return new
        counts = new
    return counts


# ---- y -------------------------------------------------------------------------------------------


def holds_weights(y: Any) -> bool:
    """Whether an entry is a set or a mapping."""
    y = np.asarray(y)
    return y.dtype == object and any(isinstance(e, set | frozenset | Mapping) for e in y.flat)


def check_labels(y: np.ndarray) -> None:
    """InputError for an entry that is missing or names no class, or weights that are none;
    ValueError, of scikit-learn, for what is no class."""
    refuse_missing_labels(y)
    check_classification_targets(_names(y))


def as_whole_numbers(y: Any) -> Any:
    """Objects that are all whole numbers, or all truth values, as such; y itself if they are not.

    A column of a data frame may hold them so, which scikit-learn takes for no classes.
    """
    objects = np.asarray(y)
    kinds = {type(as_python(entry)) for entry in objects.ravel()}
    if kinds not in ({int}, {bool}):
        return y
    numbers = np.array(objects.tolist())
    return numbers if numbers.dtype.kind in "biu" else y


def labels_as_given(y: Any) -> Any:
    """y as an array of what the labels are: scikit-learn would make numbers of pandas' own integers
    and truth values, and NumPy text of numbers among text.

    InputError where entries are masked or missing, and for numbers among text.
    """
    refuse_masked(y=y)
    y = words_as_list(y)
    kind = getattr(y, "dtype", None)
    extension = isinstance(kind, pd.api.extensions.ExtensionDtype)
    objects = getattr(kind, "kind", "") == "O" and not extension
    of_any_kind = objects or isinstance(y, list | tuple)
    if of_any_kind or extension or getattr(kind, "kind", "") == "f":
        refuse_missing_labels(y)
    if extension:
        return y.to_numpy(dtype=getattr(kind, "numpy_dtype", None))
    if of_any_kind:
        refuse_mixed_labels(y)
    return as_whole_numbers(y) if objects else y


def check_single(y: Any) -> None:
    """InputError where y holds sets or weights."""
    if holds_weights(y):
        raise InputError(
            "batches take one class for each source: use fit, or leave out the sources whose label"
            " is a set or has weights"
        )


def classes_of(y: np.ndarray) -> np.ndarray:
    """All that occur, sorted, in sets and with weights too."""
    return np.unique(_names(y))


def unknown_in(y: Any, classes: np.ndarray) -> list[Any]:
    """Classes in y that are none of these."""
    known = set(classes.tolist())
    return [name for name in _names(np.asarray(y).ravel()).tolist() if name not in known]


def as_labels(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Class indices [n] in sorted classes, or weights [n, C]."""
    if not holds_weights(y):
        return np.searchsorted(classes, y)
    place = {name: c for c, name in enumerate(classes.tolist())}
    weights = np.zeros((len(y), len(classes)))
    for i, entry in enumerate(y.tolist()):
        for name, weight in _weights(entry, i).items():
            weights[i, place[as_python(name)]] = weight
    return single_where_possible(weights / weights.max(axis=1, keepdims=True))


def _names(y: np.ndarray) -> np.ndarray:
    """The classes in y [n], those of sets and mappings one after the other."""
    if y.dtype != object:
        return y
    weights = [_weights(entry, i) for i, entry in enumerate(y)]
    if not holds_weights(y):
        return y
    return np.array([as_python(name) for entry in weights for name in entry])


def _weights(entry: Any, row: int) -> Mapping[Any, float]:
    """Class -> weight > 0 of an entry of y; InputError where there is none."""
    if isinstance(entry, set | frozenset):
        if not entry:
            raise InputError(
                f"the label of row {row} is an empty set; name the classes that it may be of, or"
                " leave the source out"
            )
        return dict.fromkeys(entry, 1.0)
    if isinstance(entry, list | tuple | np.ndarray):
        raise InputError(
            f"the label of row {row} is a {type(entry).__name__}; give a class, a set of classes,"
            " or a mapping class -> weight"
        )
    if not isinstance(entry, Mapping):
        return {entry: 1.0}
    for name, weight in entry.items():
        if not isinstance(weight, NUMBER) or not 0 <= weight <= LARGEST:
            raise InputError(
                f"the label of row {row} gives class {as_python(name)!r} the weight"
                f" {shown(as_python(weight))}; give a finite number ≥ 0, 0 for a class that it is"
                " not"
            )
    positive = {name: float(weight) for name, weight in entry.items() if weight > 0}
    if not positive:
        raise InputError(
            f"the label of row {row} has no weight above 0; give one to each class that it may be"
            " of, or leave the source out"
        )
    return positive
