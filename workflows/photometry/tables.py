"""The tables of docs/photometric-redshifts.md, from what was measured.

    python workflows/photometry/tables.py

Each stands between two markers of the page; the text around them is written by hand and stays.
Differences are to `own`, paired by seed: their mean and its standard error over the seeds that both
methods have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from measure import KEY, read
from samples import SPLITS

from gpal.files.output import atomic_path

PAGE = Path(__file__).parents[2] / "docs" / "photometric-redshifts.md"
GAP = "–"
HEADLINE = 2500  # training galaxies
GROUPS = {
    "own": "**own errors**, `GPClassifier()`",
    "none": "no noise model",
    "zero": "errors of zero",
    "constant": "one error per feature for all, the median of both samples",
    "constant of training": "one error per feature for all, the training sample's median",
    "permuted": "errors of another galaxy",
    "none, 40 points": "no noise model, 40 inducing points",
    "own, 40 points": "own errors, 40 inducing points",
    "none, detected": "no noise model, bands below 2 σ left out",
    "own, detected": "own errors, bands below 2 σ left out",
    "covariance": "own errors with covariance",
    "limits": "own errors, limits",
    "covariance, limits": "own errors with covariance, limits",
    "flat": "own errors, flat population",
    "first_order": "own errors, `first_order`",
    "latent": "own errors, `latent`",
    "amortized": "own errors, `amortized`",
    "ordinal": "own errors, ordinal likelihood",
    "logistic": "logistic regression",
    "logistic, errors": "logistic regression, errors as features",
    "neighbours": "k nearest neighbours",
    "neighbours, errors": "k nearest neighbours, errors as features",
    "forest": "random forest",
    "forest, errors": "random forest, errors as features",
    "boosting": "histogram boosting",
    "boosting, errors": "histogram boosting, errors as features",
}


def load() -> pd.DataFrame:
    """One row per cell, by split, training size, method and seed."""
    table = pd.DataFrame(read()).drop_duplicates(list(KEY), keep="last")
    table["bias"] = [biases(bins) for bins in table["bins"]]
    table["mean_bias"] = [float(np.nanmean(np.abs(each))) for each in table["bias"]]
    return table.set_index(list(KEY)).sort_index()


def biases(bins: Sequence[Sequence]) -> np.ndarray:
    """(estimated − true)/(1 + true) mean redshift of each bin, NaN where it is empty."""
    found = np.array([[np.nan if part is None else part for part in each[1:]] for each in bins])
    return (found[:, 0] - found[:, 1]) / (1 + found[:, 1])


def scores(table: pd.DataFrame, split: str, n: int, method: str, score: str) -> pd.Series:
    """By seed, empty where there are none."""
    try:
        return table.loc[(split, n, method), score]
    except KeyError:
        return pd.Series(dtype=float)


def mean_error(values: Sequence[float], digits: int = 4, sign: str = "") -> str:
    """mean ± standard error over seeds."""
    values = np.asarray(values, float)
    if not len(values):
        return GAP
    mean = f"{values.mean():{sign}.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def grid(header: Sequence[str], rows: Iterator[list[str]]) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def against_own(table: pd.DataFrame, split: str, n: int) -> Iterator[str]:
    """NLL of each method, its difference to `own`, error, calibration, bias of mean redshifts."""

    def rows() -> Iterator[list[str]]:
        own = scores(table, split, n, "own", "nll")
        for method, label in GROUPS.items():
            nll = scores(table, split, n, method, "nll")
            if not len(nll):
                continue
            difference = (nll - own).dropna()
            of = {
                key: scores(table, split, n, method, key) for key in ("error", "ece", "mean_bias")
            }
            yield [
                label,
                str(len(nll)),
                mean_error(nll, 3),
                GAP if method == "own" else mean_error(difference, 4, "+"),
                *(mean_error(each, 3) for each in of.values()),
            ]

    header = ["", "seeds", "NLL", "minus own", "error", "ECE", "bias of ⟨z⟩"]
    yield from grid(header, rows())


def mean_redshifts(table: pd.DataFrame, split: str, n: int) -> Iterator[str]:
    """Bias of the mean redshift of each bin."""

    def rows() -> Iterator[list[str]]:
        for method, label in GROUPS.items():
            bias = scores(table, split, n, method, "bias")
            if len(bias):
                each = np.vstack(bias.to_list())
                yield [label, *(mean_error(column, 4, "+") for column in each.T)]

    yield from grid(["", *(f"bin {k}" for k in range(1, 6))], rows())


def sections(table: pd.DataFrame) -> Iterator[tuple[str, Iterator[str]]]:
    """Name of a pair of markers, and the lines between them."""
    for split in SPLITS:
        yield f"methods, {split}", against_own(table, split, HEADLINE)
        yield f"redshifts, {split}", mean_redshifts(table, split, HEADLINE)


def main() -> None:
    text = PAGE.read_text()
    for name, lines in sections(load()):
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        body = "\n".join(lines)
        text = f"{before}{begin}\n\n{body}\n\n{end}{after}"
    with atomic_path(PAGE) as path:
        path.write_text(text)


if __name__ == "__main__":
    main()
