"""ECSV: delimited text with a header that declares types and units."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.readers.declared import check_arrays, check_column
from gpal.catalog.readers.delimited import columns_of, decoded
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["read_ecsv"]


def read_ecsv(found: bytes) -> Table:
    """The table, with every cell of a column of numbers or words held against the text."""
    from astropy.table import Column, Table
    from astropy.table.meta import get_header_from_yaml

    lines = io.StringIO(decoded(found), newline="").readlines()
    start = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
    try:
        about = get_header_from_yaml([line[1:].strip("\r\n")[1:] for line in lines[1:start]])
        delimiter = about.get("delimiter", " ")
        declared = [str(column["name"]) for column in about["datatype"]]
    except Exception:  # YAML of any kind
        raise InputError("its header does not describe its columns; fetch it again") from None
    columns = columns_of("".join(lines[start:]), delimiter, start)
    if list(columns) != declared:
        raise InputError("the columns of its header are not those of its table; fetch it again")
    table = Table.read("".join(lines), format="ascii.ecsv")
    for column, words in zip(about["datatype"], columns.values(), strict=True):
        name = column["name"]
        if not isinstance(table.columns.get(name), Column):
            continue
        if "subtype" not in column:
            check_column(table, name, words)
        elif table[name].dtype.kind in "iuf":
            rows = [np.array(json.loads(cell) if cell else [], dtype=float) for cell in words]
            check_arrays(table, name, words, rows)
    return table
