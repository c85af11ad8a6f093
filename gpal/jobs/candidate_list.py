"""The candidates of a class, as a list of a stated purity.

The threshold is that of the longest list of labelled sources, predicted out of fold, which is so
pure. It holds for the candidates as far as these are like the labelled sources: where class
fractions differ, so does the purity, and the mean probability of the listed candidates is the
better guess. Where the candidates' model has also learned from fainter copies, which those of the
folds have not, it does not hold, and the threshold is that which makes the mean probability of the
listed candidates the stated purity.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.errors import InputError, shown
from gpal.files.output import atomic_path, check_apart
from gpal.jobs.probability_catalogue import read_probabilities, write_table
from gpal.jobs.purity import candidates_of
from gpal.jobs.result_folder import TABLES
from gpal.metrics import PureList, promised_threshold, pure_list
from gpal.names import probability_column
from gpal.plot.results import metrics_of, read
from gpal.provenance import json_safe

__all__ = ["candidates"]


def candidates(
    result: Any, name: str, purity: float = 0.9, out: str | os.PathLike | None = None
) -> Table:
    """The candidates of one class above the threshold whose list has a stated purity.

    Parameters
    ----------
    result : ClassificationResult, str or path
        What `classify` returned, or its folder.
    name : str
        The class.
    purity : float
        That the labelled sources above the threshold have, out of fold; where the candidates' model
        has also learned from fainter copies, that the probabilities of the listed ones promise.
    out : str or path, optional
        A file for the list, `.csv`, `.fits`, `.parquet` or `.vot`.

    Returns
    -------
    Table
        The rows of the probability catalogue, the most probable first. Its `meta["list"]` has
        the class, the fields of `gpal.metrics.PureList`, `threshold_on`, the column that the
        threshold is on (the labelled sources' class fractions where there are others),
        `n_candidates`, and `candidates_promised`, the mean probability of the listed candidates:
        the purity to expect of them where probabilities are calibrated. Of candidates with a
        threshold of their own, of the fields only `asked`, `threshold` and `threshold_on`.

    Raises
    ------
    InputError
        For a class that was not told apart, a purity that no list reaches, and what is no result of
        `classify`.

    Examples
    --------
    >>> import gpal
    >>> from gpal.evaluation import logistic_regression
    >>> catalog = gpal.load_catalog("4fgl-dr4", features=["index", "flux"])[::5]
    >>> result = gpal.classify(catalog, "results", classifier=logistic_regression(), n_splits=2)
    >>> pulsars = gpal.candidates(result, "psr", purity=0.6)
    >>> found = pulsars.meta["list"]
    >>> len(pulsars) == found["n_candidates"], found["purity"] >= 0.6
    (True, True)
    """
    table, metrics = _opened(result)
    classes = [str(each) for each in metrics["settings"]["classes"]]
    name = name if name in classes else name.lower()  # as the words of a class column
    if name not in classes:
        raise InputError(f"no class '{shown(name)}' in the result; there are: {', '.join(classes)}")
    column = probability_column(name)
    targets, stated = (P[:, classes.index(name)] for P in candidates_of(table, classes))
    asked = table[np.asarray(table["candidate"], bool)]
    train = probability_column(name, "_train")
    said: dict[str, Any]
    if metrics["settings"].get("faint"):
        said = {"asked": purity, "threshold": _promised(name, stated, purity)}
        listed, on = asked[stated >= said["threshold"]], column
    else:
        said = asdict(_pure(name, table, column, purity))
        listed = asked[targets >= said["threshold"]]
        on = train if train in table.colnames else column
    p = np.asarray(listed[column], float)
    said = {"class": name, **said, "threshold_on": on, "n_candidates": len(listed)}
    said["candidates_promised"] = float(p.mean()) if len(p) else None
    listed = listed[np.argsort(-p, kind="stable")]
    origin = {**metrics["provenance"], "list": json_safe(said)}
    listed.meta = {"list": said}
    if out is not None:
        _write(listed, result, out, origin)
    return listed


def _pure(name: str, table: Table, column: str, purity: float) -> PureList:
    """The list of labelled sources, predicted out of fold."""
    known = table[np.asarray(table["label"], str) != ""]
    of_class = np.asarray(known["label"], str) == name
    found = pure_list(of_class, np.asarray(known[column], float), purity)
    if not found.listed:
        raise InputError(
            f"no list of {name} reaches a purity of {purity:g}: even the most probable labelled"
            " sources are less often so; give a lower purity"
        )
    return found


def _promised(name: str, p: np.ndarray, purity: float) -> float:
    """The candidates' own threshold."""
    threshold = promised_threshold(p, purity)
    if np.isnan(threshold):
        highest = f"the highest probability is {p.max():.2f}" if len(p) else "there is none"
        raise InputError(
            f"no list of candidates promises a purity of {purity:g} as {name}: {highest}; give a"
            " lower purity"
        )
    return threshold


def _opened(result: Any) -> tuple[Table, Any]:
    """The probability catalogue of a classification, and its metrics."""
    metrics = metrics_of(result)
    if "settings" not in metrics or "n_targets_per_prediction" not in metrics:
        raise InputError("candidates are those of a classification: give what `classify` made")
    if hasattr(result, "table"):
        return result.table, metrics
    folder = Path(result)
    if (folder / "probabilities").is_dir():
        raise InputError(
            f"the sources of '{shown(folder, 300)}' are in HATS layout; compare their probabilities"
            f" with the thresholds in its metrics.json, under `purity`"
        )
    table = read(folder / TABLES[0], read_probabilities)
    for column in table.colnames:  # FITS has its own order of bytes, Parquet does not take it
        table[column] = table[column].astype(table[column].dtype.newbyteorder("="))
    return table, metrics


def _write(table: Table, result: Any, out: str | os.PathLike, origin: Any) -> None:
    folder = Path(result.folder if hasattr(result, "table") else result)
    check_apart([out], [folder / file for file in (*TABLES, "metrics.json")])
    with atomic_path(out) as temporary:
        write_table(table, Path(temporary), origin)
