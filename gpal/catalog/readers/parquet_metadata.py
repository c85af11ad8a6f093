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

__all__ = ["described"]

OWN = ("unit", "description", "ucd")
YAML = b"table_meta_yaml"
VOTABLE = b"IVOA.VOTable-Parquet.content"


def described(table: Table, schema: pa.Schema) -> Table:
    """The table with what its file, whose schema this is, says of the columns."""
    about = schema.metadata or {}
    try:
        header = _header(about.get(YAML, b""))
        by_yaml = {str(column["name"]): column for column in header.get("datatype", ())}
        by_votable = _votable(about.get(VOTABLE, b""))
    except Exception as error:  # YAML and XML of any kind
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"its metadata do not describe its columns ({reason})") from None
    for field in schema:
        if field.name not in table.colnames:
            continue
        own = {
            key: (field.metadata or {}).get(key.encode(), b"").decode("utf-8", "replace")
            for key in OWN
        }
        told = (own, by_yaml.get(field.name, {}), by_votable.get(field.name, {}))
        unit, description, ucd = (_first(key, told) for key in OWN)
        info = table[field.name].info
        if unit:
            info.unit = unit
        info.description = description or info.description
        if ucd:
            info.meta = {**(info.meta or {}), "ucd": ucd}
    for column, mask in _masks(header.get("meta", {})):
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


def _header(yaml: bytes) -> dict[str, Any]:
    from astropy.table.meta import get_header_from_yaml

    return get_header_from_yaml(yaml.decode().split("\n")) if yaml else {}


def _votable(xml: bytes) -> dict[str, dict[str, Any]]:
    from astropy.io.votable import parse

    if not xml:
        return {}
    return {
        field.name: {"unit": field.unit, "description": field.description, "ucd": field.ucd}
        for field in parse(io.BytesIO(xml)).get_first_table().fields
    }


def _masks(meta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(column, the column that says where it is masked), wherever astropy has put them."""
    for part in (meta.get("__serialized_columns__") or {}).values():
        yield from _masks_of(part)


def _masks_of(part: Any) -> Iterator[tuple[str, str]]:
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
