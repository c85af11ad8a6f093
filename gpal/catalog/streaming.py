"""A catalog in blocks of rows, for tables that are larger than memory.

    for block in CatalogBlocks.of("survey.parquet", mapping={...}):
        block.measurements

Every block is a Catalog as `load_catalog` makes it of those rows. A schema that takes errors from
the sources nearest in value needs all rows at once, and gives one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.carrying import Alike, carried_columns, is_empty, may_grow
from gpal.catalog.catalog import Catalog
from gpal.catalog.cuts import passing
from gpal.catalog.loader import (
    build,
    file_name,
    find_source,
    load_catalog,
    provenance_of,
    with_error_scale,
)
from gpal.catalog.readers import row_count, table_blocks, table_format
from gpal.catalog.release_files import is_release, sha256
from gpal.catalog.remarks import Remarks
from gpal.catalog.schema import Schema
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Column, Table

    from gpal.catalog.carried import Carried

__all__ = ["READ", "CatalogBlocks"]

READ = 100_000  # rows in memory


@dataclass(frozen=True)
class CatalogBlocks:
    """An iterable of Catalogs; arguments as of `load_catalog`, but the source has been found."""

    path: Path
    schema: Schema
    features: str | Sequence[str] = "default"
    cuts: str | Sequence[str] | None = None
    error_scale: Any = None
    rows: int | None = None  # READ

    @classmethod
    def of(
        cls,
        name_or_path: str | Path,
        *,
        schema: str | Path | Schema | None = None,
        mapping: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> CatalogBlocks:
        """`options` as of the class."""
        return cls(*find_source(name_or_path, schema, dict(mapping or {})), **options)

    @property
    def total(self) -> int | None:
        """Rows of the file, before any cut, where it says how many there are."""
        return row_count(self.path, self._name, self.schema.hdu)

    def __iter__(self) -> Iterator[Catalog]:
        """Blocks without a source that passes the cuts are left out.

        Warns as `load_catalog` does: of features without an error at the first block, of numbers
        that may be "not measured" at the end, counted over all blocks.

        Raises InputError as `load_catalog` does, when it comes to the row at fault; for an
        identifier of two blocks at the end.
        """
        if self._needs_all_rows:
            yield load_catalog(
                self.path,
                schema=self.schema,
                features=self.features,
                cuts=self.cuts,
                error_scale=self.error_scale,
            )
            return
        first, provenance, seen, any_left, remarks = 0, None, [], False, Remarks()
        alike: Alike | None = None
        blocks = self.tables()
        while True:
            try:
                table = next(blocks, None)
            except InputError as error:
                raise InputError(f"{self._name}: {error}") from None
            if table is None:
                break
            try:
                catalog = build(table, self.schema, self.features, remarks)
                if provenance is None:
                    remarks.warn_of_errors(stacklevel=2)
                    remarks.warn_of_units(stacklevel=2)
                    provenance = self._provenance(catalog)
                if alike is None:
                    alike = self._alike(catalog)
                carried = alike(catalog.carried)
                catalog = replace(catalog, provenance=provenance, carried=carried)
                catalog = with_error_scale(self._numbered(catalog, first), self.error_scale)
                kept = passing(table, self.schema, self.cuts)
            except InputError as error:
                where = f"in the rows from {first} on, counted from there: " if first else ""
                raise InputError(f"{self._name}: {where}{error}") from None
            first += len(table)
            seen.append(_hashes(catalog.names))
            if kept.any():
                any_left = True
                yield catalog[kept] if self.cuts else catalog
        remarks.warn_of_numbers(stacklevel=2)
        if not any_left:
            raise InputError(f"{self._name}: no source passes the cuts {self.cuts!r}; loosen them")
        self._refuse_repeated(np.concatenate(seen))

    def tables(self) -> Iterator[Table]:
        """The rows as they stand in the file."""
        return table_blocks(
            self.path,
            self.rows or READ,
            self._name,
            self.schema.hdu,
            words=(self.schema.id, self.schema.class_column, self.schema.association),
            trusted=is_release,
        )

    def _alike(self, first: Catalog) -> Alike:
        """Looks ahead for carried columns that a later block makes other than the first one has
        them: cells of a CSV that are empty there, identifiers that grow too long for a float, and
        marks of which one is missing, so that they are numbers."""
        typed = table_format(self._name) != "csv"
        carried, rules = first.carried, self.schema.carry
        marks = [name for name in carried if typed and _is_mark(carried[name], rules[name])]

        def is_open(name: str, column: Column) -> bool:
            if name in marks:
                return column.dtype.kind == "b"
            return is_empty(column) or (typed and may_grow(column))

        undecided = [name for name, column in carried.items() if is_open(name, column)]
        text: set[str] = set()
        numbers = {name for name, column in carried.items() if column.dtype.kind == "f"}
        for table in islice(self.tables(), 1, None):
            if not undecided:
                break
            for name, column in carried_columns(table, {n: rules[n] for n in undecided}).items():
                if not is_open(name, column):
                    undecided.remove(name)
                    (text if column.dtype.kind == "U" else numbers).add(name)
        return Alike(digits=text, numbers=numbers) if typed else Alike(text)

    @property
    def _name(self) -> str:
        return file_name(self.path, self.schema)

    @property
    def _needs_all_rows(self) -> bool:
        used: Any = self.features
        if isinstance(used, str):
            used = self.schema.feature_sets.get(used, (used,))
        asked = [self.schema.features[name] for name in used if name in self.schema.features]
        return any(feature.missing_error == "nearest" for feature in asked)

    def _provenance(self, catalog: Catalog) -> dict[str, Any]:
        return provenance_of(catalog, sha256(self.path), self._name, self.features, self.cuts)

    def _numbered(self, catalog: Catalog, first: int) -> Catalog:
        """Sources without a name are called by their row of the file."""
        if self.schema.id or not first:
            return catalog
        ids = np.arange(first, first + len(catalog)).astype(str)
        return replace(catalog, measurements=replace(catalog.measurements, ids=ids))

    def _refuse_repeated(self, hashes: np.ndarray) -> None:
        hashes.sort()
        repeated = int((hashes[1:] == hashes[:-1]).sum())
        if repeated:
            raise InputError(
                f"{self._name}: column '{self.schema.id}' holds {repeated} identifiers twice, far"
                " apart in the file; identifiers must differ"
            )


def _is_mark(column: Column, item: Carried) -> bool:
    """Whether it holds truth values of the file, of which some may be missing."""
    return column.dtype.kind == "b" and not item.ends


def _hashes(names: np.ndarray) -> np.ndarray:
    """Eight bytes for each name: of a million, two are the same by chance once in 3e7 times."""
    from pandas.util import hash_array

    return hash_array(names.astype(object), categorize=False)
