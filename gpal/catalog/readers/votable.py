"""VOTable: XML that declares a type for every column."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gpal.catalog.readers.column_names import check_names
from gpal.catalog.readers.declared import check_column

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["read_votable"]


def read_votable(found: bytes) -> Table:
    """The only table of the file, with every cell that is written out held against the text."""
    from astropy.table import Table

    cells = _Cells()
    parser = ElementTree.XMLParser(target=cells)
    parser.feed(found)
    parser.close()
    check_names(cells.fields)
    table = Table.read(io.BytesIO(found), format="votable")
    if cells.rows:  # TABLEDATA; the other serialisations hold numbers as such
        for name, column in zip(table.colnames, zip(*cells.rows, strict=True), strict=True):
            check_column(table, name, column)
    return table


class _Cells:
    """What an XML parser tells: `fields`, the names of the columns, and `rows` of cells."""

    def __init__(self) -> None:
        self.fields: list[str] = []
        self.rows: list[list[str]] = []
        self._cell: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag.endswith("TD"):  # after its namespace
            self._cell = []
        elif tag.endswith("TR"):
            self.rows.append([])
        elif tag.endswith("FIELD"):
            self.fields.append(attributes.get("ID") or attributes.get("name") or "")

    def data(self, text: str) -> None:
        self._cell.append(text)

    def end(self, tag: str) -> None:
        if tag.endswith("TD"):
            self.rows[-1].append("".join(self._cell))
