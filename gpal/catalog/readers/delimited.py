"""Text with a delimiter, as cells: every row has the fields that the header has, or it is refused.

Remarks, lines that begin with `#`, stand before the header only: among the rows nobody can tell
them from a source.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from gpal.catalog.readers.column_names import check_names
from gpal.errors import InputError, shown

__all__ = ["columns_of", "decoded"]

OTHERS = {";": "semicolon", "\t": "tab", "|": "bar"}  # delimiters that gpal does not read


def decoded(found: bytes) -> str:
    """Text without a byte order mark; what is not UTF-8 becomes the replacement character U+FFFD,
    which no name and no number may hold."""
    if b"\0" in found:
        raise InputError(
            "it holds NUL bytes, which no text does: fetch it again if it is damaged, or save it"
            " as UTF-8"
        )
    return found.decode("utf-8-sig", "replace")


def columns_of(
    text: str, delimiter: str = ",", skipped: int = 0, blanks: str = ""
) -> dict[str, Sequence[str]]:
    """Column name -> its cells, word for word.

    `text` begins with the line of the header; `skipped` lines of the file came before it. `blanks`
    around a name are no part of it.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header = next((row for row in reader if row), [])
    names = _names([name.strip(blanks) if blanks else name for name in header])
    _refuse_other_delimiter(names, delimiter)
    first = reader.line_num
    rows: list[list[str]] = []
    blank = 0  # the line of an empty row, which may be an empty cell where there is one column
    for row in reader:
        if row and blank and len(names) == 1:
            raise InputError(
                f"line {skipped + blank} is blank: of a table of one column nobody can tell whether"
                ' that is a source; delete it, or write the empty cell as ""'
            )
        blank = blank or (reader.line_num if not row else 0)
        if len(row) == len(names):
            rows.append(row)
        elif row:  # not a blank line
            raise InputError(
                f"row {len(rows)} (line {skipped + reader.line_num}) has {len(row)} fields"
                f" and the header {len(names)}; correct it, and put cells that hold a"
                f" {delimiter!r} in quotes"
            )
    if "\n#" in text or "\r#" in text:
        _refuse_remarks(text, delimiter, first, skipped)
    return dict(zip(names, zip(*rows) if rows else [()] * len(names), strict=True))


def _names(header: list[str]) -> list[str]:
    """Names of the columns; one without a name, as of row numbers, gets one."""
    names = [name or f"Unnamed: {k}" for k, name in enumerate(header)]
    check_names(names)
    return names


def _refuse_other_delimiter(names: list[str], delimiter: str) -> None:
    """Refuse a header of one name that holds what other programs put between cells."""
    for other, word in OTHERS.items():
        if len(names) == 1 and other in names[0] and other != delimiter:
            raise InputError(
                f"its header is one column, '{shown(names[0])}': the cells are separated by a"
                f" {word}, not by {delimiter!r}; save it so, as by"
                f" pandas.read_csv(file, sep={other!r}).to_csv(new_file, index=False)"
            )


def _refuse_remarks(text: str, delimiter: str, first: int, skipped: int) -> None:
    """Refuse a row that begins with `#` outside quotes."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    start = 0
    for row in reader:
        if start >= first and lines[start].startswith("#"):
            raise InputError(
                f"line {skipped + start + 1} begins with '#' ('{shown(','.join(row))}');"
                " put remarks before the header, and a name that begins so in quotes"
            )
        start = reader.line_num
