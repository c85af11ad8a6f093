"""Error, NLL and calibration against time for inferences with several classes (Galy-Fajou et al.
2019, the figures on convergence and on calibration).

    python workflows/paper_004/convergence.py [--quick] [--size small] [--table]

    CAVI, stochastic CAVI    logistic-softmax by the augmented bound; on batches of 200
    logistic sites           the same likelihood by natural-gradient sites
    Gibbs                    draws under it, with the kernel of those sites; few sources only
    robust-max               δ = .001 as in the paper, natural gradients on batches of 200
    robust-max, δ learned    the same, as gpal has it
    natgrad, Adam            softmax, batches of 200, natural gradients on q(u) or Adam on all
    sites                    gpal's default: softmax by natural-gradient sites

All start from the same kernel, one lengthscale for all features, and k-means centres, which stay. A
fit is stopped after a *budget*: rounds, steps, or draws of each of four chains (after as many that
are dropped). A cell is a data set, a seed, a method and a budget: error, NLL and ECE of the test
sources and CPU seconds of `fit` with one thread, after a fit of 200 sources that makes the graphs;
of Gibbs, of the fit that gives the kernel and of the draws. Results go to
results/convergence.jsonl, cell by cell; a run that was stopped goes on. Tables and figure of
docs/papers/004.md are written at the end.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpal import GPClassifier
from gpal.likelihoods import make_likelihood
from gpal.metrics import METRICS
from gpal.model.reference import reference_posterior

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

RESULTS = Path(__file__).parent / "results" / "convergence.jsonl"
DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "papers" / "004.md", "images/paper_004_time.png"
KEY = ("size", "data_set", "seed", "method", "budget")
SIZES = {"quick": Size(300, 20, 1), "small": Size(1500, 50, 2), "full": Size(None, 200, 5)}
FEW = {"waveform": 400, "wdbc": 600}  # sources at most, in every size: a draw of Gibbs costs n³
DATA_SETS = ("waveform", "wdbc", "waveform-noise", "fermi", "digits", "satimage", "penbased")
QUICK_SETS = ("waveform",)
ROUNDS, STEPS, DRAWS = "rounds", "steps", "draws"
BUDGETS = {
    "quick": {ROUNDS: (2,), STEPS: (60,), DRAWS: (20,)},
    "small": {ROUNDS: (1, 2, 4, 8, 16, 32), STEPS: (30, 120, 480), DRAWS: (25, 100, 400)},
    "full": {ROUNDS: (1, 2, 4, 8, 16, 32), STEPS: (30, 120, 480, 1920, 7680), DRAWS: (100, 1000)},
}
METHODS = {  # likelihood, inference, what its budget counts
    "CAVI": ("logistic_softmax", "cavi", ROUNDS),
    "stochastic CAVI": ("logistic_softmax", "stochastic_cavi", STEPS),
    "logistic sites": ("logistic_softmax", "sites", ROUNDS),
    "Gibbs": ("logistic_softmax", "sites", DRAWS),
    "robust-max": ("robust_max", "stochastic_sites", STEPS),
    "robust-max, δ learned": ("robust_max", "stochastic_sites", STEPS),
    "natgrad": ("softmax", "svgp_natgrad", STEPS),
    "Adam": ("softmax", "svgp", STEPS),
    "sites": ("softmax", "sites", ROUNDS),
}
BATCH = 200
TEST_FRACTION = 1.0 / 3.0
WARM_UP = 200
NEAR = 0.01  # nats: an NLL that has settled stays as near to the last one
SCORES = ("error", "nll", "ece")
# Whether the one and the other have not been seen to settle -> what the ratio of their times is.
LIMITS = {(False, False): "", (True, False): "> ", (False, True): "< ", (True, True): None}


# ---- measuring -----------------------------------------------------------------------------------


def classifier(method: str, classes: int, points: int, seed: int, budget: int) -> GPClassifier:
    likelihood, inference, counted = METHODS[method]
    options: dict[str, Any] = {}
    if counted == ROUNDS:
        options["max_rounds"] = budget
    elif counted == STEPS:
        options["inference_options"] = {"steps": budget, "batch_size": BATCH}
    if method == "robust-max":
        likelihood = make_likelihood(likelihood, classes, delta=1e-3, learn_delta=False)
    return GPClassifier(
        likelihood,
        inference=inference,
        input_noise="none",
        kernel="isotropic_rbf",
        n_inducing=points,
        random_state=seed,
        **options,
    )


def measure(cell: tuple[str, str, int, str, int]) -> dict:
    """Scores of the test sources and CPU seconds of `fit`."""
    name, data_set, seed, method, budget = cell
    size = SIZES[name]
    rows = min(filter(None, (size.rows, FEW.get(data_set))), default=None)
    split = draw(data_set, seed, rows, TEST_FRACTION)
    points, classes = min(size.points, len(split.y) - 1), split.num_classes
    few = slice(max(WARM_UP, points + 1))
    classifier(method, classes, points, seed, 1).fit(split.X[few], split.y[few])
    model, start = classifier(method, classes, points, seed, budget), time.process_time()
    model.fit(split.X, split.y)
    posterior: Any = model
    if METHODS[method][2] == DRAWS:
        with warnings.catch_warnings():  # of chains that are short: what is measured here
            warnings.simplefilter("ignore")
            posterior = reference_posterior(model, "gibbs", draws=budget, burn_in=budget, seed=seed)
    seconds = time.process_time() - start
    P = posterior.predict_proba(split.X_test)
    scores = {score: round(float(METRICS[score](split.y_test, P)), 6) for score in SCORES}
    return {**scores, "sources": len(split.y), "seconds": round(seconds, 3)}


# ---- the page ------------------------------------------------------------------------------------


def settled(table: pd.DataFrame) -> pd.DataFrame:
    """By data set, seed and method: the scores of the last budget, seconds until the NLL stays
    within NEAR of the last one, and whether that was seen before the last budget."""

    def summary(curve: pd.DataFrame) -> pd.Series:
        curve = curve.sort_index(level="budget")
        off = np.flatnonzero(np.abs(curve.nll - curve.nll.iloc[-1]) > NEAR)
        first = off[-1] + 1 if len(off) else 0
        last = curve.iloc[-1][[*SCORES, "sources"]]
        return pd.concat(
            [
                last,
                pd.Series({"seconds": curve.seconds.iloc[first], "seen": first < len(curve) - 1}),
            ]
        )

    return table.groupby(["data_set", "seed", "method"]).apply(summary)


def unseen(ends: pd.DataFrame, method: str, data_set: str | None = None) -> bool:
    """Whether a fit of a method had not settled before its last budget: its seconds are too few."""
    level = ends.index.get_level_values
    wanted = (level("method") == method) & ((level("data_set") == data_set) | (data_set is None))
    return not ends["seen"][wanted].astype(bool).all()


def scores(ends: pd.DataFrame) -> Iterator[str]:
    """A row per data set and method: at the last budget, and when the NLL had settled."""

    def rows() -> Iterator[list[str]]:
        for data_set in DATA_SETS:
            for method in METHODS:
                found = {s: of(ends, data_set, method, s) for s in (*SCORES, "seconds")}
                if not len(found["nll"]):
                    continue
                ratio = (found["seconds"] / of(ends, data_set, "CAVI", "seconds")).dropna()
                limit = LIMITS[unseen(ends, method, data_set), unseen(ends, "CAVI", data_set)]
                yield [
                    data_set,
                    str(int(of(ends, data_set, method, "sources").iloc[0])),
                    method,
                    str(len(found["nll"])),
                    *(mean_error(found[score]) for score in SCORES),
                    "> " * unseen(ends, method, data_set) + mean_error(found["seconds"], 2),
                    GAP if limit is None else limit + mean_error(ratio, 1),
                ]

    header = ["data set", "learned from", "method", "splits", "error", "NLL", "ECE"]
    yield from grid([*header, "CPU s until settled", "CAVI = 1"], rows())


def tenfold(found: pd.Series, limit: str | None) -> str:
    """Verdict on log₁₀ of a ratio of seconds that the paper has at about one.

    A lower limit can be above zero, an upper one below; beyond that a limit tells nothing.
    """
    told = verdict(found, "above")
    if limit != "":
        beyond = {"> ": "reproduced", "< ": "contradicted"}.get(limit or "")
        return told if told == beyond else "a limit" if limit else "not to be told"
    if told == "reproduced" and verdict(1.0 - found, "above") == "reproduced":
        return "slower, by less than ten times"
    return told


def claims(ends: pd.DataFrame) -> Iterator[str]:
    """What the paper says beside what was found: means over the data sets of paired differences."""
    calibrated, accurate = "robust-max is calibrated worse", "as accurate or better"
    cases = [
        ("robust-max", "CAVI", "seconds", "about ten times slower than CAVI", "tenfold"),
        ("robust-max", "stochastic CAVI", "seconds", "about ten times slower", "tenfold"),
        ("robust-max", "CAVI", "nll", calibrated, "above"),
        ("robust-max", "CAVI", "ece", calibrated, "above"),
        ("CAVI", "robust-max", "error", accurate, "same"),
        ("CAVI", "natgrad", "nll", "calibrated as the softmax is", "same"),
        ("CAVI", "natgrad", "ece", "calibrated as the softmax is", "same"),
        ("stochastic CAVI", "CAVI", "nll", GAP, ""),
        ("robust-max, δ learned", "CAVI", "nll", GAP, ""),
        ("CAVI", "logistic sites", "nll", GAP, ""),
        ("CAVI", "sites", "nll", GAP, ""),
        ("CAVI", "sites", "error", GAP, ""),
        ("CAVI", "sites", "seconds", GAP, ""),
        ("natgrad", "sites", "seconds", GAP, ""),
        ("Adam", "sites", "seconds", GAP, ""),
        ("Gibbs", "logistic sites", "nll", GAP, ""),
        ("Gibbs", "logistic sites", "seconds", GAP, ""),
    ]

    def rows() -> Iterator[list[str]]:
        for method, minus, score, paper, said in cases:
            found = differences(ends, method, minus, score)
            name, limit = f"{score.upper()}, {method} − {minus}", ""
            if score == "seconds":
                name = f"log₁₀ CPU s until settled, {method} / {minus}"
                both = ends[ends.index.get_level_values("data_set").isin(found.index)]
                limit = LIMITS[unseen(both, method), unseen(both, minus)]
            told = verdict(found, said) if said in ("same", "above") else GAP
            if said == "tenfold":
                told = tenfold(found, limit)
            here = GAP if limit is None else limit + mean_error(found, 3, "+")
            yield [name, paper, here, str(len(found)), told]

    yield from grid(["what", "the paper", "here", "data sets", "verdict"], rows())


def draw_curves(table: pd.DataFrame) -> None:
    """NLL and ECE against seconds, of the first seed of each data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    shown = [s for s in DATA_SETS if s in table.index.get_level_values("data_set")]
    figure, axes = plt.subplots(
        2, len(shown), figsize=(3.0 * len(shown), 5.6), layout="constrained", squeeze=False
    )
    for column, data_set in zip(axes.T, shown):
        curves = table.xs((data_set, 0), level=("data_set", "seed"))
        for k, method in enumerate(METHODS):
            if method not in curves.index.get_level_values("method"):
                continue
            curve = curves.loc[method].sort_index()
            for axis, score in zip(column, ("nll", "ece")):
                axis.plot(
                    curve.seconds, curve[score], "o-", color=f"C{k}", ms=3, lw=1, label=method
                )
        for axis in column:
            axis.set(xscale="log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
        column[0].set_title(data_set)
        column[1].set_xlabel("CPU seconds")
    axes[0, 0].set_ylabel("NLL")
    axes[1, 0].set_ylabel("ECE")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(DOCS / FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    """Of the largest size that was measured."""
    about, table = largest(path, KEY, SIZES)
    draw_curves(table)
    ends = settled(table)
    tables = [("convergence size", [about]), ("convergence scores", scores(ends))]
    put_tables(PAGE, [*tables, ("convergence claims", claims(ends))])


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, available(DATA_SETS), METHODS)
    if options.table:
        return write_page(options.out)
    cells = [
        (options.size, data_set, seed, method, budget)
        for seed in range(options.seeds)
        for data_set in options.data_sets
        for method in options.methods
        for budget in BUDGETS[options.size][METHODS[method][2]]
        if options.size != "quick" or data_set in QUICK_SETS
        if METHODS[method][2] != DRAWS or data_set in FEW
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
