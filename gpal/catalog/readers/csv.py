"""CSV: cells are text, and what they are used for decides what is made of them."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from gpal.catalog.cells import BLANKS, number, typed_column, word_column
from gpal.catalog.readers.delimited import columns_of, decoded
from gpal.files.csv import is_marked, unmarked

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["header_start", "read_csv"]

LINE_END = r"\r\n|\r|\n"
REMARK = re.compile(rf"(#[^\r\n]*)?({LINE_END})")  # or a blank line


def read_csv(found: bytes, words: Collection[str] = (), remarks: bytes | None = None) -> Table:
    """The columns `words` word for word; any other with numbers where all its cells are numbers.

    remarks  what stands before the header, where `found` begins with that
    """
    from astropy.table import Table

    text = decoded(found)
    start = header_start(text) if remarks is None else 0
    before = text[:start] if remarks is None else decoded(remarks)
    skipped = len(re.findall(LINE_END, before))
    columns = columns_of(text[start:], skipped=skipped, blanks=BLANKS)
    if is_marked(before.splitlines()):  # one of gpal's own tables
        columns = {unmarked(name): [*map(unmarked, cells)] for name, cells in columns.items()}
    return Table(
        {
            name: word_column(cells) if name in words else typed_column(cells)
            for name, cells in columns.items()
        }
    )


def header_start(text: str) -> int:
    """Where the header starts: after the remarks, of which it may be the last itself."""
    start, remark = 0, None
    while match := REMARK.match(text, start):
        remark = match.start() if match[1] else remark
        start = match.end()
    first, second, *_ = [*re.split(LINE_END, text[start : start + 200_000], maxsplit=2), ""]
    cells, below = _fields(first), _fields(second)
    if remark is None or not any(map(_is_number, cells)):
        return start
    # A header may have a number for a name, as bands have: its remark is seldom as long, and below
    # some of its words there are numbers.
    above = _fields(re.split(r"[\r\n]", text[remark:start], maxsplit=1)[0])
    words = any(_is_number(b) and not _is_number(a) for a, b in zip(cells, below, strict=False))
    return start if words and len(above) != len(cells) else remark


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a cell of more than 131,072 characters
        return line.split(",")


def _is_number(cell: str) -> bool:
    try:
        return number(cell) == number(cell)
    except ValueError:
        return False
