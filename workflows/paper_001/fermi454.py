"""The 454 bright Fermi sources of Villacampa-Calvo et al. (2021), section 5.6: tables 9 and 10; and
17 and 18, which leave out two of the features.

    python workflows/paper_001/fermi454.py [--splits 100] [--models ...] [--catalog gll_psc_v20.fit]
    python workflows/paper_001/fermi454.py --quick       one split, two models, a file of its own

4FGL (release gll_psc_v20), Signif_Avg > 30, classes bll, fsrq and psr, and the paper's six
features, three of them with error bars: all in the extract that ships with gpal. Splits are random,
408 sources to learn and 46 to test, the same for all models; their numbers are their seeds.
Tables 17 and 18 are without the significances of detection and of curvature. Results go to
results/fermi454.jsonl, cell by cell; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
from models import ALL_TREATMENTS, DEFAULT, KEY, LIKELIHOODS, MODELS, Cell
from sklearn.model_selection import train_test_split

from gpal import load_catalog
from gpal.evaluation import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from studies import at_least_one, run

RESULTS = Path(__file__).parent / "results" / "fermi454.jsonl"
CLASSES = ["bll", "fsrq", "psr"]
ON_ALL_SPLITS = ["logistic regression", "softmax none", f"softmax {DEFAULT}"]
ON_SOME = [f"{likelihood} {t}" for likelihood in LIKELIHOODS for t in ALL_TREATMENTS]
ALL, FOUR = "454", "454, four features"
LEFT_OUT = {ALL: (), FOUR: ("ln_significance", "ln_curvature")}
ON_FOUR = [f"step {t}" for t in ("none", "first_order", "latent", "amortized")] + ON_ALL_SPLITS


@cache
def bright_sources(catalog: str, problem: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, X_err and class index of the 454 sources."""
    sources = load_catalog(catalog, features="paper", cuts="Signif_Avg > 30").labelled(CLASSES)
    kept = [name not in LEFT_OUT[problem] for name in sources.feature_names]
    return sources.X[:, kept], sources.X_err[:, kept], np.searchsorted(CLASSES, sources.y)


def measure(cell: Cell, catalog: str) -> dict:
    """NLL, error and confusion counts (row: true class) on the test sources of a split."""
    problem, seed, model = cell
    X, X_err, y = bright_sources(catalog, problem)
    train, test = train_test_split(np.arange(len(y)), test_size=0.1, random_state=seed)
    start = time.process_time()
    P = MODELS[model](X[train], X_err[train], y[train], X[test], X_err[test], seed, len(CLASSES))
    seconds = time.process_time() - start
    confusion = np.zeros((len(CLASSES), len(CLASSES)), int)
    np.add.at(confusion, (y[test], P.argmax(axis=1)), 1)
    scores = {metric: round(METRICS[metric](y[test], P), 6) for metric in ("nll", "error")}
    return {**scores, "seconds": round(seconds, 2), "confusion": confusion.tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, help="instead of all")
    default = "default: 100 for the main models, else 30"
    parser.add_argument("--splits", type=at_least_one, help=default)
    parser.add_argument("--catalog", default="4fgl", help="or the path of gll_psc_v20.fit")
    parser.add_argument("--jobs", type=at_least_one, default=1)
    parser.add_argument("--quick", action="store_true", help="one split, to try the script")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.quick:
        if options.splits or options.models:
            parser.error("--quick chooses models and splits itself")
        options.splits, options.models = 1, ["logistic regression", "softmax none"]
    name = f"{RESULTS.stem}-quick.jsonl" if options.quick else RESULTS.name
    out = options.out or RESULTS.with_name(name)
    number = {model: 30 for model in ON_SOME} | {model: 100 for model in ON_ALL_SPLITS}
    numbers = {ALL: number, FOUR: dict.fromkeys(ON_FOUR, 30)}
    cells = [
        (problem, seed, model)
        for problem, number in numbers.items()
        for seed in range(options.splits or max(number.values()))
        for model in options.models or number
        if options.splits or seed < number.get(model, 100)
    ]
    failed = run(out, KEY, cells, partial(measure, catalog=options.catalog), options.jobs)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
