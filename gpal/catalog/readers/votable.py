"""VOTable: XML that declares a type for every column."""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gpal.catalog.readers.declared import check_column
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["read_votable"]


def read_votable(found: bytes) -> Table:
    """The only table of the file, with every cell that is written out held against the text."""
    from astropy.table import Table

    fields, rows = _cells(found)
    twice = [name for name, count in Counter(fields).items() if count > 1]
    if twice:
        raise InputError(
            f"{fields.count(twice[0])} columns are called '{shown(twice[0])}'; give every column a"
            " name of its own"
        )
    table = Table.read(io.BytesIO(found), format="votable")
    if rows:  # TABLEDATA; the other serialisations hold numbers as such
        for name, cells in zip(table.colnames, zip(*rows, strict=True), strict=True):
            check_column(table, name, cells)
    return table


def _cells(found: bytes) -> tuple[list[str], list[list[str]]]:
    """Names of the columns, and the cells of every row."""
    fields: list[str] = []
    rows: list[list[str]] = []
    for _, element in ElementTree.iterparse(io.BytesIO(found)):
        tag = element.tag.rpartition("}")[2]
        if tag == "FIELD":
            fields.append(element.get("ID") or element.get("name") or "")
        elif tag == "TR":
            rows.append([cell.text or "" for cell in element])
            element.clear()
    return fields, rows
