"""Rows of a table file, evenly spread over it where it has many, which tell what its columns are.

The file is gone through in blocks, so that it may be larger than memory. Of every block each s-th
row is kept, counted from the first of the file; s is doubled, and half of what was kept is left
out, whenever there is too much of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.readers.blocks import table_blocks

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["read_sample"]

MOST = 40_000  # rows; half of them at least where there are more
BLOCK = 100_000
KINDS = {"U": "words", "S": "words", "O": "words", "b": "truth"}  # of NumPy; others are numbers


def read_sample(path: Path) -> tuple[Table, int]:
    """(rows in the order of the file, at most MOST, and how many there are in all).

    Raises InputError as `read_table` does.
    """
    step, rows = 1, 0
    kept: list[tuple[np.ndarray, Table]] = []
    for table in table_blocks(path, BLOCK):
        numbers = np.arange(rows, rows + len(table))
        rows += len(table)
        kept.append(_each(step, numbers, table))
        while sum(len(part) for part, _ in kept) > MOST:
            step *= 2
            kept = [_each(step, *part) for part in kept]
    return _joined([table for _, table in kept]), rows


def _each(step: int, numbers: np.ndarray, table: Table) -> tuple[np.ndarray, Table]:
    """Those whose number is a multiple of `step`."""
    if step == 1:
        return numbers, table
    chosen = numbers % step == 0
    return numbers[chosen], table[chosen]


def _joined(parts: list[Table]) -> Table:
    """One table; a column that is numbers in some blocks and words in others, as those of a CSV may
    be, is words."""
    from astropy.table import vstack

    if len(parts) == 1:
        return parts[0]
    for name in parts[0].colnames:
        kinds = {KINDS.get(_kind(part[name]), "number") for part in parts}
        for part in parts if len(kinds) > 1 else ():
            words = np.ma.filled(np.ma.asarray(part[name]).astype(str), "")
            part[name] = np.where(words == "nan", "", words)
    return vstack(parts, metadata_conflicts="silent")


def _kind(column: Any) -> str:
    """NumPy's, "" of a time or a position."""
    return getattr(getattr(column, "dtype", None), "kind", "")
