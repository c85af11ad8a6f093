"""CSV files that say something of sources, found by name or by position: labels, observing times.

    name,label             or    ra,dec,label          degrees; plus `who` and `note`, if you like
    4FGL J0612.9+1150,bll        209.5088,-77.8233,fsrq

Lines that begin with `#` are remarks before the header; after it they are refused. A file is taken
as a whole or not at all; a message names its line.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpal.active.campaign.table import SourceTable
from gpal.errors import InputError, shown
from gpal.files.csv import is_marked, unmarked

__all__ = ["Given", "read_labels", "read_times"]

RADIUS = 0.1  # degrees, of a position that is looked up
FAR = 1.0  # degrees between a source of that name and the position in its line
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf)")


@dataclass(frozen=True)
class Given:
    """A label as it arrived: number of the source (SourceTable.ids), who gave it, and why.

    where  the place that a message names, such as a line of a file
    """

    source: int
    label: str
    who: str
    note: str = ""
    where: str = ""


def read_labels(
    path: Path, table: SourceTable, who: str = "", radius: float | None = None, note: str = ""
) -> list[Given]:
    """The labels of a file; `who` and `note` where it gives none, `radius` of a position in
    degrees, RADIUS where it is None, and refused beside names."""
    given: list[Given] = []
    first: dict[int, tuple[int, str]] = {}
    for number, row in _rows(path, {"label"}):
        where = f"{path.name}, line {number}"
        try:
            if radius is not None and row.get("name"):
                raise InputError("a radius is for positions, and the source has a name")
            index = _find(row, table, RADIUS if radius is None else radius)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        source, label = int(table.ids[index]), row["label"]
        if not label:
            raise InputError(f"{where}: column 'label' is empty; give a class or drop the line")
        if source in first and first[source][1].casefold() != label.casefold():
            raise InputError(
                f"{where}: {table.names[index]} is '{label}' here and"
                f" '{first[source][1]}' in line {first[source][0]}; keep one"
            )
        first.setdefault(source, (number, label))
        given.append(Given(source, label, row.get("who") or who, row.get("note") or note, where))
    if not given:
        raise InputError(f"{path.name} has no labels; give columns name,label and a row for each")
    return given


def read_times(path: Path, table: SourceTable) -> dict[int, float]:
    """Row of the table -> observing time, from columns name (or ra, dec) and time."""
    times: dict[int, float] = {}
    for number, row in _rows(path, {"time"}):
        try:
            time = _number(row, "time")
            if not 0 < time < math.inf:
                raise InputError(f"column 'time' is {time:g}; give a time above 0")
            index = _find(row, table, RADIUS)
            if times.setdefault(index, time) != time:
                raise InputError(
                    f"{table.names[index]} takes {time:g} here and {times[index]:g} in a line"
                    " before; keep one"
                )
        except InputError as error:
            raise InputError(f"{path.name}, line {number}: {error}") from None
    return times


def _rows(path: Path, needed: set[str]) -> list[tuple[int, dict[str, str]]]:
    """(line of the file, counted from 1; column -> text), blanks stripped."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{path}': {error}; give a CSV file in UTF-8") from None
    if "\0" in text:
        raise InputError(f"cannot read '{path}': it has a byte 0; give a CSV file in UTF-8")
    as_it_was = unmarked if is_marked(text.splitlines()) else str  # an export, filled in
    lines = io.StringIO(text, newline="").readlines()
    said = (k for k, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    skipped = next(said, len(lines))
    reader, read = csv.reader(lines[skipped:], strict=True), 0
    try:
        columns = [name.strip().lower() for name in next(reader, [])]
        _check_columns(path, columns, needed)
        rows, read = [], reader.line_num
        for cells in reader:
            where, read = skipped + read + 1, reader.line_num
            if not lines[where - 1].strip():
                continue
            if lines[where - 1].startswith("#"):
                raise InputError(
                    f"{path.name}, line {where} begins with '#'; put remarks before the header,"
                    " and a cell that begins so in quotes"
                )
            if len(cells) != len(columns):
                raise InputError(
                    f"{path.name}, line {where}: {len(cells)} cells in {len(columns)} columns;"
                    " quote a cell that has a comma in it"
                )
            plain = [as_it_was(cell.strip()) for cell in cells]
            rows.append((where, dict(zip(columns, plain, strict=True))))
    except csv.Error as error:
        where = skipped + read + 1
        raise InputError(f"{path.name}, line {where}: {error}; mend the line") from None
    return rows


def _check_columns(path: Path, columns: list[str], needed: set[str]) -> None:
    found = set(columns)
    if not needed <= found or not ({"name"} <= found or {"ra", "dec"} <= found):
        wanted = ",".join(sorted(needed))
        raise InputError(
            f"{path.name} has the columns {shown(', '.join(sorted(found))) or '(none)'}; needed are"
            f" name,{wanted} or ra,dec,{wanted}"
        )
    for name in found:
        if columns.count(name) > 1:
            raise InputError(f"{path.name} has two columns '{shown(name)}'; keep one")


def _find(row: dict[str, str], table: SourceTable, radius: float) -> int:
    placed = bool(row.get("ra") and row.get("dec"))
    # Names that are numbers of rows are those of one table only.
    if not row.get("name") or (placed and not table.named):
        return table.row_at(_number(row, "ra"), _number(row, "dec"), radius)
    found = table.row(row["name"])
    if placed:
        distances = table.distances(_number(row, "ra"), _number(row, "dec"))
        away = distances[found]
        known = np.where(np.isfinite(distances), distances, np.inf)
        nearest = int(np.argmin(known))
        # Within the error of its position another source may lie nearer.
        within = known[nearest] + np.nan_to_num(table.position_error[found, :2]).max()
        if away > max(FAR, radius) or (nearest != found and away > within):
            other = f", {table.names[nearest]} {known[nearest]:.3g}" if nearest != found else ""
            raise InputError(
                f"{table.names[found]} lies {away:.3g} deg from the position of this line{other};"
                " correct the name or the position, or leave one out"
            )
    return found


def _number(row: dict[str, str], column: str) -> float:
    text = row.get(column, "")
    if NUMBER.fullmatch(text) is None:
        raise InputError(
            f"column '{column}' is '{shown(text)}', not a number; give degrees or a time"
        )
    return float(text)
