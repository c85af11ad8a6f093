"""Labels from a CSV file: who they are for, by name or by position.

    name,label             or    ra,dec,label          degrees; plus `who` and `note`, if you like
    4FGL J0001.2-0747,bll        0.3151,-7.797,bll

The file is taken as a whole or not at all; a message names the row.
"""

from __future__ import annotations

import csv
from pathlib import Path

from gpal.active.campaign import Given
from gpal.active.table import SourceTable
from gpal.errors import InputError

__all__ = ["read_labels", "read_times"]


def read_labels(path: Path, table: SourceTable, who: str = "", radius: float = 0.1) -> list[Given]:
    """The labels of a file; `who` where it does not say, `radius` of a position in degrees."""
    given: list[Given] = []
    first: dict[int, tuple[int, str]] = {}
    for number, row in _rows(path, {"label"}):
        try:
            index = _find(row, table, radius)
        except InputError as error:
            raise InputError(f"{path.name}, row {number}: {error}") from None
        source, label = int(table.ids[index]), row["label"]
        if not label:
            raise InputError(
                f"{path.name}, row {number}: column 'label' is empty; give a class or drop the row"
            )
        if source in first and first[source][1] != label:
            raise InputError(
                f"{path.name}, row {number}: {table.names[index]} is '{label}' here and"
                f" '{first[source][1]}' in row {first[source][0]}; keep one"
            )
        first.setdefault(source, (number, label))
        given.append(Given(source, label, row.get("who") or who, row.get("note") or ""))
    if not given:
        raise InputError(f"{path.name} has no labels; give columns name,label and a row for each")
    return given


def read_times(path: Path, table: SourceTable) -> dict[int, float]:
    """Row of the table -> observing time, from columns name (or ra, dec) and time."""
    times = {}
    for number, row in _rows(path, {"time"}):
        try:
            times[_find(row, table, 0.1)] = _number(row, "time")
        except InputError as error:
            raise InputError(f"{path.name}, row {number}: {error}") from None
    return times


def _rows(path: Path, needed: set[str]) -> list[tuple[int, dict[str, str]]]:
    """(row number, column -> text), blanks stripped; row 1 is the first below the heading."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{path}': {error}; give a CSV file in UTF-8") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    reader = csv.DictReader(lines)
    columns = {(column or "").strip().lower() for column in reader.fieldnames or ()}
    if not needed <= columns or not ({"name"} <= columns or {"ra", "dec"} <= columns):
        wanted = ",".join(sorted(needed))
        raise InputError(
            f"{path.name} has the columns {', '.join(sorted(columns)) or '(none)'}; needed are"
            f" name,{wanted} or ra,dec,{wanted}"
        )
    return [
        (
            number,
            {(key or "").strip().lower(): str(value or "").strip() for key, value in row.items()},
        )
        for number, row in enumerate(reader, 1)
    ]


def _find(row: dict[str, str], table: SourceTable, radius: float) -> int:
    if row.get("name"):
        return table.row(row["name"])
    return table.row_at(_number(row, "ra"), _number(row, "dec"), radius)


def _number(row: dict[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (KeyError, ValueError):
        raise InputError(
            f"column '{column}' is {row.get(column)!r}, not a number; give degrees or a time"
        ) from None
