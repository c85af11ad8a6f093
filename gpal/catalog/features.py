"""Columns into features: value and error, and a counted decision for whatever was not measured.

hardness ratio of two bands with energy fluxes E_A, E_B and errors σ_A, σ_B (first order)
    HR = (E_B − E_A)/(E_B + E_A),    σ_HR = 2 √(E_A² σ_B² + E_B² σ_A²) / (E_A + E_B)²
    with σ_E = E · σ_F/F from the photon flux F, σ_F the symmetrised pair of its errors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.catalog import Decision
from gpal.catalog.columns import conversion, error_column, numbers, unit_of
from gpal.catalog.schema import Band, Feature, Schema
from gpal.errors import InputError
from gpal.measurements import Measurements, symmetric_error

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["NEAREST", "measure"]

# A value at the edge of what the fit allows has no error of its own. The fits that just missed the
# edge report errors far too small, so the typical error is taken over a wide neighbourhood.
NEAREST = 150


def measure(
    table: Table, schema: Schema, names: Sequence[str], ids: np.ndarray
) -> tuple[Measurements, tuple[Decision, ...]]:
    """The features `names` of every row, transformed, and the decisions taken on the way.

    Raises InputError, naming column and row, on a negative error, a forbidden missing value, a
    missing column, or a unit that does not convert.
    """
    X, X_err, units = [], [], []
    decisions: list[Decision] = []
    for name in names:
        feature = schema.features[name]
        if feature.hardness:
            x, error, made = _hardness_ratio(table, schema, feature, ids)
            unit = ""
        else:
            x, error, made = _column(table, feature, ids)
            unit = feature.unit or unit_of(table, feature.column)
        X.append(x)
        X_err.append(error)
        units.append(unit)
        decisions += made
    measurements = Measurements(
        np.column_stack(X), np.column_stack(X_err), tuple(names), tuple(units), ids
    )
    for name in names:
        measurements = measurements.transform(name, schema.features[name].transform)
    return measurements, tuple(d for d in decisions if d.count)


def _column(
    table: Table, feature: Feature, ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[Decision]]:
    """Value and error of one feature in its unit, before the transform."""
    column = feature.column
    x = numbers(table, column) * conversion(table, column, feature.unit)
    error = _error(table, feature, ids)
    decisions = []

    def decide(rows: np.ndarray, rule: str, where: str = column) -> np.ndarray:
        decisions.append(Decision(where, rule, rows))
        return rows

    invalid = ~np.isfinite(x)
    if feature.missing == "forbid":
        _forbid(invalid, column, ids, x, "give a number, or allow missing = 'not measured'")
    missing = decide(invalid, "no value: not measured")
    if feature.requires:
        unsupported = ~missing & ~np.isfinite(numbers(table, feature.requires))
        rule = f"{feature.requires} is missing: not measured"
        missing = missing | decide(unsupported, rule)
    if feature.above is not None:
        with np.errstate(invalid="ignore"):
            low = ~missing & (x <= feature.above)
        missing = missing | decide(low, f"not above {feature.above:g}: not measured")

    no_error = ~missing & ~np.isfinite(error)
    if feature.zero_error == "missing":
        no_error = no_error | (~missing & (error == 0))
    if feature.missing_error == "forbid":
        _forbid(no_error, column, ids, error, "give its error, or another missing_error", "error")
    elif feature.missing_error == "nearest":
        decide(no_error, f"no error: median error of the {NEAREST} sources nearest in value")
        error = _nearest_error(x, error, no_error, ~missing & ~no_error, column)
    elif feature.missing_error == "exact":
        error = np.where(decide(no_error, "no error: taken as exact"), 0.0, error)
    else:
        missing = missing | decide(no_error, "no error: not measured")

    if feature.floor is not None:
        with np.errstate(invalid="ignore"):
            low = ~missing & (x < feature.floor)
        x = np.where(decide(low, f"raised to the floor {feature.floor:g}"), feature.floor, x)
    return np.where(missing, np.nan, x), np.where(missing, np.inf, error), decisions


def _error(table: Table, feature: Feature, ids: np.ndarray) -> np.ndarray:
    """1-sigma error in the feature's unit; 0 where the catalog gives none; NaN where missing."""
    column = feature.error
    if column is None:
        column = error_column(table, feature.column)
    if column is None or column == "none":
        return np.zeros(len(table))
    if not isinstance(column, str):
        if len(column) != 2:
            raise InputError(f"feature '{feature.name}': error needs one column or [lower, upper]")
        lower, upper = (
            _positive_error(table, c, feature.column, ids, feature.unit, signed=True)
            for c in column
        )
        return symmetric_error(lower, upper)
    return _positive_error(table, column, feature.column, ids, feature.unit)


