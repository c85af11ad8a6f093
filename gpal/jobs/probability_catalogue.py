"""The probability catalogue: its columns, and its files for other programs.

One row per source with its position, what the catalog says of it, and the probability of every
class with its standard deviation where the model knows one. FITS and CSV hold the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import astropy.units as u
import numpy as np
from astropy.coordinates import SkyCoord
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.csv_file import write_csv
from gpal.evaluation.covariate_shift import outside_support
from gpal.evaluation.metrics import entropy
from gpal.fits_file import write_fits
from gpal.names import MIXED, probability_column
from gpal.provenance import to_json

__all__ = [
    "TABLES",
    "add_column",
    "add_uncorrected",
    "predicted_class",
    "probability_catalogue",
    "write_tables",
]

TABLES = ("probabilities.fits", "probabilities.csv")


def predicted_class(P: np.ndarray, classes: Sequence[str], confidence: float) -> np.ndarray:
    """(n,) the most probable class, or MIXED where its probability is below `confidence`."""
    likeliest = np.asarray(classes, dtype=str)[P.argmax(axis=1)]
    return np.where(P.max(axis=1) >= confidence, likeliest, MIXED)


def add_column(
    table: Table, name: str, values: Any, description: str, unit: u.Unit | str | None = None
) -> None:
    """A column with what it is in words, and its unit."""
    table[name] = values
    table[name].description, table[name].unit = description, unit


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
    position = SkyCoord(catalog.ra * u.deg, catalog.dec * u.deg, frame="icrs").galactic
    table = Table()

    def column(name: str, values: Any, description: str, unit: u.Unit | None = None) -> None:
        add_column(table, name, values, description, unit)

    column("name", np.asarray(catalog.names, str), "source name as in the release")
    column("ra", np.asarray(catalog.ra, float), "right ascension, J2000", u.deg)
    column("dec", np.asarray(catalog.dec, float), "declination, J2000", u.deg)
    column("glon", position.l.deg, "Galactic longitude", u.deg)
    column("glat", position.b.deg, "Galactic latitude", u.deg)
    column("catalog_class", np.asarray(catalog.original_labels, str), "class in the release")
    column("label", np.asarray(catalog.y, str), "class used for training, empty if none")
    for c, name in enumerate(classes):
        heading = probability_column(name)
        column(heading, P[:, c], f"probability of {name}")
        if deviation is not None:
            spread = probability_column(name, "_std")
            column(spread, deviation[:, c], f"standard deviation of {heading}")
    column(
        "prediction",
        predicted_class(P, classes, confidence),
        f"most probable class, {MIXED} below a probability of {confidence:g}",
    )
    column("entropy", entropy(P), "predictive entropy, nats")
    column(
        "outside_support",
        ~labelled & outside_support(catalog.measurements[labelled], catalog.measurements),
        "true: far from every labelled source",
    )
    column("candidate", catalog.is_target, "true: a source whose class is asked for")
    column("out_of_fold", labelled, "true: predicted by a model that did not see its label")
    return table


def add_uncorrected(table: Table, P: np.ndarray, classes: Sequence[str]) -> None:
    """Columns p_*_train: the probabilities before they were referred to other fractions."""
    for c, name in enumerate(classes):
        described = f"{probability_column(name)} with the labelled sources' fractions"
        add_column(table, probability_column(name, "_train"), P[:, c], described)


def write_tables(table: Table, folder: Path, origin: Mapping[str, Any]) -> None:
    """probabilities.fits with units and a header, probabilities.csv with # comment lines first."""
    stamped = table.copy(copy_data=False)
    stamped.meta = {
        "CREATOR": f"gpal {origin['gpal']}",
        "DATE": origin["date"],
        "CATALOG": str(origin["catalog"].get("catalog", "")),
        "CATSHA": str(origin["catalog"].get("sha256", "")),
        "SEED": origin["random_state"],
        "PROVENAN": to_json(origin),
    }
    write_fits(stamped, folder / "probabilities.fits")
    remarks = [f"provenance: {to_json(origin)}"]
    for column in table.itercols():
        unit = f" [{column.unit}]" if column.unit else ""
        remarks.append(f"{column.name}{unit}: {column.description}")
    columns = {column.name: column for column in table.itercols()}
    write_csv(folder / "probabilities.csv", columns, remarks)
