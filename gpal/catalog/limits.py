"""Limits of what was not detected, as a table gives them.

upper_limit, lower_limit   a column, or one number for all: where the value is not measured it lies
                           below it, or above it (as a magnitude does); none where a value stands
                           that is not used, without an error for one, and is beyond it
limit_flag                 a column of marks: where it holds < or > the value itself is the limit

Of a difference or ratio there are limits of both columns. Where one of them was measured and the
other was not, the feature has a limit: a > L makes a − b > L − b and, for b > 0, a/b > L/b; b > L
makes a − b < a − L and, for a, L > 0, a/b < a/L. Such a limit has the error of the one that was
measured: σ_b or σ_a of a difference, |L| σ_b/b² or σ_a/|L| of a ratio.
"""

from __future__ import annotations

import numpy as np

from gpal.catalog.arithmetic import Made, member, units_of
from gpal.catalog.column_values import Reading, limit_marks, refuse_suspects
from gpal.catalog.columns import conversion, numbers, unit_of
from gpal.catalog.feature import NO_LIMIT, Feature
from gpal.catalog.sentinels import is_sentinel, suspects
from gpal.errors import InputError
from gpal.limits import Limits

__all__ = ["read_limits", "stacked"]


Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def read_limits(reading: Reading, feature: Feature, made: Made) -> Parts:
    """(limits [n] in the feature's unit, signed confidences [n], errors of the limits [n]) where it
    was not measured.

    Raises InputError, naming column and row, on a mark that is none and on an upper limit that a
    logarithm or a square root has no place for.
    """
    x = made.x
    measured = np.isfinite(x)
    side, error = np.zeros((2, len(x)))
    value, column = np.full(len(x), np.nan), feature.column
    if feature.limit_flag:
        side = limit_marks(reading, feature)
        value = reading.numbers(feature, column) * conversion(reading.table, column, feature.unit)
        value[reading.worthless[feature.name, column]] = np.nan
    for given, sign in ((feature.upper_limit, -1.0), (feature.lower_limit, 1.0)):
        if isinstance(given, tuple):
            value, side, error = _of_members(reading, feature, made, given, sign)
            column = feature.name
        elif given is not None:
            value = _of_column(reading, feature, given, sign, ~measured)
            side = np.full(len(x), sign)
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
    limited &= (side < 0) | (value > lowest)  # to be above 0 is nothing new for a logarithm
    for sign, words in ((-1, "below a limit"), (1, "above a limit")):
        reading.decide(limited & (side == sign), column, f"not measured: {words}")
    confidence = np.where(limited, side * feature.limit_confidence, 0.0)
    value, error = (part / (feature.softening or 1.0) for part in (value, error))
    return np.where(limited, value, np.nan), confidence, np.where(limited, error, 0.0)


def stacked(limits: list[Parts]) -> Limits | None:
    """Limits of all features; None where there is none."""
    found = Limits(*(np.column_stack(part) for part in zip(*limits, strict=True)))
    return found if found.given.any() else None


def _of_column(
    reading: Reading,
    feature: Feature,
    given: str | float,
    sign: float,
    unmeasured: np.ndarray,
    unit: str | None = None,
) -> np.ndarray:
    """The numbers of a column of limits, or the only one; NaN where the limit would be the value
    itself, and that says nothing, and where the value that stands there is beyond it."""
    found = _given(reading, feature, given, unmeasured, unit)
    if given == feature.column:
        return found
    factor = conversion(reading.table, feature.column, unit or feature.unit)
    stored = reading.numbers(feature, feature.column) * factor
    # A detection whose error is missing; by more than single precision tells apart.
    beyond = unmeasured & (sign * (found - stored) > 1e-6 * np.abs(stored))
    # Unless it is a number that may stand for no value.
    cells = numbers(reading.table, feature.column)
    beyond &= ~is_sentinel(cells, [suspect.number for suspect in suspects(cells)])
    rule = "its value is beyond the limit: no limit"
    return np.where(reading.decide(beyond, feature.column, rule), np.nan, found)


def _given(
    reading: Reading,
    feature: Feature,
    given: str | float,
    unmeasured: np.ndarray,
    unit: str | None,
) -> np.ndarray:
    if not isinstance(given, str):
        return np.full(len(reading.table), float(given))
    stated, own = (unit_of(reading.table, column) for column in (feature.column, given))
    if own and not (unit or feature.unit or stated):
        reading.remarks.stated_by_one(given, own, feature.column)
    factor = conversion(reading.table, given, unit or feature.unit or stated, stated)
    found = reading.numbers(feature, given) * factor
    if given == feature.column:
        return np.where(reading.worthless[feature.name, given], np.nan, found)
    stored = numbers(reading.table, given)
    refuse_suspects(reading, feature, given, stored, used=stored[unmeasured])
    return found


def _of_members(
    reading: Reading, feature: Feature, made: Made, given: tuple[str, ...], sign: float
) -> Parts:
    """Limits of a difference or ratio, on which side of them it lies, and their errors."""
    (a, σ_a), (b, σ_b) = made.members
    units = units_of(reading, feature)[1]
    none = np.full(len(a), np.nan)
    L_a, L_b = (
        none
        if given[k] in NO_LIMIT
        else _of_column(reading, member(feature, k), given[k], sign, np.isnan((a, b)[k]), units[k])
        for k in range(2)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        if feature.difference:
            by_a, by_b = L_a - b, a - L_b
            error_a, error_b = σ_b, σ_a
        else:
            by_a = np.where(b > 0, L_a / b, np.nan)
            by_b = np.where((a > 0) & (L_b > 0), a / L_b, np.nan)
            error_a, error_b = np.abs(L_a) / b * (σ_b / b), σ_a / np.abs(L_b)
    only_a, only_b = np.isnan(a) & np.isfinite(b), np.isfinite(a) & np.isnan(b)

    def of_either(by_a: np.ndarray | float, by_b: np.ndarray | float, none: float) -> np.ndarray:
        return np.where(only_a, by_a, np.where(only_b, by_b, none))

    return (
        of_either(by_a, by_b, np.nan),
        of_either(sign, -sign, 0.0),
        of_either(error_a, error_b, 0.0),
    )
