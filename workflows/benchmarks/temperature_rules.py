"""How much the labels may move the temperature: rules beside each other on the development sets.

    python workflows/benchmarks/temperature_rules.py             what is missing, then the table
    python workflows/benchmarks/temperature_rules.py --table     the table, and no run

A cell (data set, training rows, split) is one line of results/temperature_rules.jsonl: on a grid of
log T the NLL of every source given the others, its standard error against the best one, and the NLL
of the test rows. `rows` 0 is the whole training set; else as many, drawn from that of split 0.
Fits are `GPClassifier(temperature=1, learn_by="bound")`.

    best       T with the lowest NLL of labels given the others
    one s.e.   the T nearest to 1 that is within a standard error of it (Breiman et al. 1984)
    normal     with a normal prior on log T of deviation .2
    laplace    with a Laplace prior on log T of scale .1
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
from pathlib import Path
from typing import Any

import cells
import numpy as np
from data_sets import DEVELOPMENT, load
from scoring import Split
from sklearn.model_selection import train_test_split

TABLE = Path(__file__).parent / "results" / "temperature_rules.jsonl"
GRID = np.arange(-16, 9) * np.log(2) / 8  # of log T
ONE = 16  # where T = 1 is on it
ROWS = (0, 60, 120, 150, 300, 600)
SPLITS = range(3)
SOURCES = 4000


def few(data_set: str, rows: int, seed: int) -> Split | None:
    split = load(data_set, seed if rows == 0 else 0)
    if rows == 0:
        return split
    if rows >= len(split.y):
        return None
    X, _, y, _ = train_test_split(
        split.X, split.y, train_size=rows, stratify=split.y, random_state=seed
    )
    return Split(X, y, split.X_test, split.y_test)


def measure(data_set: str, rows: int, seed: int) -> None:
    import tensorflow as tf

    import gpal.model.fit as of_fit
    from gpal import GPClassifier
    from gpal.inference.leave_one_out import leave_one_out

    split = few(data_set, rows, seed)
    if split is None:
        return
    kept: list = []
    run = of_fit.run_inference

    def keep(options: Any, problem: Any, seed: int) -> Any:
        kept[:] = problem, run(options, problem, seed)
        return kept[1]

    of_fit.run_inference = keep
    model = GPClassifier(temperature=1, learn_by="bound").fit(split.X, split.y)
    of_fit.run_inference = run
    problem, fit = kept
    n = len(split.y)
    which = np.random.default_rng(0).permutation(n)[:SOURCES]
    mean, variance = leave_one_out(problem, fit, which)
    Y = tf.gather(problem.data.Y, which)
    f = model.posterior_.predict_f(split.X_test)
    y = np.searchsorted(model.classes_, split.y_test)[:, None].astype(float)
    log_p = problem.likelihood.predict_log_density
    left_out = np.array([-log_p(None, mean / T, variance, Y).numpy() for T in np.exp(GRID)])
    test = [-log_p(None, f[0] / T, f[1], y).numpy().mean() for T in np.exp(GRID)]
    best = left_out[left_out.mean(axis=1).argmin()]
    record = {
        "data_set": data_set,
        "method": str(rows),
        "seed": seed,
        "sources": n,
        "left_out": left_out.mean(axis=1).tolist(),
        "standard_error": ((left_out - best).std(axis=1) / np.sqrt(len(which))).tolist(),
        "test": [float(nll) for nll in test],
    }
    cells.write(record, TABLE)
    print(data_set, rows, seed, f"T {np.exp(GRID[np.argmin(record['left_out'])]):.2f}", flush=True)


def one_standard_error(record: dict) -> int:
    left_out, error = np.array(record["left_out"]), np.array(record["standard_error"])
    i = best = int(left_out.argmin())
    step = 1 if best < ONE else -1
    while i != ONE and left_out[i + step] - left_out[best] <= error[i + step]:
        i += step
    return i


def with_prior(record: dict, penalty: np.ndarray) -> int:
    return int((record["sources"] * np.array(record["left_out"]) + penalty).argmin())


RULES = {
    "best": lambda record: int(np.argmin(record["left_out"])),
    "one s.e.": one_standard_error,
    "normal": lambda record: with_prior(record, 0.5 * (GRID / 0.2) ** 2),
    "laplace": lambda record: with_prior(record, np.abs(GRID) / 0.1),
}


def show() -> None:
    """What each rule adds to the NLL of the test rows at T = 1: mean over splits."""
    import pandas as pd

    added = [
        {
            "data_set": record["data_set"],
            "rows": int(record["method"]),
            **{
                name: record["test"][rule(record)] - record["test"][ONE]
                for name, rule in RULES.items()
            },
            "best of test": min(record["test"]) - record["test"][ONE],
        }
        for record in cells.read(TABLE).values()
    ]
    table = pd.DataFrame(added).groupby(["data_set", "rows"]).mean()
    print(table.round(4).to_string())
    print(pd.DataFrame({"mean": table.mean(), "worst": table.max()}).T.round(4).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", nargs="+", choices=DEVELOPMENT, default=list(DEVELOPMENT))
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--table", action="store_true", help="the table only")
    arguments = parser.parse_args()
    if not arguments.table:
        for data_set in arguments.data_sets:
            for rows in arguments.rows:
                for seed in SPLITS:
                    if (data_set, str(rows), seed) not in cells.read(TABLE):
                        measure(data_set, rows, seed)
    show()


if __name__ == "__main__":
    main()
