"""VOTable: XML that declares a type for every column."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gpal.catalog.frames import COOSYS
from gpal.catalog.readers.column_names import check_names
from gpal.catalog.readers.declared import check_column
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["read_votable"]


def read_votable(found: bytes) -> Table:
    """The only table of the file, with every cell that is written out held against the text.

    Columns have their names where these differ, else the IDs, in which XML allows few characters.
    """
    from astropy.table import Table

    cells = _Cells()
    parser = ElementTree.XMLParser(target=cells)
    parser.feed(found)
    parser.close()
    if len(cells.tables) > 1:
        raise InputError(
            f"it holds {len(cells.tables)} tables ({shown(', '.join(cells.tables))}); write the one"
            " that you need to a file of its own"
        )
    named = len({*cells.names}) == len(cells.names)
    check_names(cells.names if named else cells.ids)
    table = Table.read(io.BytesIO(found), format="votable", use_names_over_ids=named)
    for name, frame in zip(table.colnames, cells.frames(), strict=True):
        if frame:
            table[name].info.meta[COOSYS] = frame
    if cells.rows:  # TABLEDATA; the other serialisations hold numbers as such
        for name, column in zip(table.colnames, zip(*cells.rows, strict=True), strict=True):
            check_column(table, name, column)
    return table


class _Cells:
    """What an XML parser tells: `tables`, `names` and `ids` of the columns, the coordinate systems
    that they refer to, and `rows` of cells."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.rows: list[list[str]] = []
        self._cell: list[str] = []
        self._refs: list[str] = []
        self._systems: dict[str, str] = {}

    def frames(self) -> list[str]:
        """The coordinate system of each column, '' where it refers to none."""
        return [self._systems.get(ref, "") for ref in self._refs]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag.endswith("TD"):  # after its namespace
            self._cell = []
        elif tag.endswith("TR"):
            self.rows.append([])
        elif tag.rpartition("}")[2] == "TABLE":
            self.tables.append(attributes.get("name") or attributes.get("ID") or "without a name")
        elif tag.endswith("FIELD"):
            name, identifier = (attributes.get(key, "") for key in ("name", "ID"))
            self.names.append(name or identifier)
            self.ids.append(identifier or name)
            self._refs.append(attributes.get("ref", ""))
        elif tag.endswith("COOSYS"):
            frame = attributes.get("system", "") + " " + attributes.get("equinox", "")
            self._systems[attributes.get("ID", "")] = frame.strip()

    def data(self, text: str) -> None:
        self._cell.append(text)

    def end(self, tag: str) -> None:
        if tag.endswith("TD"):
            self.rows[-1].append("".join(self._cell))
