"""A survey larger than memory, end to end: generated, learned from, and every source classified.

    python workflows/survey/classify.py FOLDER                    10,000,000 sources, two workers
    python workflows/survey/classify.py FOLDER --rows 100000

By a Dask cluster of this machine whose workers may use 2 GB each. What it took is printed and
appended to results/survey.jsonl: the wall clock, processor time and most memory of every process,
rows per second, and the time that the matrix products alone would take. Run again after an
interruption it goes on where it was; its times are those of what was left, and no rate is told.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from make import make

sys.path.append(str(Path(__file__).parents[1]))
from studies import append

RESULTS = Path(__file__).parent / "results" / "survey.jsonl"
POINTS, CLASSES = 100, 3


def used() -> dict[str, float]:
    """CPU seconds of a process, and the most memory that it had, GB."""
    times = resource.getrusage(resource.RUSAGE_SELF)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return {"CPU": times.ru_utime + times.ru_stime, "GB": peak * 1024 / 1e9}


def product_rate() -> float:
    """Flops per second of a product [1000, m] x [m, m] in float64, on one core."""
    A, B = np.ones((1000, POINTS)), np.ones((POINTS, POINTS))
    started, number = time.perf_counter(), 2000
    for _ in range(number):
        A @ B
    return number * 2.0 * 1000 * POINTS**2 / (time.perf_counter() - started)


def incomplete(survey: Path) -> float:
    """The share of the sources that lack a band, in one partition."""
    first = next(survey.glob("**/Npix=*.parquet"))
    return float(pd.read_parquet(first).isna().any(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB", help="that a worker may use")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"

    from gpal import GPClassifier
    from gpal.catalog.registry import find_schema
    from gpal.engines import local_client
    from gpal.jobs.hats import HatsRows
    from gpal.jobs.hats_classification import classify_hats, labelled_sources
    from gpal.model.completion import DRAWS

    survey, out = given.folder / "survey", given.folder / "results"
    rows = HatsRows(find_schema(Path(__file__).parent / "survey.toml"))
    classifier = GPClassifier(n_inducing=POINTS, input_noise="first_order", random_state=0)
    clock: dict[str, float] = {}

    def timed(name: str, started: float) -> None:
        clock[name] = round(time.perf_counter() - started, 1)

    resumed = (out / "model.npz").exists()  # an earlier run's time went into what is there
    with local_client(given.workers, given.memory) as client:
        started = time.perf_counter()
        make(survey, given.rows)
        timed("generated", started)
        before = client.run(used)
        started = time.perf_counter()
        known = labelled_sources(survey, rows, client)
        timed("labelled sources read", started)
        started = time.perf_counter()
        counts = classify_hats(
            known, survey, out, rows, classifier=classifier, n_splits=5, client=client
        )
        timed("learned, validated and predicted", started)
        after = client.run(used)
    workers = [
        {"CPU": after[name]["CPU"] - before.get(name, {"CPU": 0.0})["CPU"], "GB": after[name]["GB"]}
        for name in after
    ]
    CPU = sum(worker["CPU"] for worker in workers)
    # A source that lacks a band is predicted at DRAWS places, all others at one.
    nodes = given.rows * (1 + (DRAWS - 1) * incomplete(survey))
    limit = 2.0 * CLASSES * POINTS**2 * nodes / product_rate()
    metrics = json.loads((out / "metrics.json").read_text())
    found = {
        "rows": given.rows,
        "predicted": counts,
        "labelled": len(known),
        "NLL": metrics["GPClassifier"]["nll"],
        "wall seconds": clock,
        "workers": [{k: round(v, 2) for k, v in worker.items()} for worker in workers],
        "driver": {k: round(v, 2) for k, v in used().items()},
        "memory limit": given.memory,
        "resumed": resumed,
        **({} if resumed else {"rows per CPU second of the workers": round(given.rows / CPU)}),
        "CPU seconds of the products alone": round(limit, 1),
        "date": time.strftime("%Y-%m-%d"),
    }
    print(json.dumps(found, indent=1))
    append(RESULTS, found)


if __name__ == "__main__":
    main()
