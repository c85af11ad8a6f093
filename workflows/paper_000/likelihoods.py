"""Likelihoods by additive noise on the data sets of Liu et al. (2019), tables II to V.

    python workflows/paper_000/likelihoods.py [--quick] [--size small] [--table]

    GPC-I, GPC-II, GPC-III    likelihoods "step", "probit", "logit", δ learned from .01
    GPC-I fixed               "step" with δ = .001
    GPCsm                     "gumbel_softmax", of three classes or more
    softmax                   gpal's default; of two classes Bernoulli-logit
    GPC-I M + R, ...          the same with the sum of a Matérn-5/2 and an RBF kernel (table V)
    GPC-III Adam, GPCsm Adam  trained as in the paper, but for a third of its steps: Adam at .01 on
                              batches of 1,024, 3,000 steps, ℓ = .1 √d and σ² = 5 at the start,
                              inducing points learned; on satimage only

All others with the site engine, one kernel for all classes with one lengthscale for all features,
from gpal's start (of M + R from the paper's: ℓ = .1 √d and √d, σ² = 5), and k-means centres that
stay. "magic + row" is magic with the number of the row as a feature more, which the paper's tables
had. A cell is a data set, a seed and a method. Results go to results/likelihoods.jsonl, cell by
cell; a run that was stopped goes on. The tables and the figure of docs/papers/000.md are written at
the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from gpflow.kernels import Kernel, Matern52, SquaredExponential

from gpal import GPClassifier
from gpal.likelihoods import make_likelihood
from gpal.metrics import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from paper_sets import available, draw
from studies import (
    GAP,
    Size,
    arguments,
    differences,
    grid,
    largest,
    mean_error,
    of,
    put_tables,
    run,
    verdict,
)

RESULTS = Path(__file__).parent / "results" / "likelihoods.jsonl"
DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "papers" / "000.md", "images/paper_000_nll.png"
KEY = ("size", "data_set", "seed", "method")
SIZES = {"quick": Size(400, 30, 1), "small": Size(None, 100, 3), "full": Size(None, 300, 10)}
MADE = ("twonorm", "ringnorm", "waveform", "waveform-noise")
OF_PAPER = ("satimage + row", "magic + row", "penbased + row", "letter + row")
DATA_SETS = (*MADE, "pulsars", "fermi", *OF_PAPER, "satimage", "magic", "penbased", "letter")
QUICK_SETS = ("ringnorm", "waveform")
TWO_CLASSES = ("twonorm", "ringnorm", "pulsars", "magic", "magic + row")
RBF = ("GPC-I", "GPC-I fixed", "GPC-II", "GPC-III", "GPCsm", "softmax")
SUM = " M + R"  # behind the name of a method: Matérn-5/2 + RBF
WITH_SUM = tuple(f"{method}{SUM}" for method in ("GPC-I", "GPC-II", "GPC-III", "GPCsm"))
ADAM = " Adam"  # behind the name of a method: trained as in the paper
TRAINED = (f"GPC-III{ADAM}", f"GPCsm{ADAM}")
STEPS = {"quick": 50, "small": 1000, "full": 3000}
METHODS = (*RBF, *WITH_SUM, *TRAINED)
NAMES = {"GPC-I": "step", "GPC-II": "probit", "GPC-III": "logit", "GPCsm": "gumbel_softmax"}
TEST_FRACTION = 0.1  # the paper's

# Tables III and IV: accuracy in per cent and NLL of GPC-I, -II, -III and GPCsm with the RBF kernel.
PAPER_SETS = {
    "twonorm": ((97.45, 97.49, 97.58), (0.0898, 0.0831, 0.0802)),
    "ringnorm": ((98.22, 98.35, 98.34), (0.0568, 0.0593, 0.0619)),
    "waveform": ((86.86, 87.02, 87.34, 87.84), (0.4097, 0.3987, 0.3948, 0.2832)),
    "waveform-noise": ((85.16, 85.30, 85.54, 86.24), (0.4437, 0.4295, 0.4223, 0.2999)),
    "satimage + row": ((93.37, 93.76, 93.70, 91.91), (0.2280, 0.2164, 0.2195, 0.2110)),
    "magic + row": ((99.89, 99.92, 99.90), (0.0041, 0.0030, 0.0029)),
    "penbased + row": ((99.50, 99.58, 99.59, 99.45), (0.0225, 0.0223, 0.0232, 0.0282)),
    "letter + row": ((96.50, 96.66, 96.49, 96.25), (0.1685, 0.1699, 0.1789, 0.1528)),
}
# Table V: the same with Matérn-5/2 + RBF.
PAPER_SETS_SUM = {
    "twonorm": ((97.45, 97.49, 97.64), (0.0932, 0.0830, 0.0798)),
    "ringnorm": ((98.23, 98.32, 98.35), (0.0568, 0.0597, 0.0624)),
    "waveform": ((86.96, 86.84, 86.96, 88.06), (0.4130, 0.4058, 0.4000, 0.2828)),
    "waveform-noise": ((84.86, 85.36, 85.66, 86.22), (0.4551, 0.4280, 0.4224, 0.2995)),
    "satimage + row": ((93.65, 93.90, 93.77, 92.80), (0.2189, 0.2043, 0.2037, 0.1900)),
    "magic + row": ((99.89, 99.94, 99.95), (0.0038, 0.0029, 0.0024)),
    "penbased + row": ((99.55, 99.60, 99.62, 99.45), (0.0226, 0.0211, 0.0218, 0.0255)),
    "letter + row": ((95.91, 96.28, 96.26, 96.36), (0.2101, 0.2008, 0.2041, 0.1433)),
}
PAPER = {
    (data_set, f"{method}{kernel}"): (1.0 - percent / 100.0, nll)
    for kernel, sets in (("", PAPER_SETS), (SUM, PAPER_SETS_SUM), (ADAM, PAPER_SETS))
    for data_set, columns in sets.items()
    for method, percent, nll in zip(NAMES, *columns)
}


# ---- measuring -----------------------------------------------------------------------------------


def classifier(
    method: str, classes: int, features: int, points: int, seed: int, steps: int
) -> GPClassifier:
    rule = method.removesuffix(SUM).removesuffix(ADAM)
    kernel, how = "isotropic_rbf", {}
    if method.endswith(SUM):
        kernel = matern_and_rbf(features)
    if method.endswith(ADAM):
        kernel = SquaredExponential(5.0, lengthscales=0.1 * np.sqrt(features))
        options = {"steps": steps, "batch_size": 1024}
        how = {"inference": "svgp", "inference_options": options, "learn_inducing": True}
    if rule == "softmax":
        likelihood = "bernoulli_logit" if classes == 2 else "softmax"
    elif rule == "GPC-I fixed":
        likelihood = make_likelihood("step", classes, delta=1e-3, learn_delta=False)
    else:
        likelihood = NAMES[rule]
    return GPClassifier(
        likelihood,
        input_noise="none",
        kernel=kernel,
        n_inducing=points,
        random_state=seed,
        **how,
    )


def matern_and_rbf(features: int) -> Kernel:
    root = np.sqrt(features)
    return Matern52(5.0, lengthscales=0.1 * root) + SquaredExponential(5.0, lengthscales=root)


def measure(cell: tuple[str, str, int, str]) -> dict:
    """Error, NLL with its spread and ECE of test sources, the bound per source, CPU seconds."""
    name, data_set, seed, method = cell
    size = SIZES[name]
    split = draw(data_set, seed, size.rows, TEST_FRACTION)
    features, steps = split.X.shape[1], STEPS[name]
    model = classifier(method, split.num_classes, features, size.points, seed, steps)
    start = time.process_time()
    model.fit(split.X, split.y)
    seconds = time.process_time() - start
    P = model.predict_proba(split.X_test)
    scores = {metric: float(METRICS[metric](split.y_test, P)) for metric in ("error", "nll", "ece")}
    scores["spread"] = float(np.log(P[np.arange(len(P)), split.y_test]).std())
    scores["bound"] = float(model.bound_)
    scores = {score: round(value, 6) for score, value in scores.items()}
    counts = {"sources": len(split.y), "tested": len(split.y_test)}
    return {**scores, **counts, "seconds": round(seconds, 2)}


# ---- the page ------------------------------------------------------------------------------------


def against_paper(ours: pd.Series, paper: float | None, error: float) -> list[str]:
    """The paper's number, and how many standard errors ours lies above it."""
    if paper is None:
        return [GAP, GAP]
    off = (ours.mean() - paper) / error
    return [f"{paper:.4f}", f"{off:+.1f}" if np.isfinite(off) else GAP]


