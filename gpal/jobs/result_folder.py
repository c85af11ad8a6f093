"""A folder of results: one job's, whichever it was. What another has left there goes."""

from __future__ import annotations

import os
from pathlib import Path

from gpal.errors import InputError, shown

__all__ = ["MARK", "RESULT_FILES", "TABLES", "refuse_survey"]

MARK = "gpal.json"  # of which job a folder of a survey in HATS layout is
TABLES = ("probabilities.fits", "probabilities.csv")
# What classifications, validations and comparisons write.
RESULT_FILES = (
    *("report.html", *TABLES, "comparison.csv", "metrics.json", "model.npz"),
    *("confusion_matrix.png", "reliability.png", "roc.png", "purity_completeness.png"),
    *("sky_map.png", "features.png", "spectra.png", "scores.png", "calibration.png"),
    *("reliability_corrected.png", "reliability_by_origin.png"),
)


def refuse_survey(folder: str | os.PathLike) -> None:
    """InputError where it holds the probabilities of a survey, which no file takes the place of."""
    if (Path(folder) / MARK).is_file():
        raise InputError(
            f"the folder '{shown(folder, 300)}' holds results of a survey in HATS layout; give"
            " another folder"
        )
