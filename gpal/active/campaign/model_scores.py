"""What a model says of every source of a campaign: kept with it, so that looking needs none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpal.active.campaign.table import SourceTable, read_arrays
from gpal.active.strategies import Strategy
from gpal.errors import InputError
from gpal.files.npz import write_npz
from gpal.files.saved_data import check_arrays

__all__ = ["ModelScores", "read_scores", "score_table", "write_scores"]

# Of the file: kind and axes, n sources, C classes.
ARRAYS = {
    "n_labels": "int",
    "ids": "int n",
    "classes": "text C",
    "probabilities": "single n C",
    "score": "float n",
    "parts": "single n 3",
}
SPLIT_SOURCES = 200  # the best-ranked sources, whose entropy is split


@dataclass(frozen=True)
class ModelScores:
    """What one model says of every source of its release, in the table's order.

    ids (n,); probabilities (n, C), NaN for sources that are neither target nor labelled; score (n,)
    NaN out of the pool; parts (n, 3) measurement, model and overlap, NaN where not computed;
    settings those of a classifier of the caller's, "" of the campaign's own and in older files
    """

    number: int
    n_labels: int
    ids: np.ndarray
    classes: tuple[str, ...]
    probabilities: np.ndarray
    score: np.ndarray
    parts: np.ndarray
    settings: str = ""


def score_table(
    classifier: Any, table: SourceTable, label: np.ndarray, strategy: Strategy
) -> dict[str, np.ndarray]:
    """The arrays of a ModelScores, for a classifier fitted to the present labels (n,)."""
    from gpal.active.posterior import score_sources, split_sources
    from gpal.evaluation import any_classifier

    sources = table.measurements
    pool = np.flatnonzero(table.target & (label == ""))
    known = np.flatnonzero(table.target | (table.label != ""))
    probabilities = np.full((len(table), len(classifier.classes_)), np.nan)
    probabilities[known] = any_classifier.predict_proba(classifier, sources[known])
    score, parts = np.full(len(table), np.nan), np.full((len(table), 3), np.nan)
    if len(pool):
        score[pool] = score_sources(classifier, sources[pool], score=strategy)
        best = pool[np.argsort(-score[pool], kind="stable")[:SPLIT_SOURCES]]
        parts[best] = np.column_stack(split_sources(classifier, sources[best]))
    return {
        "ids": table.ids,
        "classes": np.asarray(classifier.classes_, dtype=str),
        "probabilities": probabilities.astype(np.float32),
        "score": score,
        "parts": parts.astype(np.float32),
    }


def write_scores(
    path: Path, scored: dict[str, np.ndarray], n_labels: int, settings: str = ""
) -> None:
    known = {"settings": np.array([settings])} if settings else {}
    write_npz(path, {"n_labels": np.array(n_labels), **scored, **known})


def read_scores(path: Path, number: int) -> ModelScores:
    """Scores of the model version `number`."""
    arrays = read_arrays(path)
    settings = {"settings": "text 1"} if "settings" in arrays else {}
    try:
        check_arrays(arrays, ARRAYS | settings, {}, may_be_nan=ARRAYS)
        known = np.isfinite(arrays["probabilities"]).all(axis=1)
        if not np.allclose(arrays["probabilities"][known].sum(axis=1), 1, atol=1e-3):
            raise InputError("its probabilities do not sum to 1")
    except InputError as error:
        raise InputError(f"'{path}' is damaged: {error}; run: gpal learn refit --full") from error
    return ModelScores(
        number,
        int(arrays["n_labels"]),
        arrays["ids"],
        tuple(arrays["classes"].tolist()),
        arrays["probabilities"],
        arrays["score"],
        arrays["parts"],
        str(arrays["settings"][0]) if settings else "",
    )
