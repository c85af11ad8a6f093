"""Active learning on waveform with the input noise learned: entropy against random, by all four
methods (Villacampa-Calvo et al. 2021, section 5.5, figures 6 and 7).

    python workflows/paper_001/active.py [--quick] [--size small] [--table]

The methods are those of injected.py: the paper's four with likelihood "step", δ = .001, by Adam,
and gpal's default without and with a noise model. 100 first labels, a pool of 400, 500 sources for
testing; N(0, V) is added to all standardised features and told to nobody. The source whose
predictive entropy is highest is labelled next, or one at random, until there are 100 labels more.
The paper asks for one at a time and goes on from the last fit; here QUESTION labels are asked for
at once (diverse mini-batches, as gpal does), and every fit starts anew.

A cell is a V, a seed, a method and a strategy: test error and NLL after every question. Results go
to results/active.jsonl, cell by cell; a run that was stopped goes on. The tables and the figure of
docs/papers/001.md are written at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from injected import METHODS, PAGE, model
from models import over_all_classes
from paper_numbers import PAPER_METHODS

from gpal.active.loop import LearningLoop
from gpal.active.simulate import waveform_problem
from gpal.metrics import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from studies import GAP, Size, arguments, grid, largest, mean_error, put_tables, run

RESULTS = Path(__file__).parent / "results" / "active.jsonl"
FIGURE = "images/paper_001_active.png"
DATA_SETS = ("waveform",)
KEY = ("size", "data_set", "noise", "seed", "method", "strategy")
SIZES = {"quick": Size(None, 10, 1), "small": Size(None, 20, 3), "full": Size(None, 50, 100)}
STEPS = {"quick": 50, "small": 300, "full": 1500}
BATCH = 100
LABELS = {"quick": 20, "small": 100, "full": 100}  # asked for in all
QUESTION = {"quick": 10, "small": 25, "full": 10}  # at once
NOISES = ("0.5", "0.0", "0.25", "0.1")  # in the order of measuring
QUICK_METHODS = ("NIMGP_NN", "softmax")
STRATEGIES = ("entropy", "random")


# ---- measuring -----------------------------------------------------------------------------------


def measure(cell: tuple[str, str, str, int, str, str]) -> dict:
    """Test error and NLL by number of labels; their means over the questions; CPU seconds."""
    size, _, noise, seed, method, strategy = cell
    start = time.process_time()
    data = waveform_problem(seed, noise=float(noise))
    sources = data.sources if isinstance(data.sources, np.ndarray) else data.sources.X
    table = np.concatenate([data.initial, data.pool])
    X, y, X_test, y_test = sources[table], data.y[table], sources[data.test], data.y[data.test]
    schedule = {"steps": STEPS[size], "batch_size": BATCH}
    loop = LearningLoop(
        model(method, 3, SIZES[size].points, seed, schedule),
        X,
        labels={row: y[row] for row in range(len(data.initial))},
        strategy=strategy,
        relearn_every=1,
        random_state=seed,
    )
    found: dict[str, list[float]] = {"error": [], "nll": []}
    labels = []
    while True:
        labels.append(len(loop.labels))
        P = over_all_classes(loop.classifier.predict_proba(X_test), loop.classifier.classes_, 3)
        for score, values in found.items():
            values.append(round(float(METRICS[score](y_test, P)), 6))
        if labels[-1] == len(data.initial) + LABELS[size]:
            break
        rows = loop.ask(QUESTION[size])
        loop.tell(rows, y[rows])
    variance = np.square(loop.classifier.settings_["error_floor"])
    return {
        **{f"{score}s": values for score, values in found.items()},
        **{score: values[-1] for score, values in found.items()},
        "first": found["error"][0],
        "area": float(np.mean(found["error"])),
        "labels": labels,
        "variance": round(float(np.median(variance)), 6),
        "seconds": round(time.process_time() - start, 2),
    }


# ---- the page ------------------------------------------------------------------------------------


def of(table: pd.DataFrame, noise: str, method: str, strategy: str, score: str) -> pd.Series:
    """By seed; empty where it was not measured."""
    try:
        cells = table.xs((noise, method, strategy), level=("noise", "method", "strategy"))
    except KeyError:
        return pd.Series(dtype=float)
    return cells[score].droplevel("data_set")


def levels(table: pd.DataFrame) -> list[str]:
    return sorted(set(table.index.get_level_values("noise")), key=float)


def gain(table: pd.DataFrame, noise: str, method: str, score: str) -> pd.Series:
    """Entropy minus random, paired."""
    ours, control = (of(table, noise, method, strategy, score) for strategy in STRATEGIES)
    return (ours - control).dropna()


def scores(table: pd.DataFrame) -> Iterator[str]:
    """A row per V and method: error at the start, at the end, and what entropy gains."""

    def rows() -> Iterator[list[str]]:
        for noise in levels(table):
            for method in METHODS:
                ends = [of(table, noise, method, s, "error") for s in STRATEGIES]
                if not len(ends[0]):
                    continue
                first = of(table, noise, method, "entropy", "first")
                yield [
                    noise,
                    method,
                    str(len(ends[0])),
                    mean_error(first),
                    *map(mean_error, ends),
                    mean_error(gain(table, noise, method, "error"), 4, "+"),
                    mean_error(gain(table, noise, method, "area"), 4, "+"),
                    mean_error(first - ends[0], 4, "+"),
                    mean_error(of(table, noise, method, "entropy", "nll")),
                    mean_error(of(table, noise, method, "entropy", "variance")),
                ]

    header = ["V", "method", "divisions", "error, first", "entropy", "random", "entropy − random"]
    header += ["of the curve's mean", "reduction", "NLL, entropy", "variance learned"]
    yield from grid(header, rows())


def judged(values: np.ndarray, expected: float) -> str:
    """Of paired differences of single divisions that the paper has on the side of `expected`."""
    if len(values) < 3:
        return "too few"
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    if abs(mean) <= 2.0 * error:
        return "not told apart"
    return "reproduced" if mean * expected > 0.0 else "contradicted"


def claims(table: pd.DataFrame) -> Iterator[str]:
    """What the paper says beside what was found, over divisions, of each V."""

    def rows() -> Iterator[list[str]]:
        for noise in levels(table):
            cases = []
            for method in METHODS:
                said = "entropy is always lower" if method in PAPER_METHODS else GAP
                found = gain(table, noise, method, "area")
                cases.append((f"mean error, entropy − random, {method}", said, found, -1.0))
            network = of(table, noise, "NIMGP_NN", "entropy", "error")
            falls = of(table, noise, "NIMGP_NN", "entropy", "first") - network
            for method in PAPER_METHODS:
                if method == "NIMGP_NN":
                    continue
                end = of(table, noise, method, "entropy", "error")
                found = network - end
                what = f"error, NIMGP_NN − {method}"
                cases.append((what, "NIMGP_NN is best", found, -1.0))
                found = falls - (of(table, noise, method, "entropy", "first") - end)
                what = f"reduction, NIMGP_NN − {method}"
                cases.append((what, "largest for NIMGP_NN", found, 1.0))
            for what, said, found, expected in cases:
                values = found.dropna().to_numpy(float)
                if len(values):
                    told = GAP if said == GAP else judged(values, expected)
                    yield [noise, what, said, mean_error(values, 4, "+"), str(len(values)), told]

    yield from grid(["V", "what", "the paper", "here", "divisions", "verdict"], rows())


def draw_curves(table: pd.DataFrame) -> None:
    """Test error by number of labels: the paper's figure 6."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = levels(table)
    size = (3.0 * len(shown), 4.8)
    figure, axes = plt.subplots(
        2, len(shown), figsize=size, layout="constrained", sharex=True, sharey="col", squeeze=False
    )
    for column, noise in zip(axes.T, shown):
        for axis, strategy in zip(column, STRATEGIES):
            for k, method in enumerate(METHODS):
                curves = of(table, noise, method, strategy, "errors")
                if len(curves):
                    labels = of(table, noise, method, strategy, "labels").iloc[0]
                    mean = np.mean(curves.tolist(), axis=0)
                    axis.plot(labels, mean, "o-", color=f"C{k}", ms=3, lw=1, label=method)
            axis.set_title(f"V = {noise}, {strategy}", fontsize=9)
        column[-1].set_xlabel("labels")
    for axis in axes[:, 0]:
        axis.set_ylabel("test error")
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(PAGE.parents[1] / FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    """Of the largest size that was measured."""
    about, table = largest(path, KEY, SIZES)
    draw_curves(table)
    tables = [("active size", [about]), ("active claims", claims(table))]
    put_tables(PAGE, [*tables, ("active scores", scores(table))])


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, DATA_SETS, METHODS)
    if options.table:
        return write_page(options.out)
    quick = options.size == "quick"
    cells = [
        (options.size, *DATA_SETS, noise, seed, method, strategy)
        for noise in NOISES[: 1 if quick else None]
        for seed in range(options.seeds)
        for method in options.methods
        for strategy in STRATEGIES
        if not quick or method in QUICK_METHODS
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
