"""What a campaign keeps of the columns that its catalog carries: arrays, and JSON about them.

Text, numbers and marks are three arrays with a row for each column; whole numbers are kept as
float64, which holds them up to 2^53.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.errors import InputError
from gpal.files.saved_data import check_fields
from gpal.names import check_output_columns

if TYPE_CHECKING:
    from astropy.table import Column

__all__ = ["ARRAYS", "check_carried", "packed", "unpacked"]

# One column a row.
ARRAYS = {
    "carried_text": "text t n",
    "carried_number": "float r n",
    "carried_mark": "bool m n",
}
TYPES: dict[str, Any] = {"text": str, "number": float, "mark": bool}
ABOUT = {
    "name": str,
    "kind": frozenset(TYPES),
    "whole": bool,
    "label": str,
    "unit": str,
    "ucd": str,
}


def packed(
    columns: Mapping[str, Column], n: int
) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Arrays by name, and what `unpacked` needs beside them."""
    about = [
        {
            "name": name,
            "kind": {"U": "text", "b": "mark"}.get(column.dtype.kind, "number"),
            "whole": column.dtype.kind in "iu",
            "label": column.description or "",
            "unit": str(column.unit or ""),
            "ucd": column.meta.get("ucd", ""),
        }
        for name, column in columns.items()
    ]
    arrays = {}
    for kind, dtype in TYPES.items():
        rows = [np.asarray(columns[a["name"]], dtype) for a in about if a["kind"] == kind]
        arrays[f"carried_{kind}"] = np.array(rows, dtype).reshape(len(rows), n)
    return arrays, about


def unpacked(arrays: Mapping[str, np.ndarray], about: list[dict[str, Any]]) -> dict[str, Column]:
    """The columns again."""
    from astropy.table import Column

    rows = {kind: iter(arrays.get(f"carried_{kind}", ())) for kind in TYPES}
    return {
        item["name"]: Column(
            next(rows[item["kind"]]).astype(int) if item["whole"] else next(rows[item["kind"]]),
            name=item["name"],
            unit=item["unit"] or None,
            description=item["label"],
            meta={"ucd": item["ucd"]} if item["ucd"] else None,
        )
        for item in about
    }


def check_carried(about: list[dict[str, Any]], arrays: Mapping[str, np.ndarray]) -> None:
    """InputError unless this is about the arrays that are there."""
    for item in about:
        check_fields(item, ABOUT, "a carried column")
    check_output_columns([item["name"] for item in about])
    for kind in TYPES:
        rows = arrays.get(f"carried_{kind}", ())
        found = [item for item in about if item["kind"] == kind]
        if len(found) != len(rows):
            raise InputError(f"'carried' has {len(found)} columns of the kind {kind}")
        for item, values in zip(found, rows):
            whole = kind == "number" and bool((np.abs(values) < 2**53).all())
            if item["whole"] and not (whole and (values == np.round(values)).all()):
                raise InputError(f"the carried column '{item['name']}' holds no whole numbers")
