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

LEAST = 10  # rows that tell
ROUNDING = 1e-6  # of a value in double precision between bounds in single


def are_bounds(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether a value lies between the two wherever all are known, and these differ in half of the
    rows at least. Errors of values near 0 that are written as −σ and σ are none."""
    known = np.isfinite(x) & np.isfinite(lower) & np.isfinite(upper)
    x, lower, upper = x[known], lower[known], upper[known]
    slack = ROUNDING * np.abs(x)
    if len(x) < LEAST or not ((lower <= x + slack) & (x <= upper + slack)).all():
        return False
    signed = (lower <= 0).all() and (upper >= 0).all()
    return not signed and bool((lower < upper).mean() >= 0.5)


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
