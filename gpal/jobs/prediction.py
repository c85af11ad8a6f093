"""Probabilities for a table by a model of before: nothing is fitted, no class need be known.

    table = predict("results/model.npz", "tonight.csv")
    predict_file("results/model.npz", "survey.parquet", "probabilities.parquet")

A model that `gpal classify` saved knows which columns its features were made of, and how. Features
are found by name, and units converted. A table whose features are made otherwise (another
transform, errors scaled or not) is refused; one that lacks the error of a feature, and one whose
values are not what the model has seen, is warned about.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from astropy.table import Table, vstack
from tqdm import tqdm

from gpal.catalog import Catalog, Schema
from gpal.catalog.feature_record import schema_used
from gpal.catalog.loader import build, expanded, is_file
from gpal.catalog.readers import table_blocks
from gpal.catalog.readers.column_names import check_names as check_column_names
from gpal.catalog.registry import known_names
from gpal.catalog.release_files import recognise
from gpal.catalog.streaming import CatalogBlocks
from gpal.classifier import GPClassifier
from gpal.errors import InputError
from gpal.evaluation.covariate_shift import Support
from gpal.files.growing_tables import ENDINGS
from gpal.files.output import atomic_path, check_apart
from gpal.jobs.model_columns import (
    check_features,
    columns_for,
    known_features,
    warn_without_names,
)
from gpal.jobs.probability_catalogue import open_table, prediction_table
from gpal.names import check_classes, check_file_name, check_names, check_words
from gpal.provenance import provenance, to_json

__all__ = ["predict", "predict_file"]

BLOCK = 10_000  # sources between two steps of the progress bar
FIRST = 1000  # rows by which the columns of a table are known
NO_CLASS: dict[str, Any] = {"class": "", "classes": {"default": []}}

Model = GPClassifier | str | os.PathLike
Look = Callable[[Catalog, int | None], None]
Source = Any  # name or file of a catalog, Catalog, astropy Table, data frame


def predict(
    model: Model,
    source: Source,
    *,
    schema: str | os.PathLike | None = None,
    cuts: Sequence[str] | None = None,
    error_scale: Any = None,
    confidence: float = 0.6,
    prior: str | Mapping[str, float] | None = None,
    progress: bool | None = None,
) -> Table:
    """The probabilities of every source, as a table.

    The columns are those of the probability catalogue that need no labelled source.

    Parameters
    ----------
    model : GPClassifier, str or path
        Fitted, or the file that it was saved to.
    source : str, path, Catalog, Table or DataFrame
        A known release, a file, or a table.
    schema : str or path, optional
        How to read a file, as in `load_catalog`; None: as the release that it is or, of any
        other table, by the columns that the model was fitted to.
    cuts : sequence of str, optional
        Of a file, as in `load_catalog`.
    error_scale : bool, str, path or mapping, optional
        Of a file, as in `load_catalog`.
    confidence : float
        A source whose largest probability is below it is called MIXED.
    prior : str or mapping of str to float, optional
        "train", or class -> fraction that the probabilities refer to; None: as the model was made.
    progress : bool, optional
        None shows a bar on a terminal only.

    Returns
    -------
    Table
        Its `meta["PROVENAN"]` is the provenance as JSON.

    Raises
    ------
    InputError
        Where a feature is not there or made otherwise than the model's.

    Examples
    --------
    >>> import gpal
    >>> catalog = gpal.load_catalog("4fgl-dr4", features=["index", "flux"])
    >>> known = catalog.labelled(["bll", "psr"])[::20]
    >>> model = gpal.GPClassifier(input_noise="first_order", max_rounds=0)
    >>> table = gpal.predict(model.fit(known.measurements, known.y), catalog[:100])
    >>> len(table), table.colnames[:3]
    (100, ['name', 'ra', 'dec'])
    """
    fitted = _fitted(model)
    catalogs, total = _catalogs(fitted, source, schema, cuts, error_scale)
    job = _Job.of(fitted, catalogs, total, confidence, prior, progress)
    table = vstack(list(job.tables()), metadata_conflicts="silent")
    table.meta["PROVENAN"] = to_json(job.origin)
    return table


def predict_file(
    model: Model,
    source: Source,
    out: str | os.PathLike,
    *,
    schema: str | os.PathLike | None = None,
    cuts: Sequence[str] | None = None,
    error_scale: Any = None,
    confidence: float = 0.6,
    prior: str | Mapping[str, float] | None = None,
    progress: bool | None = None,
    look: Look | None = None,
) -> dict[str, int]:
    """As `predict`, to a file: how many sources are of each prediction.

    The source is read, and the file written, block by block, so that either may be larger than
    memory. It appears when it is whole.

    Parameters
    ----------
    model : GPClassifier, str or path
        Fitted, or the file that it was saved to.
    source : str, path, Catalog, Table or DataFrame
        A known release, a file, or a table.
    out : str or path
        Ends in .fits, .csv, .parquet or .vot.
    schema : str or path, optional
        As in `predict`.
    cuts : sequence of str, optional
        As in `load_catalog`.
    error_scale : bool, str, path or mapping, optional
        As in `load_catalog`.
    confidence : float
        A source whose largest probability is below it is called MIXED.
    prior : mapping of str to float, optional
        As in `predict`.
    progress : bool, optional
        None shows a bar on a terminal only.
    look : function, optional
        Called before the first prediction with the sources that were read first and the number of
        rows in all, where that is known.

    Returns
    -------
    dict of str to int
        Prediction -> sources.

    Raises
    ------
    InputError
        Before any computation, on a file that cannot be written.

    Examples
    --------
    >>> import gpal
    >>> catalog = gpal.load_catalog("4fgl-dr4", features=["index", "flux"])
    >>> known = catalog.labelled(["bll", "psr"])[::20]
    >>> model = gpal.GPClassifier(input_noise="first_order", max_rounds=0)
    >>> counts = gpal.predict_file(model.fit(known.measurements, known.y), catalog[:99], "new.fits")
    >>> sum(counts.values())
    99
    """
    out = Path(out)
    if out.suffix.lower() not in ENDINGS:
        raise InputError(f"'{out.name}' should end in {', '.join(ENDINGS)}: that is the format")
    read = (model, source, schema, error_scale)
    check_apart([out], [path for path in read if isinstance(path, str | os.PathLike)])
    fitted = _fitted(model)
    counts: Counter[str] = Counter()
    with atomic_path(out) as temporary:
        catalogs, total = _catalogs(fitted, source, schema, cuts, error_scale)
        check_file_name(out)
        job = _Job.of(fitted, catalogs, total, confidence, prior, progress, look)
        with open_table(temporary, job.origin) as file:
            for table in job.tables():
                file.write(table)
                counts.update(table["prediction"].tolist())
    return dict(counts)


@dataclass
class _Job:
    """The predictions of one model for the catalogs that come, see `predict`.

    total   how many sources they hold, where that is known
    origin  provenance of the result
    """

    model: GPClassifier
    catalogs: Iterator[Catalog]
    total: int | None
    confidence: float
    prior: str | Mapping[str, float] | None
    progress: bool | None
    origin: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: GPClassifier,
        catalogs: Iterable[Catalog],
        total: int | None,
        confidence: float,
        prior: str | Mapping[str, float] | None,
        progress: bool | None,
        look: Look | None = None,
    ) -> _Job:
        if not 0 <= confidence <= 1:
            raise InputError(f"confidence is a probability, got {confidence}; give one from 0 to 1")
        catalogs = iter(catalogs)
        first = next(catalogs)
        check_features(first, model)
        classes = [str(name) for name in model.classes_.tolist()]
        check_classes(classes)
        check_names("feature", known_features(model))
        fractions = model.prior if prior is None else prior
        settings = {
            "classes": classes,
            "features": known_features(model),
            "confidence": confidence,
            "prior": fractions if isinstance(fractions, str) else dict(fractions),
            "model": model.settings_,
        }
        origin = provenance(first.provenance, settings)
        origin["model_provenance"] = dict(model.provenance_)
        if look is not None:
            look(first, total)
        return cls(model, chain([first], catalogs), total, confidence, prior, progress, origin)

    def tables(self) -> Iterator[Table]:
        """One for each catalog; at the end a warning of values that the model has not seen."""
        model, classes = self.model, self.origin["settings"]["classes"]
        support, seen = Support(model.training_.values), _Seen.of(model)
        hidden = True if self.progress is False else None
        with tqdm(total=self.total, desc="predicting", unit="source", disable=hidden) as bar:
            for catalog in self.catalogs:
                check_words("source name", catalog.names)
                P, deviation = np.empty((2, len(catalog), len(classes)))
                outside = np.empty(len(catalog), dtype=bool)
                for first in range(0, len(catalog), BLOCK):
                    rows = slice(first, first + BLOCK)
                    block = model.as_fitted(catalog.measurements[rows])
                    both = model.predict_proba_with_std(block, prior=self.prior)
                    P[rows], deviation[rows] = both
                    outside[rows] = support.outside(block)
                    seen.count(block.X)
                    bar.update(len(block))
                yield prediction_table(catalog, P, deviation, classes, self.confidence, outside)
        seen.warn()


@dataclass
class _Seen:
    """How many values of each feature lie in the range of those that the model was fitted to."""

    model: GPClassifier
    measured: np.ndarray
    beyond: np.ndarray

    @classmethod
    def of(cls, model: GPClassifier) -> _Seen:
        return cls(model, *np.zeros((2, len(model.offset_)), dtype=int))

    def count(self, X: np.ndarray) -> None:
        training = self.model.training_
        self.measured += np.isfinite(X).sum(axis=0)
        with np.errstate(invalid="ignore"):
            inside = (training.lower <= X) & (training.upper >= X)
        self.beyond += (np.isfinite(X) & ~inside).sum(axis=0)

    def warn(self) -> None:
        names, training = known_features(self.model), self.model.training_
        for j in np.flatnonzero(2 * self.beyond > self.measured):
            warnings.warn(
                f"feature '{names[j]}': {self.beyond[j]} of {self.measured[j]} values are not in"
                f" the range that the model was fitted to, {training.lower[j]:.4g} to"
                f" {training.upper[j]:.4g}: check its unit and its transform, or take the"
                " probabilities as extrapolated",
                stacklevel=4,
            )


def _fitted(model: Model) -> GPClassifier:
    return model if isinstance(model, GPClassifier) else GPClassifier.load(model)


def _catalogs(
    model: GPClassifier, source: Source, schema: Any, cuts: Any, error_scale: Any
) -> tuple[Iterable[Catalog], int | None]:
    """The sources in blocks, and how many there are, where that is known."""
    if not isinstance(source, str | os.PathLike):
        catalog = _of_table(model, source, schema=schema, cuts=cuts, error_scale=error_scale)
        return [catalog], len(catalog)
    blocks = CatalogBlocks.of(
        str(source),
        schema=None if schema is None else str(schema),
        features=known_features(model),
        mapping=_mapping(model, source, schema),
        cuts=cuts,
        error_scale=error_scale,
    )
    return blocks, blocks.total


def _mapping(model: GPClassifier, source: Any, schema: Any) -> dict[str, Any]:
    """What the loader is told of a file beside its schema."""
    path = expanded(source)
    own = schema is None and str(source).lower() not in known_names() and is_file(path)
    if not own or recognise(path):
        return NO_CLASS
    try:
        first = next(table_blocks(path, FIRST))
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    mapping = columns_for(model, first)
    warn_without_names(model, mapping)
    return {**mapping, **NO_CLASS}


def _of_frame(frame: pd.DataFrame) -> tuple[Table, str]:
    """The table, and its column of the labels of the rows where they may be names of sources."""
    if getattr(frame, "ndim", 0) != 2 or not hasattr(frame, "columns"):
        raise InputError(
            f"sources are a Catalog, a table, a data frame or a file, got a"
            f" {type(frame).__name__}; of a row make a frame: frame.iloc[[0]]"
        )
    index, label = frame.index, ""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_column_names(frame.columns.tolist())
    for level, name in enumerate(index.names):
        if name is not None and str(name) not in frame.columns:
            frame = frame.assign(**{str(name): index.get_level_values(level).array})
            label = str(name)
    if not _are_names(index):
        return Table.from_pandas(frame.reset_index(drop=True)), ""
    if index.name is None:
        label = next(name for name in ("index", "row label") if name not in frame.columns)
        frame = frame.assign(**{label: index.array})
    return Table.from_pandas(frame.reset_index(drop=True)), label


def _are_names(index: pd.Index) -> bool:
    """Whether labels of rows are words or whole numbers that differ, and not those of any frame."""
    if index.nlevels > 1 or index.equals(pd.RangeIndex(len(index))):
        return False
    if pd.api.types.infer_dtype(index) not in ("string", "integer"):
        return False
    words = index.astype(str).str.strip()
    return bool(words.is_unique and (words != "").all() and not index.hasnans)


def _of_table(model: GPClassifier, source: Any, **of_files: Any) -> Catalog:
    """The catalog of a Catalog, an astropy Table, or a data frame; `of_files` are for files."""
    for name, value in of_files.items():
        if value is not None and value is not False:
            raise InputError(
                f"{name} is for files, and the source is a {type(source).__name__}: leave it out,"
                " or give the Catalog that load_catalog makes of a file"
            )
    if not len(source):
        raise InputError("the table has no rows; give a catalog with at least one source")
    if isinstance(source, Catalog):
        return source
    # Of quantities an astropy Table makes columns with units.
    table, label = (Table(source), "") if isinstance(source, Table) else _of_frame(source)
    mapping = columns_for(model, table)
    if label:
        mapping.setdefault("id", label)
    warn_without_names(model, mapping)
    rules = Schema.from_dict({**mapping, **NO_CLASS}, "table")
    catalog = build(table, rules, known_features(model))
    said = {"catalog": rules.name, "schema": schema_used(table, rules, catalog.feature_names)}
    return replace(catalog, provenance=said)
