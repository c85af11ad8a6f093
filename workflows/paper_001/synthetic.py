"""The synthetic problems of Villacampa-Calvo et al. (2021): tables 2, 3 and 11 to 16.

    python workflows/paper_001/synthetic.py [--studies given ...] [--data-sets 10] [--jobs 1]
    python workflows/paper_001/synthetic.py --quick      100 sources, one data set

Studies: `given` noise (tables 2, 3, 11, 12), `log-uniform` noise (not in the paper), `learned`
noise (tables 2, 3), `dimensions` and numbers of sources (tables 13, 14), `classes` (tables 15, 16).
Results go to results/synthetic.jsonl, cell by cell; a run that was stopped goes on. tables.py then
writes docs/noisy_inputs.md. A data set and a model take from five seconds to a few minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from models import ALL_TREATMENTS, BASELINES, DEFAULT, KEY, MODELS, Cell
from problems import EQUAL_NOISE, Setting, make_problem, oracle

from gpal.evaluation import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from studies import at_least_one, run

RESULTS = Path(__file__).parent / "results" / "synthetic.jsonl"

SETTINGS: dict[str, list[Setting]] = {
    "given": [Setting(noise) for noise in EQUAL_NOISE],
    "log-uniform": [Setting("log-uniform")],
    "learned": [Setting(noise) for noise in EQUAL_NOISE],
    "dimensions": [
        Setting(noise, D, N) for N in (100, 500, 1000) for D in (2, 5, 10) for noise in EQUAL_NOISE
    ],
    "classes": [Setting(noise, classes=C) for C in (4, 5, 6, 7) for noise in EQUAL_NOISE],
}
EVERY = [
    "oracle",
    *(f"{likelihood} {t}" for likelihood in ("softmax", "step") for t in ALL_TREATMENTS),
    "step-free none",
    f"step-free {DEFAULT}",
]
FEW = ["oracle", "softmax none", "softmax latent", f"softmax {DEFAULT}"]
OF_PAPER = [f"step {t}" for t in ("none", "first_order", "latent", "amortized")]
CONTROLS = [f"softmax {DEFAULT} {told}" for told in ("permuted", "constant")]
LEARNED = [f"softmax {t} learned" for t in ALL_TREATMENTS if t != "none"]
STUDIES: dict[str, tuple[int, list[str]]] = {
    "given": (10, EVERY + BASELINES),
    "log-uniform": (10, EVERY + CONTROLS),
    "learned": (10, LEARNED),
    "dimensions": (3, FEW + OF_PAPER),
    "classes": (3, FEW + OF_PAPER),
}
BY_NAME = {setting.name: setting for settings in SETTINGS.values() for setting in settings}


def measure(cell: Cell) -> dict:
    """Test NLL and error of a model on a data set, and CPU seconds to learn and predict."""
    name, seed, model = cell
    setting = BY_NAME[name]
    problem = make_problem(setting, seed)
    start = time.process_time()
    if model == "oracle":
        P = oracle(problem, problem.X_test, problem.X_test_err)
    else:
        P = MODELS[model](
            problem.X,
            problem.X_err,
            problem.y,
            problem.X_test,
            problem.X_test_err,
            seed,
            setting.classes,
        )
    seconds = time.process_time() - start
    scores = {metric: round(METRICS[metric](problem.y_test, P), 6) for metric in ("nll", "error")}
    return {**scores, "seconds": round(seconds, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    known = ["oracle", *MODELS]
    parser.add_argument("--models", nargs="+", choices=known, help="instead of the study's")
    default = "default: 10 for D = 2, N = 1,000, else 3"
    parser.add_argument("--data-sets", type=at_least_one, help=default)
    parser.add_argument("--first", type=int, default=0, help="seed of the first data set")
    parser.add_argument("--jobs", type=at_least_one, default=1)
    parser.add_argument("--quick", action="store_true", help="one small data set")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.quick:
        given = {name for name in vars(options) if vars(options)[name] != parser.get_default(name)}
        if given - {"quick", "jobs"}:
            parser.error("--quick is one small data set, with no other choice but --jobs")
        cells = [(Setting("0.1", sources=100).name, 0, model) for model in [*FEW, "step none"]]
        quick = RESULTS.with_name("synthetic-quick.jsonl")
        return sys.exit(run(quick, KEY, cells, measure, options.jobs) > 0)
    failed = 0
    for study in options.studies:
        number, models = STUDIES[study]
        seeds = range(options.first, options.first + (options.data_sets or number))
        cells = [
            (setting.name, seed, model)
            for seed in seeds
            for setting in SETTINGS[study]
            for model in options.models or models
        ]
        failed += run(options.out, KEY, cells, measure, options.jobs)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
