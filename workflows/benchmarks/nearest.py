"""The default estimator, GPflow's SVGP and t-SVGP: NLL and ELBO against CPU time, in turns.

    python workflows/benchmarks/nearest.py                      what is missing
    python workflows/benchmarks/nearest.py --data-sets satimage --seeds 0
    python workflows/benchmarks/nearest.py --table              docs/benchmarks.md from the results

Splits, standardised inputs, kernel (squared exponential, one lengthscale per feature, unit start),
100 inducing points with their k-means start, steps, batches and scores are those of compare.py,
t-SVGP's step lengths those of its authors. `default` is GPClassifier(), which chooses its kernel
and its inducing points itself. A cell is a process of its own with one thread and a line of
results/nearest.jsonl; the three methods of a data set and seed are run one after another.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from cells import processor, read, write
from compare import gpflow_svgp
from scoring import FixedPoints, Recorder, Split, load_split, log_softmax
from t_svgp import t_svgp

sys.path.append(str(Path(__file__).parents[1]))
from studies import source_digest

TABLE = Path(__file__).parent / "results" / "nearest.jsonl"
DATA_SETS = ("banana", "magic", "satimage", "letter")
METHODS = ("default", "gpflow", "t_svgp")
SEEDS = (0, 1, 2)
EVERY = 100  # steps between two points of a trajectory


def default(split: Split, seed: int) -> list[dict]:
    """GPClassifier(): a point after every sweep over all rows, and the fitted model, whose scores
    are at the temperature it has chosen by then and whose ELBO is that of q(f)."""
    from gpal import GPClassifier
    from gpal.model import fit

    recorder, problems = Recorder(split), []
    # Of two classes the default has one latent function.
    fixed = FixedPoints(log_softmax, 1 if split.num_classes == 2 else split.num_classes)
    run = fit.run_inference

    def noted(options, problem, seed):  # the estimator says nothing of its GP before it is fitted
        problems.append(problem)
        return run(options, problem, seed)

    def record(posterior, final: bool = False) -> None:
        gp = problems[-1].gp

        def marginals(X):
            moments = gp.marginals(posterior, (X - model.offset_) / model.width_)
            return tuple(part.numpy() for part in moments)

        temperature = model.temperature_ if final else 1.0
        recorder.record_gp(marginals, posterior.kl, fixed, final, temperature)

    options = {"callback": lambda posterior, bound: record(posterior)}
    model = GPClassifier(random_state=seed, inference_options=options)
    fit.run_inference = noted
    model.fit(split.X, split.y)
    record(model.model_.posterior, final=True)
    return recorder.trajectory


def gpflow_parts():
    """Kernel and likelihood of compare.py's SVGP."""
    import gpflow
    import tensorflow as tf

    def likelihood(C: int):
        if C == 2:
            return gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
        return gpflow.likelihoods.Softmax(C)

    return gpflow.kernels.SquaredExponential, likelihood


def measure(data_set: str, method: str, seed: int) -> None:
    import gpflow  # noqa: F401  (before the clock starts)

    from gpal.inference.base import INFERENCES
    from gpal.input_noise import INPUT_NOISES
    from gpal.likelihoods import LIKELIHOODS
    from gpal.provenance import provenance

    for register in (LIKELIHOODS, INPUT_NOISES, INFERENCES):
        len(register)  # imports what is registered
    split = load_split(data_set, seed)
    gc.collect()
    if method == "default":
        trajectory = default(split, seed)
    elif method == "gpflow":
        trajectory = gpflow_svgp(split, seed, every=EVERY)
    else:
        make_kernel, likelihood = gpflow_parts()
        kernel = make_kernel(lengthscales=np.ones(split.X.shape[1]))
        trajectory = t_svgp(split, seed, kernel=kernel, likelihood=likelihood, every=EVERY)
    cell = {
        "data_set": data_set,
        "method": method,
        "seed": seed,
        "load_average": os.getloadavg()[0],
        "processor": processor(),
        "trajectory": trajectory,
        "gpal_source": source_digest(),
        "provenance": provenance(settings={"method": method}, random_state=seed),
    }
    write(cell, TABLE)
    last = trajectory[-1]
    print(data_set, method, seed, *(f"{k} {v:.4f}" for k, v in last.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--data-sets", nargs="+", choices=DATA_SETS, default=list(DATA_SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--table", action="store_true", help="write docs/benchmarks.md only")
    arguments = parser.parse_args()
    if not arguments.table:
        for data_set in arguments.data_sets:
            for seed in arguments.seeds:
                for method in arguments.methods:
                    if arguments.here:
                        measure(data_set, method, seed)
                    elif (data_set, method, seed) not in read(TABLE):
                        what = ["--data-sets", data_set, "--seeds", str(seed), "--methods", method]
                        subprocess.run([sys.executable, __file__, "--here", *what], check=False)
    if not arguments.here:
        from nearest_table import write_page

        write_page()


if __name__ == "__main__":
    main()
