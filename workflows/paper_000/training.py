"""Error and NLL in the course of training by Adam, with flights among the data (Liu et al. 2019,
figures 3 and 4): is a δ that is held at .001 worse, and does it get worse?

    python workflows/paper_000/training.py [--quick] [--size small] [--table]

    GPC-I, GPC-II, GPC-III    likelihoods "step", "probit", "logit", δ learned from .01
    GPC-I fixed               "step" with δ = .001
    GPCsm                     "gumbel_softmax", of three classes or more
    sites                     gpal's default: softmax (of two classes Bernoulli-logit), not by Adam

The others by "svgp": Adam at .01 on batches of 1,024, inducing points learned. A cell is a data
set, a seed, a method and a budget of steps; of sites, of rounds. It holds error and NLL of the test
sources, the mean variance of f and |mean of f| at training sources, δ, and CPU seconds of `fit`
with one thread. Results go to results/training.jsonl, cell by cell; a run that was stopped goes on.
Tables and figure of docs/papers/000.md are written at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from gpal import GPClassifier
from gpal.likelihoods import make_likelihood
from gpal.metrics import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from paper_sets import available, draw
from studies import GAP, Size, arguments, grid, largest, put_tables, run

RESULTS = Path(__file__).parent / "results" / "training.jsonl"
DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "papers" / "000.md", "images/paper_000_training.png"
KEY = ("size", "data_set", "seed", "method", "budget")
SIZES = {"quick": Size(400, 20, 1), "small": Size(None, 200, 1), "full": Size(None, 200, 1)}
STEPS = {"quick": (20,), "small": (100, 300, 1000), "full": (100, 300, 1000, 3000, 10_000)}
ROUNDS = {"quick": (1,), "small": (1, 4), "full": (1, 4, 16)}
DATA_SETS = ("flights", "waveform-noise", "pulsars", "magic")
QUICK_SETS = ("waveform-noise",)
TWO_CLASSES = ("pulsars", "magic")
METHODS = {
    "GPC-I": "step",
    "GPC-I fixed": "step",
    "GPC-II": "probit",
    "GPC-III": "logit",
    "GPCsm": "gumbel_softmax",
    "sites": "softmax",
}
BATCH = 1024
TESTING = 10_000  # flights; a tenth of a smaller set
LOOKED_AT = 2000  # training sources whose f is


# ---- measuring -----------------------------------------------------------------------------------


def classifier(method: str, classes: int, points: int, seed: int, budget: int) -> GPClassifier:
    likelihood = METHODS[method]
    if method == "GPC-I fixed":
        likelihood = make_likelihood("step", classes, delta=1e-3, learn_delta=False)
    if method == "sites":
        likelihood = "bernoulli_logit" if classes == 2 else "softmax"
        how = {"inference": "sites", "max_rounds": budget}
    else:
        options = {"steps": budget, "batch_size": BATCH}
        how = {"inference": "svgp", "inference_options": options, "learn_inducing": True}
    return GPClassifier(
        likelihood,
        input_noise="none",
        kernel="isotropic_rbf",
        n_inducing=points,
        random_state=seed,
        **how,
    )


def measure(cell: tuple[str, str, int, str, int]) -> dict:
    """Error and NLL of test sources, f at training sources, δ, CPU seconds of `fit`."""
    name, data_set, seed, method, budget = cell
    size = SIZES[name]
    whole = data_set == "flights" and size.rows is None
    split = draw(data_set, seed, size.rows, TESTING if whole else 0.1)
    model, start = (
        classifier(method, split.num_classes, size.points, seed, budget),
        time.process_time(),
    )
    model.fit(split.X, split.y)
    seconds = time.process_time() - start
    P = model.predict_proba(split.X_test)
    scores = {metric: float(METRICS[metric](split.y_test, P)) for metric in ("error", "nll")}
    mean, variance = model.posterior_.predict_f(split.X[:LOOKED_AT])
    scores |= {"variance": float(variance.mean()), "mean": float(np.abs(mean).mean())}
    delta = getattr(model.model_.likelihood, "delta", None)
    if delta is not None:
        scores["delta"] = float(delta.numpy())
    scores = {score: round(value, 6) for score, value in scores.items()}
    return {**scores, "sources": len(split.y), "seconds": round(seconds, 2)}


# ---- the page ------------------------------------------------------------------------------------


def curves(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Data set, method and the mean over seeds of its scores by budget."""
    for data_set in DATA_SETS:
        for method in METHODS:
            cells = table.query("data_set == @data_set and method == @method")
            if len(cells):
                yield data_set, method, cells.groupby("budget").mean(numeric_only=True)


