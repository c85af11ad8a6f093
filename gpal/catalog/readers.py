"""Any table file into an astropy Table: FITS, VOTable, ECSV, CSV, Parquet."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpal.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from astropy.io.fits import BinTableHDU, HDUList, Header, TableHDU
    from astropy.table import Table

__all__ = ["fits_table_header", "read_table", "table_format"]

GZIP = b"\x1f\x8b"  # how a compressed file starts
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


def read_table(path: Path, name: str = "", hdu: str = "") -> Table:
    """The table in `path`, with units where the format has them.

    `name` tells the format where the path does not (a download cache). `hdu` names the FITS
    extension; without it the first table is read. Raises InputError on a file that is missing,
    damaged, empty, or of no known format.
    """
    from astropy.table import Table

    format = table_format(name or path.name)
    if not path.is_file():
        raise InputError("no such file; check the path")
    with _damage_reported(format):
        if format == "fits":
            with _open_fits(path) as hdus:
                table = Table.read(_table_hdu(hdus, hdu), format="fits", mask_invalid=False)
        elif format == "votable":
            table = Table.read(path, format="votable")
        elif format == "ecsv":
            table = Table.read(path, format="ascii.ecsv")
        else:
            import pandas as pd

            frame = _read_csv(path) if format == "csv" else pd.read_parquet(path)
            table = Table.from_pandas(frame)
    if not len(table):
        raise InputError("the table has no rows; give a catalog with at least one source")
    return table


def fits_table_header(path: Path) -> Header:
    """Header of the first table of a FITS file."""
    with _damage_reported("fits"), _open_fits(path) as hdus:
        return _table_hdu(hdus, "").header.copy()


@contextmanager
def _damage_reported(format: str) -> Iterator[None]:
    """Whatever a reader raises on a damaged file, as one InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # units spelled in ways that astropy remarks upon
            warnings.filterwarnings("error", message=".*truncated.*")
            yield
    except InputError:
        raise
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"cannot read {format} ({reason}); install the version of pyarrow that gpal asks for"
        ) from None
    except Exception as error:  # every reader has exceptions of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"not a readable {format} file ({reason}); it may be truncated: fetch it again"
        ) from None


def _content(path: Path) -> io.BytesIO:
    content = path.read_bytes()
    return io.BytesIO(gzip.decompress(content) if content[:2] == GZIP else content)


def _read_csv(path: Path) -> pd.DataFrame:
    """Columns of numbers with NaN for NA, null and the like; columns of text word for word."""
    import pandas as pd

    content = _content(path)
    skipped = _comments(content)
    frame = pd.read_csv(content, skiprows=skipped)
    text = [name for name, column in frame.items() if not pd.api.types.is_numeric_dtype(column)]
    if text:  # in them NA is a word, the class of narrow-line AGN say
        content.seek(0)
        words = pd.read_csv(content, skiprows=skipped, dtype=str, keep_default_na=False)
        frame[text] = words[text]
    return frame


def _comments(content: io.BytesIO) -> int:
    """How many lines of `#` come before the header, which may be the last of them itself."""
    lines = 0
    for line in content:
        if not line.startswith(b"#"):
            break
        lines += 1
    content.seek(0)
    if lines and any(_is_number(cell) for cell in line.split(b",")):
        return lines - 1
    return lines


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _open_fits(path: Path) -> HDUList:
    from astropy.io import fits

    return fits.open(_content(path))


def _table_hdu(hdus: HDUList, name: str) -> BinTableHDU | TableHDU:
    from astropy.io import fits

    tables = [hdu for hdu in hdus if isinstance(hdu, fits.BinTableHDU | fits.TableHDU)]
    if not tables:
        raise InputError("the FITS file holds no table; it may be truncated: fetch it again")
    if not name:
        return tables[0]
    for hdu in tables:
        if hdu.name.lower() == name.lower():
            return hdu
    raise InputError(
        f"no extension '{name}' in the FITS file; there are: {', '.join(h.name for h in tables)}"
    )
