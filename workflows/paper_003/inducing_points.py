"""Error against time as inducing points are added (Milios et al. 2018, figure 5, right): what does
the time buy that GPD saves?

    python workflows/paper_003/inducing_points.py [--quick] [--size small] [--table]

GPD with α_ε = .01 and GPC, as dirichlet.py has them, on letter, magic and digits (for MoCap). A
cell is a data set, a seed, a method and a number of inducing points: error and NLL of test sources,
CPU seconds of `fit` with one thread. Results go to results/inducing_points.jsonl, cell by cell; a
run that was stopped goes on. The tables and the figure of docs/papers/003.md are written at the
end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from dirichlet import METHODS, PAGE, scores_of

sys.path.append(str(Path(__file__).parents[1]))
from paper_sets import available
from studies import Size, arguments, grid, largest, mean_error, of, put_tables, run

RESULTS = Path(__file__).parent / "results" / "inducing_points.jsonl"
FIGURE = Path(__file__).parents[2] / "docs" / "images" / "paper_003_points.png"
KEY = ("size", "data_set", "seed", "method", "points")
SIZES = {"quick": Size(400, 60, 1), "small": Size(4000, 400, 1), "full": Size(None, 1600, 3)}
POINTS = {"quick": (15, 60), "small": (50, 100, 200, 400), "full": (200, 400, 800, 1600)}
DATA_SETS = ("digits", "magic", "letter")
GPD, GPC = "GPD 0.01", "GPC"


def measure(cell: tuple[str, str, int, str, int]) -> dict:
    size, data_set, seed, method, points = cell
    return scores_of(data_set, seed, SIZES[size].rows, METHODS[method], points)


def curve(table: pd.DataFrame, data_set: str, method: str, score: str) -> pd.Series:
    """The mean over seeds, by number of inducing points."""
    values = of(table, data_set, method, score)
    return values.groupby(level="points").mean() if len(values) else values


def scores(table: pd.DataFrame) -> Iterator[str]:
    """A row per data set and number of inducing points."""

    def rows() -> Iterator[list[str]]:
        for data_set in DATA_SETS:
            for points in curve(table, data_set, GPD, "nll").index:
                cells = table.xs(points, level="points")
                row = [data_set, str(int(of(cells, data_set, GPD, "sources").iloc[0])), str(points)]
                for score, digits in (("error", 4), ("nll", 3), ("seconds", 1)):
                    for method in (GPD, GPC):
                        row.append(mean_error(of(cells, data_set, method, score), digits))
                yield row

    header = ["data set", "learned from", "inducing points"]
    header += [f"{s}, {m}" for s in ("error", "NLL", "CPU s") for m in (GPD, GPC)]
    yield from grid(header, rows())


def claims(table: pd.DataFrame) -> Iterator[str]:
    """Of each data set: GPC with the fewest points beside the largest GPD that takes no longer."""
    said = "the time that GPD saves buys inducing points, and a lower error than GPC's"

    def rows() -> Iterator[list[str]]:
        for data_set in DATA_SETS:
            seconds = curve(table, data_set, GPD, "seconds")
            of_gpc = curve(table, data_set, GPC, "seconds")
            if not len(seconds) or not len(of_gpc):
                continue
            fewest = of_gpc.index.min()
            bought = seconds[seconds <= of_gpc[fewest]].index.max()
            row = [data_set, said, str(fewest), "none" if np.isnan(bought) else str(bought)]
            for score, digits in (("error", 4), ("nll", 3)):
                ours, theirs = (curve(table, data_set, m, score) for m in (GPD, GPC))
                off = ours.get(bought, np.nan) - theirs[fewest]
                row.append(mean_error([off], digits, "+"))
            yield row

    header = ["data set", "the paper", "points of GPC", "of GPD in no more time"]
    yield from grid([*header, "error, GPD − GPC", "NLL, GPD − GPC"], rows())


def draw_curves(table: pd.DataFrame) -> None:
    """Error against CPU seconds, each point labelled by its number of inducing points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sets = [s for s in DATA_SETS if len(of(table, s, GPD, "nll"))]
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.3 * len(sets), 2.8), layout="constrained", squeeze=False
    )
    for axis, data_set in zip(axes.flat, sets):
        for method in (GPD, GPC):
            seconds, error = (curve(table, data_set, method, s) for s in ("seconds", "error"))
            axis.plot(seconds, error, "o-", ms=4, label=method)
            for points in seconds.index:
                axis.annotate(str(points), (seconds[points], error[points]), fontsize=7)
        axis.set(xscale="log", xlabel="CPU s of fit", ylabel="error", title=data_set)
    axes.flat[0].legend(fontsize=7, frameon=False)
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    about, table = largest(path, KEY, SIZES)
    draw_curves(table)
    tables = [("points size", [about]), ("points claims", claims(table))]
    put_tables(PAGE, [*tables, ("points scores", scores(table))])


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, available(DATA_SETS), (GPD, GPC))
    if options.table:
        return write_page(options.out)
    cells = [
        (options.size, data_set, seed, method, points)
        for seed in range(options.seeds)
        for points in POINTS[options.size]
        for data_set in options.data_sets
        for method in options.methods
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
