"""What a Parquet file says of its columns: units, descriptions, UCDs, and which cells are masked.

There is no one place for it. Read are, the first that says something of a column:

    the column's own metadata, `unit`, `description`, `ucd`    gpal, and many pipelines
    `table_meta_yaml` of the file                              astropy, Rubin
    `IVOA.VOTable-Parquet.content` of the file                 the Virtual Observatory (VOParquet)

Astropy writes what is masked as a number and, in a second column, that it is none.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from astropy.table import Table

__all__ = ["described", "masks"]

OWN = ("unit", "description", "ucd")
YAML = b"table_meta_yaml"
VOTABLE = b"IVOA.VOTable-Parquet.content"


def described(table: Table, schema: pa.Schema) -> Table:
    """The table with what its file, whose schema this is, says of the columns."""
    from astropy.table import Column

    about = schema.metadata or {}
    header = _header(schema)
    try:
        by_yaml = {str(column["name"]): column for column in header.get("datatype", ())}
        by_votable = _votable(about.get(VOTABLE, b""))
    except Exception as error:  # XML of any kind
        raise _refused(error) from None
    for field in schema:
        if field.name not in table.colnames:
            continue
        own = {
            key.decode("utf-8", "replace").lower(): value.decode("utf-8", "replace")
            for key, value in (field.metadata or {}).items()
        }
        own.setdefault("unit", own.get("units", ""))
        told = (own, by_yaml.get(field.name, {}), by_votable.get(field.name, {}))
        unit, description, ucd = (_first(key, told) for key in OWN)
        info = table[field.name].info
        if not isinstance(table[field.name], Column):
            continue  # a time, which has no unit
        if unit:
            info.unit = unit
        info.description = description or info.description
        if ucd:
            info.meta = {**(info.meta or {}), "ucd": ucd}
    for column, mask in masks(schema).items():
        if column in table.colnames and mask in table.colnames:
            _hide(table, column, mask)
    return table


def _first(key: str, told: tuple[Mapping[str, Any], ...]) -> str:
    """What is said first under a key, or in `meta`; '' where nobody says anything."""
    for one in told:
        value = one.get(key) or (one.get("meta") or {}).get(key)
        if value:
            return str(value)
    return ""


def masks(schema: pa.Schema) -> dict[str, str]:
    """Column -> the column that says where it is masked, of a file that astropy wrote."""
    parts = _header(schema).get("meta", {}).get("__serialized_columns__") or {}
    return {column: mask for part in parts.values() for column, mask in _masks_of(part)}


def _header(schema: pa.Schema) -> dict[str, Any]:
    from astropy.table.meta import get_header_from_yaml

    yaml = (schema.metadata or {}).get(YAML, b"")
    try:
        return get_header_from_yaml(yaml.decode().split("\n")) if yaml else {}
    except Exception as error:  # YAML of any kind
        raise _refused(error) from None


def _refused(error: Exception) -> InputError:
    reason = (" ".join(str(error).split()) or type(error).__name__)[:200]
    return InputError(
        f"its metadata do not describe its columns ({reason}); write the table again without them"
    )


def _votable(xml: bytes) -> dict[str, dict[str, Any]]:
    from astropy.io.votable import parse

    if not xml:
        return {}
    return {
        field.name: {"unit": field.unit, "description": field.description, "ucd": field.ucd}
        for field in parse(io.BytesIO(xml)).get_first_table().fields
    }


def _masks_of(part: Any) -> Iterator[tuple[str, str]]:
    """(column, mask), however deep they stand."""
    if isinstance(part, Mapping):
        if "mask" in part:
            column = part.get("data") or part.get("unmasked")
            if isinstance(column, Mapping) and isinstance(part["mask"], Mapping):
                yield str(column.get("name")), str(part["mask"].get("name"))
        for inner in part.values():
            yield from _masks_of(inner)


def _hide(table: Table, column: str, mask: str) -> None:
    """`column` masked where `mask` says so, which is no column of its own."""
    from astropy.table import MaskedColumn

    missing: np.ndarray = np.ma.filled(np.ma.asarray(table[mask], dtype=bool), True)
    before = table[column]
    missing |= np.ma.getmaskarray(np.ma.asarray(before))
    if before.dtype.kind == "O":
        before[missing] = None
    else:
        about = {"unit": before.unit, "description": before.description, "meta": before.meta}
        table[column] = MaskedColumn(before, mask=missing, **about)
    del table[mask]
