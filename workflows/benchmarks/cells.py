"""The cells of compare.py: one table, results/compare.jsonl, a line of JSON for each cell.

A cell is named by its data set, method and seed, and holds the trajectory of the fit: seconds, test
NLL and error, and the bound at each evaluation. Cells are written one at a time, the whole table
beside its place and then renamed, so that it has every cell once and none by half.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

sys.path.append(str(Path(__file__).parents[1]))
import studies

__all__ = ["KEY", "Cell", "load", "processor", "processors", "read", "versions", "write"]

TABLE = Path(__file__).parent / "results" / "compare.jsonl"
KEY = ("data_set", "method", "seed")

Cell = tuple[str, str, int]


def read(table: Path = TABLE) -> dict[Cell, dict]:
    """Record of each cell that was measured."""
    return {tuple(record[part] for part in KEY): record for record in studies.read(table)}


def write(record: dict, table: Path = TABLE) -> None:
    """Put a cell into the table, in place of an earlier one of the same name."""
    from gpal.files.output import atomic_path
    from gpal.provenance import to_json

    records = read(table) | {tuple(record[part] for part in KEY): record}
    table.parent.mkdir(exist_ok=True)
    with atomic_path(table) as path:
        path.write_text("".join(f"{to_json(records[cell])}\n" for cell in sorted(records)))


def load() -> pd.DataFrame:
    """One row per cell: the last point of its trajectory, and the trajectory."""
    cells = [{**cell, **cell["trajectory"][-1]} for cell in read().values()]
    table = pd.DataFrame(cells)
    table["elbo"] = table["elbo"].astype(float)
    return table.set_index(list(KEY)).sort_index()


def processor() -> str:
    """Of this machine, for a cell that is measured on it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def processors(records: Sequence[dict]) -> str:
    """All that cells were measured on; of those of before it was kept, how many they are."""
    known = [record["processor"] for record in records if "processor" in record]
    parts = sorted(set(known))
    if len(known) < len(records):
        parts.append(f"not kept for {len(records) - len(known)} of {len(records)} cells")
    return ", ".join(parts)


def versions(provenance: Iterable[dict], packages: Iterable[str]) -> str:
    """Of packages, every one that a cell was measured with; none where no cell has the package."""
    made = list(provenance)
    found = ((name, {str(one[name]) for one in made if one.get(name)}) for name in packages)
    return ", ".join(f"{name} {' and '.join(sorted(all_of))}" for name, all_of in found if all_of)
