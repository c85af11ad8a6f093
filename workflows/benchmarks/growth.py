"""How time and memory of a fit grow with the number of sources.

    python workflows/benchmarks/growth.py                          the table of docs/growth.md
    python workflows/benchmarks/growth.py --rows 200000 --noise none
    python workflows/benchmarks/growth.py --rows 200000 --all      hyper-parameters from all rows

Eight features, three classes; `none`: exact inputs and 100 inducing points, `first_order`: errors
and 200. Sources are made block by block from the seed, so that those of 10^7 rows need no memory:
they are given to `fit_batches`, as from a file. Each case is a process of its own, on all cores.
The limit beside it is the time of the matrix products of the sweeps alone, at the rate that a
product of the size of a chunk reaches on as many cores. Linux only; lines are appended to
results/growth.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "growth.jsonl"
FEATURES, CLASSES, BLOCK = 8, 3, 50_000
POINTS = {"none": 100, "first_order": 200}
TEST = 1 << 20  # the block of the test sources: none of those that are learned from


def block(number: int, size: int, noisy: bool) -> tuple:
    """Sources `number` · BLOCK and on: (X, y) or (X, y, X_err)."""
    weights = np.random.default_rng(0).normal(size=(FEATURES, CLASSES)) / np.sqrt(FEATURES)
    rng = np.random.default_rng([1, number])
    x = rng.normal(size=(size, FEATURES))
    f = 2 * np.sin(x @ weights) + 1.5 * x[:, :CLASSES]
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


def measure(rows: int, noise: str, everything: bool) -> dict:
    from gpal import GPClassifier
    from gpal.inference import batches as engine
    from gpal.parallel import cores

    noisy, points, sweeps = noise != "none", POINTS[noise], []

    def sources():
        for first in range(0, rows, BLOCK):
            yield block(first // BLOCK, min(BLOCK, rows - first), noisy)

    all_met = engine.all_met

    def counted(*arguments):
        started = time.perf_counter()
        result = all_met(*arguments)
        sweeps.append(time.perf_counter() - started)
        return result

    engine.all_met = counted
    GPClassifier(max_rounds=1, input_noise=noise, n_inducing=10).fit(*block(0, 500, noisy))
    sweeps.clear()
    before, clock, wall = memory("VmRSS"), time.process_time(), time.perf_counter()
    model = GPClassifier(kernel="rbf", n_inducing=points, input_noise=noise)
    if everything:
        model.set_params(learn_from=None)
        model.fit(*(np.concatenate(parts) for parts in zip(*sources(), strict=True)))
    else:
        model.fit_batches(sources)
    clock, wall = time.process_time() - clock, time.perf_counter() - wall
    peak = memory("VmHWM")
    X, y, *errors = block(TEST, BLOCK, noisy)
    loss = -np.log(model.predict_proba(X, *errors)[np.arange(BLOCK), y])
    # Marginals and Gram matrices; and those of the derivatives along each feature.
    products = 4.0 + (2.0 * FEATURES if noisy else 0.0)
    limit = len(sweeps) * products * rows * points**2 * CLASSES / product_rate(points)
    return {
        "rows": rows,
        "noise": noise,
        "points": points,
        "learned from": "all" if everything else "a sample",
        "cores": cores(),
        "wall seconds": round(wall, 1),
        "CPU seconds": round(clock, 1),
        "sweeps over all": len(sweeps),
        "seconds of these": round(sum(sweeps), 1),
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
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        found = measure(asked.rows[0], asked.noise[0], asked.all)
        with RESULTS.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(found)
        return
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    for noise in asked.noise:
        for rows in asked.rows:
            case = ["--rows", str(rows), "--noise", noise, *(["--all"] if asked.all else [])]
            subprocess.run([sys.executable, __file__, "--here", *case], check=True, env=environment)


if __name__ == "__main__":
    main()