def _positive_error(
    table: Table, column: str, value: str, ids: np.ndarray, unit: str = "", signed: bool = False
) -> np.ndarray:
    """The error column of the column `value`, NaN where it is not finite; a pair symmetrised.

    In `unit`, or without one in the value's. A column that states no unit has the value's.
    """
    stated = unit_of(table, value)
    values = numbers(table, column, pair=True) * conversion(table, column, unit or stated, stated)
    values[~np.isfinite(values)] = np.nan
    if values.ndim == 2:
        return symmetric_error(values[:, 0], values[:, 1])
    if not signed:
        _forbid(values < 0, column, ids, values, "errors are 1-sigma, positive; correct the file")
    return np.abs(values)


def _nearest_error(
    x: np.ndarray, error: np.ndarray, rows: np.ndarray, known: np.ndarray, column: str
) -> np.ndarray:
    """`error` with `rows` filled: median known error of the NEAREST sources nearest in value."""
    if rows.any() and not known.any():
        raise InputError(f"no row of column '{column}' has an error; choose another missing_error")
    error = error.copy()
    known_x, known_error = x[known], error[known]
    for i in np.flatnonzero(rows):
        nearest = np.argsort(np.abs(known_x - x[i]), kind="stable")[:NEAREST]
        error[i] = np.median(known_error[nearest])
    return error


def _hardness_ratio(
    table: Table, schema: Schema, feature: Feature, ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[Decision]]:
    """HR and its error, limited to 1: half the range of a ratio is all that is unknown about it."""
    bands = [schema.bands[name] for name in feature.hardness]
    unit = unit_of(table, bands[0].nuFnu)
    (E_A, σ_A), (E_B, σ_B) = (_energy_flux(table, band, ids, unit) for band in bands)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = E_A + E_B
        ratio = (E_B - E_A) / total
        error = 2.0 * np.hypot(E_A * σ_B, E_B * σ_A) / total**2
    missing = ~np.isfinite(ratio) | ~np.isfinite(error)
    wide = ~missing & (error > 1.0)
    decisions = [
        Decision(feature.name, "a band without flux or error: not measured", missing),
        Decision(feature.name, "error limited to 1, half the range of a hardness ratio", wide),
    ]
    ratio = np.where(missing, np.nan, ratio)
    return ratio, np.where(missing, np.inf, np.minimum(error, 1.0)), decisions


def _energy_flux(
    table: Table, band: Band, ids: np.ndarray, unit: str
) -> tuple[np.ndarray, np.ndarray]:
    """Energy flux of a band in `unit` and its error, NaN where there is none."""
    E = numbers(table, band.nuFnu) * conversion(table, band.nuFnu, unit)
    F = numbers(table, band.flux)
    columns = (band.error,) if isinstance(band.error, str) else band.error
    pair = len(columns) == 2
    errors = [_positive_error(table, c, band.flux, ids, signed=pair) for c in columns]
    σ_F = errors[0] if len(errors) == 1 else symmetric_error(*errors)
    with np.errstate(invalid="ignore", divide="ignore"):
        usable = (F > 0) & (E > 0)
        return np.where(usable, E, np.nan), np.where(usable, E * σ_F / F, np.nan)


def _forbid(
    rows: np.ndarray, column: str, ids: np.ndarray, values: np.ndarray, remedy: str, what: str = ""
) -> None:
    if rows.any():
        i = int(np.flatnonzero(rows)[0])
        raise InputError(
            f"column '{column}', row {i} ({ids[i]}): {what + ' ' if what else ''}{values[i]:g}"
            f" ({int(rows.sum())} such in all); {remedy}"
        )
