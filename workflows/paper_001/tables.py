"""The tables of docs/noisy_inputs.md and its figure, from what the studies measured.

    python workflows/paper_001/tables.py

Every table stands between two markers of the page; the text around them is written by hand and
stays. A study that has not been run leaves a line that says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import fermi454
import numpy as np
import pandas as pd
import synthetic
import toy
from fermi_tables import fermi_sections
from measured import (
    MAIN,
    dated,
    difference,
    label,
    paper_model,
    paper_treatment,
    present,
    published,
    scores,
    shown,
    versus,
)
from models import ALL_TREATMENTS, KEY
from paper_numbers import GIVEN, GIVEN_ERROR, LEARNED, TOY, VARIED
from problems import EQUAL_NOISE, Setting, make_problem

sys.path.append(str(Path(__file__).parents[1]))
from studies import GAP, grid, load, mean_error, put_tables

DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "noisy_inputs.md", "images/noisy_inputs_toy.png"
VARIED_MODELS = {
    "nll": [*synthetic.FEW, *synthetic.OF_PAPER],
    "error": ["oracle", "softmax none", MAIN, *synthetic.OF_PAPER],
}
GAINING = ("softmax latent", MAIN)


# ---- synthetic problems -------------------------------------------------------------------------


def equal_noise(table, models, paper, score="nll", name_of=paper_model) -> Iterator[str]:
    """A row per model; for each noise our score and the paper's."""
    problems = [Setting(noise).name for noise in EQUAL_NOISE]
    header = ["model", *(part for v in EQUAL_NOISE for part in (f"V = {v}", "paper"))]

    def rows():
        for model in present(table, problems, models):
            row = [label(model)]
            for noise, problem in zip(EQUAL_NOISE, problems, strict=True):
                row.append(mean_error(scores(table, problem, model, score)))
                row.append(published(paper.get((name_of(model), noise))))
            yield row

    yield from grid(header, rows())
    yield ""
    counts = {len(scores(table, p, m)) for p in problems for m in present(table, problems, models)}
    yield f"Data sets per number: {', '.join(map(str, sorted(counts)))}."


def regrets(table, models) -> Iterator[str]:
    """NLL above the oracle's, and paired against the same likelihood without noise model."""
    problems = [Setting(noise).name for noise in EQUAL_NOISE]
    header = ["model", *(f"regret, V = {v}" for v in EQUAL_NOISE)]
    header += [f"minus none, V = {v}" for v in EQUAL_NOISE]

    def rows():
        for model in present(table, problems, models):
            without = f"{model.split()[0]} none"
            yield [
                label(model),
                *(mean_error(difference(table, p, model, "oracle")) for p in problems),
                *(
                    GAP
                    if model == without
                    else mean_error(difference(table, p, model, without), sign="+")
                    for p in problems
                ),
            ]

    yield from grid(header, rows())


def gains(table, model: str, settings: list[Setting]) -> list[str]:
    """A row: what a model adds to the NLL of the softmax without noise model, paired."""
    added = (difference(table, setting.name, model, "softmax none") for setting in settings)
    return [label(model), *(mean_error(values, 4, "+") for values in added)]


def learned_gain(table) -> Iterator[str]:
    settings = [Setting(noise) for noise in EQUAL_NOISE]
    rows = (gains(table, model, settings) for model in synthetic.LEARNED)
    yield from grid(["minus softmax none", *(f"V = {noise}" for noise in EQUAL_NOISE)], rows)


def log_uniform(table) -> Iterator[str]:
    problem = Setting("log-uniform").name
    permuted, constant = (f"{MAIN} {told}" for told in ("permuted", "constant"))
    references = {"minus softmax none": "softmax none", "minus permuted": permuted}
    references["minus constant"] = constant
    models = synthetic.STUDIES["log-uniform"][1]

    def rows():
        for model in present(table, [problem], models):
            yield [
                label(model),
                mean_error(scores(table, problem, model)),
                mean_error(scores(table, problem, model, "error")),
                mean_error(difference(table, problem, model, "oracle")),
                *(versus(table, problem, model, other) for other in references.values()),
            ]

    yield from grid(["model", "NLL", "error", "regret", *references], rows())


def by_column(table, settings: list[Setting], models: list[str], score: str) -> Iterator[list[str]]:
    """A row per model; for each setting our score and the paper's."""
    for model in models:
        row = [label(model)]
        for setting in settings:
            row.append(mean_error(scores(table, setting.name, model, score)))
            row.append(published(VARIED.get((score, setting.name, paper_model(model)))))
        if set(row[1:]) != {GAP}:
            yield row


def dimensions(table, score: str) -> Iterator[str]:
    columns = (2, 5, 10)
    header = ["N, V", "model", *(part for D in columns for part in (f"D = {D}", "paper"))]

    def rows():
        for sources in (100, 500, 1000):
            for noise in EQUAL_NOISE:
                settings = [Setting(noise, D, sources) for D in columns]
                for row in by_column(table, settings, VARIED_MODELS[score], score):
                    yield [f"{sources:,}, {noise}", *row]

    yield from grid(header, rows())


