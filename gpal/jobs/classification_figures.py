"""The figures of a classification, drawn from its results and written into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.catalog import Catalog
from gpal.evaluation import figures
from gpal.evaluation.cross_validation import CrossValidation
from gpal.evaluation.figure_style import drawn, save_figure
from gpal.evaluation.metrics import confusion_matrix
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
    classes, labelled = validation.classes.tolist(), np.asarray(table["out_of_fold"])
    prediction, candidate = np.asarray(table["prediction"]), np.asarray(table["candidate"])
    measurements = catalog.measurements
    drawn = {
        "confusion_matrix.png": figures.confusion_figure(
            validation.estimate(confusion_matrix, MODEL),
            classes,
            np.bincount(validation.y).tolist(),
        ),
        "reliability.png": figures.reliability_figure(
            validation.y, validation.out_of_fold(MODEL), classes
        ),
        "sky_map.png": figures.sky_figure(
            table["glon"], table["glat"], prediction, candidate, classes
        ),
    }
    if len(measurements.names) > 1:
        pair = figures.most_informative_pair(measurements[labelled], validation.y)
        shown = measurements.select([measurements.names[j] for j in pair])
        drawn["features.png"] = figures.feature_figure(
            shown,
            [_axis_label(catalog, j) for j in pair],
            catalog.y,
            prediction,
            candidate,
            classes,
        )
    for name, figure in drawn.items():
        save_figure(figure, folder / name, origin)


def _axis_label(catalog: Catalog, feature: int) -> str:
    name, unit = catalog.feature_names[feature], catalog.measurements.units[feature]
    written_out = catalog.schema.features[name].label
    return written_out or drawn(f"{name} [{unit}]" if unit else name, 48)
