"""Columns of a table by expression, as plain numbers or text, with their units."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.schema import close_matches
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["ERROR_ALIASES", "conversion", "error_column", "numbers", "text", "unit_of"]

NO_NUMBER = ("na", "n/a", "null", "none", "--")  # how tables of text write a missing number
# how catalogs name the error of the column {}
ERROR_ALIASES = ("Unc_{}", "e_{}", "{}_err", "{}_error", "{}err", "{}_e")


def _split(table: Table, expression: str) -> tuple[str, tuple[int, ...]]:
    """'Flux_Band[3]' -> ('Flux_Band', (3,))."""
    if expression in table.colnames:
        return expression, ()
    match = re.fullmatch(r"(.+?)((?:\[\d+\])+)", expression)
    name = match[1] if match else expression
    if name not in table.colnames:
        raise InputError(
            f"no column '{name}' ({close_matches(name, table.colnames)});"
            " name the right one in the schema or mapping"
        )
    return name, tuple(int(k) for k in re.findall(r"\[(\d+)\]", match[2])) if match else ()


def numbers(table: Table, expression: str, pair: bool = False) -> np.ndarray:
    """Column as float64, (n,), NaN where masked; with `pair` also (n, 2), lower and upper."""
    name, indices = _split(table, expression)
    column = table[name]
    if getattr(column, "dtype", np.dtype(object)).kind not in "fiub":
        row, word = _first_text(column)
        raise InputError(
            f"column '{name}' holds text, not numbers (row {row}: {word!r});"
            " correct it, or name a numeric column"
        )
    values = np.ma.filled(np.ma.asarray(column, dtype=float), np.nan)
    for k in indices:
        if values.ndim < 2 or k >= values.shape[1]:
            raise InputError(
                f"column '{name}' has shape {np.shape(column)[1:]} per row, no element [{k}]"
            )
        values = values[:, k]
    if values.ndim > 1 and not (pair and values.shape[1:] == (2,)):
        raise InputError(
            f"column '{expression}' holds an array of shape {values.shape[1:]} per row;"
            f" pick an element, e.g. '{expression}[0]'"
        )
    return values


def _first_text(column: Any) -> tuple[int, str]:
    """Row and content of the first cell that is no number; the first row if it looks like one."""
    words = [_word(value) for value in column]
    for row, word in enumerate(words):
        try:
            float(word or "nan")
        except ValueError:
            if word.lower() not in NO_NUMBER:
                return row, word
    return 0, words[0]


def text(table: Table, name: str) -> np.ndarray:
    """Column as stripped text, '' where masked or empty."""
    _split(table, name)
    column = np.ma.asarray(table[name])
    values = np.ma.getdata(column).astype(object)
    values[np.ma.getmaskarray(column)] = ""
    return np.array([_word(value) for value in values], dtype=str)


def _word(value: object) -> str:
    if value is None or value != value:  # NaN is how pandas leaves a text field empty
        return ""
    return (value.decode() if isinstance(value, bytes) else str(value)).strip()


def unit_of(table: Table, expression: str) -> str:
    """Unit of a column as text, '' if it has none."""
    unit = table[_split(table, expression)[0]].unit
    return "" if unit is None else str(unit)


def conversion(table: Table, expression: str, unit: str, unstated: str = "") -> float:
    """Factor from the column's unit to `unit`; 1 where either is not stated.

    unstated  unit of a column that states none; an error has that of its value
    """
    from astropy import units as u

    found = unit_of(table, expression) or unstated
    if not found or not unit or found == unit:
        return 1.0
    try:
        return float(u.Unit(found).to(u.Unit(unit)))
    except (u.UnitConversionError, ValueError, TypeError):
        raise InputError(
            f"column '{expression}' has the unit '{found}', which does not convert to '{unit}';"
            " correct the column's unit in the file or 'unit' in the schema"
        ) from None


def error_column(table: Table, column: str) -> str | None:
    """The column that holds the error of `column` under one of the usual names, if there is one."""
    name, indices = _split(table, column)
    suffix = "".join(f"[{k}]" for k in indices)
    for alias in ERROR_ALIASES:
        if alias.format(name) in table.colnames:
            return alias.format(name) + suffix
    return None
