"""The carried columns of a survey in HATS layout, alike in all of its partitions.

A partition does not know whether another one misses a value or has an identifier of twenty digits.
So marks and whole numbers are of the kinds of pandas that may miss one, by what the survey says of
its columns: no digit is lost, and nothing missing becomes a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gpal.catalog.carried import Carried

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["alike_in_partitions"]

DIGITS = 18  # that 64 bits always hold


def alike_in_partitions(
    rows: pd.DataFrame, carry: Mapping[str, Carried], about: pa.Schema
) -> pd.DataFrame:
    """The rows of a partition, their carried columns as `about`, the survey's schema, has them."""
    made = {
        name: _of_kind(rows[name], _kind(item, about))
        for name, item in carry.items()
        if name in rows.columns
    }
    return rows.assign(**made)


def _kind(item: Carried, about: pa.Schema) -> str:
    import pyarrow as pa

    if item.ends or item.column not in about.names:  # a mark, or an element of an array
        return ""
    kind = about.field(item.column).type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return "Int64" if kind.precision <= DIGITS else "digits"
    if pa.types.is_integer(kind):
        return "UInt64" if pa.types.is_uint64(kind) else "Int64"
    return "float64" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "text"


def _of_kind(column: pd.Series, kind: str) -> pd.Series:
    if not kind:
        return column if column.dtype.kind in "bO" else column.astype(float)
    if kind == "digits" and column.dtype.kind != "O":
        column = column.astype("Int64").astype("string")
    if kind in ("text", "digits"):
        return column.fillna("").astype(str)
    if kind not in ("Int64", "UInt64") or column.dtype.kind != "O":
        return column.astype(kind)
    # Long whole numbers come as text, '' where one is missing; by a float they would lose digits.
    missing = (column == "").to_numpy(dtype=bool)
    values = [0 if absent else int(word) for word, absent in zip(column, missing, strict=True)]
    whole = pd.arrays.IntegerArray(np.array(values, dtype=kind.lower()), missing)
    return pd.Series(whole, index=column.index)
