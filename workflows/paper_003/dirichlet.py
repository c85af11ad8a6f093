"""Dirichlet GP classification against GP classification and Platt-scaled regression: error, NLL,
calibration and time, and what α_ε does (Milios et al. 2018, figures 3 to 5).

    python workflows/paper_003/dirichlet.py [--quick] [--size small] [--table]

    GPD               likelihood "dirichlet", α_ε chosen by labels held out
    GPD 0.1 … 0.001   the same with this α_ε
    GPC               softmax, of two classes Bernoulli-logit, by natural-gradient sites
    GPC svgp          the same by 2,000 steps of Adam on batches of 256
    GPR               sparse GP regression on the labels with Platt scaling, by three folds
    GPR all           the same with every source an inducing point; not in the full size
    NKRR              Nyström kernel ridge, γ and α by cross-validation, with Platt scaling

All have one lengthscale for all features. A cell is a data set, a seed of its split and a method.
The clock counts CPU seconds of `fit` with one thread; the method has then been fitted to 200
sources, so that what gpal's fits share of graphs is there. Results go to results/dirichlet.jsonl,
cell by cell; a run that was stopped goes on. The tables and the figure of docs/papers/003.md are
written at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpal import GPClassifier
from gpal.evaluation.baselines import cross_validated_kernel_ridge, sparse_gp_regression
from gpal.likelihoods import make_likelihood
from gpal.metrics import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from paper_sets import available, draw
from studies import (
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

RESULTS = Path(__file__).parent / "results" / "dirichlet.jsonl"
DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "papers" / "003.md", "images/paper_003_alpha.png"
KEY = ("size", "data_set", "seed", "method")
SIZES = {"quick": Size(400, 30, 1), "small": Size(1000, 50, 2), "full": Size(None, 200, 10)}
DATA_SETS = ("twonorm", "ringnorm", "pulsars", "waveform", "digits", "magic", "letter")
QUICK_SETS = ("ringnorm", "waveform")
ALPHAS = (0.1, 0.03, 0.01, 0.003, 0.001)
TEST_FRACTION = 0.25
WARM_UP = 200
EVERY = 10**6  # more than there are sources: each is an inducing point


# ---- measuring -----------------------------------------------------------------------------------


def gaussian_process(likelihood: Any, points: int, seed: int, **options: Any) -> GPClassifier:
    return GPClassifier(
        likelihood,
        input_noise="none",
        kernel="isotropic_rbf",
        n_inducing=points,
        random_state=seed,
        **options,
    )


def dirichlet(classes: int, points: int, seed: int, alpha_eps: float | None = None) -> GPClassifier:
    return gaussian_process(
        make_likelihood("dirichlet", classes, alpha_eps=alpha_eps), points, seed
    )


def classification(classes: int, points: int, seed: int, **options: Any) -> GPClassifier:
    likelihood = "bernoulli_logit" if classes == 2 else "softmax"
    return gaussian_process(likelihood, points, seed, **options)


METHODS: dict[str, Callable[[int, int, int], Any]] = {
    "GPD": dirichlet,
    **{f"GPD {alpha:g}": partial(dirichlet, alpha_eps=alpha) for alpha in ALPHAS},
    "GPC": classification,
    "GPC svgp": partial(classification, inference="svgp"),
    "GPR": lambda classes, points, seed: sparse_gp_regression(points, seed),
    "GPR all": lambda classes, points, seed: sparse_gp_regression(EVERY, seed),
    "NKRR": lambda classes, points, seed: cross_validated_kernel_ridge(points, seed),
}
SLOW = ("GPC svgp", "GPR all")
MAIN = ("GPD", "GPD 0.01", "GPC", "GPC svgp", "GPR", "GPR all", "NKRR")


def measure(cell: tuple[str, str, int, str]) -> dict:
    name, data_set, seed, method = cell
    return scores_of(data_set, seed, SIZES[name].rows, METHODS[method], SIZES[name].points)


def scores_of(
    data_set: str, seed: int, rows: int | None, make: Callable[..., Any], points: int
) -> dict:
    """NLL, error and ECE of the test sources, NLL of the training sources, CPU seconds of `fit`."""
    split = draw(data_set, seed, rows, TEST_FRACTION)
    points = min(points, len(split.y) - 1)

    def model() -> Any:
        return make(split.num_classes, points, seed)

    few = slice(max(WARM_UP, points + 1))
    first = model()
    if isinstance(first, GPClassifier):
        first.set_params(max_rounds=1)
    first.fit(split.X[few], split.y[few])
    fitted, start = model(), time.process_time()
    fitted.fit(split.X, split.y)
    seconds = time.process_time() - start
    P = fitted.predict_proba(split.X_test)
    scores = {metric: float(METRICS[metric](split.y_test, P)) for metric in ("nll", "error", "ece")}
    scores["training nll"] = float(METRICS["nll"](split.y, fitted.predict_proba(split.X)))
    scores = {score: round(value, 6) for score, value in scores.items()}
    return {**scores, "sources": len(split.y), "seconds": round(seconds, 3)}


# ---- the page ------------------------------------------------------------------------------------


def scores(table: pd.DataFrame) -> Iterator[str]:
    """A row per data set and method; seconds as multiples of GPC's, paired."""

    def rows() -> Iterator[list[str]]:
        for data_set in DATA_SETS:
            for method in MAIN:
                nll = of(table, data_set, method, "nll")
                if not len(nll):
                    continue
                time = of(table, data_set, method, "seconds")
                yield [
                    data_set,
                    str(int(of(table, data_set, method, "sources").iloc[0])),
                    method,
                    str(len(nll)),
                    *(mean_error(of(table, data_set, method, s)) for s in ("error", "nll", "ece")),
                    mean_error((time / of(table, data_set, "GPC", "seconds")).dropna(), 2),
                ]

    header = ["data set", "learned from", "method", "splits", "error", "NLL", "ECE"]
    yield from grid([*header, "CPU time, GPC = 1"], rows())


