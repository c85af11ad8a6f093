"""Parquet, without a detour by pandas, which makes floats of integers where one is missing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.cells import ZONE, word_column
from gpal.catalog.readers.column_names import check_names
from gpal.catalog.readers.parquet_metadata import described

if TYPE_CHECKING:
    import pyarrow as pa
    from astropy.table import Table

__all__ = ["arrow_table", "parquet_blocks", "read_parquet"]


def read_parquet(found: bytes) -> Table:
    """All columns, an index that pandas wrote among them; checksums of pages verified."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(found), page_checksum_verification=True)
    return arrow_table(file.read())


def parquet_blocks(path: Path, rows: int) -> Iterator[Table]:
    """The same in blocks of so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(rows):
            content = pa.Table.from_batches([batch])
            yield arrow_table(content.replace_schema_metadata(file.schema_arrow.metadata))


def arrow_table(content: pa.Table) -> Table:
    """The columns of an Arrow table, with what its metadata say of them."""
    from astropy.table import Table

    content.validate()
    check_names(content.column_names)
    columns = {name: _column(content[name]) for name in content.column_names}
    return described(Table(columns, copy=False), content.schema)


def _column(column: pa.ChunkedArray) -> Any:
    """Numbers, masked where missing; words; anything else as Python's objects."""
    import pyarrow as pa
    from astropy.table import Column, MaskedColumn

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_decimal(kind):
        column = _not_decimal(column)
        kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz:
        return Column(column.to_numpy(), meta={ZONE: "Z"})  # NumPy has these in universal time
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        return column.to_numpy()  # NaN, NaT where missing
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        missing = column.is_null().to_numpy()
        values = column.fill_null(pa.scalar(0, pa.int8()).cast(kind)).to_numpy()
        return MaskedColumn(values, mask=missing) if missing.any() else values
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        binary = column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
        return word_column([(c or b"").decode("utf-8", "replace") for c in binary.to_pylist()])
    if _is_list_of_numbers(kind):
        arrays = _of_one_length(column)
        if arrays is not None:
            return arrays
    objects = np.empty(len(column), dtype=object)
    for row, value in enumerate(column.to_pylist()):
        objects[row] = value
    return objects


def _not_decimal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers as such, digit by digit where 64 bits do not hold them; others as floats."""
    import pyarrow as pa

    if column.type.scale != 0:
        return column.cast(pa.float64())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column.cast(pa.string())


def _is_list_of_numbers(kind: pa.DataType) -> bool:
    import pyarrow as pa

    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    numbers = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean)
    return any(is_one(kind) for is_one in lists) and any(
        is_one(kind.value_type) for is_one in numbers
    )


def _of_one_length(column: pa.ChunkedArray) -> np.ndarray | None:
    """[n, k] numbers, masked where missing; None where lists are of several lengths. An empty list
    is missing, and of no others the length is not known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    known = size > 0
    stated = getattr(column.type, "list_size", None)
    lengths = [stated] if stated else np.unique(size[known]).tolist()
    if not lengths:
        return np.full(len(column), None)
    if len(lengths) > 1:
        return None
    held = column.filter(pa.array(known))
    flat = np.ma.asarray(_column(pc.list_flatten(held)))
    arrays = np.ma.masked_all((len(column), lengths[0]), dtype=flat.dtype)
    arrays[known] = flat.reshape(-1, lengths[0])
    return arrays if np.ma.is_masked(arrays) else np.ma.getdata(arrays)
