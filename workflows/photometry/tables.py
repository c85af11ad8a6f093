"""The tables of docs/photometric-redshifts.md, from what was measured.

    python workflows/photometry/tables.py

Each stands between two markers of the page; the text around them is written by hand and stays.
Differences are to `own`, paired by seed: their mean and its standard error over the seeds that both
methods have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from measure import KEY, TABLE
from samples import SIZES, SPLITS
from spectrograph import BUDGET, STRATEGIES
from spectrograph import TABLE as RUNS

sys.path.append(str(Path(__file__).parents[1]))
from studies import GAP, grid, load, mean_error, put_tables, read

PAGE = Path(__file__).parents[2] / "docs" / "photometric-redshifts.md"
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
    "covariance, flat": "own errors with covariance, flat population",
    "five": "own errors, population of five Gaussians",
    "covariance, five": "own errors with covariance, population of five Gaussians",
    "first_order": "own errors, `first_order`",
    "covariance, first_order": "own errors with covariance, `first_order`",
    "latent": "own errors, `latent`",
    "amortized": "own errors, `amortized`",
    "ordinal": "own errors, ordinal likelihood",
    "logistic": "logistic regression",
    "logistic, errors": "logistic regression, errors as features",
    "neighbours": "k nearest neighbours",
    "neighbours, errors": "k nearest neighbours, errors as features",
    "forest": "random forest",
    "forest, errors": "random forest, errors as features",
    "probabilistic forest": "probabilistic random forest",
    "boosting": "histogram boosting",
    "boosting, errors": "histogram boosting, errors as features",
}


def measured() -> pd.DataFrame:
    """One row per cell, by split, training size, method and seed."""
    table = load(TABLE, KEY)
    table["bias"] = [biases(bins) for bins in table["bins"]]
    table["mean_bias"] = [float(np.nanmean(np.abs(each))) for each in table["bias"]]
    return table


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


def by_size(table: pd.DataFrame, split: str) -> Iterator[str]:
    """NLL of each method at every training size, and which is the lowest."""
    found = {
        (method, n): scores(table, split, n, method, "nll") for method in GROUPS for n in SIZES
    }
    seeds = {n: set(found["own", n].index) for n in SIZES}
    # Of those that have the seeds of `own`: a method with fewer is not the best of anything.
    whole = {
        (method, n): float(nll.mean())
        for (method, n), nll in found.items()
        if len(nll) and set(nll.index) >= seeds[n]
    }

    def rows() -> Iterator[list[str]]:
        for method, label in GROUPS.items():
            if not any(len(found[method, n]) for n in SIZES if n != HEADLINE):
                continue
            cells = []
            for n in SIZES:
                text = mean_error(found[method, n], 3)
                least = min((value for (_, k), value in whole.items() if k == n), default=None)
                best = least is not None and whole.get((method, n)) == least
                cells.append(f"**{text}**" if best else text)
            yield [label.replace("**", ""), *cells]

    yield from grid(["galaxies to learn from", *map(str, SIZES)], rows())


def spectra() -> Iterator[str]:
    """NLL, error rate and labels of each strategy where equal exposure time has been spent."""
    runs = read(RUNS)
    times = [0.0, *(BUDGET * share for share in (0.25, 0.5, 1.0))]

    def at(run: dict, key: str) -> np.ndarray:
        return np.interp(times, run["time"], run[key])

    def rows() -> Iterator[list[str]]:
        of = {(run["strategy"], run["seed"]): run for run in runs}
        seeds = sorted({seed for _, seed in of})
        for name in STRATEGIES:
            with_random = [s for s in seeds if (name, s) in of and ("random", s) in of]
            if not with_random:
                continue
            nll = np.array([at(of[name, s], "nll") for s in with_random])
            control = np.array([at(of["random", s], "nll") for s in with_random])
            error = [at(of[name, s], "error")[-1] for s in with_random]
            labels = [at(of[name, s], "labels")[-1] for s in with_random]
            yield [
                name,
                str(len(with_random)),
                *(mean_error(column, 3) for column in nll.T),
                GAP if name == "random" else mean_error((nll - control)[:, -1], 4, "+"),
                mean_error(error, 3),
                f"{np.mean(labels):.0f}",
            ]

    heads = ["", "seeds", *(f"NLL at {t:.0f}" for t in times)]
    yield from grid([*heads, "minus random at the end", "error", "labels"], rows())


def sections(table: pd.DataFrame) -> Iterator[tuple[str, Iterator[str]]]:
    """Name of a pair of markers, and the lines between them."""
    for split in SPLITS:
        yield f"methods, {split}", against_own(table, split, HEADLINE)
        yield f"redshifts, {split}", mean_redshifts(table, split, HEADLINE)
        yield f"sizes, {split}", by_size(table, split)
    yield "spectrograph", spectra()


def main() -> None:
    put_tables(PAGE, sections(measured()))


if __name__ == "__main__":
    main()
