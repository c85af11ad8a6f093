"""Catalogs in HATS layout: one table in many partitions, by position, each with its margin.

LSDB opens and writes them. Here is what gpal asks of one: what its first rows look like, which of
its columns are needed, and a Catalog of the rows of a partition.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from astropy.table import Table

from gpal.catalog import Catalog, Schema
from gpal.catalog.columns import error_column, split
from gpal.catalog.cuts import passing, read_beside
from gpal.catalog.feature_record import schema_used
from gpal.catalog.loader import build, provenance_of, with_error_scale
from gpal.catalog.readers.parquet import arrow_table
from gpal.catalog.readers.parquet_metadata import described, masks
from gpal.errors import InputError
from gpal.jobs.model_columns import columns_for, known_features
from gpal.jobs.prediction import NO_CLASS

if TYPE_CHECKING:
    import pyarrow as pa

    from gpal.classifier import GPClassifier

__all__ = ["HatsRows", "files_of", "is_hats", "lsdb", "open_hats", "said_of_survey"]

FIRST = 100  # rows by which the columns of a table are known


def is_hats(path: str | os.PathLike) -> bool:
    """Whether a folder is a catalog, or a collection of them, in HATS layout."""
    marks = ("collection.properties", "hats.properties")
    try:
        return any((Path(path) / mark).is_file() for mark in marks)
    except (OSError, ValueError):  # no folder has such a name
        return False


def lsdb() -> Any:
    """The library; InputError where it is missing."""
    try:
        import lsdb
    except ImportError:
        raise InputError(
            "a catalog in HATS layout is read by LSDB, which is not installed; type"
            " `pip install '.[hats]'` in gpal's folder (Python 3.11 or newer)"
        ) from None
    return lsdb


@dataclass(frozen=True)
class HatsRows:
    """How the rows of a partition become a Catalog. It travels to where the partition is.

    schema    None: the features are made of the columns that the model's were made of
    features  of the schema; those of the model where there is one
    about     Arrow schema of the survey, which knows the units of its columns; see `open_hats`
    Otherwise as arguments of `load_catalog`.
    """

    schema: Schema | None = None
    features: str | Sequence[str] = "default"
    cuts: str | Sequence[str] | None = None
    error_scale: Any = None
    about: pa.Schema | None = None

    def catalog(
        self, rows: pd.DataFrame, model: GPClassifier | None = None
    ) -> tuple[Catalog, np.ndarray]:
        """The sources that pass the cuts, and which of the rows these are (n,)."""
        table = self._table(rows)
        schema, features = self._read(table, model)
        kept = passing(table, schema, self.cuts)
        catalog = build(table, schema, features)
        if not schema.id:  # numbers of rows would be those of the partition
            ids = rows.index.to_numpy().astype(str)
            catalog = replace(catalog, measurements=replace(catalog.measurements, ids=ids))
        said = provenance_of(catalog, "", schema.name, features, self.cuts)
        catalog = with_error_scale(replace(catalog, provenance=said), self.error_scale)
        return catalog[kept], kept

    def columns(self, first: pd.DataFrame, model: GPClassifier | None = None) -> list[str]:
        """Those of the survey's columns that the catalog is made of."""
        table = self._table(first)
        schema, features = self._read(table, model)
        names = build(table, schema, features).feature_names
        self._check(schema, names)
        made = schema_used(table, schema, names)["features"].values()
        cuts = [self.cuts] if isinstance(self.cuts, str) else list(self.cuts or ())
        conditions = [schema.cuts.get(cut, cut) for cut in cuts]
        used = {name: schema.features[name] for name in names}
        wanted = set(replace(schema, features=used, feature_sets={}).columns())
        found = [of_one.get("error") or () for of_one in made]
        for feature in used.values():  # pairs of errors are not on record
            if feature.arithmetic and feature.error is None:
                found += [error_column(table, column) or () for column in feature.arithmetic]
        for error in found:
            wanted |= {error} if isinstance(error, str) else set(error)
        cut = {name for name in first.columns if any(name in each for each in conditions)}
        for feature in schema.features.values():  # whose sentinels are those of the cut column
            if cut & {*read_beside(table, schema, feature)}:
                wanted |= set(feature.columns)
        wanted = {_held(table, expression) for expression in wanted | cut}
        if self.about is not None:
            wanted |= {mask for column, mask in masks(self.about).items() if column in wanted}
        return [name for name in first.columns if name in wanted]

    def _table(self, rows: pd.DataFrame) -> Table:
        import pyarrow as pa

        # As a Parquet file is read, arrays among its columns: pandas has these as objects.
        try:
            table = arrow_table(pa.Table.from_pandas(rows, preserve_index=False))
        except pa.ArrowException:  # a partition in memory may hold what Arrow has no type for
            table = Table.from_pandas(rows)
        return table if self.about is None else described(table, self.about)

    def _check(self, schema: Schema, names: Sequence[str]) -> None:
        """InputError for features whose errors are made of those of all the rows."""
        for name in names:
            if schema.features[name].missing_error == "nearest":
                raise InputError(
                    f"feature '{name}' has missing_error = 'nearest', which needs all rows at once;"
                    " of a catalog in HATS layout take another missing_error"
                )

    def _read(self, table: Table, model: GPClassifier | None) -> tuple[Schema, str | Sequence[str]]:
        features = self.features if model is None else known_features(model)
        if self.schema is None:
            assert model is not None
            return Schema.from_dict({**columns_for(model, table), **NO_CLASS}, "table"), features
        # A partition need not have a source of every class.
        ungrouped = replace(self.schema.classes, default=())
        return replace(self.schema, classes=ungrouped), features


