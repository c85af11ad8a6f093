"""Columns of a table by expression, as plain numbers or text, with their units.

Here the rules for cells are kept, whatever the format: a number is a number or missing, a name is
one line of characters that can be seen. Columns that nobody asks for are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.cells import BLANKS, TRUTH, number, number_column, truth_column
from gpal.catalog.error_names import error_names
from gpal.catalog.schema import close_matches
from gpal.catalog.units import factor_between
from gpal.errors import InputError, shown
from gpal.names import check_words

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = [
    "LOST",
    "as_stored",
    "cells",
    "conversion",
    "element",
    "error_column",
    "numbers",
    "split",
    "text",
    "unit_of",
]

LOST = "\ufffd"  # stands where bytes were no UTF-8


def split(table: Table, expression: str) -> tuple[str, tuple[int, ...]]:
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
    """Column as float64, (n,), NaN where masked; with `pair` also (n, 2), lower and upper. The
    caller's own: no view of the table."""
    name, indices = split(table, expression)
    column = table[name]
    kind = column.dtype.kind if hasattr(column, "dtype") else "none"  # a position, a time
    if kind in "fiub":
        values: np.ndarray = np.array(np.ma.filled(np.ma.asarray(column, dtype=float), np.nan))
    elif kind in "USO" and column.ndim == 1:
        values = _parsed(column, name)
    else:
        raise InputError(f"column '{name}' holds no numbers; name a numeric column")
    if not (kind == "O" and np.isnan(values).all()):  # lists, of which no row has one
        values = _element(values, name, indices)
    if values.ndim > 1 and not (pair and values.shape[1:] == (2,)):
        raise InputError(
            f"column '{expression}' holds an array of shape {values.shape[1:]} per row;"
            f" pick an element, e.g. '{expression}[0]'"
        )
    return values


def as_stored(table: Table, expression: str, number: float) -> float:
    """A number as a column holds it: .7 in single precision is .69999999, and what is compared with
    such values must be as well. Whole numbers, and those that a type takes for 0 or infinite, are
    as they are."""
    kind = getattr(table[split(table, expression)[0]], "dtype", np.dtype(float))
    if kind.kind != "f" or kind.itemsize >= 8:
        return number
    with np.errstate(over="ignore"):
        rounded = float(kind.type(number))
    known = (rounded == 0) == (number == 0) and not float(number).is_integer()
    return rounded if known and np.isfinite(rounded) else number


def element(table: Table, expression: str) -> Any:
    """Column as it stands, or the element of an array column; InputError where there is none."""
    name, indices = split(table, expression)
    return _element(table[name], name, indices)


def _element(values: Any, name: str, indices: tuple[int, ...]) -> Any:
    shape = np.shape(values)[1:]
    for k in indices:
        if values.ndim < 2 or k >= values.shape[1]:
            raise InputError(f"column '{name}' has shape {shape} per row, no element [{k}]")
        values = values[:, k]
    return values


def _parsed(column: Any, name: str) -> np.ndarray:
    """(n,) numbers of a column of text; refused with the first cell that is none."""
    words = _words(column)
    for values_of in (number_column, truth_column):  # a CSV without some has them as words
        with suppress(ValueError):
            return values_of(words)
    wrong = [row for row, word in enumerate(words) if not _is_number(word)]
    row = next((row for row in wrong if words[row].strip(BLANKS).lower() not in TRUTH), wrong[0])
    if column.dtype.kind == "O" and _is_array(column[row]):
        raise InputError(
            f"column '{name}' holds lists or records that are no array of numbers, as those of"
            f" several lengths or levels (row {row}: '{shown(words[row])}'); write what you"
            " need of them as a column of its own"
        )
    raise InputError(
        f"column '{name}' holds text, not numbers (row {row}: '{shown(words[row])}');"
        " correct it, or name a numeric column"
    )


def _is_number(word: str) -> bool:
    try:
        number(word)
    except ValueError:
        return False
    return True


