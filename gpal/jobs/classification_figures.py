"""The figures of a classification, drawn from its results and written into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from astropy.table import Table

from gpal import plot
from gpal.catalog import Catalog
from gpal.evaluation.cross_validation import CrossValidation
from gpal.jobs.models import MODEL

__all__ = ["FIGURES", "write_figures"]

FIGURES = ("confusion_matrix.png", "reliability.png", "sky_map.png", "features.png")


def write_figures(
    validation: CrossValidation,
    catalog: Catalog,
    table: Table,
    folder: Path,
    origin: Mapping[str, Any],
) -> None:
    """FIGURES of a classification whose probability catalogue is `table`; the last one only where
    there are two features or more."""
    classes = validation.classes.tolist()
    made = {
        "confusion_matrix.png": plot.confusion_matrix(validation, model=MODEL),
        "reliability.png": plot.reliability(validation, model=MODEL),
        "sky_map.png": plot.sky_map(table, classes=classes),
    }
    if len(catalog.feature_names) > 1:
        made["features.png"] = plot.features(catalog, table, classes=classes)
    for name, axes in made.items():
        plot.save(axes, folder / name, origin)
