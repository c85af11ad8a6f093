"""FITS. Where an extension states its CHECKSUM and DATASUM, they are verified.

The 32-bit words of an extension add up, in ones' complement, to CHECKSUM's promise: all ones, which
is zero modulo 2^32 - 1. Those of its data add up to DATASUM (FITS standard 4.0, section 4.4.2.7).
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.readers.column_names import check_names
from gpal.catalog.readers.damage import TwoMeanings, content, damage_reported
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.io.fits import BinTableHDU, HDUList, TableHDU
    from astropy.table import Table

__all__ = ["fits_blocks", "fits_row_count", "fits_table_header", "read_fits"]

MODULUS = 2**32 - 1
CHUNK = 1 << 22  # bytes, whole words
Nulls = Mapping[str, list[int] | str]  # of each column that has a TNULL


def read_fits(found: bytes, name: str, trusted: Callable[[], bool]) -> Table:
    """The extension `name`, or the first table, of a FITS file.

    Raises InputError where a checksum does not match, unless the file is `trusted` all the same.
    """
    with _open(found) as hdus:
        _verify(hdus, io.BytesIO(found), trusted)
        hdu = _table_hdu(hdus, name)
        return _table(hdu, _nulls(hdu))


def fits_blocks(path: Path, rows: int, name: str, trusted: Callable[[], bool]) -> Iterator[Table]:
    """The same in blocks of so many rows; the file is on disk, and verified before the first."""
    from astropy.io import fits

    with fits.open(path, memmap=True, disable_image_compression=True) as hdus:
        with path.open("rb") as file:
            _verify(hdus, file, trusted)
        hdu = _table_hdu(hdus, name)
        nulls = _nulls(hdu)
        if not isinstance(hdu, fits.BinTableHDU):
            yield _table(hdu, nulls)
            return
        for first in range(0, len(hdu.data), rows):
            part = hdu.data[first : first + rows]  # what astropy converts goes with the part
            yield _table(fits.BinTableHDU(part, hdu.header.copy()), nulls)


def fits_row_count(path: Path, name: str) -> int:
    """NAXIS2 of the extension `name`, or of the first table."""
    from astropy.io import fits

    with fits.open(path, memmap=True, disable_image_compression=True) as hdus:
        return int(_table_hdu(hdus, name).header["NAXIS2"])


def _table(hdu: BinTableHDU | TableHDU, nulls: Nulls) -> Table:
    from astropy.io.fits import TableHDU
    from astropy.table import Table

    check_names([column.name or "" for column in hdu.columns])
    for column in hdu.columns:
        if isinstance(hdu, TableHDU):
            hdu.data.field(column.name)  # made numbers while TNULL, which need be none, is known
        column.null = None
    table = Table.read(hdu, format="fits", mask_invalid=False)
    _mask_undefined(table, hdu, nulls)
    for key in ("CHECKSUM", "DATASUM"):  # of the file that was read, not of what becomes of it
        table.meta.pop(key, None)
    return table


def _verify(hdus: HDUList, file: IO[bytes], trusted: Callable[[], bool]) -> None:
    wrong = _wrong_checksum(hdus, file)
    if wrong and not trusted():
        raise InputError(
            f"extension '{shown(wrong)}' is not what its checksum says: the file was damaged or"
            " changed after it was written; fetch it again, or write it again with"
            " checksum=True if the change is yours"
        )


def _mask_undefined(table: Table, hdu: BinTableHDU | TableHDU, nulls: Nulls) -> None:
    """Mask what TNULL says, and truth values that are none: both by what stands in the file.

    nulls  TNULL of every column, which astropy must not see: it compares that with the value after
           TSCAL and TZERO, so that of unsigned integers none is missing, or (8.0) fails, as it does
           for every TNULL of a table of text, where an empty field is missing too

    Astropy takes a truth value that is neither T nor F for False.
    """
    from astropy.table import MaskedColumn

    stored = hdu.data.view(np.ndarray)
    for column in hdu.columns:
        if column.name not in table.colnames:  # a part of a position
            continue
        raw, null = stored[column.name], nulls.get(column.name)
        if raw.shape != np.shape(table[column.name]):  # of several lengths, or of bits
            continue
        if column.format.format == "L":
            missing = ~np.isin(raw, (ord("T"), ord("F")))
        elif isinstance(null, list) and raw.dtype.kind in "iu":
            missing = np.isin(raw, null)
        elif isinstance(null, str) and raw.dtype.kind == "S":
            missing = np.isin(np.char.strip(raw), (null.strip().encode()[: raw.itemsize], b""))
        else:
            continue
        given = table[column.name]
        if missing.any() or np.ma.getmaskarray(np.ma.asarray(given)).any():
            values = np.ma.getdata(np.ma.asarray(given))
            table[column.name] = MaskedColumn(
                values, mask=missing, unit=given.unit, description=given.description
            )


def _nulls(hdu: BinTableHDU | TableHDU) -> Nulls:
    """Column -> the whole numbers, or the text, that stand for no value in the file.

    TNULL, by the standard (7.3.2); astropy writes that of unsigned integers, which are stored less
    half their range, as it is after TZERO. Whichever is in the column is meant; of both, with a
    warning, since nothing tells who has written.
    """
    found: dict[str, list[int] | str] = {}
    for k, column in enumerate(hdu.columns, 1):
        null, zero = column.null, hdu.header.get(f"TZERO{k}", 0)
        if null is None:
            continue
        if isinstance(null, str):
            found[column.name] = null
            continue
        found[column.name] = [int(null)]
        raw = hdu.data.view(np.ndarray)[column.name]
        half = 2 ** (8 * raw.dtype.itemsize - 1)
        if raw.dtype.kind == "i" and zero == half and int(null) >= 0:
            both = [int(null), int(null) - half]
            used = [value for value in both if (raw == value).any()]
            found[column.name] = used or both
            if len(used) > 1:
                warnings.warn(
                    f"column '{shown(column.name)}': TNULL = {null} stands for {null + half} by the"
                    f" FITS standard and for {null} as astropy writes it; both are there and taken"
                    " as missing",
                    TwoMeanings,
                    stacklevel=2,
                )
    return found


def fits_table_header(path: Path, *keys: str) -> dict[str, Any]:
    """Values of `keys` in the header of the first table of a FITS file, None where it has none."""
    with damage_reported("fits"), _open(content(path)) as hdus:
        header = _table_hdu(hdus, "").header
        return {key: header.get(key) for key in keys}


def _open(found: bytes) -> HDUList:
    from astropy.io import fits

    return fits.open(io.BytesIO(found), disable_image_compression=True)


def _wrong_checksum(hdus: HDUList, file: IO[bytes]) -> str:
    """The first extension that is not what its checksums say, '' where all are."""
    for hdu in hdus:
        place = hdu.fileinfo()
        start, middle = place["hdrLoc"], place["datLoc"]
        data = _sum(file, middle, middle + place["datSpan"])
        stated = {key: str(hdu.header.get(key, "")).strip() for key in ("CHECKSUM", "DATASUM")}
        if (stated["DATASUM"] and int(stated["DATASUM"]) % MODULUS != data) or (
            stated["CHECKSUM"] and (_sum(file, start, middle) + data) % MODULUS
        ):
            return hdu.name or "unnamed"
    return ""


def _sum(file: IO[bytes], start: int, end: int) -> int:
    """Of the words from byte `start` up to `end`."""
    total = 0
    file.seek(start)
    while start < end and (block := file.read(min(CHUNK, end - start))):
        total += int(np.frombuffer(block, ">u4").sum(dtype=np.uint64))
        start += len(block)
    return total % MODULUS


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
