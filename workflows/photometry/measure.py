"""Where error bars pay: photometric redshift bins, with every galaxy's errors or without.

    python workflows/photometry/measure.py                      what is missing, cell by cell
    python workflows/photometry/measure.py --sizes 2500 --methods own none --seeds 0 1
    python workflows/photometry/measure.py --quick              small cells, kept apart
    python workflows/photometry/tables.py                       the tables of the pages

A cell (split, training size, method, seed) is one line of results/photometry.jsonl; what is there
is not measured again. Per cell: NLL, error and calibration of 4,000 test galaxies, and the mean
redshift of those put into each bin:

    estimated   Σ_i Σ_c P[i, c] z̄_c / N over the N galaxies of the bin, z̄_c the mean redshift of
                the training galaxies of class c
    true        their mean redshift

No setting of gpal is chosen; those of the others are, on folds of the training sample.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from studies import load, run

TABLE = Path(__file__).parent / "results" / "photometry.jsonl"
KEY = ("split", "n", "method", "seed")

Cell = tuple[str, int, str, int]


def mean_redshifts(P: np.ndarray, z: np.ndarray, of_class: np.ndarray) -> list[list[float]]:
    """[number, estimated, true] mean redshift of the galaxies put into each bin."""
    chosen, expected = P.argmax(axis=1), P @ of_class
    found = []
    for k in range(P.shape[1]):
        rows = chosen == k
        if rows.any():
            found.append([int(rows.sum()), expected[rows].mean(), z[rows].mean()])
        else:
            found.append([0, None, None])
    return found


def measure(cell: Cell) -> dict:
    """The scores of a cell."""
    from methods import METHODS
    from samples import catalog, draw

    from gpal import metrics
    from gpal.provenance import json_safe, provenance

    split, n, method, seed = cell
    train, test = draw(split, n, seed)
    begin = time.process_time()
    P, settings = METHODS[method](train, test, seed)
    seconds = time.process_time() - begin
    of = {key: catalog().provenance[key] for key in ("catalog", "sha256", "features")}
    of_class = np.array([train.z[train.y == k].mean() for k in range(P.shape[1])])
    return json_safe(
        {
            "nll": metrics.negative_log_predictive_density(test.y, P),
            "error": metrics.error(test.y, P),
            "ece": metrics.expected_calibration_error(test.y, P),
            "bins": mean_redshifts(P, test.z, of_class),
            "seconds": round(seconds, 2),
            "provenance": provenance(of, settings, random_state=seed),
        }
    )


def main() -> None:
    from methods import METHODS
    from samples import SIZES, SPLITS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--quick", action="store_true", help="150 galaxies, one seed")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sizes, arguments.seeds, arguments.splits = [150], [0], SPLITS[-1:]
    cells = [
        (split, n, method, seed)
        for n in arguments.sizes
        for seed in arguments.seeds
        for split in arguments.splits
        for method in arguments.methods
    ]
    path = TABLE.with_name("photometry-quick.jsonl") if arguments.quick else TABLE
    failed = run(path, KEY, cells, measure)
    print(load(path, KEY)[["nll", "error", "seconds"]].to_string())
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
