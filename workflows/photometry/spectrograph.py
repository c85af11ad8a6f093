"""Which faint galaxies should a spectrograph look at, at equal exposure time?

    python workflows/photometry/spectrograph.py                 what is missing, run by run
    python workflows/photometry/spectrograph.py --seeds 0 --strategies entropy random
    python workflows/photometry/spectrograph.py --quick         a small run, kept apart
    python workflows/photometry/tables.py                       the tables of the page

300 galaxies brighter than i = 24.0 have a spectrum. Of 3,000 fainter than 24.3 one asks for some,
20 at a time, until the exposure time is spent: 10^(0.8 (i − 24)) of a galaxy, 1 at i = 24. After
each 20, 2,000 other faint galaxies are tested. The own errors are told, GPClassifier() is as it is.

    entropy                   whose class is least certain
    entropy per time          the same divided by the exposure time
    brightest                 the shortest exposures first
    random                    the control

A run (strategy, seed) is one line of results/spectrograph.jsonl.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from measure import mean_redshifts
from samples import BRIGHT, FAINT, galaxies

sys.path.append(str(Path(__file__).parents[1]))
from studies import load, run

TABLE = Path(__file__).parent / "results" / "spectrograph.jsonl"
KEY = ("strategy", "seed")
KNOWN, POOL, TEST, BATCH, BUDGET = 300, 3000, 2000, 20, 300.0
PER_TIME = " per time"
STRATEGIES = ("random", "brightest", "entropy", "entropy per time")

Run = tuple[str, int]


def chosen_by(name: str):
    """The strategy of gpal's, and whether its score is divided by the exposure time."""
    from gpal.active.batch import top_batch
    from gpal.active.strategies import Strategy, as_strategy

    class Brightest(Strategy):
        """The same for all, so that divided by time the shortest exposure is the best."""

        name = "brightest"
        summary = "The shortest exposures first"
        needs_model = False

        def score(self, p: np.ndarray) -> np.ndarray:
            return np.ones(len(p))

        def choose(self, score, X, number, random_state=None) -> np.ndarray:
            return top_batch(score, number)

    if name == "brightest":
        return Brightest(), True
    return as_strategy(name.removesuffix(PER_TIME)), name.endswith(PER_TIME)


def measure(cell: Run, budget: float) -> dict:
    """The curve of a run: exposure time spent, labels, and scores of the test galaxies."""
    from gpal import GPClassifier, metrics
    from gpal.active.loop import LearningLoop
    from gpal.active.observing import Observing, exposure_time
    from gpal.provenance import json_safe, provenance

    name, seed = cell
    everything = galaxies()
    magnitude = everything.measurements.X[:, 0]
    order = np.random.default_rng(seed).permutation(len(magnitude))
    faint = order[magnitude[order] > FAINT]
    rows = np.concatenate([order[magnitude[order] < BRIGHT][:KNOWN], faint[TEST : TEST + POOL]])
    table, test = everything[rows], everything[faint[:TEST]]
    seconds_of = exposure_time(table.measurements.X[:, 0], reference=24.0)
    strategy, per_time = chosen_by(name)
    begin, spent = time.process_time(), 0.0
    loop = LearningLoop(
        GPClassifier(random_state=seed),
        table.told(),
        labels={row: int(table.y[row]) for row in range(KNOWN)},
        strategy=strategy,
        observing=Observing(time=seconds_of if per_time else None),
        relearn_every=100,
        random_state=seed,
    )
    curve: dict[str, list] = {key: [] for key in ("time", "labels", "nll", "error", "bins")}
    while True:
        P = loop.classifier.predict_proba(test.told())
        known = table[loop.labelled]
        of_class = np.array([known.z[known.y == k].mean() for k in range(P.shape[1])])
        curve["time"].append(spent)
        curve["labels"].append(len(loop.labels))
        curve["nll"].append(metrics.negative_log_predictive_density(test.y, P))
        curve["error"].append(metrics.error(test.y, P))
        curve["bins"].append(mean_redshifts(P, test.z, of_class))
        if spent >= budget:
            break
        asked_for = loop.ask(BATCH)
        spent += float(seconds_of[asked_for].sum())
        loop.tell(asked_for, table.y[asked_for])
    return json_safe(
        {
            **curve,
            "seconds": round(time.process_time() - begin, 1),
            "provenance": provenance({}, {"budget": budget, "batch": BATCH}, random_state=seed),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--quick", action="store_true", help="one run, little time")
    asked = parser.parse_args()
    path, budget = TABLE, BUDGET
    cells = [(name, seed) for seed in asked.seeds for name in asked.strategies]
    if asked.quick:
        path, budget = TABLE.with_name("spectrograph-quick.jsonl"), 50.0
        cells = [("entropy per time", 0)]
    failed = run(path, KEY, cells, partial(measure, budget=budget))
    for (name, seed), curve in load(path, KEY).iterrows():
        nll = curve["nll"]
        print(f"{name} {seed}: {curve['labels'][-1]} labels, NLL {nll[0]:.3f} -> {nll[-1]:.3f}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
