"""The probability catalogue: its columns, and its files for other programs.

One row per source with its position, what the catalog says of it, and the probability of every
class with its standard deviation where the model knows one. FITS and CSV hold the same numbers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import astropy.units as u
import numpy as np
from astropy.coordinates import SkyCoord
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.catalog.readers import read_table
from gpal.evaluation.covariate_shift import outside_support
from gpal.files.fits import plain_text, write_fits
from gpal.files.growing_tables import Growing, growing_table
from gpal.jobs.result_folder import TABLES
from gpal.metrics import Level, entropy
from gpal.names import MIXED, probability_column
from gpal.provenance import to_json

__all__ = [
    "add_coarser",
    "add_column",
    "add_uncorrected",
    "open_table",
    "predicted_class",
    "prediction_table",
    "probability_catalogue",
    "read_probabilities",
    "write_table",
    "write_tables",
]

# UCDs
CLASS, CODE = "src.class", "meta.code"


def predicted_class(P: np.ndarray, classes: Sequence[str], confidence: float) -> np.ndarray:
    """(n,) the most probable class, or MIXED where its probability is below `confidence`."""
    likeliest = np.asarray(classes, dtype=str)[P.argmax(axis=1)]
    return np.where(P.max(axis=1) >= confidence, likeliest, MIXED)


def add_column(
    table: Table,
    name: str,
    values: Any,
    description: str,
    unit: u.Unit | str | None = None,
    ucd: str = "",
) -> None:
    """A column with what it is in words and in the vocabulary of the Virtual Observatory, and its
    unit."""
    table[name] = values
    table[name].description, table[name].unit = description, unit
    if ucd:
        table[name].meta["ucd"] = ucd


def probability_catalogue(
    catalog: Catalog,
    P: np.ndarray,
    deviation: np.ndarray | None,
    classes: Sequence[str],
    confidence: float,
) -> Table:
    """One row per source of `catalog`, in its order.

    P, deviation  (n, C) probabilities and their standard deviations, None where not known
    confidence    below it the prediction is MIXED
    """
    labelled = catalog.y != ""
    table = _places(catalog)
    printed, used = np.asarray(catalog.original_labels, str), np.asarray(catalog.y, str)
    add_column(table, "catalog_class", printed, "class in the release", None, CLASS)
    add_column(table, "label", used, "class used for training, empty if none", None, CLASS)
    _add_predictions(table, P, deviation, classes, confidence)
    add_coarser(table, P, classes, catalog.levels)
    outside = outside_support(catalog.measurements[labelled], catalog.measurements)
    for name, values, description in (
        ("outside_support", ~labelled & outside, "true: far from every labelled source"),
        ("candidate", catalog.is_target, "true: a source whose class is asked for"),
        ("out_of_fold", labelled, "true: predicted by a model that did not see its label"),
    ):
        add_column(table, name, values, description, None, CODE)
    _add_carried(table, catalog)
    return table


def prediction_table(
    catalog: Catalog,
    P: np.ndarray,
    deviation: np.ndarray,
    classes: Sequence[str],
    confidence: float,
    outside: np.ndarray,
) -> Table:
    """The columns of `probability_catalogue` that need no labelled source beside the model.

    outside  (n,) bool: far from every source that the model learned from
    """
    table = _places(catalog)
    _add_predictions(table, P, deviation, classes, confidence)
    described = "true: far from every source that the model learned from"
    add_column(table, "outside_support", outside, described, None, CODE)
    _add_carried(table, catalog)
    return table


def _places(catalog: Catalog) -> Table:
    """Names and positions."""
    position = SkyCoord(catalog.ra * u.deg, catalog.dec * u.deg, frame="icrs").galactic
    table = Table()
    names = np.asarray(catalog.names, str)
    add_column(table, "name", names, "source name as in the release", None, "meta.id;meta.main")
    for name, angle, description, ucd in (
        ("ra", np.asarray(catalog.ra, float), "right ascension, J2000", "pos.eq.ra;meta.main"),
        ("dec", np.asarray(catalog.dec, float), "declination, J2000", "pos.eq.dec;meta.main"),
        ("glon", position.l.deg, "Galactic longitude", "pos.galactic.lon"),
        ("glat", position.b.deg, "Galactic latitude", "pos.galactic.lat"),
    ):
        add_column(table, name, angle, description, u.deg, ucd)
    if catalog.position_error is not None:
        longer = np.asarray(catalog.position_error[:, :2], float).max(axis=1)
        described = "95 % error of the position, the longer half axis"
        add_column(table, "position_error", longer, described, u.deg, "stat.error;pos.eq")
    return table


def _add_carried(table: Table, catalog: Catalog) -> None:
    """What the catalog's schema carries to the outputs."""
    for name, column in catalog.carried.items():
        table[name] = column


