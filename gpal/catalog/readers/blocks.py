"""A table file in blocks of rows, as large as memory likes, each as `read_table` would have it.

Parquet, FITS, CSV, and VOTables of plain rows. Other files are one block.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gpal.catalog.readers.csv import header_start, read_csv
from gpal.catalog.readers.damage import damage_reported
from gpal.catalog.readers.fits import fits_blocks, fits_row_count
from gpal.catalog.readers.parquet import parquet_blocks
from gpal.catalog.readers.table import Trusted, never, read_table, table_format
from gpal.catalog.readers.votable import read_votable
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["row_count", "table_blocks"]

FIRST = 1 << 20  # bytes in which a file has said what its columns are
CHUNK = 1 << 22
BOM = "\xef\xbb\xbf"  # a byte order mark of UTF-8, byte by byte
GZIP = b"\x1f\x8b"
TABLEDATA = re.compile(rb"<((?:\w+:)?)TABLEDATA\s*>")


def table_blocks(
    path: Path,
    rows: int,
    name: str = "",
    hdu: str = "",
    *,
    words: Collection[str] = (),
    trusted: Trusted = never,
) -> Iterator[Table]:
    """Tables of at most so many rows, one after another; further arguments as of `read_table`.

    Raises InputError as `read_table` does, and where the damage is when it comes to it. Cells of
    CSV are numbers or words by block.
    """
    format = table_format(name or path.name)
    if not path.is_file():
        raise InputError("no such file; check the path")
    with path.open("rb") as file:
        start = file.read(FIRST)
    packed = start.startswith(GZIP)
    if format == "parquet":
        blocks = parquet_blocks(path, rows)
    elif format == "csv" and not packed:
        blocks = _csv_blocks(path, rows, words)
    elif format == "fits" and not packed:
        blocks = fits_blocks(path, rows, hdu, lambda: trusted(path))
    elif format == "votable" and TABLEDATA.search(start):
        blocks = _votable_blocks(path, rows)
    else:
        yield read_table(path, name, hdu, words=words, trusted=trusted)
        return
    first = 0
    while True:
        try:
            with damage_reported(format):
                block = next(blocks, None)
        except InputError as error:
            where = f"in the rows from {first} on, counted from there: " if first else ""
            raise InputError(f"{where}{error}") from None
        if block is None:
            break
        if len(block):
            yield block
        first += len(block)
    if not first:
        raise InputError("the table has no rows; give a catalog with at least one source")


def row_count(path: Path, name: str = "", hdu: str = "") -> int | None:
    """How many rows there are, where the file says so."""
    format = table_format(name or path.name)
    with damage_reported(format):
        if format == "parquet":
            import pyarrow.parquet as pq

            return int(pq.read_metadata(path).num_rows)
        return fits_row_count(path, hdu) if format == "fits" else None


def _csv_blocks(path: Path, rows: int, words: Collection[str]) -> Iterator[Table]:
    """The header with so many of the rows below it, again and again."""
    kept: list[str] = []
    # Every byte is a character of Latin-1, and quotes and commas are those of ASCII.
    with path.open(encoding="latin-1", newline="") as file:
        begin = file.read(FIRST)
        mark = len(BOM) if begin.startswith(BOM) else 0
        file.seek(0)
        remarks = file.read(mark + header_start(begin[mark:])).encode("latin-1")
        reader = csv.reader(_noted(file, kept), strict=True)
        next(reader, None)
        header = "".join(kept)
        kept.clear()
        while sum(1 for _ in islice(reader, rows)):
            yield read_csv((header + "".join(kept)).encode("latin-1"), words, remarks)
            kept.clear()


def _noted(file: IO[str], kept: list[str]) -> Iterator[str]:
    """The lines of a file, each of which is kept."""
    for line in file:
        kept.append(line)
        yield line


def _votable_blocks(path: Path, rows: int) -> Iterator[Table]:
    """What stands around the rows of the table with so many of them, again and again."""
    with path.open("rb") as file:
        start = file.read(FIRST)
        found = TABLEDATA.search(start)
        assert found is not None
        prefix, head = found[1], start[: found.end()]
        end = b"</" + prefix + b"TABLEDATA>"
        tail = _after(path, end)
        file.seek(found.end())
        records = _records(file, b"</" + prefix + b"TR>", end)
        while block := b"".join(islice(records, rows)):
            yield read_votable(head + block + end + tail)


def _records(file: IO[bytes], row_end: bytes, end: bytes) -> Iterator[bytes]:
    """Each row with what stands before it, up to `end`."""
    buffer, last = b"", False
    while not last:
        more = file.read(CHUNK)
        buffer += more
        last = end in buffer or not more
        *found, buffer = buffer.partition(end)[0].split(row_end)
        for record in found:
            yield record + row_end


def _after(path: Path, end: bytes) -> bytes:
    """What follows `end` in a file."""
    with path.open("rb") as file:
        buffer = b""
        while more := file.read(CHUNK):
            buffer = buffer[-len(end) :] + more
            if end in buffer:
                return buffer.partition(end)[2] + file.read()
    raise InputError("its table does not end; it may be truncated: fetch it again")