def classes(table, score: str) -> Iterator[str]:
    columns = (4, 5, 6, 7)
    header = ["V", "model", *(part for C in columns for part in (f"C = {C}", "paper"))]

    def rows():
        for noise in EQUAL_NOISE:
            settings = [Setting(noise, classes=C) for C in columns]
            for row in by_column(table, settings, VARIED_MODELS[score], score):
                yield [noise, *row]

    yield from grid(header, rows())


def dimensions_gain(table) -> Iterator[str]:
    columns = (2, 5, 10)
    rows = (
        [
            f"{sources:,}, {noise}",
            *gains(table, model, [Setting(noise, D, sources) for D in columns]),
        ]
        for sources in (100, 500, 1000)
        for noise in EQUAL_NOISE
        for model in GAINING
    )
    yield from grid(["N, V", "minus softmax none", *(f"D = {D}" for D in columns)], rows)


def classes_gain(table) -> Iterator[str]:
    columns = (4, 5, 6, 7)
    rows = (
        [noise, *gains(table, model, [Setting(noise, classes=C) for C in columns])]
        for noise in EQUAL_NOISE
        for model in GAINING
    )
    yield from grid(["V", "minus softmax none", *(f"C = {C}" for C in columns)], rows)


# ---- toy ----------------------------------------------------------------------------------------


def toy_table(results: dict) -> Iterator[str]:
    def rows():
        for model, found in results.items():
            name = paper_model(model)
            yield [
                label(model),
                f"{found['nll']:.3f} ± {found['nll_se']:.3f}",
                published(TOY.get((name, "nll"))),
                f"{found['error']:.3f} ± {found['error_se']:.3f}",
                published(TOY.get((name, "error"))),
            ]

    yield from grid(["model", "NLL", "paper", "error", "paper"], rows())


def draw_toy(results: dict) -> None:
    """Probabilities of each class along x̃, beside the oracle's (dashed): the paper's figure 2."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    models = [
        m for m in (*(f"step {t}" for t in ALL_TREATMENTS), "softmax none", MAIN) if m in results
    ]
    problem = make_problem(toy.SETTING, toy.SEED)
    columns = 2 if len(models) < 5 else 4
    lines = -(-len(models) // columns)
    figure, axes = plt.subplots(
        lines,
        columns,
        figsize=(3.2 * columns, 2.4 * lines),
        sharex=True,
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for axis, model in zip(axes.flat, models):
        for c in range(toy.SETTING.classes):
            oracle = np.array(results["oracle"]["probabilities"])[:, c]
            axis.plot(toy.GRID, oracle, "--", color=f"C{c}", lw=1.0)
            axis.plot(toy.GRID, np.array(results[model]["probabilities"])[:, c], color=f"C{c}")
            ticks = problem.X[problem.y == c, 0][:200]
            axis.plot(ticks, np.full(len(ticks), 1.08), "|", color=f"C{c}", ms=4, alpha=0.5)
        axis.set_title(label(model).strip("*"), fontsize=9)
        axis.set_xlim(-3, 3)
    for axis in axes.flat[len(models) :]:
        axis.set_axis_off()
    figure.supxlabel("measured value")
    figure.supylabel("class probability")
    figure.savefig(DOCS / FIGURE, dpi=110)


# ---- page ---------------------------------------------------------------------------------------


def sections() -> Iterator[tuple[str, Iterator[str]]]:
    """Name of a pair of markers, and the lines between them."""
    if toy.RESULTS.exists():
        results = toy.measured()
        draw_toy(results)
        yield "toy", dated(toy_table(results), pd.DataFrame(results.values()))
    if synthetic.RESULTS.exists():
        table = load(synthetic.RESULTS, KEY)
        every = synthetic.STUDIES["given"][1]
        equal = [Setting(noise).name for noise in EQUAL_NOISE]
        given = shown(table, equal, every)
        yield "given", dated(equal_noise(table, every, GIVEN), given)
        yield "regret", dated(regrets(table, [m for m in every if m != "oracle"]), given)
        yield "error", dated(equal_noise(table, every, GIVEN_ERROR, "error"), given)
        learned = ["oracle", *synthetic.LEARNED]
        lines = equal_noise(table, learned, LEARNED, name_of=paper_treatment)
        yield "learned", dated(lines, shown(table, equal, learned))
        compared = shown(table, equal, ["softmax none", *synthetic.LEARNED])
        yield "learned gain", dated(learned_gain(table), compared)
        cells = shown(table, [Setting("log-uniform").name], synthetic.STUDIES["log-uniform"][1])
        yield "log-uniform", dated(log_uniform(table), cells)
        studies = {"dimensions": (dimensions, dimensions_gain), "classes": (classes, classes_gain)}
        for study, (made_of, gain_of) in studies.items():
            names = [setting.name for setting in synthetic.SETTINGS[study]]
            for score, title in (("nll", study), ("error", f"{study} error")):
                cells = shown(table, names, VARIED_MODELS[score])
                yield title, dated(made_of(table, score), cells)
            compared = shown(table, names, ["softmax none", *GAINING])
            yield f"{study} gain", dated(gain_of(table), compared)
    if fermi454.RESULTS.exists():
        yield from fermi_sections()


if __name__ == "__main__":
    put_tables(PAGE, sections())