def sampling_errors(table: pd.DataFrame, data_set: str, method: str) -> tuple[float, float]:
    """Standard errors of error and NLL by the number of test sources, of all runs together."""
    error, tested, spread = (of(table, data_set, method, s) for s in ("error", "tested", "spread"))
    number, wrong = tested.sum(), error.mean()
    return np.sqrt(wrong * (1.0 - wrong) / number), np.sqrt((spread**2).mean(skipna=False) / number)


def scores(table: pd.DataFrame) -> Iterator[str]:
    """A row per data set and method."""

    def rows() -> Iterator[list[str]]:
        for data_set in DATA_SETS:
            for method in METHODS:
                error, nll = (of(table, data_set, method, s) for s in ("error", "nll"))
                if not len(nll):
                    continue
                paper = PAPER.get((data_set, method), (None, None))
                of_error, of_nll = sampling_errors(table, data_set, method)
                yield [
                    data_set,
                    method,
                    str(len(nll)),
                    mean_error(error, 4),
                    *against_paper(error, paper[0], of_error),
                    mean_error(nll, 4),
                    *against_paper(nll, paper[1], of_nll),
                ]

    of_each = ["paper", "ours − paper, s.e."]
    yield from grid(["data set", "method", "runs", "error", *of_each, "NLL", *of_each], rows())


