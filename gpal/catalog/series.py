"""What a release measured of one source: by energy its spectrum, by time its light curve.

In bands a release gives the energy flux νFν and the photon flux F with its errors; those of νFν
have the same ratio to it:

    σ(νFν) = νFν · σ_F/F

Where a source was not detected, the release has no lower error, or an error of one value reaches
zero: the flux is then an upper limit, at its value and two of the upper errors (95 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.columns import conversion, numbers, split, text, unit_of
from gpal.catalog.loader import file_name, find_source, read_rows
from gpal.catalog.readers import read_table
from gpal.catalog.release_files import is_release
from gpal.catalog.schema import Schema, close_matches
from gpal.catalog.sentinels import is_sentinel
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["Series", "band_fluxes", "light_curve", "spectrum"]

SECONDS = 86400.0  # of a day


@dataclass(frozen=True, eq=False)
class Series:
    """Fluxes of one source in b intervals of energy or time.

    name    of the source
    edges   (b, 2) of the intervals: MeV, or days (MJD, TT); NaN where the schema gives none
    flux    (b,) in `unit`, NaN where there is none
    errors  (b, 2) lower and upper, 1 sigma; a lower one of NaN marks an upper limit
    unit    of the fluxes
    """

    name: str
    edges: np.ndarray = field(repr=False)
    flux: np.ndarray = field(repr=False)
    errors: np.ndarray = field(repr=False)
    unit: str = ""

    @property
    def is_limit(self) -> np.ndarray:
        """(b,) bool: where the source was not detected."""
        return np.isfinite(self.flux) & ~np.isfinite(self.errors[:, 0])

    @property
    def upper_limit(self) -> np.ndarray:
        """(b,) 95 % upper limits where it was not detected, else NaN."""
        return np.where(self.is_limit, self.flux + 2 * self.errors[:, 1], np.nan)


def spectrum(catalog: Any, name: str) -> Series:
    """νFν of a source in the bands of its release.

    catalog  a Catalog; InputError where its schema has no bands
    """
    bands = catalog.schema.bands
    if not bands:
        raise InputError("the schema of this catalog has no bands; add [bands.NAME] for a spectrum")
    row = _row(catalog.names, name)
    E, errors, energy = band_fluxes(catalog.table[row : row + 1], catalog.schema)
    unit = unit_of(catalog.table, next(iter(bands.values())).nuFnu)
    return Series(str(catalog.names[row]), energy, E[0], errors[0], unit)


def band_fluxes(table: Table, schema: Schema) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """νFν (n, b) in the unit of the first band's, its errors (n, b, 2), and the bands' limits in
    energy (b, 2)."""
    bands = list(schema.bands.values())
    unit = unit_of(table, bands[0].nuFnu) if bands else ""

    def measured(column: str, unit: str, pair: bool = False) -> np.ndarray:
        values = numbers(table, column, pair=pair)
        factor = conversion(table, column, unit)
        return np.where(is_sentinel(values, schema.sentinels or ()), np.nan, values * factor)

    E = np.full((len(table), len(bands)), np.nan)
    errors = np.full((len(table), len(bands), 2), np.nan)
    energy = np.full((len(bands), 2), np.nan)
    for b, band in enumerate(bands):
        of_flux = unit_of(table, band.flux)
        F = measured(band.flux, of_flux)
        E[:, b] = measured(band.nuFnu, unit)
        columns = (band.error,) if isinstance(band.error, str) else band.error
        sides = _sides(F, [measured(column, of_flux, pair=True) for column in columns])
        with np.errstate(divide="ignore", invalid="ignore"):
            errors[:, b] = sides * np.abs(E[:, b] / F)[:, None]
        if len(band.energy) == 2:
            energy[b] = band.energy
    return np.where(np.isfinite(errors[..., 1]), E, np.nan), errors, energy


def light_curve(
    name_or_path: str | Path, name: str, *, schema: str | Path | Schema | None = None
) -> Series:
    """Flux of a source against time, from the full file of a release that has its history.

    name_or_path, schema  as in `load_catalog`
    name                  of the source

    InputError where the file has no history (extracts leave it out), where its times have no
    beginning, and where the unit of the errors is none of the fluxes, or that of the times none of
    time.
    """
    path, rules = find_source(name_or_path, schema, {})
    table, history = read_rows(path, rules), rules.history
    if history is None or history.flux not in table.colnames:
        where = f": '{rules.file}' from {rules.url}" if history and rules.url else ""
        raise InputError(
            f"{path.name} has no history of fluxes; give the full file of a release that has one"
            f"{where}"
        )
    if not rules.id:
        raise InputError(f"{path.name}: the schema names no column of identifiers, id = '...'")
    row = _row(text(table, rules.id), name)
    unit = unit_of(table, history.flux)

    def measured(column: str) -> np.ndarray:
        factor, values = conversion(table, column, unit), _vector(table, column)[row]
        return np.where(is_sentinel(values, rules.sentinels or ()), np.nan, values * factor)

    F, errors = measured(history.flux), measured(history.error)
    if F.ndim != 1:
        raise _no_series(history.flux)
    if errors.shape not in (F.shape, (len(F), 2)):
        raise InputError(
            f"{path.name}: column '{history.error}' has the shape {errors.shape} for each source,"
            f" not one error, or a lower and an upper one, of each of the {len(F)} fluxes"
        )
    sides = _sides(F, [errors])
    times = read_table(path, file_name(path, rules), history.edges, trusted=is_release)
    seconds = numbers(times, times.colnames[0]) * conversion(times, times.colnames[0], "s")
    where = f"{path.name}: extension '{history.edges}'"
    at = _reference(times.meta, where) + seconds / SECONDS
    if len(at) != len(F) + 1:
        raise InputError(
            f"{path.name}: {len(at)} times in extension '{history.edges}' do not bound the"
            f" {len(F)} fluxes of '{history.flux}'"
        )
    found = np.where(np.isfinite(sides[:, 1]), F, np.nan)
    edges = np.column_stack([at[:-1], at[1:]])
    return Series(str(text(table, rules.id)[row]), edges, found, sides, unit)


def _sides(F: np.ndarray, errors: Sequence[np.ndarray]) -> np.ndarray:
    """(n, 2) lower and upper errors, from one error (n,), pairs (n, 2), or both apart.

    The lower one is NaN where the flux is a limit.
    """
    if len(errors) == 1 and errors[0].ndim == 1:
        both = np.column_stack([errors[0], errors[0]])
        both[np.abs(errors[0]) >= F, 0] = np.nan
        return np.abs(both)
    both = errors[0] if len(errors) == 1 else np.column_stack(errors)
    return np.abs(both)


def _vector(table: Table, name: str) -> np.ndarray:
    split(table, name)  # InputError where there is none
    try:
        values: np.ndarray = np.ma.filled(np.ma.asarray(table[name], dtype=float), np.nan)
    except (TypeError, ValueError):
        raise _no_series(name) from None
    if values.ndim < 2:
        raise _no_series(name)
    return values


def _no_series(column: str) -> InputError:
    return InputError(f"column '{column}' holds no list of numbers for each source")


def _reference(header: Any, where: str) -> float:
    """MJD of the time 0, as the header of an extension has it; Fortran's D is an exponent too.

    Where both are there, MJDREFI + MJDREFF goes before MJDREF (FITS standard 4.0, 9.2.2).
    """
    keys = ("MJDREFI", "MJDREFF") if "MJDREFI" in header else ("MJDREF",)
    parts = [header[key] for key in keys if key in header]
    try:
        if not parts:
            raise ValueError
        return sum(float(str(part).replace("D", "E")) for part in parts)
    except ValueError:
        found = f"; it has {', '.join(map(str, parts))}" if parts else ""
        raise InputError(
            f"{where} needs MJDREF, or MJDREFI and MJDREFF, in its header, the MJD from which its"
            f" times count (0 where they are MJD){found}"
        ) from None


def _row(names: np.ndarray, name: str) -> int:
    """The row of the source called so, whatever its blanks and capitals."""
    exact = np.flatnonzero(names == name)
    asked = "".join(name.split()).lower()
    close = [k for k, known in enumerate(names.tolist()) if "".join(known.split()).lower() == asked]
    if len(exact) or len(close) == 1:
        return int(exact[0]) if len(exact) else close[0]
    raise InputError(f"no source '{name}' in the catalog; {close_matches(name, names.tolist())}")
