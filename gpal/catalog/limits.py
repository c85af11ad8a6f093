"""Limits of what was not detected, as a table gives them.

upper_limit, lower_limit   a column, or one number for all: where the value is not measured it lies
                           below it, or above it (as a magnitude does)
limit_flag                 a column of marks: where it holds < or > the value itself is the limit
"""

from __future__ import annotations

import numpy as np

from gpal.catalog.column_values import Reading, limit_marks
from gpal.catalog.columns import conversion, unit_of
from gpal.catalog.feature import Feature
from gpal.errors import InputError
from gpal.limits import Limits

__all__ = ["read_limits", "stacked"]


def read_limits(
    reading: Reading, feature: Feature, measured: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(limits [n] in the feature's unit, signed confidences [n]) where `measured` [n] is false.

    Raises InputError, naming column and row, on a mark that is none and on an upper limit that a
    logarithm or a square root has no place for.
    """
    n = len(measured)
    side = limit_marks(reading, feature)
    value = np.full(n, np.nan)
    column = feature.column
    if side.any():
        value = reading.numbers(feature, column) * conversion(reading.table, column, feature.unit)
    for given, sign in ((feature.upper_limit, -1.0), (feature.lower_limit, 1.0)):
        if given is not None:
            value, side = _of_column(reading, feature, given, n), np.full(n, sign)
            column = given if isinstance(given, str) else column
    limited = ~measured & (side != 0) & np.isfinite(value)
    lowest = 0.0 if feature.transform in ("log10", "ln", "sqrt") else -np.inf
    if feature.floor is not None:
        value = np.maximum(value, feature.floor)
    bad = limited & (side < 0) & (value <= lowest)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"column '{column}', row {i} ({reading.ids[i]}): the upper limit {value[i]:g} of"
            f" feature '{feature.name}' has no {feature.transform} ({int(bad.sum())} such in all);"
            " leave it empty there, or give the feature a floor"
        )
    for sign, words in ((-1, "below a limit"), (1, "above a limit")):
        reading.decide(limited & (side == sign), column, f"not measured: {words}")
    confidence = np.where(limited, side * feature.limit_confidence, 0.0)
    return np.where(limited, value / (feature.softening or 1.0), np.nan), confidence


def stacked(limits: list[tuple[np.ndarray, np.ndarray]]) -> Limits | None:
    """Limits of all features; None where there is none."""
    found = Limits(*(np.column_stack(part) for part in zip(*limits, strict=True)))
    return found if found.given.any() else None


def _of_column(reading: Reading, feature: Feature, given: str | float, n: int) -> np.ndarray:
    if not isinstance(given, str):
        return np.full(n, float(given))
    stated = unit_of(reading.table, feature.column)
    factor = conversion(reading.table, given, feature.unit or stated, stated)
    return reading.numbers(feature, given) * factor
