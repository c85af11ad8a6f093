"""Formats that declare a type for every column, read by astropy: is every cell what it should be?

Astropy takes much for a number, cuts words to a declared length and masks what it cannot read, all
without a word. So its columns are held against the cells as they stand in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.cells import number, number_column, word_column
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["check_arrays", "check_column"]


def check_column(table: Table, name: str, cells: Sequence[str]) -> None:
    """Make the column `name` what its cells say: words as they stand, '' where the file masks them,
    missing numbers masked.

    A column of numbers with a cell that is none becomes one of words, and whoever takes numbers
    from it is told so.
    """
    if len(cells) != len(table):
        raise InputError(f"it holds {len(cells)} rows, of which {len(table)} can be read")
    column = table[name]
    if column.dtype.kind in "iuf" and column.ndim == 1:
        try:
            values = number_column(cells)
        except ValueError:
            _replace(table, name, cells)
            return
        missing = np.isnan(values)
        found: np.ma.MaskedArray = np.ma.asarray(column, dtype=float)
        cut = np.ma.getdata(found) != values  # a number too large for its type was
        if column.dtype.kind in "iu" and cut[~missing].any():
            null = np.ma.getmaskarray(found) & ~cut
            _replace(table, name, _unmasked(cells, null))
        elif _lost(np.ma.getdata(found), values).any():
            _replace_numbers(table, name, np.ma.array(values, mask=missing))
        elif missing.any():
            table[name] = _masked(column, missing)
    elif column.dtype.kind in "iufc":
        try:
            rows = [np.array([number(part) for part in cell.split()]) for cell in cells]
        except ValueError:
            _replace(table, name, cells)
            return
        if column.dtype.kind != "c":
            check_arrays(table, name, cells, rows)
    elif column.ndim == 1 and all(isinstance(v, str | bytes) for v in np.ma.getdata(column)):
        _replace(table, name, _unmasked(cells, np.ma.getmaskarray(np.ma.asarray(column))))


def check_arrays(
    table: Table, name: str, cells: Sequence[str], values: Sequence[np.ndarray]
) -> None:
    """Floats that the type of an array column does not hold are kept; where that of whole numbers
    does not hold one, the column becomes one of words.

    values   the numbers of each cell, none where it is empty
    """
    column = table[name]
    if column.dtype.kind not in "iuf" or not len(column):  # objects: of several lengths
        return
    found: np.ndarray = np.ma.getdata(np.ma.asarray(column, dtype=float))
    if {row.size for row in values} - {0} != {found[0].size}:
        return
    nothing = np.full(found[0].size, np.nan)
    full = np.array([row.ravel() if row.size else nothing for row in values]).reshape(found.shape)
    if column.dtype.kind in "iu":
        if ((found != full) & ~np.isnan(full)).any():
            _replace(table, name, cells)
    elif _lost(found, full).any():
        _replace_numbers(table, name, np.ma.masked_invalid(full))


def _lost(found: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where a float is beyond its type: it has become infinite, or 0."""
    return np.isfinite(values) & (np.isinf(found) | ((found == 0) & (values != 0)))


def _replace_numbers(table: Table, name: str, values: np.ma.MaskedArray) -> None:
    """float64 in place of a type that does not hold them; what was masked still is."""
    from astropy.table import MaskedColumn

    before = table[name]
    mask = np.ma.getmaskarray(values) | np.ma.getmaskarray(np.ma.asarray(before))
    table[name] = MaskedColumn(
        values.data,
        mask=mask,
        name=name,
        unit=before.unit,
        description=before.description,
        meta=before.meta,
    )


def _masked(column: object, missing: np.ndarray) -> object:
    from astropy.table import MaskedColumn

    return MaskedColumn(column, mask=np.ma.getmaskarray(np.ma.asarray(column)) | missing)


def _unmasked(cells: Sequence[str], mask: np.ndarray) -> list[str]:
    """The cells, '' where masked: ECSV may keep what stands below a mask."""
    return ["" if masked else cell for masked, cell in zip(mask, cells)]


def _replace(table: Table, name: str, cells: Sequence[str]) -> None:
    from astropy.table import Column

    before = table[name]
    words = word_column(cells)
    table[name] = Column(
        words, name=name, unit=before.unit, description=before.description, meta=before.meta
    )