def scores(table: pd.DataFrame) -> Iterator[str]:
    """A row per data set and method: NLL along its budgets, the rest at the last."""

    def rows() -> Iterator[list[str]]:
        for data_set, method, curve in curves(table):
            last = curve.iloc[-1]
            delta = last.get("delta", np.nan)
            yield [
                data_set,
                f"{int(last.sources):,}",
                method,
                f"{curve.index[-1]:,}",
                ", ".join(f"{nll:.3f}" for nll in curve.nll),
                f"{last.error:.4f}",
                GAP if np.isnan(delta) else f"{delta:.3f}",
                f"{last.variance:.2f}",
                f"{last['mean']:.2f}",
                f"{last.seconds:.0f}",
            ]

    header = ["data set", "learned from", "method", "steps", "NLL along the way", "error", "δ"]
    yield from grid([*header, "variance of f", "&#124;mean of f&#124;", "CPU s"], rows())


def claims(table: pd.DataFrame) -> Iterator[str]:
    """What the paper says beside what was found, by data set: no mean over so few."""
    last = {(s, m): curve.iloc[-1] for s, m, curve in curves(table)}
    along = {(s, m): curve.nll for s, m, curve in curves(table)}
    cases = [
        ("nll", "GPC-I fixed", "GPC-I", "a fixed δ is worse"),
        ("variance", "GPC-I fixed", "GPC-I", "a fixed δ overestimates the variance of f"),
        *((s, "GPC-I", "GPCsm", "GPCsm is better") for s in ("nll", "error")),
        *((s, "GPC-III", "GPCsm", "GPCsm is better") for s in ("nll", "error")),
        ("nll", "GPCsm", "sites", GAP),
    ]

    def rows() -> Iterator[list[str]]:
        for score, method, minus, paper in cases:
            found = {
                s: last[s, method][score] - last[s, minus][score]
                for s in DATA_SETS
                if (s, method) in last and (s, minus) in last
            }
            if not found:
                continue
            told = ", ".join(f"{s} {value:+.3f}" for s, value in found.items())
            above = sum(value > 0.0 for value in found.values())
            verdict = GAP if paper == GAP else f"so on {above} of {len(found)}"
            yield [f"{score}, {method} − {minus}", paper, told, verdict]
        rises = {s: nll.iloc[-1] - nll.min() for (s, m), nll in along.items() if m == "GPC-I fixed"}
        told = ", ".join(f"{s} {value:+.3f}" for s, value in rises.items())
        above = sum(value > 0.0 for value in rises.values())
        said = "with a fixed δ it even rises in training"
        name = "nll, GPC-I fixed, at the last budget − the least"
        yield [name, said, told or GAP, f"so on {above} of {len(rises)}"]

    yield from grid(["what", "the paper", "here", "verdict"], rows())


def draw_curves(table: pd.DataFrame) -> None:
    """Error and NLL against seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    found = list(curves(table))
    shown = list(dict.fromkeys(data_set for data_set, _, _ in found))
    figure, axes = plt.subplots(
        2, len(shown), figsize=(3.2 * len(shown), 4.8), layout="constrained", squeeze=False
    )
    for data_set, method, curve in found:
        column = axes[:, shown.index(data_set)]
        for axis, score in zip(column, ("error", "nll")):
            color = f"C{list(METHODS).index(method)}"
            axis.plot(curve.seconds, curve[score], "o-", ms=3, lw=1, color=color, label=method)
            axis.set(xscale="log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
        column[0].set_title(data_set)
        column[1].set_xlabel("CPU seconds")
    axes[0, 0].set_ylabel("test error")
    axes[1, 0].set_ylabel("NLL")
    axes[1, 0].legend(fontsize=7, frameon=False)
    figure.savefig(DOCS / FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    """Of the largest size that was measured."""
    about, table = largest(path, KEY, SIZES)
    draw_curves(table)
    tables = [("training size", [about]), ("training scores", scores(table))]
    put_tables(PAGE, [*tables, ("training claims", claims(table))])


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, available(DATA_SETS), METHODS)
    if options.table:
        return write_page(options.out)
    cells = [
        (options.size, data_set, seed, method, budget)
        for seed in range(options.seeds)
        for data_set in options.data_sets
        for method in options.methods
        for budget in (ROUNDS if method == "sites" else STEPS)[options.size]
        if options.size != "quick" or data_set in QUICK_SETS
        if method != "GPCsm" or data_set not in TWO_CLASSES
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
