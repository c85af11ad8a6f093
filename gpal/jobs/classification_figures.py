"""The figures of a classification, drawn from its results and written into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table

from gpal import plot
from gpal.catalog import Catalog, spectrum
from gpal.evaluation.cross_validation import CrossValidation
from gpal.jobs.models import MODEL
from gpal.names import probability_column

__all__ = ["write_figures"]

SPECTRA = 3  # of each class


def write_figures(
    validation: CrossValidation,
    catalog: Catalog,
    table: Table,
    folder: Path,
    origin: Mapping[str, Any],
) -> None:
    """Those of a classification whose probability catalogue is `table`; the sky only where there
    are positions, features where there are two or more, spectra where the release has bands."""
    classes = validation.classes.tolist()
    made = {
        "confusion_matrix.png": plot.confusion_matrix(validation, model=MODEL),
        "reliability.png": plot.reliability(validation, model=MODEL),
        "roc.png": plot.roc(validation, model=MODEL),
        "purity_completeness.png": plot.purity_completeness(validation, model=MODEL),
    }
    if np.isfinite(table["glat"]).any():
        made["sky_map.png"] = plot.sky_map(table, classes=classes)
    if len(catalog.feature_names) > 1:
        made["features.png"] = plot.features(catalog, table, classes=classes)
    shown = _most_probable(table, classes) if catalog.schema.bands else {}
    if shown:
        series = [spectrum(catalog, name) for name in shown]
        made["spectra.png"] = plot.spectra(series, list(shown.values()))
    for name, axes in made.items():
        plot.save(axes, folder / name, origin)


def _most_probable(table: Table, classes: list[str]) -> dict[str, str]:
    """Name -> title of the SPECTRA most probable candidates of each class."""
    titles = {}
    for label in classes:
        p = np.asarray(table[probability_column(label)])
        rows = np.flatnonzero(table["candidate"] & (np.asarray(table["prediction"]) == label))
        for row in rows[np.argsort(-p[rows], kind="stable")][:SPECTRA]:
            name = str(table["name"][row])
            titles[name] = f"{name}: {label} {p[row]:.2f}"
    return titles
