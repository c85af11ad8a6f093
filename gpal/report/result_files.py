"""The files of a result folder that a page is made from, read strictly.

Whoever copies, edits or opens a folder in a spreadsheet can damage it: a page shows what its files
say, or none is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpal.errors import InputError, shown
from gpal.files.csv import read_csv
from gpal.names import MIXED, check_output_columns, check_words, probability_column

__all__ = ["read_sources"]

CARRIED = {"text": str, "number": float, "mark": bool}  # kinds of columns that the catalog carries
ROUNDING = 1e-4  # of a source's probabilities, whose sum is one


def read_sources(path: Path, metrics: Mapping[str, Any]) -> pd.DataFrame:
    """The probability catalogue of a classification, as its report shows it.

    Raises InputError where it is not that of `metrics`: other classes, other counts of sources,
    probabilities that are none.
    """
    classes = metrics["settings"]["classes"]
    if not (
        isinstance(classes, list)
        and len(set(map(str, classes))) == len(classes) > 1
        and all(isinstance(name, str) for name in classes)
    ):
        raise InputError("metrics.json beside it does not name the classes")
    carried = {item["name"]: CARRIED[item["kind"]] for item in metrics["carried"]}
    check_output_columns(carried)
    columns = read_csv(
        path,
        {
            **carried,
            **dict.fromkeys(("name", "catalog_class", "prediction"), str),
            **dict.fromkeys(("ra", "dec", "glon", "glat", "entropy"), float),
            **{probability_column(name): float for name in classes},
            "candidate": bool,
        },
        optional={
            **{probability_column(name, "_std"): float for name in classes},
            "position_error": float,
        },
    )
    check_words("source name", columns["name"])
    P = np.column_stack([columns[probability_column(name)] for name in classes])
    wrong = ~((P >= 0) & (P <= 1)).all(axis=1) | ~(abs(P.sum(axis=1) - 1) < ROUNDING)
    wrong |= ~np.isin(columns["prediction"].astype(str), [*classes, MIXED])
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"row {row} ('{shown(columns['name'][row])}') holds no probabilities of"
            f" {', '.join(classes)} with one of these as prediction"
        )
    table = pd.DataFrame(columns)
    candidates = table[table["candidate"]]
    found = {
        "n_sources": len(table),
        "n_targets": len(candidates),
        "n_targets_per_prediction": candidates["prediction"].value_counts().to_dict(),
    }
    near = candidates[candidates["glat"].abs() < metrics["near_plane"]["degrees"]]
    if metrics["near_plane"]["n_per_prediction"] != near["prediction"].value_counts().to_dict():
        raise InputError("other candidates lie near the Galactic plane than metrics.json says")
    for key, value in found.items():
        if metrics[key] != value:
            raise InputError(f"its {key} is {value}, in metrics.json {metrics[key]}")
    return table
