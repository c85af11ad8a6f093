"""Columns that hold the bounds of a value, not its errors: Teff with Teff_lower and Teff_upper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.columns import conversion, numbers, unit_of
from gpal.catalog.error_names import bound_names
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["are_bounds", "bounds_of"]

LEAST, NEARLY_ALL = 10, 0.99  # rows that tell, and how many of them must say so
ROUNDING = 1e-6  # of a value in double precision between bounds in single


def are_bounds(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether a value lies between the two nearly wherever all are known, and both rise with it.
    Errors of values near 0 that are written as −σ and σ are none."""
    known = np.isfinite(x) & np.isfinite(lower) & np.isfinite(upper)
    x, lower, upper = x[known], lower[known], upper[known]
    slack = ROUNDING * np.abs(x)
    between = (lower <= x + slack) & (x <= upper + slack)
    if len(x) < LEAST or between.mean() < NEARLY_ALL:
        return False
    signed = (lower <= 0).all() and (upper >= 0).all()
    return not signed and _rises_with(x, lower) and _rises_with(x, upper)


def _rises_with(x: np.ndarray, bound: np.ndarray) -> bool:
    if not (np.ptp(x) and np.ptp(bound)):
        return False
    dx, db = x - x.mean(), bound - bound.mean()
    return bool(dx @ db > 0.5 * np.sqrt((dx @ dx) * (db @ db)))


def bounds_of(table: Table, column: str) -> tuple[str, ...]:
    """The lower and the upper bound of a column, by their names and cells; () where there are
    none."""
    for pair in bound_names(column, table.colnames):
        try:
            unit = unit_of(table, column)
            x, *both = (numbers(table, c) * conversion(table, c, unit) for c in (column, *pair))
        except InputError:
            continue
        if are_bounds(x, *both):
            return pair
    return ()
