"""Tables as FITS, which knows no letters but those of ASCII.

Any other character in a name, a cell or a description becomes an escape, as in JSON: the source
`β Cas` is written `\\u03b2 Cas`, a backslash is written twice, and
`text.encode().decode("unicode_escape")` undoes both. In the header a text that is printable ASCII
already stands as it is: JSON has escapes of its own.
CHECKSUM and DATASUM are written too, so that whoever reads the file can tell whether it is whole.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from astropy.io.fits import Header
    from astropy.table import Table

__all__ = [
    "ABOUT",
    "fits_columns",
    "fits_text",
    "header_value",
    "plain_text",
    "set_ucds",
    "write_fits",
]

ABOUT = "verified by whoever reads this"  # instead of a date: the same table makes the same file


def write_fits(table: Table, path: Path) -> None:
    """Write `table` with its units, descriptions, UCDs and meta."""
    from astropy.io import fits

    table = fits_columns(table)
    table.meta = {key: header_value(value) for key, value in table.meta.items()}
    table.write(path, format="fits")  # to a file: in memory NumPy takes no `:` in a column's name
    with fits.open(io.BytesIO(path.read_bytes())) as hdus:
        set_ucds(hdus[1].header, table)
        for hdu in hdus:
            hdu.add_checksum(when=ABOUT)
        hdus.writeto(path, overwrite=True)


def set_ucds(header: Header, table: Table) -> None:
    """TUCDn of the columns that say in their meta what they are."""
    for n, column in enumerate(table.itercols(), start=1):
        if ucd := column.meta.get("ucd"):
            header.set(f"TUCD{n}", fits_text(ucd), after=f"TTYPE{n}")


def fits_columns(table: Table) -> Table:
    """The same columns with their names, texts and descriptions in ASCII."""
    table = table.copy(copy_data=False)
    for name in table.colnames:
        column = table[name]
        column.description = fits_text(column.description or "") or None
        if column.dtype.kind == "U":
            table[name] = np.char.encode(column, "unicode_escape")
            table[name].description, table[name].meta = column.description, column.meta
    table.rename_columns(table.colnames, [fits_text(name) for name in table.colnames])
    return table


def fits_text(text: str) -> str:
    """`text` as it stands in a column name or a cell."""
    return text.encode("unicode_escape").decode("ascii")


def plain_text(text: str) -> str:
    """Inverse of `fits_text`."""
    return text.encode("ascii").decode("unicode_escape")


def header_value(value: Any) -> Any:
    """A text that is not ASCII with escapes; anything else as it is."""
    if not isinstance(value, str) or (value.isascii() and value.isprintable()):
        return value
    return fits_text(value)