def text(table: Table, name: str) -> np.ndarray:
    """Column as text without blanks around it, '' where masked or empty.

    Raises InputError, naming the row, on what cannot be the name of a source or class.
    """
    words = cells(table, name)
    check_words(f"column '{name}', cell", words)
    if LOST in "".join(words):
        row = next(row for row, word in enumerate(words) if LOST in word)
        raise InputError(
            f"column '{name}', row {row} ('{shown(words[row])}') holds bytes that are no UTF-8;"
            " save the file as UTF-8, or name another column"
        )
    return np.array(words, dtype=str)


def cells(table: Table, name: str) -> list[str]:
    """n cells as text without blanks around it, '' where masked or empty, whatever they hold."""
    column = element(table, name)
    whole = hasattr(column, "dtype") and column.ndim == 1
    if not whole or any(map(_is_array, _values(column))):
        raise InputError(f"column '{name}' holds no names; name a column of text or numbers")
    return _words(column)


def _words(column: Any) -> list[str]:
    """n words without blanks around them, '' where masked or missing."""
    if column.dtype.kind == "U":
        return [word.strip(BLANKS) for word in _values(column)]
    return [_word(value) for value in _values(column)]


def _values(column: Any) -> list[Any]:
    """n objects, '' where masked."""
    masked = np.ma.asarray(column)
    values = np.ma.getdata(masked).astype(object)
    values[np.ma.getmaskarray(masked)] = ""
    return values.tolist()


def _is_array(value: object) -> bool:
    """Whether a cell holds several values, be it as a data frame."""
    return isinstance(value, Sized) and not isinstance(value, str | bytes)


def _word(value: Any) -> str:
    if _is_array(value):
        return str(value)
    if value is None or value != value:  # NaN is how pandas leaves a text field empty
        return ""
    word = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return word.strip(BLANKS)


def unit_of(table: Table, expression: str) -> str:
    """Unit of a column as text, '' if it has none."""
    unit = getattr(table[split(table, expression)[0]], "unit", None)  # a time has none
    return "" if unit is None else str(unit)


def conversion(
    table: Table,
    expression: str,
    unit: str,
    unstated: str = "",
    power: int = 1,
    *,
    of_errors: bool = False,
) -> float:
    """Factor from the column's unit to `unit` to the `power`; 1 where either is not stated.

    unstated  to the same power the unit of a column that states none: an error has its value's
    of_errors  see `factor_between`
    """
    stated = unit_of(table, expression)
    if not (stated or unstated) or not unit:
        return 1.0
    if (stated or unstated) == unit and (power == 1 or not stated):
        return 1.0  # also of units that nobody knows
    try:
        if not stated:
            return factor_between(unstated, unit, of_errors=of_errors) ** power
        return factor_between(stated, unit, power, of_errors=of_errors)
    except ValueError:
        raise InputError(
            f"column '{expression}' has the unit '{shown(stated or unstated)}', which does not"
            f" convert to '{unit}'{f' to the power {power}' if power != 1 else ''}; correct the"
            " column's unit in the file or 'unit' in the schema"
        ) from None


def error_column(table: Table, column: str) -> str | tuple[str, str] | None:
    """The column that by its name holds the error of `column`, or those of the lower and the upper
    error; None where there is none. Raises InputError where several may be it.
    """
    name, indices = split(table, column)
    suffix = "".join(f"[{k}]" for k in indices)
    found = error_names(name, table.colnames)
    if len(found) > 1:
        listed = [
            f"'{shown(one)}'" if isinstance(one, str) else f"{list(map(shown, one))}"
            for one in found
        ]
        raise InputError(
            f"columns {' and '.join(listed)} may both be the error of '{name}'; say which in the"
            f" schema or mapping: error = {listed[0]}"
        )
    if not found:
        return None
    if isinstance(found[0], str):
        return found[0] + suffix
    lower, upper = found[0]
    return lower + suffix, upper + suffix
