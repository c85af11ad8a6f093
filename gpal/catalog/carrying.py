"""The columns that a schema carries to the outputs: counterpart, flux, flags, marks, as they stand.

Numbers keep their unit and, of a table that is read whole, their type; whole numbers beyond 2^53
become text, digit by digit. A unit that FITS has no spelling for stands in the description. Text
loses blanks and line breaks around it (FL16Y has a counterpart that ends in one), and what cannot
be printed is escaped.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.carried import Carried
from gpal.catalog.cells import LARGEST_WHOLE, ZONE
from gpal.catalog.columns import LOST, cells, element, numbers, split
from gpal.catalog.roles import ucd_of
from gpal.errors import InputError, shown
from gpal.names import LONGEST_WORD

if TYPE_CHECKING:
    from astropy.table import Column, Table

__all__ = ["Alike", "carried_columns", "is_empty", "may_grow"]

KINDS = {"U": "text", "b": "marks", "f": "numbers"}


def carried_columns(table: Table, carry: Mapping[str, Carried]) -> dict[str, Column]:
    """Name -> column with unit, description and UCD; text '' and numbers NaN where missing.

    Warns of those that the table lacks.
    """
    found, absent = {}, []
    for name, item in carry.items():
        if not item.column:
            continue
        try:
            held, _ = split(table, item.column)
        except InputError:
            absent.append(f"{name} (column '{shown(item.column)}')")
        else:
            found[name] = _column(table, held, item)
    if absent:
        warnings.warn(
            f"the outputs go without {', '.join(absent)}: the table has no such column; give its"
            ' name under [carry] in the schema, or column = ""',
            stacklevel=2,
        )
    return found


class Alike:
    """Makes the carried columns of a table's blocks alike, whatever cells a block happens to have:
    numbers are float64 in all of them, and a block without text has empty text."""

    def __init__(
        self,
        text: Collection[str] = (),
        digits: Collection[str] = (),
        numbers: Collection[str] = (),
    ) -> None:
        """text  columns that hold it, though the first block may have none
        digits   those of whole numbers, of which some are too long for a float
        numbers  those of numbers, also where a block has marks, of which others lack some"""
        self._kinds = dict.fromkeys((*text, *digits), "U")
        self._digits, self._numbers = digits, numbers

    def __call__(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """InputError where a column is text in some rows and numbers in others."""
        return {name: self._alike(name, column) for name, column in columns.items()}

    def _alike(self, name: str, column: Column) -> Column:
        if name in self._digits and column.dtype.kind != "U":
            column = _with(column, _digits(column))
        kind = column.dtype.kind if column.dtype.kind in KINDS else "f"
        if kind == "b" and name in self._numbers:
            kind = "f"
        if kind == "f":
            column = _with(column, np.asarray(column, dtype=float))
        first = self._kinds.setdefault(name, kind)
        if first == "U" and is_empty(column):
            return _with(column, np.full(len(column), ""))
        if kind != first:
            raise InputError(
                f"the carried column '{name}' holds {KINDS[first]} in the rows before and"
                f" {KINDS[kind]} in these; leave the column out of [carry], or read the table"
                " as one (load_catalog)"
            )
        return column


def is_empty(column: Column) -> bool:
    """Whether a carried column of numbers has none."""
    return column.dtype.kind == "f" and bool(np.isnan(column).all())


def may_grow(column: Column) -> bool:
    """Whether a carried column holds whole numbers beyond 32 bits, as identifiers are."""
    if column.dtype.kind not in ("i", "u", "f"):
        return False
    values = np.asarray(column, dtype=float)
    known = values[np.isfinite(values)]
    return bool((np.abs(known) >= 2**31).any() and (known == np.rint(known)).all())


def _digits(column: Column) -> np.ndarray:
    """Whole numbers as text, '' where missing."""
    missing = np.isnan(np.asarray(column, dtype=float))
    whole = np.where(missing, 0, column).astype(np.int64).astype(str)
    return np.where(missing, "", whole)


def _with(column: Column, values: np.ndarray) -> Column:
    """The column with other values."""
    from astropy.table import Column

    unit = None if values.dtype.kind == "U" else column.unit
    about = {"name": column.name, "description": column.description, "meta": column.meta}
    return Column(values, unit=unit, **about)


def _column(table: Table, held: str, item: Carried) -> Column:
    from astropy.table import Column

    described, unit = item.label or f"{shown(item.column)} of the catalog", None
    values: Any
    if item.ends:
        values = np.char.endswith(_text(table, item.column), item.ends)
    elif getattr(getattr(table[held], "dtype", None), "kind", "") == "M":
        zone = (getattr(table[held].info, "meta", None) or {}).get(ZONE, "")
        values = _dates(np.ma.asarray(table[held]), zone)
    elif _is_text(table, held, item.column):
        values = _text(table, item.column)
    else:
        values, unit = _numbers(table, held, item.column), table[held].unit
        if unit is not None and not _is_written(unit):
            described, unit = f"{described} [{shown(unit)}]", None
    ucd = item.ucd or ("" if item.ends else ucd_of(table, held))
    meta = {"ucd": ucd} if ucd else None
    return Column(values, name=item.name, unit=unit, description=described, meta=meta)


def _is_text(table: Table, held: str, expression: str) -> bool:
    """Whether cells are words, or whole numbers too long for a float, as some identifiers are."""
    kind = getattr(getattr(table[held], "dtype", None), "kind", "")
    if kind == "O":
        return expression == held  # of lists an element is a number
    column = element(table, expression)
    if kind not in ("i", "u") or column.ndim != 1:
        return kind in ("U", "S")
    known = np.ma.compressed(np.ma.asarray(column))
    return bool(len(known)) and max(-int(known.min()), int(known.max())) > LARGEST_WHOLE


def _dates(column: np.ma.MaskedArray, zone: str) -> np.ndarray:
    """Dates and times as ISO 8601 writes them, without the digits of a second where all are 0;
    `zone` is Z of those in universal time."""
    values = np.ma.filled(column, np.datetime64("NaT"))
    missing, seconds = np.isnat(values), values.astype("M8[s]")
    if np.datetime_data(values.dtype)[0] != "D" and (missing | (seconds == values)).all():
        values = seconds
    return np.where(missing, "", np.char.add(np.datetime_as_string(values), zone))


def _text(table: Table, name: str) -> np.ndarray:
    """A warning where bytes were no UTF-8, which are lost."""
    if any(LOST in cell for cell in cells(table, name)):
        warnings.warn(
            f"column '{shown(name)}' holds bytes that are no UTF-8, which the outputs show as"
            f" '{LOST}'; save the file as UTF-8",
            stacklevel=2,
        )
    words = [shown(cell.strip(), LONGEST_WORD) for cell in cells(table, name)]
    return np.array(words, dtype=str)


def _is_written(unit: Any) -> bool:
    """Whether FITS has a spelling for the unit."""
    try:
        return bool(unit.to_string("fits"))
    except (ValueError, TypeError):
        return False


def _numbers(table: Table, held: str, expression: str) -> np.ndarray:
    """As they stand where none is missing and every format has the type, else float64 with NaN."""
    column = table[held]
    whole = expression == held and not np.ma.is_masked(column)
    if whole and hasattr(column, "dtype") and column.ndim == 1 and column.dtype.kind in "iufb":
        values = np.ma.getdata(np.ma.asarray(column))
        if values.dtype.kind == "u" or values.dtype in (np.int8, np.float16):
            return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
        return values.astype(values.dtype.newbyteorder("="))
    return numbers(table, expression)