def _held(table: Table, expression: str) -> str:
    """The column that an element of an array is in; any other as it is, also one that is absent."""
    try:
        return split(table, expression)[0]
    except InputError:
        return expression


def open_hats(
    source: str | os.PathLike, rows: HatsRows, model: GPClassifier | None = None
) -> tuple[Any, pd.DataFrame, HatsRows]:
    """The catalog with the columns that are needed, its first rows, and how to read all of them.

    Raises InputError where there is no row, or a column is not there.
    """
    with_all = lsdb().open_catalog(source, columns="all")
    first = _first_rows(with_all)
    rows = replace(rows, about=with_all.hc_structure.schema)
    sky = with_all.hc_structure.catalog_info
    needed = rows.columns(first, model)
    needed += [name for name in (sky.ra_column, sky.dec_column) if name not in needed]
    return lsdb().open_catalog(source, columns=needed), first[needed], rows


def _first_rows(catalog: Any) -> pd.DataFrame:
    for partition in catalog.to_delayed():
        rows = partition.compute(scheduler="synchronous")
        if len(rows):
            return rows.head(FIRST)
    raise InputError("the catalog has no rows; give one with at least one source")


def said_of_survey(source: str | os.PathLike, schema: Schema | None) -> dict[str, str]:
    """What provenance says of the file: the checksum is that of what the catalog says of itself
    and of its partitions, and of what these say of their rows at their end: how many there are, and
    between which values."""
    import pyarrow.parquet as pq

    digest = hashlib.sha256()
    for name in ("*.properties", "*/hats.properties", "partition_info.csv", "*/partition_info.csv"):
        for path in sorted(Path(source).glob(name)):
            digest.update(path.read_bytes())
    for path in _partitions(source):
        said = io.BytesIO()
        pq.read_metadata(path).write_metadata_file(said)
        digest.update(said.getvalue())
    checksum, name = digest.hexdigest(), Path(source).name
    release = (schema.file if schema is not None else "") or name
    return {
        "file": name,
        "sha256": checksum,
        "release_file": release,
        "release_sha256": checksum,
    }


def files_of(source: str | os.PathLike) -> str:
    """Checksum of the names, sizes and times of a survey's partitions: whether one was written
    since, if with values that `said_of_survey` does not see."""
    digest = hashlib.sha256()
    for path in _partitions(source):
        state = path.stat()
        said = f"{path.relative_to(source)} {state.st_size} {state.st_mtime_ns}\n"
        digest.update(said.encode())
    return digest.hexdigest()


def _partitions(source: str | os.PathLike) -> list[Path]:
    return sorted(Path(source).rglob("*.parquet"))
