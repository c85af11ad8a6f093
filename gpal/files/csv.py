"""Tables as CSV, and back: words stay words, numbers numbers, and no spreadsheet finds a formula.

    # provenance: {...}
    # text that begins with = + - @ or ' has a ' before it, ...
    "name","ra","candidate"
    "4FGL J0000.3-7355",0.09,True

Remarks come first, a line each. Text stands in quotation marks, so that one which begins with `#`
is no remark; numbers and truth values do not, and a cell without a value is empty. Spreadsheets run
text that begins with = + - @ as a formula, and hide a ' before it: so it gets one.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import numpy as np

from gpal.errors import InputError, shown

__all__ = ["is_marked", "read_csv", "unmarked", "write_csv", "write_rows"]

# Also full-width, as typed in Japan, and what a spreadsheet drops before it looks.
FORMULA = (*"=+-@", *"＝＋－＠", "\t", "\r", "\n")
MARKED = (
    "text that begins with = + - @ or ' has a ' before it, lest spreadsheets run it as a formula"
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-?inf", re.ASCII)
TRUTH = {"True": True, "False": False}


def write_csv(path: str | os.PathLike, columns: Mapping[str, Any], remarks: Iterable[str]) -> None:
    """Write columns of equal length; masked and NaN is no value.

    remarks  what the columns are, where they came from: a line each, before the table
    """
    with open(path, "w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, remarks)


def write_rows(
    file: TextIO, columns: Mapping[str, Any], remarks: Iterable[str] | None = None
) -> None:
    """Rows of a CSV file that is open; its beginning too, where `remarks` are given."""
    rows = zip(*map(_cells, columns.values()), strict=True)
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    try:
        if remarks is not None:
            lines = list(remarks)
            lines.insert(1, MARKED)
            file.writelines(f"# {_harmless(line)}\n" for line in lines)
            writer.writerow([_marked(name) for name in columns])
        writer.writerows(rows)
    except UnicodeEncodeError as error:
        raise InputError(
            f"'{shown(error.object)}' holds half a character, which CSV cannot hold; correct it, or"
            " write FITS"
        ) from error


def read_csv(
    path: str | os.PathLike, kinds: Mapping[str, type], optional: Mapping[str, type] | None = None
) -> dict[str, np.ndarray]:
    """The columns `kinds`, name -> str, float or bool, of a file that `write_csv` made.

    optional  columns that it may lack

    Raises InputError naming row and column on whatever is of another kind, and on a row that is not
    as long as the heading.
    """
    remarks, names, rows = _parsed(path)
    marked = is_marked(remarks)
    if marked:
        names = [unmarked(name) for name in names]
    wanted = {**kinds, **(optional or {})}
    columns = {}
    for name, kind in wanted.items():
        if name not in names and name not in kinds:
            continue
        if names.count(name) != 1:
            raise InputError(f"it has {names.count(name)} columns '{shown(name)}', not one")
        k = names.index(name)
        words = [row[k] for row in rows]
        try:
            columns[name] = _of_kind(words, kind, marked)
        except InputError as error:
            raise InputError(f"column '{shown(name)}', {error}") from None
    return columns


def _parsed(path: str | os.PathLike) -> tuple[list[str], list[str], list[list[str]]]:
    """The remarks, the heading, and the rows, each as long as it."""
    remarks = []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            start = 0
            while (line := file.readline()).startswith("#"):
                remarks.append(line.rstrip("\r\n"))
                start = file.tell()
            file.seek(start)
            names, *rows = csv.reader(file, strict=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"it is no CSV: {error}") from error
    except ValueError as error:
        raise InputError("it has no heading") from error
    for k, row in enumerate(rows):
        if len(row) != len(names):
            raise InputError(f"row {k} has {len(row)} cells, the heading {len(names)}")
        if any("\0" in cell for cell in row):
            raise InputError(f"row {k} holds a NUL")
    return remarks, names, rows


def _of_kind(words: list[str], kind: type, marked: bool) -> np.ndarray:
    if kind is str:
        return np.array([unmarked(word) for word in words] if marked else words, dtype=object)
    for row, word in enumerate(words):
        if not (word in TRUTH if kind is bool else word == "" or NUMBER.fullmatch(word)):
            what = "neither True nor False" if kind is bool else "no number"
            raise InputError(f"row {row}: '{shown(word)}' is {what}")
    if kind is bool:
        return np.array([TRUTH[word] for word in words], dtype=bool)
    return np.array([word or "nan" for word in words], dtype=float)


def _cells(column: Any) -> list[Any]:
    values = np.ma.asarray(column).tolist()  # None where masked
    return [
        _marked(value) if isinstance(value, str) else value if value == value else None
        for value in values
    ]


def _marked(text: str) -> str:
    """With a ' before what a spreadsheet would run: -1 too, which is a number alone, but begins
    the line where the spreadsheet takes that for one cell, since its lists have semicolons."""
    return f"'{text}" if text.startswith((*FORMULA, "'")) else text


def is_marked(remarks: Iterable[str]) -> bool:
    """Whether text in a CSV with such first lines has marks, as gpal writes it."""
    return any(remark.startswith(f"# {MARKED}") for remark in remarks)


def unmarked(text: str) -> str:
    """A cell of such a file as it was."""
    return text.removeprefix("'")


def _harmless(remark: str) -> str:
    """On one line, and without a formula where a spreadsheet splits it; JSON reads it as it was."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in remark)
    starts = "".join(map(re.escape, FORMULA))
    return re.sub(rf"[,;](?=[\"'{starts}])", lambda found: f"\\u{ord(found[0]):04x}", line)
