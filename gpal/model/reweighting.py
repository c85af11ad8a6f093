"""Probabilities under other class fractions: p_c ∝ p_c π_c / π_train,c."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpal.errors import InputError, as_python

__all__ = ["prior_ratio", "reweighted", "systematic", "warn_of_sum"]

NEARLY = 0.011  # three thirds written as 0.33 sum to 0.99


def prior_ratio(
    prior: str | Mapping[Any, float],
    classes: np.ndarray,
    class_fractions: np.ndarray,
    stacklevel: int = 3,
) -> np.ndarray:
    """(C,) π/π_train of each class, 1 where `prior` is "train".

    class_fractions  (C,) π_train

    Raises InputError for fractions that are not of these classes, negative or all 0, and for one of
    a class that nothing was learned of.
    """
    if isinstance(prior, str) and prior == "train":
        return np.ones(len(classes))
    names = classes.tolist()
    if not isinstance(prior, Mapping) or set(prior) != set(names):
        raise InputError(
            f"prior must be 'train' or give a fraction for each of {as_python(classes)},"
            f" got {as_python(prior)!r}"
        )
    try:
        target = np.array([float(prior[name]) for name in names])
    except (TypeError, ValueError):
        raise InputError(f"prior fractions must be numbers, got {as_python(prior)!r}") from None
    with np.errstate(over="ignore"):
        total = target.sum()
    if not np.isfinite(total) or (target < 0).any() or total <= 0:
        raise InputError(f"prior fractions must be positive, got {as_python(prior)!r}")
    unseen = (class_fractions == 0) & (target > 0)
    if unseen.any():
        raise InputError(
            f"no source of class {names[int(np.argmax(unseen))]!r} was learned from, so its"
            " probability cannot be weighted to a prior; take prior='train', or fraction 0"
        )
    warn_of_sum(prior, stacklevel=stacklevel)
    return target / total / np.where(target > 0, class_fractions, 1.0)


def reweighted(P: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """P [..., C] times the ratio of fractions π/π_train [C], normalised."""
    # Not by check_shapes: it imports TensorFlow, and estimators need this before they have a model.
    weighted = P * ratio
    # All that is possible may have a probability too small for a number.
    lost = weighted.sum(axis=-1, keepdims=True) == 0
    if lost.any():
        weighted = np.where(lost, np.maximum(P, np.finfo(float).tiny) * ratio, weighted)
    return weighted / weighted.sum(axis=-1, keepdims=True)


def systematic(weight: np.ndarray) -> np.ndarray:
    """(n, T) which of the T nodes of each source stand for nodes of `weight` [n, T], 1/T each:
    those at (t + 1/2)/T of the summed weights."""
    nodes = weight.shape[1]
    below = np.cumsum(weight, axis=1)
    share = below / below[:, -1:]
    at = (np.arange(nodes) + 0.5) / nodes
    return np.minimum((share[:, None, :] <= at[:, None]).sum(axis=2), nodes - 1)


def warn_of_sum(fractions: Mapping[Any, float], stacklevel: int = 3) -> None:
    """Of class fractions that do not sum to one: as like as not, one of them is mistyped. Whole
    numbers above 1 are counts, whose ratios are meant."""
    values = [float(value) for value in fractions.values()]
    total, counts = sum(values), max(values) > 1 and all(value.is_integer() for value in values)
    if abs(total - 1) > NEARLY and not counts:
        warnings.warn(
            f"the class fractions {as_python(fractions)} sum to {total:g}; they are divided by"
            " that",
            stacklevel=stacklevel,
        )