def claims(table: pd.DataFrame) -> Iterator[str]:
    """What the paper says beside what was found, over the data sets."""
    alike, softer = "I, II and III are alike", "a softer likelihood is slightly better"
    cases = [
        ("GPC-II", "GPC-I", "error", alike, "same"),
        ("GPC-III", "GPC-I", "error", alike, "same"),
        ("GPC-I", "GPC-II", "nll", softer, "above"),
        ("GPC-II", "GPC-III", "nll", softer, "above"),
        ("GPC-I fixed", "GPC-I", "nll", "a δ that is learned is much better", "above"),
        ("GPC-III", "GPCsm", "nll", "GPCsm is much better", "above"),
        ("GPC-III", "GPCsm", "error", "alike", "same"),
        *((f"{m}{SUM}", m, "nll", "alike, or a little better", "same") for m in NAMES),
        ("GPC-III", "softmax", "nll", GAP, "above"),
        ("GPCsm", "softmax", "nll", GAP, "above"),
    ]

    def rows() -> Iterator[list[str]]:
        for method, minus, score, paper, said in cases:
            found = differences(table, method, minus, score)
            # Once: without its rows' numbers, where it was measured both ways.
            found = found.drop([f"{name} + row" for name in found.index], errors="ignore")
            told = GAP if paper == GAP else verdict(found, said)
            name = f"{score}, {method} − {minus}"
            yield [name, paper, mean_error(found, 4, "+"), str(len(found)), told]

    yield from grid(["what", "the paper", "here", "data sets", "verdict"], rows())


def draw_scores(table: pd.DataFrame) -> None:
    """NLL of every method beside the paper's."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [s for s in DATA_SETS if any(len(of(table, s, m, "nll")) for m in RBF)]
    figure, axis = plt.subplots(figsize=(1.3 * len(shown) + 2.0, 3.2), layout="constrained")
    for k, method in enumerate(RBF):
        place = np.arange(len(shown)) + (k - 2.5) / 8.0
        values = [of(table, s, method, "nll") for s in shown]
        errors = [v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in values]
        means = [v.mean() if len(v) else np.nan for v in values]
        axis.errorbar(place, means, errors, fmt="o", color=f"C{k}", ms=4, label=method)
        paper = [PAPER.get((s, method), (0.0, np.nan))[1] for s in shown]
        axis.plot(place, paper, "_", color=f"C{k}", ms=9)
    axis.set(xticks=range(len(shown)), xticklabels=shown, ylabel="NLL (bar: the paper)")
    axis.legend(fontsize=7, frameon=False, ncols=2)
    figure.savefig(DOCS / FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    """Of the largest size that was measured."""
    about, table = largest(path, KEY, SIZES)
    draw_scores(table)
    put_tables(PAGE, [("size", [about]), ("scores", scores(table)), ("claims", claims(table))])


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, available(DATA_SETS), METHODS)
    if options.table:
        return write_page(options.out)
    cells = [
        (options.size, data_set, seed, method)
        for seed in range(options.seeds)
        for data_set in options.data_sets
        for method in options.methods
        if options.size != "quick" or data_set in QUICK_SETS
        if not method.startswith("GPCsm") or data_set not in TWO_CLASSES
        if not method.endswith(SUM) or (data_set, method) in PAPER
        if not method.endswith(ADAM) or data_set.startswith("satimage")
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
