"""The one-dimensional problem of Villacampa-Calvo et al. (2021), section 5.1: table 1, figure 2.

    python workflows/paper_001/toy.py [--models ...]
    python workflows/paper_001/toy.py --quick      100 sources, three models, a file of its own

1,000 sources uniform in [−3, 3], three classes, noise of variance .1. The paper does not give the
kernel of its functions; with ℓ = 2 the functions of seed SEED leave the oracle about the error that
the paper reports. Results go to results/toy.jsonl, one model after the other; a run that was
stopped goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from models import ALL_TREATMENTS, KEY, MODELS, Cell
from problems import Setting, make_problem, oracle

from gpal.evaluation import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from studies import at_least_one, read, run

RESULTS = Path(__file__).parent / "results" / "toy.jsonl"
SETTING = Setting("0.1", dimension=1, half_width=3.0)
QUICK = Setting("0.1", dimension=1, sources=100, half_width=3.0)
BY_NAME = {setting.name: setting for setting in (SETTING, QUICK)}
SEED = 13
WANTED = [f"{likelihood} {t}" for likelihood in ("step", "softmax") for t in ALL_TREATMENTS]
QUICK_MODELS = ["oracle", "step none", "softmax none"]
GRID = np.linspace(-3.0, 3.0, 121)


def bootstrap(values: np.ndarray) -> float:
    """Standard error of the mean over test sources, by 1,000 bootstrap samples as in the paper."""
    rng = np.random.default_rng(0)
    return float(values[rng.integers(len(values), size=(1000, len(values)))].mean(axis=1).std())


def measure(cell: Cell) -> dict:
    """Scores with standard errors, the probabilities along the grid, and CPU seconds to learn and
    predict."""
    name, seed, model = cell
    setting = BY_NAME[name]
    problem = make_problem(setting, seed)
    X = np.concatenate([problem.X_test, GRID[:, None]])
    X_err = np.concatenate([problem.X_test_err, np.full((len(GRID), 1), np.sqrt(0.1))])
    start = time.process_time()
    if model == "oracle":
        P = oracle(problem, X, X_err)
    else:
        P = MODELS[model](problem.X, problem.X_err, problem.y, X, X_err, seed, setting.classes)
    seconds = time.process_time() - start
    n = len(problem.y_test)
    wrong = P[:n].argmax(axis=1) != problem.y_test
    nll = -np.log(np.maximum(P[np.arange(n), problem.y_test], np.finfo(float).tiny))
    return {
        "nll": METRICS["nll"](problem.y_test, P[:n]),
        "nll_se": bootstrap(nll),
        "error": METRICS["error"](problem.y_test, P[:n]),
        "error_se": bootstrap(wrong.astype(float)),
        "probabilities": np.round(P[n:], 4).tolist(),
        "seconds": round(seconds, 2),
    }


def measured() -> dict[str, dict]:
    """The records of the full problem by model, in the order of measuring."""
    return {cell["model"]: cell for cell in read(RESULTS) if cell["problem"] == SETTING.name}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=["oracle", *MODELS])
    parser.add_argument("--quick", action="store_true", help="100 sources, to try the script")
    parser.add_argument("--jobs", type=at_least_one, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    setting = QUICK if options.quick else SETTING
    wanted = options.models or (QUICK_MODELS if options.quick else ["oracle", *WANTED])
    name = f"{RESULTS.stem}-quick.jsonl" if options.quick else RESULTS.name
    cells = [(setting.name, SEED, m) for m in wanted]
    failed = run(options.out or RESULTS.with_name(name), KEY, cells, measure, options.jobs)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
