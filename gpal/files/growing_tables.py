"""Tables that are written block by block, so that none is in memory as a whole.

    with growing_table("p.parquet", facts, remarks, provenance) as table:
        table.write(block)  # an astropy Table; all have the same columns

FITS, CSV, Parquet and VOTable, by the ending of the name. Descriptions, units and UCDs are those of
the first block.
"""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TextIO
from xml.sax.saxutils import escape

import numpy as np

from gpal.errors import InputError
from gpal.files.csv import write_rows
from gpal.files.fits import ABOUT, fits_columns, header_value, set_ucds

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["ENDINGS", "Growing", "growing_table"]

RECORD = 2880  # bytes of a FITS record


class Growing(Protocol):
    """A file that grows by tables of the same columns."""

    def write(self, block: Table) -> None: ...

    def close(self) -> None:
        """Nothing follows; the file is whole only now."""


@contextmanager
def growing_table(
    path: str | os.PathLike, facts: Mapping[str, Any], remarks: Sequence[str], provenance: str
) -> Iterator[Growing]:
    """A new file; where the block raises it is not whole, and for the caller to remove.

    facts       for a FITS header, keyword -> value
    remarks     lines that come first in a CSV, before those of the columns
    provenance  JSON
    """
    make = ENDINGS.get(Path(path).suffix.lower())
    if make is None:
        raise InputError(f"'{Path(path).name}' should end in {', '.join(ENDINGS)}: the format")
    with ExitStack() as stack:
        table = make(Path(path), facts, remarks, provenance, stack)
        yield table
        table.close()


class _Csv:
    def __init__(
        self, path: Path, facts: Any, remarks: Sequence[str], provenance: str, stack: ExitStack
    ) -> None:
        file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._file: TextIO = stack.enter_context(file)
        self._remarks: list[str] | None = list(remarks)

    def write(self, block: Table) -> None:
        if self._remarks is not None:
            for column in block.itercols():
                unit = f" [{column.unit}]" if column.unit else ""
                self._remarks.append(f"{column.name}{unit}: {column.description}")
        write_rows(self._file, {c.name: c for c in block.itercols()}, self._remarks)
        self._remarks = None

    def close(self) -> None:
        """The file is closed by the stack."""


class _Parquet:
    """Descriptions and units are metadata of the columns, the provenance of the table."""

    def __init__(
        self, path: Path, facts: Any, remarks: Any, provenance: str, stack: ExitStack
    ) -> None:
        self._path, self._provenance, self._stack = path, provenance, stack
        self._writer: Any = None

    def write(self, block: Table) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = [pa.array(np.asarray(column)) for column in block.itercols()]
        if self._writer is None:
            fields = [
                pa.field(c.name, array.type, metadata=_described(c))
                for c, array in zip(block.itercols(), arrays)
            ]
            schema = pa.schema(fields, metadata={"provenance": self._provenance})
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._path, schema))
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._writer.schema))

    def close(self) -> None:
        """The writer is closed by the stack."""


def _described(column: Any) -> dict[str, str]:
    said = {"description": column.description or "", "unit": str(column.unit or "")}
    return {**said, "ucd": column.meta["ucd"]} if "ucd" in column.meta else said


