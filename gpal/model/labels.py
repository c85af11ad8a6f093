"""y at the door: classes, or sets of classes that a source may be of, and their codes.

An entry of y is a class, or a `set` or `frozenset` of classes where all that is known of a source
is that it is one of them. The engine has a whole number for each,

    c for the class of that index,      −Σ_{c∈S} 2^c for a set S of two classes or more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from gpal.errors import InputError, as_python

__all__ = [
    "MOST_CLASSES",
    "check_labels",
    "check_single",
    "class_counts",
    "classes_of",
    "coded",
    "codes_of",
    "has_sets",
    "holds_sets",
    "members_of",
    "number_of_classes",
    "unknown_in",
]

MOST_CLASSES = 52  # of which sets can be: a code is a whole number in float64

# ---- codes ---------------------------------------------------------------------------------------


def codes_of(members: np.ndarray) -> np.ndarray:
    """Codes [n] of labels, given as which classes they may be [n, C]; InputError for too many
    classes."""
    C = members.shape[1]
    if C > MOST_CLASSES:
        raise InputError(
            f"y has {C} classes, and sets are of {MOST_CLASSES} at most: merge some classes, or"
            " leave out the sources that may be of several"
        )
    of_sets = -(members @ (1 << np.arange(C, dtype=np.int64)))
    return np.where(members.sum(axis=1) == 1, np.argmax(members, axis=1), of_sets)


def members_of(codes: np.ndarray, num_classes: int) -> np.ndarray:
    """Which classes the labels [n] may be, as truth values [n, C]."""
    codes, classes = np.asarray(codes, np.int64)[:, None], np.arange(num_classes)
    return np.where(codes < 0, (-codes >> classes) & 1 == 1, codes == classes)


def has_sets(codes: np.ndarray) -> bool:
    """Whether one of the labels is a set."""
    return bool((codes < 0).any())


def number_of_classes(codes: np.ndarray) -> int:
    """One more than the highest class that occurs, alone or in a set."""
    return max(int(codes.max()) + 1, int(-codes.min()).bit_length())


def class_counts(codes: np.ndarray, weight: np.ndarray | None, num_classes: int) -> np.ndarray:
    """How often each class occurs [C]. A set is shared out among its classes, in proportion to how
    often each occurs alone, and one."""
    weight = np.ones(len(codes)) if weight is None else weight
    alone = codes >= 0
    counts = np.bincount(codes[alone], weights=weight[alone], minlength=num_classes).astype(float)
    if alone.all():
        return counts
    shares = members_of(codes[~alone], num_classes) * (counts + 1.0)
    return counts + weight[~alone] @ (shares / shares.sum(axis=1, keepdims=True))


# ---- y -------------------------------------------------------------------------------------------


def holds_sets(y: Any) -> bool:
    """Whether an entry is a set."""
    y = np.asarray(y)
    return y.dtype == object and any(isinstance(entry, set | frozenset) for entry in y.flat)


def check_labels(y: np.ndarray) -> None:
    """InputError for an empty set; ValueError, of scikit-learn, for what is no class."""
    check_classification_targets(_flat(y))


def check_single(y: Any) -> None:
    """InputError where y holds sets."""
    if holds_sets(y):
        raise InputError(
            "batches take one class for each source: use fit, or leave out the sources whose label"
            " is a set"
        )


def classes_of(y: np.ndarray) -> np.ndarray:
    """All that occur, sorted, in sets too."""
    return np.unique(_flat(y))


def unknown_in(y: Any, classes: np.ndarray) -> list[Any]:
    """Classes in y that are none of these."""
    known = set(classes.tolist())
    return [name for name in _flat(np.asarray(y).ravel()).tolist() if name not in known]


def coded(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Codes [n] of labels in sorted classes."""
    if not holds_sets(y):
        return np.searchsorted(classes, y)
    place = {name: c for c, name in enumerate(classes.tolist())}
    members = np.zeros((len(y), len(classes)), bool)
    for row, entry in zip(members, y.tolist(), strict=True):
        row[[place[as_python(name)] for name in _entries(entry)]] = True
    return codes_of(members)


def _entries(entry: Any) -> set | frozenset | tuple:
    return entry if isinstance(entry, set | frozenset) else (entry,)


def _flat(y: np.ndarray) -> np.ndarray:
    """The classes in y [n], those of sets one after the other."""
    if not holds_sets(y):
        return y
    for i, entry in enumerate(y):
        if not _entries(entry):
            raise InputError(
                f"the label of row {i} is an empty set; name the classes that it may be of, or"
                " leave the source out"
            )
    return np.array([as_python(name) for entry in y for name in _entries(entry)])
