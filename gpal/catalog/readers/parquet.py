"""Parquet, without a detour by pandas, which makes floats of integers where one is missing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.cells import word_column
from gpal.catalog.readers.column_names import check_names

if TYPE_CHECKING:
    import pyarrow as pa
    from astropy.table import Table

__all__ = ["parquet_blocks", "read_parquet"]


def read_parquet(found: bytes) -> Table:
    """All columns, an index that pandas wrote among them; checksums of pages verified."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(found), page_checksum_verification=True)
    return _table(file.read())


def parquet_blocks(path: Path, rows: int) -> Iterator[Table]:
    """The same in blocks of so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(rows):
            yield _table(pa.Table.from_batches([batch]))


def _table(content: pa.Table) -> Table:
    from astropy.table import Table

    content.validate()
    check_names(content.column_names)
    return Table({name: _column(content[name]) for name in content.column_names}, copy=False)


def _column(column: pa.ChunkedArray) -> Any:
    """Numbers, masked where missing; words; anything else as Python's objects."""
    import pyarrow as pa
    from astropy.table import MaskedColumn

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
        kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        return column.to_numpy()  # NaN, NaT where missing
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        missing = column.is_null().to_numpy()
        values = column.fill_null(pa.scalar(0, pa.int8()).cast(kind)).to_numpy()
        return MaskedColumn(values, mask=missing) if missing.any() else values
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        binary = column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
        return word_column([(c or b"").decode("utf-8", "replace") for c in binary.to_pylist()])
    objects = np.empty(len(column), dtype=object)
    for row, value in enumerate(column.to_pylist()):
        objects[row] = value
    return objects
