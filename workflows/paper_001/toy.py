"""The one-dimensional problem of Villacampa-Calvo et al. (2021), section 5.1: table 1, figure 2.

    python workflows/paper_001/toy.py [--models ...]

1,000 sources uniform in [−3, 3], three classes, noise of variance .1. The paper does not give the
kernel of its functions; with ℓ = 2 the functions of seed SEED leave the oracle about the error that
the paper reports. Results go to results/toy.json, one model after the other; a run that was stopped
goes on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from models import ALL_TREATMENTS, MODELS
from problems import Setting, make_problem, oracle

from gpal.evaluation import METRICS
from gpal.files.output import atomic_path

RESULTS = Path(__file__).parent / "results" / "toy.json"
SETTING = Setting("0.1", dimension=1, half_width=3.0)
SEED = 13
WANTED = [f"{likelihood} {t}" for likelihood in ("step", "softmax") for t in ALL_TREATMENTS]
GRID = np.linspace(-3.0, 3.0, 121)


def bootstrap(values: np.ndarray) -> float:
    """Standard error of the mean over test sources, by 1,000 bootstrap samples as in the paper."""
    rng = np.random.default_rng(0)
    return float(values[rng.integers(len(values), size=(1000, len(values)))].mean(axis=1).std())


def measure(model: str) -> dict:
    """Scores with standard errors, and the probabilities along the grid."""
    problem = make_problem(SETTING, SEED)
    X = np.concatenate([problem.X_test, GRID[:, None]])
    X_err = np.concatenate([problem.X_test_err, np.full((len(GRID), 1), np.sqrt(0.1))])
    if model == "oracle":
        P = oracle(problem, X, X_err)
    else:
        P = MODELS[model](problem.X, problem.X_err, problem.y, X, X_err, SEED, SETTING.classes)
    n = len(problem.y_test)
    wrong = P[:n].argmax(axis=1) != problem.y_test
    nll = -np.log(np.maximum(P[np.arange(n), problem.y_test], np.finfo(float).tiny))
    return {
        "nll": METRICS["nll"](problem.y_test, P[:n]),
        "nll_se": bootstrap(nll),
        "error": METRICS["error"](problem.y_test, P[:n]),
        "error_se": bootstrap(wrong.astype(float)),
        "probabilities": np.round(P[n:], 4).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["oracle", *WANTED])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.out.parent.mkdir(exist_ok=True)
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    for model in options.models:
        if model in results or model not in {"oracle", *MODELS}:
            continue
        results[model] = measure(model)
        print(model, {k: round(v, 4) for k, v in results[model].items() if k != "probabilities"})
        with atomic_path(options.out) as path:
            path.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