def _add_predictions(
    table: Table,
    P: np.ndarray,
    deviation: np.ndarray | None,
    classes: Sequence[str],
    confidence: float,
) -> None:
    for c, name in enumerate(classes):
        heading = probability_column(name)
        add_column(table, heading, P[:, c], f"probability of {name}", None, "stat.probability")
        if deviation is not None:
            spread = probability_column(name, "_std")
            described = f"standard deviation of {heading}"
            ucd = "stat.stdev;stat.probability"
            add_column(table, spread, deviation[:, c], described, None, ucd)
    described = f"most probable class, {MIXED} below a probability of {confidence:g}"
    add_column(table, "prediction", predicted_class(P, classes, confidence), described, None, CLASS)
    add_column(table, "entropy", entropy(P), "predictive entropy, nats", None, "stat.value")


def add_coarser(
    table: Table,
    P: np.ndarray,
    classes: Sequence[str],
    levels: Sequence[Mapping[str, Sequence[str]]],
) -> None:
    """Columns probability_*: of coarser classes, the sums of those of the classes in them."""
    for members in levels:
        level = Level.of(classes, members)
        for name, p in zip(level.names, level.sums(P).T, strict=True):
            heading, inside = f"probability_{name}", members[name]
            if len(inside) > 1 and heading not in table.colnames:
                described = f"probability of {name}: {', '.join(inside)}"
                add_column(table, heading, p, described, None, "stat.probability")


def add_uncorrected(table: Table, P: np.ndarray, classes: Sequence[str]) -> None:
    """Columns p_*_train: the probabilities before they were referred to other fractions."""
    for c, name in enumerate(classes):
        described = f"{probability_column(name)} with the labelled sources' fractions"
        heading = probability_column(name, "_train")
        add_column(table, heading, P[:, c], described, None, "stat.probability")


def read_probabilities(path: str | os.PathLike) -> Table:
    """A table of probabilities, FITS or CSV, as the job that wrote it had it.

    Text is text, as it was before FITS, and empty where there is none: `Table.read` of astropy
    masks it there, so that `table["catalog_class"] == ""` would find no source.
    """
    path = Path(path)
    if path.suffix.lower() == ".fits":
        table = read_table(path)
        table.rename_columns(table.colnames, list(map(plain_text, table.colnames)))
        for name in table.colnames:
            column = table[name]
            if column.dtype.kind in "SU":
                words = np.ma.filled(column.astype(str), "").tolist()
                table[name] = np.array(list(map(plain_text, words)), dtype=str)
                table[name].description, table[name].meta = column.description, column.meta
        return table
    return read_table(path, words=("name", "catalog_class", "label", "prediction"))


def write_tables(table: Table, folder: Path, origin: Mapping[str, Any]) -> None:
    """probabilities.fits and probabilities.csv, see `write_table`."""
    for name in TABLES:
        write_table(table, folder / name, origin)


def write_table(table: Table, path: Path, origin: Mapping[str, Any]) -> None:
    """One file: .fits with units and a header, or .csv with # comment lines first."""
    if path.suffix.lower() == ".fits":
        stamped = table.copy(copy_data=False)
        stamped.meta = {**_facts(origin), "PROVENAN": to_json(origin)}
        write_fits(stamped, path)
        return
    with open_table(path, origin) as file:
        file.write(table)


def open_table(path: Path, origin: Mapping[str, Any]) -> AbstractContextManager[Growing]:
    """A file for tables of one kind to be written to in blocks, see gpal.files.growing_tables."""
    provenance = to_json(origin)
    return growing_table(path, _facts(origin), [f"provenance: {provenance}"], provenance)


def _facts(origin: Mapping[str, Any]) -> dict[str, Any]:
    """For the header of a FITS table."""
    return {
        "CREATOR": f"gpal {origin['gpal']}",
        "DATE": origin["date"],
        "CATALOG": str(origin["catalog"].get("catalog", "")),
        "CATSHA": str(origin["catalog"].get("sha256", "")),
        "SEED": origin["random_state"],
    }
