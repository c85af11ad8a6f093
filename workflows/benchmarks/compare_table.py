"""The generated part of docs/benchmarks.md and its figure, from the cells that compare.py wrote.

Text outside the two markers of the page is written by hand and stays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from cells import load, processors, read, versions

sys.path.append(str(Path(__file__).parents[1]))
from studies import mean_error, put_tables

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[2] / "docs"
FIGURE = "images/benchmarks.png"

NAMES = {
    "gpflow": "GPflow SVGP, softmax / Bernoulli-logit",
    "gpal": "gpal, softmax / Bernoulli-logit",
    "gpal_fixed_Z": "gpal, softmax / Bernoulli-logit, inducing points fixed",
    "gpal_dirichlet": "gpal, Dirichlet",
    "gpal_dirichlet_fixed_Z": "gpal, Dirichlet, inducing points fixed",
    "gpal_logistic_softmax": "gpal, logistic-softmax, natural-gradient sites",
    "gpal_cavi": "gpal, logistic-softmax, CAVI",
    "gpal_per_class": "gpal, softmax, one kernel per class",
    "gpflow_robustmax": "GPflow SVGP, robust-max",
    "gpflow_gpal_start": "GPflow SVGP, kernel and start of gpal",
    "sklearn_gpc": "scikit-learn GPC, 2,000 rows",
    "gpal_dirichlet_2000": "gpal, Dirichlet, 2,000 rows",
    "gpytorch_dirichlet": "GPyTorch exact Dirichlet, 2,000 rows",
    "gpytorch_svgp": "GPyTorch SVGP, softmax / Bernoulli-probit",
}
COLOURS = {
    "gpflow": "black",
    "gpal": "C0",
    "gpal_dirichlet": "C1",
    "gpal_logistic_softmax": "C2",
    "gpal_cavi": "C3",
}
BINARY, MULTI_CLASS = ("banana", "magic"), ("satimage", "letter")
MANY_CLASSES = ("penbased", "texture", "optdigits")  # run with Dirichlet and GPflow only
SHARE = {"satimage": 1 / 8, "letter": 1 / 4, "banana": 1 / 5, "magic": 1 / 5}


def finals(table: pd.DataFrame) -> Iterator[str]:
    yield (
        "| data set | method | seeds | error | NLL | minus gpal's first row, same seeds "
        "| ELBO per source | CPU s |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for data_set in (*BINARY, *MULTI_CLASS, *MANY_CLASSES):
        for method, name in NAMES.items():
            if (data_set, method) not in table.index.droplevel("seed"):
                continue
            cells = table.loc[(data_set, method)]
            paired = pairs(table, data_set, method, "gpal") if method != "gpal" else []
            yield (
                f"| {data_set} | {name} | {', '.join(map(str, cells.index))} "
                f"| {mean_error(cells.error, 4)} | {mean_error(cells.nll, 4)} "
                f"| {mean_error([cell.nll - default.nll for _, cell, default in paired], 4)} "
                f"| {mean_error(cells.elbo, 4)} | {mean_error(cells.seconds, 1)} |"
            )


def pairs(table: pd.DataFrame, data_set: str, first: str, second: str) -> list:
    """Cells of two methods with the same seed."""
    if not {(data_set, first), (data_set, second)} <= set(table.index.droplevel("seed")):
        return []
    cells = table.loc[(data_set, first)], table.loc[(data_set, second)]
    seeds = cells[0].index.intersection(cells[1].index)
    return [(seed, cells[0].loc[seed], cells[1].loc[seed]) for seed in seeds]


def seconds_to_reach(trajectory: list[dict], score: str, value: float) -> float:
    """First time that the NLL is as low, or the ELBO as high; infinity where it never is."""
    sign = 1.0 if score == "elbo" else -1.0
    reached = [p["seconds"] for p in trajectory if sign * p[score] >= sign * value]
    return reached[0] if reached else np.inf


def seconds_to_converge(trajectory: list[dict]) -> float:
    """First time that the NLL, smoothed over three evaluations, is within .002 of its best."""
    smooth = np.convolve([p["nll"] for p in trajectory], np.ones(3) / 3, mode="valid")
    first = int(np.argmax(smooth <= smooth.min() + 0.002))
    return trajectory[first + 2]["seconds"]


def verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def speed(table: pd.DataFrame, baseline: str) -> Iterator[str]:
    yield (
        "| data set | score reached | share of GPflow's CPU time, per seed | mean | target |"
        " final NLL, gpal − GPflow | |"
    )
    yield "|---|---|---|---|---|---|---|"
    for data_set in (*BINARY, *MULTI_CLASS):
        cells = pairs(table, data_set, "gpal", baseline)
        if not cells:
            continue
        score = "elbo" if data_set in BINARY else "nll"
        shares = np.array(
            [
                seconds_to_reach(ours.trajectory, score, theirs[score]) / theirs.seconds
                for _, ours, theirs in cells
            ]
        )
        difference = np.array([ours.nll - theirs.nll for _, ours, theirs in cells])
        if data_set in BINARY:
            their_nll = [theirs.nll for *_, theirs in cells]
            error = np.std(their_nll, ddof=1) / np.sqrt(len(cells)) if len(cells) > 1 else 0.0
            wanted, good = "at most one s.e. above", difference.mean() <= error
        else:
            wanted, good = "below", difference.mean() < 0
        each = ", ".join("never" if np.isinf(share) else f"{share:.3f}" for share in shares)
        mean = "–" if np.isinf(shares).any() else mean_error(shares, 3)
        share_met = verdict(bool(shares.mean() <= SHARE[data_set]))
        yield (
            f"| {data_set} | {'true ELBO' if score == 'elbo' else 'NLL'} | {each} | {mean} "
            f"| ≤ {SHARE[data_set]:.3f}: {share_met} | {mean_error(difference, 4)} "
            f"| {wanted}: {verdict(bool(good))} |"
        )


def dirichlet(table: pd.DataFrame) -> Iterator[str]:
    yield "| data set | inducing points | gpal, CPU s | the other, CPU s | times faster | target |"
    yield "|---|---|---|---|---|---|"
    for data_set in (*BINARY, *MULTI_CLASS, *MANY_CLASSES):
        for method, Z in (("gpal_dirichlet", "learned"), ("gpal_dirichlet_fixed_Z", "fixed")):
            cells = pairs(table, data_set, method, "gpflow")
            if not cells:
                continue
            ours = np.array([cell.seconds for _, cell, _ in cells])
            theirs = np.array([seconds_to_converge(cell.trajectory) for *_, cell in cells])
            yield (
                f"| {data_set} | {Z} | {mean_error(ours, 2)} "
                f"| {mean_error(theirs, 1)} (GPflow SVGP until it has converged) "
                f"| {mean_error(theirs / ours, 1)} "
                f"| ≥ 20: {verdict(bool((theirs / ours).mean() >= 20))} |"
            )
    cells = pairs(table, "satimage", "gpal_dirichlet_2000", "gpytorch_dirichlet")
    if cells:
        ours, theirs = (np.array([cell[k].seconds for cell in cells]) for k in (1, 2))
        yield (
            f"| satimage, 2,000 rows | fixed | {mean_error(ours, 2)} "
            f"| {mean_error(theirs, 1)} (GPyTorch exact Dirichlet, 50 steps) "
            f"| {mean_error(theirs / ours, 1)} "
            f"| ≥ 10: {verdict(bool((theirs / ours).mean() >= 10))} |"
        )


def sweep_rates() -> Iterator[str]:
    path = RESULTS / "sweep_rate.json"
    if not path.exists():
        yield "Not measured in this run."
        return
    yield "| n | m | C | dtype | sweep, Gflop/s | tf.matmul, Gflop/s | ratio | target |"
    yield "|---|---|---|---|---|---|---|---|"
    record = json.loads(path.read_text())
    for row in record["rows"]:
        yield (
            f"| {row['n']} | {row['m']} | {row['C']} | {row['dtype']} | {row['sweep']:.1f} "
            f"| {row['matmul']:.1f} | {row['ratio']:.2f} "
            f"| ≥ {row['target']}: {verdict(row['ratio'] >= row['target'])} |"
        )
    yield ""
    yield (
        f"Wall-clock seconds, {record['threads']} thread, both sides in turns; other work on the "
        "machine disturbs single ratios."
    )


def conditions(table: pd.DataFrame) -> Iterator[str]:
    known = list(table.provenance)
    packages = ("gpal", "tensorflow", "gpflow", "scikit-learn", "numpy", "python")
    dates = sorted(cell["date"] for cell in known)
    ours = table.index.get_level_values("method").str.startswith("gpal")
    sources = sorted(set(table.gpal_source[ours]))
    yield f"- CPU: {processors(list(read().values()))}; one thread; no GPU."
    yield f"- {versions(known, (*packages, 'gpytorch', 'torch'))}."
    yield f"- Measured from {dates[0]} to {dates[-1]}."
    yield (
        f"- A shared machine: read ratios, not seconds (load average up to "
        f"{table.load_average.max():.1f} on 2 cores while this ran)."
    )
    yield f"- Digest of gpal's model code in its cells: {', '.join(sources)}" + (
        "." if len(sources) == 1 else ": it changed while the benchmark ran."
    )


def draw(table: pd.DataFrame) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
    for axis, data_set in zip(axes.flat, (*BINARY, *MULTI_CLASS)):
        last = []
        for method, colour in COLOURS.items():
            if (data_set, method) not in table.index.droplevel("seed"):
                continue
            for trajectory in table.loc[(data_set, method)].trajectory:
                seconds, nll = np.array([(p["seconds"], p["nll"]) for p in trajectory]).T
                axis.plot(seconds, nll, color=colour, lw=1.1, alpha=0.8)
                axis.plot(seconds[-1], nll[-1], "o", color=colour, ms=4)
                last.append(nll[-1])
        if last:
            low, high = min(last), max(last)
            axis.set_ylim(low - 0.15 * (high - low) - 0.005, high + 1.5 * (high - low) + 0.05)
        axis.set(xscale="log", title=data_set)
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("CPU seconds, graph making included")
    for axis in axes[:, 0]:
        axis.set_ylabel("test NLL")
    handles = [plt.Line2D([], [], color=colour) for colour in COLOURS.values()]
    labels = [NAMES[method] for method in COLOURS]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    (DOCS / FIGURE).parent.mkdir(exist_ok=True)
    figure.savefig(DOCS / FIGURE, dpi=110)


def write_page() -> None:
    """The tables between the markers of docs/benchmarks.md, and the figure."""
    table = load()
    draw(table)
    sections = {
        "Conditions": conditions(table),
        "Final scores": finals(table),
        "Time to reach what GPflow ends with": speed(table, "gpflow"),
        "The same where GPflow is given gpal's kernel and start": speed(table, "gpflow_gpal_start"),
        "Dirichlet: time until hyper-parameters are learned": dirichlet(table),
        "Rate of one sweep": sweep_rates(),
    }
    parts = ["\n".join([f"## {title}", "", *lines]) for title, lines in sections.items()]
    parts.insert(3, f"![Test NLL against CPU seconds]({FIGURE})")
    text = "\n\n".join(parts)
    put_tables(DOCS / "benchmarks.md", [("written by compare.py", text.split("\n"))])
    print(text)
