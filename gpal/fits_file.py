"""Tables as FITS, which knows no letters but those of ASCII.

Any other character in a name, a cell, a description or the header becomes an escape, as in JSON:
the source `β Cas` is written `\\u03b2 Cas`, and `text.encode().decode("unicode_escape")` undoes it.
CHECKSUM and DATASUM are written too, so that whoever reads the file can tell whether it is whole.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["write_fits"]

ABOUT = "verified by whoever reads this"  # instead of a date: the same table makes the same file


def write_fits(table: Table, path: Path) -> None:
    """Write `table` with its units, descriptions and meta."""
    from astropy.io import fits

    table = table.copy(copy_data=False)
    for name in table.colnames:
        column = table[name]
        column.description = _ascii(column.description)
        if column.dtype.kind == "U":
            table[name] = np.char.encode(column, "ascii", "backslashreplace")
            table[name].description = column.description
    table.rename_columns(table.colnames, [_ascii(name) for name in table.colnames])
    table.meta = {key: _ascii(value) for key, value in table.meta.items()}
    memory = io.BytesIO()
    table.write(memory, format="fits")
    with fits.open(io.BytesIO(memory.getvalue())) as hdus:
        for hdu in hdus:
            hdu.add_checksum(when=ABOUT)
        hdus.writeto(path)


def _ascii(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.encode("ascii", "backslashreplace").decode()
