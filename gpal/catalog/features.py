"""Columns into features: value and error, and a counted decision for whatever was not measured.

hardness ratio of two bands with energy fluxes E_A, E_B and errors σ_A, σ_B (first order)
    HR = (E_B − E_A)/(E_B + E_A),    σ_HR = 2 √(E_A² σ_B² + E_B² σ_A²) / (E_A + E_B)²
    with σ_E = E · σ_F/F from the photon flux F, σ_F the symmetrised pair of its errors
Two ratios with a band in common have correlated errors, and so has a ratio with either flux of its
bands, as any two features with a column in common (gpal.catalog.arithmetic):
    ∂HR/∂E_A = −2 E_B/(E_A + E_B)²,    ∂HR/∂E_B = 2 E_A/(E_A + E_B)²
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.arithmetic import Made, covariance_of, difference_or_ratio
from gpal.catalog.catalog import Decision
from gpal.catalog.column_values import Reading, positive_error, read_column, refuse_suspects
from gpal.catalog.columns import conversion, numbers, unit_of
from gpal.catalog.limits import read_limits, stacked
from gpal.catalog.remarks import Remarks
from gpal.catalog.schema import Band, Feature, Schema
from gpal.measurements import Measurements

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["measure"]


def measure(
    table: Table,
    schema: Schema,
    names: Sequence[str],
    ids: np.ndarray,
    remarks: Remarks | None = None,
) -> tuple[Measurements, tuple[Decision, ...]]:
    """The features `names` of every row, transformed, and the decisions taken on the way.

    remarks  of the blocks before, to which those of this table are added: whoever has them warns

    Raises InputError, naming column and row, on a negative error, a forbidden missing value, a
    missing column, undeclared sentinels, or a unit that does not convert. Warns of features without
    an error that were not said to have none, and of numbers that may be sentinels.
    """
    reading = Reading(table, schema, ids, remarks=remarks or Remarks())
    features = [schema.features[name] for name in names]
    made = [_made(reading, feature) for feature in features]
    bands = [schema.bands[band] for feature in features for band in feature.hardness]
    limits = [read_limits(reading, f, one) for f, one in zip(features, made)]
    if remarks is None:
        reading.remarks.warn_of_errors(stacklevel=4)
        reading.remarks.warn_of_units(stacklevel=4)
        reading.remarks.warn_of_numbers(stacklevel=4)
    measurements = Measurements(
        np.column_stack([one.x for one in made]),
        np.column_stack([one.error for one in made]),
        tuple(names),
        tuple(one.unit for one in made),
        ids,
        covariance_of([_by_band(one, bands) for one in made]),
        stacked(limits),
    )
    for name in names:
        measurements = measurements.transform(name, schema.features[name].transform)
    return measurements, tuple(d for d in reading.decisions if d.count)


def _made(reading: Reading, feature: Feature) -> Made:
    """One feature before its transform."""
    if feature.hardness:
        return _hardness_ratio(reading, feature)
    if feature.arithmetic:
        made = difference_or_ratio(reading, feature)
    else:
        x, error = read_column(reading, feature)
        unit = feature.unit or unit_of(reading.table, feature.column)
        made = Made(x, error, unit, {feature.column: np.where(np.isfinite(error), error, 0.0)})
    made = replace(made, x=_raised_to_floor(made.x, feature, reading))
    return made if feature.softening is None else _softened(made, feature.softening)


def _by_band(made: Made, bands: Sequence[Band]) -> Made:
    """With the term of a band's energy flux as one of its photon flux: both are one measurement,
    with one relative error. What is made of both is left as it is, like its error."""
    flux_of = {band.nuFnu: band.flux for band in bands if band.flux not in made.terms}
    return replace(made, terms={flux_of.get(c, c): term for c, term in made.terms.items()})


def _softened(made: Made, softening: float) -> Made:
    """In units of the softening, which its unit says."""
    return replace(
        made,
        x=made.x / softening,
        error=made.error / softening,
        unit=f"{softening:g} {made.unit}".strip(),
        terms={column: term / softening for column, term in made.terms.items()},
    )


def _raised_to_floor(x: np.ndarray, feature: Feature, reading: Reading) -> np.ndarray:
    if feature.floor is None:
        return x
    with np.errstate(invalid="ignore"):
        low = x < feature.floor
    reading.decide(low, feature.column or feature.name, f"raised to the floor {feature.floor:g}")
    return np.where(low, feature.floor, x)


def _hardness_ratio(reading: Reading, feature: Feature) -> Made:
    """HR and its error, limited to 1: half the range of a ratio is all that is unknown about it."""
    bands = [reading.schema.bands[name] for name in feature.hardness]
    unit = unit_of(reading.table, bands[0].nuFnu)
    for stated, silent in (bands, bands[::-1]):
        own = unit_of(reading.table, stated.nuFnu)
        if own and not unit_of(reading.table, silent.nuFnu):
            reading.remarks.stated_by_one(stated.nuFnu, own, silent.nuFnu)
    (E_A, σ_A), (E_B, σ_B) = (_energy_flux(reading, feature, band, unit) for band in bands)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = E_A + E_B
        ratio = (E_B - E_A) / total
        by_A, by_B = -2.0 * E_B * σ_A / total**2, 2.0 * E_A * σ_B / total**2
        error = np.hypot(by_A, by_B)
    missing = ~np.isfinite(ratio) | ~np.isfinite(error)
    wide = ~missing & (error > 1.0)
    reading.decide(missing, feature.name, "a band without flux or error: not measured")
    rule = "error limited to 1, half the range of a hardness ratio"
    reading.decide(wide, feature.name, rule)
    smaller = np.where(wide, error, 1.0)
    terms = {
        band.flux: np.where(missing, 0.0, term / smaller) for band, term in zip(bands, (by_A, by_B))
    }
    ratio = np.where(missing, np.nan, ratio)
    return Made(ratio, np.where(missing, np.inf, np.minimum(error, 1.0)), "", terms)


def _energy_flux(
    reading: Reading, feature: Feature, band: Band, unit: str
) -> tuple[np.ndarray, np.ndarray]:
    """Energy flux of a band in `unit` and its error, NaN where there is none."""
    E = reading.numbers(feature, band.nuFnu) * conversion(reading.table, band.nuFnu, unit)
    F = reading.numbers(feature, band.flux)
    with np.errstate(invalid="ignore"):
        usable = (F > 0) & (E > 0)
    for column in (band.nuFnu, band.flux):
        refuse_suspects(reading, feature, column, numbers(reading.table, column)[usable])
    columns = (band.error,) if isinstance(band.error, str) else band.error
    σ_F = positive_error(reading, feature, columns, band.flux, usable)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(usable, E, np.nan), np.where(usable, E * σ_F / F, np.nan)
