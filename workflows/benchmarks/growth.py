"""How time and memory of a fit grow with the number of sources.

    python workflows/benchmarks/growth.py                          the table of docs/growth.md
    python workflows/benchmarks/growth.py --rows 200000 --noise none
    python workflows/benchmarks/growth.py --rows 200000 --all      hyper-parameters from all rows
    python workflows/benchmarks/growth.py --series                 200,000 rows; points, classes,
                                                                   features, workers of Dask

Eight features, three classes; `none`: exact inputs and 100 inducing points, `first_order`: errors
and 200. Sources are made block by block from the seed, so that those of 10^7 rows need no memory:
they are given to `fit_batches`, as from a file. Each case is a process of its own, on all cores.
The limit beside it is the time of the matrix products of the sweeps alone, at the rate that a
product of the size of a chunk reaches on as many cores. Linux only; lines are appended to
results/growth.jsonl.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from studies import append

RESULTS = Path(__file__).parent / "results" / "growth.jsonl"
FEATURES, CLASSES, BLOCK = 8, 3, 50_000
SERIES = {
    "points": (50, 100, 200, 400),
    "classes": (2, 3, 6, 12),
    "features": (2, 8, 32),
    "workers": (1, 2),
}
POINTS = {"none": 100, "first_order": 200}
TEST = 1 << 20  # the block of the test sources: none of those that are learned from


def block(
    number: int, size: int, noisy: bool, features: int = FEATURES, classes: int = CLASSES
) -> tuple:
    """Sources `number` · BLOCK and on: (X, y) or (X, y, X_err)."""
    weights = np.random.default_rng(0).normal(size=(features, classes)) / np.sqrt(features)
    rng = np.random.default_rng([1, number])
    x = rng.normal(size=(size, features))
    f = 2 * np.sin(x @ weights)
    f[:, :features] += 1.5 * x[:, :classes]
    y = np.argmax(f + rng.gumbel(size=f.shape), axis=1)
    if not noisy:
        return x, y
    error = rng.uniform(0.05, 0.6, x.shape)
    return x + error * rng.normal(size=x.shape), y, error


def memory(what: str) -> float:
    """VmRSS or VmHWM of this process, GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) * 1024 / 1e9


def product_rate(points: int) -> float:
    """Flops per second of [rows, m] x [m, m] in float64, as sweeps make them, on all cores."""
    from concurrent.futures import ThreadPoolExecutor

    import tensorflow as tf

    from gpal.inference.fixed_order import product
    from gpal.parallel import cores

    K, square = tf.random.normal([240, points], dtype="float64"), tf.eye(points, dtype="float64")

    @tf.function
    def many() -> tf.Tensor:
        return tf.while_loop(
            lambda i, total: i < 2000,
            lambda i, total: (i + 1, total + tf.reduce_sum(product(K + total, square)) * 0.0),
            (0, tf.zeros([], "float64")),
            parallel_iterations=1,
        )[1]

    many()
    started = time.perf_counter()
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(lambda _: many(), range(cores())))
    return cores() * 2000 * 2.0 * 240 * points**2 / (time.perf_counter() - started)


def measure(asked: argparse.Namespace) -> dict:
    from gpal import GPClassifier
    from gpal.engines import local_client
    from gpal.inference import batches as engine
    from gpal.inference.sparse import SparseGP
    from gpal.parallel import cores

    rows, noise, features, classes = asked.rows[0], asked.noise[0], asked.features, asked.classes
    noisy, sweeps, solves = noise != "none", [], []
    points = asked.points or POINTS[noise]
    parts = [
        partial(block, first // BLOCK, min(BLOCK, rows - first), noisy, features, classes)
        for first in range(0, rows, BLOCK)
    ]

    def sources():
        return (part() for part in parts)

    def timed(owner, name, seconds):
        function = getattr(owner, name)

        def counted(*arguments):
            started = time.perf_counter()
            result = function(*arguments)
            seconds.append(time.perf_counter() - started)
            return result

        setattr(owner, name, counted)

    timed(engine, "all_met", sweeps)
    timed(SparseGP, "solved", solves)
    GPClassifier(max_rounds=1, input_noise=noise, n_inducing=10).fit(*block(0, 500, noisy))
    sweeps.clear()
    solves.clear()
    before, clock, wall = memory("VmRSS"), time.process_time(), time.perf_counter()
    model = GPClassifier(kernel="rbf", n_inducing=points, input_noise=noise)
    if asked.all:
        model.set_params(learn_from=None)
        model.fit(*(np.concatenate(parts) for parts in zip(*sources(), strict=True)))
    elif asked.workers:
        with local_client(asked.workers) as client:
            model.fit_batches(parts, engine=client)
    else:
        model.fit_batches(sources)
    clock, wall = time.process_time() - clock, time.perf_counter() - wall
    peak = memory("VmHWM")
    X, y, *errors = block(TEST, BLOCK, noisy, features, classes)
    loss = -np.log(model.predict_proba(X, *errors)[np.arange(BLOCK), y])
    # Marginals and Gram matrices; and those of the derivatives along each feature.
    products = 4.0 + (2.0 * features if noisy else 0.0)
    limit = len(sweeps) * products * rows * points**2 * classes / product_rate(points)
    return {
        "rows": rows,
        "noise": noise,
        "points": points,
        "features": features,
        "classes": classes,
        "workers of Dask": asked.workers,
        "learned from": "all" if asked.all else "a sample",
        "cores": cores(),
        "wall seconds": round(wall, 1),
        "CPU seconds": round(clock, 1),
        "sweeps over all": len(sweeps),
        "seconds of these": round(sum(sweeps), 1),
        "seconds of solving": round(sum(solves), 2),
        "limit": round(limit, 1),
        "GB beyond the start": round(peak - before, 3),
        "NLL": round(float(loss.mean()), 5),
        "its standard error": round(float(loss.std() / BLOCK**0.5), 5),
        "bound": round(model.bound_, 5),
        "rounds": model.n_rounds_,
        "date": time.strftime("%Y-%m-%d"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--noise", nargs="+", choices=list(POINTS), default=list(POINTS))
    parser.add_argument("--all", action="store_true", help="hyper-parameters from all rows")
    parser.add_argument("--points", type=int, help="100, or 200 with errors")
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--workers", type=int, default=0, help="of Dask; 0: threads")
    parser.add_argument("--series", action="store_true", help="one of these after the other")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        found = measure(asked)
        append(RESULTS, found)
        print(found)
        return
    common = ["--all"] if asked.all else []
    for name in ("points", "classes", "features", "workers"):
        if value := getattr(asked, name):
            common += [f"--{name}", str(value)]
    cases = [(noise, rows, common) for noise in asked.noise for rows in asked.rows]
    if asked.series:
        cases = [
            ("none", 200_000, [f"--{name}", str(value)])
            for name, values in SERIES.items()
            for value in values
        ]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    for noise, rows, more in cases:
        case = ["--rows", str(rows), "--noise", noise, *more]
        subprocess.run([sys.executable, __file__, "--here", *case], check=True, env=environment)


if __name__ == "__main__":
    main()
