"""A table file of any format that gpal reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gpal.catalog.readers.csv import read_csv
from gpal.catalog.readers.damage import content, damage_reported
from gpal.catalog.readers.ecsv import read_ecsv
from gpal.catalog.readers.fits import read_fits
from gpal.catalog.readers.parquet import read_parquet
from gpal.catalog.readers.votable import read_votable
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["FORMATS", "read_table", "table_format"]

FORMATS = {
    "fits": (".fits", ".fit", ".fts", ".fits.gz", ".fit.gz"),
    "votable": (".vot", ".votable", ".xml"),
    "ecsv": (".ecsv",),
    "csv": (".csv", ".csv.gz"),
    "parquet": (".parquet", ".pq"),
}


def table_format(name: str) -> str:
    """Format by file name; raises InputError on one that gpal does not read."""
    for format, endings in FORMATS.items():
        if name.lower().endswith(endings):
            return format
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise InputError(f"unknown file type; gpal reads {known}")


Trusted = Callable[[Path], bool]


def never(path: Path) -> bool:
    """No file is trusted against its checksums."""
    return False


def read_table(
    path: Path,
    name: str = "",
    hdu: str = "",
    *,
    words: Collection[str] = (),
    trusted: Trusted = never,
) -> Table:
    """The table in `path`, with units where the format has them.

    name     tells the format where the path does not (a download cache)
    hdu      the FITS extension; without it the first table is read
    words    columns that a CSV has as words: identifiers and classes, whatever they look like
    trusted  asked about a FITS file whose checksums do not match: is it known all the same?

    Raises InputError on a file that is missing, damaged, empty, or of no known format.
    """
    format = table_format(name or path.name)
    if not path.is_file():
        raise InputError("no such file; check the path")
    with damage_reported(format):
        found = content(path)
        if format == "fits":
            table = read_fits(found, hdu, lambda: trusted(path))
        elif format == "csv":
            table = read_csv(found, words)
        else:
            read = {"votable": read_votable, "ecsv": read_ecsv, "parquet": read_parquet}[format]
            table = read(found)
    if not len(table):
        raise InputError("the table has no rows; give a catalog with at least one source")
    return table