class _Votable:
    """Rows as text between what astropy writes before and after the first of them."""

    def __init__(
        self, path: Path, facts: Any, remarks: Any, provenance: str, stack: ExitStack
    ) -> None:
        self._file: IO[bytes] = stack.enter_context(path.open("wb"))
        self._provenance, self._tail = provenance, b""
        self._empty: Table | None = None

    def write(self, block: Table) -> None:
        if not len(block):
            self._empty = block
            return
        if not self._tail:
            text = self._whole(block[:1])
            self._file.write(text[: text.index(b"<TR")])
            self._tail = text[text.rindex(b"</TR>") + 5 :].lstrip()
        cells = [_cells_of_xml(column) for column in block.itercols()]
        for row in zip(*cells, strict=True):
            line = "".join(f"<TD>{cell}</TD>" for cell in row)
            self._file.write(f"<TR>{line}</TR>\n".encode())

    def _whole(self, rows: Table) -> bytes:
        from astropy.io.votable import from_table
        from astropy.io.votable.tree import Info

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names that are no identifiers of XML get one
            votable = from_table(rows.copy())
        resource = votable.resources[0]
        resource.infos.append(Info(name="provenance", value=self._provenance))
        for field in resource.tables[0].fields:
            if field.datatype in ("char", "unicodeChar"):
                field.datatype, field.arraysize = "unicodeChar", "*"
            elif field.datatype == "bit":
                field.datatype = "boolean"
        stream = io.BytesIO()
        votable.to_xml(stream, tabledata_format="tabledata")
        return stream.getvalue()

    def close(self) -> None:
        """What follows the last row; all of it where no row came."""
        if not self._tail and self._empty is not None:
            self._tail = self._whole(self._empty)
        self._file.write(self._tail)


def _cells_of_xml(column: Any) -> list[str]:
    if column.dtype.kind == "U":
        return [escape(word) for word in column.tolist()]
    if column.dtype.kind == "b":
        return ["true" if value else "false" for value in column.tolist()]
    return ["NaN" if value != value else repr(value) for value in column.tolist()]


class _Fits:
    """FITS says first how many rows there are and how wide text is: blocks wait in a spool."""

    def __init__(
        self,
        path: Path,
        facts: Mapping[str, Any],
        remarks: Any,
        provenance: str,
        stack: ExitStack,
    ) -> None:
        self._path = path
        spool = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115
        self._spool: IO[bytes] = stack.enter_context(spool)
        self._facts = {**facts, "PROVENAN": provenance}
        self._first: Any = None
        self._blocks = self._rows = 0
        self._width: dict[str, int] = {}

    def write(self, block: Table) -> None:
        table = fits_columns(block)
        if self._first is None:
            self._first = table[:1]
        for name in table.colnames:
            if table[name].dtype.kind == "S":
                self._width[name] = max(self._width.get(name, 1), table[name].dtype.itemsize)
        np.save(self._spool, table.as_array(), allow_pickle=False)
        self._blocks, self._rows = self._blocks + 1, self._rows + len(table)

    def close(self) -> None:
        from astropy.io import fits

        self._spool.seek(0)
        first = self._first
        for name, width in self._width.items():
            column = first[name].astype(f"S{width}")
            column.description, column.meta = first[name].description, first[name].meta
            first[name] = column
        first.write(self._path, format="fits", overwrite=True)  # astropy's way of the header
        header = fits.getheader(self._path, 1)
        set_ucds(header, first)
        stored = np.dtype(
            [(name, _stored(first[name].dtype)) for name in first.colnames]  # as in the file
        )
        for key, value in self._facts.items():
            header[key] = header_value(value)
        header["NAXIS2"] = self._rows
        header["CHECKSUM"], header["DATASUM"] = "0" * 16, "0" * 10  # room for them
        with open(self._path, "wb") as file:
            file.write(fits.PrimaryHDU().header.tostring().encode("ascii"))
            file.write(header.tostring().encode("ascii"))
            for _ in range(self._blocks):
                rows = np.load(self._spool, allow_pickle=False)
                block = np.empty(len(rows), dtype=stored)
                for name in stored.names or ():
                    values = rows[name]
                    truth = values.dtype.kind == "b"
                    block[name] = np.where(values, ord("T"), ord("F")) if truth else values
                file.write(block.tobytes())
            file.write(b"\0" * (-self._rows * stored.itemsize % RECORD))
        with fits.open(self._path, mode="update", memmap=True) as hdus:
            for one in hdus:
                one.add_checksum(when=ABOUT)


def _stored(dtype: np.dtype) -> str:
    """How FITS has a column: big-endian, truth values as the letters T and F."""
    return "u1" if dtype.kind == "b" else dtype.newbyteorder(">").str


ENDINGS: dict[str, Callable[..., Growing]] = {
    ".fits": _Fits,
    ".csv": _Csv,
    ".parquet": _Parquet,
    ".vot": _Votable,
}