def claims(table: pd.DataFrame) -> Iterator[str]:
    """What the paper says beside what was found: means over the data sets of paired differences."""

    def rows() -> Iterator[list[str]]:
        for score in ("error", "nll", "ece"):
            found = differences(table, "GPD", "GPC", score)
            said = "essentially the same as GPC"
            yield [f"{score.upper()}, GPD − GPC", said, *tell(found, verdict(found, "same"))]
        for method in ("GPR", "GPR all"):
            for score in ("error", "nll", "ece"):
                found = differences(table, method, "GPC", score)
                said = "GPC tends to be better than GPR"
                name = f"{score.upper()}, {method} − GPC"
                yield [name, said, *tell(found, verdict(found, "above"))]
        for method, minus in (("GPC", "GPD 0.01"), ("GPC svgp", "GPD 0.01"), ("GPC", "GPD")):
            found = differences(table, method, minus, "seconds")
            said = "GPD takes a fraction of GPC's time"
            yield [
                f"log₁₀ CPU time, {method} / {minus}",
                said,
                *tell(found, verdict(found, "above")),
            ]
        by_training, best = chosen(table)
        said = "training and test NLL agree on α_ε"
        found = by_training - best
        yield ["NLL, α_ε by training NLL − best α_ε", said, *tell(found, verdict(found, "same"))]

    yield from grid(["what", "the paper", "here", "data sets", "verdict"], rows())


def tell(values: np.ndarray, said: str) -> list[str]:
    return [mean_error(values, 4, "+"), str(len(values)), said]


def chosen(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Test NLL of each data set with the α_ε of least training NLL, and with the best one."""
    by_training, best = [], []
    for data_set in DATA_SETS:
        curves = [
            [of(table, data_set, f"GPD {a:g}", s).mean() for a in ALPHAS]
            for s in ("training nll", "nll")
        ]
        if np.isfinite(curves).all():
            training, test = curves
            by_training.append(test[int(np.argmin(training))])
            best.append(min(test))
    return np.array(by_training), np.array(best)


def alpha_curve(table: pd.DataFrame) -> Iterator[str]:
    """Training and test NLL by α_ε, and the test NLL with α_ε chosen by labels held out."""

    def rows() -> Iterator[list[str]]:
        for data_set in DATA_SETS:
            for score in ("training nll", "nll"):
                values = [of(table, data_set, f"GPD {a:g}", score) for a in ALPHAS]
                if not any(map(len, values)):
                    continue
                held_out = of(table, data_set, "GPD", score)
                label = "training" if score == "training nll" else "test"
                yield [data_set, label, *map(mean_error, values), mean_error(held_out)]

    yield from grid(["data set", "NLL", *(f"{a:g}" for a in ALPHAS), "held out"], rows())


def draw_curve(table: pd.DataFrame) -> None:
    """The paper's figure 3."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [s for s in DATA_SETS if all(len(of(table, s, f"GPD {a:g}", "nll")) for a in ALPHAS)]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(2.6 * len(shown), 2.6), layout="constrained", squeeze=False
    )
    for axis, data_set in zip(axes.flat, shown):
        for score, label in (("training nll", "training"), ("nll", "test")):
            curve = [of(table, data_set, f"GPD {a:g}", score).mean() for a in ALPHAS]
            axis.plot(ALPHAS, curve, "o-", ms=3, label=label)
        axis.axhline(of(table, data_set, "GPC", "nll").mean(), color="0.5", lw=0.8, label="GPC")
        axis.set(xscale="log", title=data_set, xlabel="$\\alpha_\\epsilon$")
    axes.flat[0].set_ylabel("NLL")
    axes.flat[0].legend(fontsize=7, frameon=False)
    figure.savefig(DOCS / FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    """Of the largest size that was measured."""
    about, table = largest(path, KEY, SIZES)
    draw_curve(table)
    tables = [("size", [about]), ("scores", scores(table)), ("claims", claims(table))]
    put_tables(PAGE, [*tables, ("alpha", alpha_curve(table))])


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, available(DATA_SETS), METHODS)
    if options.table:
        return write_page(options.out)
    cells = [
        (options.size, data_set, seed, method)
        for seed in range(options.seeds)
        for data_set in options.data_sets
        for method in options.methods
        if options.size != "quick" or (data_set in QUICK_SETS and method not in SLOW)
        if options.size != "full" or method != "GPR all"
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
