"""Rate of one engine sweep against that of `tf.matmul` on the same shapes, in the same process.

    python workflows/benchmarks/sweep_rate.py [--quick] [--threads 1]

A sweep does two products per row and latent function, k_iᵀ M and θ_i k_i k_iᵀ: 4 n m² C flops. The
limit is what `tf.matmul` reaches on [n, m]ᵀ[n, m] and on [n, m][m, m]. Both sides have the same
number of threads; wall-clock seconds, median of several, taken in turns so that a disturbance of
the machine meets both. The rows also go to results/sweep_rate.json, for the page that compare.py
writes.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

SHAPES = ((6000, 200, 6), (20000, 200, 26), (100_000, 500, 3))
RESULTS = Path(__file__).parent / "results" / "sweep_rate.json"
TARGETS = {"float64": 0.8, "float32": 0.65}


def limit_threads(threads: int) -> None:
    """Before TensorFlow is imported: it reads these once."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ[name] = str(threads)
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def engine_sweep(n: int, m: int, num_classes: int, dtype: str):
    """A function that runs one sweep of softmax sites over n sources, m inducing points."""
    import tensorflow as tf

    from gpal.inference.kernel_rows import KernelRows
    from gpal.inference.kernels import make_kernel
    from gpal.inference.rows import Data, Sites
    from gpal.inference.sparse import SparseGP
    from gpal.likelihoods import make_likelihood
    from gpal.likelihoods.site_rules import NaturalGradient

    generator = np.random.default_rng(0)
    # A rate does not depend on values. Inputs spread over several lengthscales keep K(Z, Z) well
    # conditioned: with 500 strongly correlated inducing points and 10^5 rows, the rounding of
    # float32 products outweighs its small eigenvalues and the Cholesky factorisation fails.
    X = 3.0 * generator.normal(size=(n, 10))
    y = generator.integers(num_classes, size=(n, 1)).astype(float)
    kernels, dtype = [make_kernel("rbf", 10)], tf.as_dtype(dtype)
    gp = SparseGP(KernelRows(kernels, X[:m], num_classes, dtype=dtype))
    data = Data(tf.constant(X), tf.constant(y), tf.zeros([n, 10], tf.float64))
    likelihood, rule = make_likelihood("softmax", num_classes), NaturalGradient()
    sites = Sites(*rule.initial_sites(likelihood, data.Y))
    gp.refresh(data)
    posterior = gp.posterior(data, sites)

    def once() -> float:
        """Its value is fetched, so that the clock stops when the sweep has."""
        _, statistics, terms = gp.met_statistics(rule, likelihood, data, posterior)
        return float(terms - gp.solve(statistics).kl)

    return once


def products(n: int, m: int, dtype: str):
    """A function that runs the two products of one latent function, by tf.matmul."""
    import tensorflow as tf

    K = tf.random.stateless_normal([n, m], [0, 1], dtype=dtype)
    M = tf.random.stateless_normal([m, m], [0, 2], dtype=dtype)

    @tf.function(autograph=False)
    def both():
        gram, rows = tf.matmul(K, K, transpose_a=True), tf.matmul(K, M)
        return gram[0, 0] + rows[0, 0]

    return lambda: float(both())


def median_seconds(functions, repeats: int) -> list[float]:
    """Of each function, run in turns after one call that is not counted."""
    seconds = np.empty((repeats, len(functions)))
    for function in functions:
        function()
    for repeat, j in np.ndindex(*seconds.shape):
        start = time.perf_counter()
        functions[j]()
        seconds[repeat, j] = time.perf_counter() - start
    return np.median(seconds, axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one small shape, to try the script")
    options = parser.parse_args()
    limit_threads(options.threads)
    print("| n | m | C | dtype | sweep, Gflop/s | tf.matmul, Gflop/s | ratio | target |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for n, m, C in ((2000, 50, 3),) if options.quick else SHAPES:
        for dtype, target in TARGETS.items():
            seconds = median_seconds(
                [engine_sweep(n, m, C, dtype), products(n, m, dtype)], options.repeats
            )
            sweep, matmul = 4e-9 * n * m**2 * np.array([C, 1.0]) / seconds
            row = {"n": n, "m": m, "C": C, "dtype": dtype, "sweep": sweep, "matmul": matmul}
            rows.append({**row, "ratio": sweep / matmul, "target": target})
            print(
                f"| {n} | {m} | {C} | {dtype} | {sweep:.1f} | {matmul:.1f} | {sweep / matmul:.2f} "
                f"| {target} |",
                flush=True,
            )
    if not options.quick:
        save(rows, options.threads)


def save(rows: list[dict], threads: int) -> None:
    from gpal.files.output import atomic_path
    from gpal.provenance import provenance, to_json

    record = {"rows": rows, "threads": threads, "provenance": provenance()}
    with atomic_path(RESULTS) as path:
        path.write_text(to_json(record))


if __name__ == "__main__":
    main()
