"""The tables of docs/noisy_inputs.md and its figure, from what the studies measured.

    python workflows/paper_001/tables.py

Every table stands between two markers of the page; the text around them is written by hand and
stays. A study that has not been run leaves a line that says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import fermi454
import numpy as np
import pandas as pd
import synthetic
import toy
from models import ALL_TREATMENTS, DEFAULT, KEY, PAPER_NAMES
from paper_numbers import (
    FERMI,
    FERMI_CLASSES,
    FERMI_CONFUSION,
    FERMI_FOUR,
    FERMI_FOUR_CONFUSION,
    GIVEN,
    GIVEN_ERROR,
    LEARNED,
    TOY,
    VARIED,
    Number,
)
from problems import EQUAL_NOISE, Setting, make_problem

sys.path.append(str(Path(__file__).parents[1]))
from studies import GAP, grid, load, made, mean_error, put_tables

DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "noisy_inputs.md", "images/noisy_inputs_toy.png"
MAIN = f"softmax {DEFAULT}"
VARIED_MODELS = {
    "nll": [*synthetic.FEW, *synthetic.OF_PAPER],
    "error": ["oracle", "softmax none", MAIN, *synthetic.OF_PAPER],
}


# ---- numbers ------------------------------------------------------------------------------------


def published(number: tuple[float, float] | None) -> str:
    return GAP if number is None else f"{number[0]:.3f} ± {number[1]:.3f}"


def paper_model(model: str) -> str:
    """The paper's name of a model with the paper's likelihood, '' for all others."""
    return paper_treatment(model) if model.startswith("step ") else ""


def paper_treatment(model: str) -> str:
    """The paper's name of a treatment, whatever the likelihood."""
    return PAPER_NAMES.get(model.partition(" ")[2].removesuffix(" learned"), "")


def scores(table: pd.DataFrame, problem: str, model: str, score: str = "nll") -> pd.Series:
    """By data set; empty where the model was not run."""
    try:
        return table.xs((problem, model), level=("problem", "model"))[score]
    except KeyError:
        return pd.Series(dtype=float)


def difference(table: pd.DataFrame, problem: str, model: str, minus: str) -> pd.Series:
    """Of NLL, paired, over the data sets that both were run on."""
    return (scores(table, problem, model) - scores(table, problem, minus)).dropna()


def versus(table: pd.DataFrame, problem: str, model: str, minus: str) -> str:
    """Paired difference of NLL as text."""
    if model in (minus, "oracle"):
        return GAP
    return mean_error(difference(table, problem, model, minus), sign="+")


def present(table: pd.DataFrame, problems: list[str], models: list[str]) -> list[str]:
    return [m for m in models if any(len(scores(table, p, m)) for p in problems)]


def shown(table: pd.DataFrame, problems: Iterable[str], models: Iterable[str]) -> pd.DataFrame:
    """The cells that a table of these is made from."""
    problem, model = (table.index.get_level_values(name) for name in ("problem", "model"))
    return table[problem.isin(list(problems)) & model.isin(list(models))]


def dated(lines: Iterable[str], cells: pd.DataFrame) -> Iterator[str]:
    """A table, and when and with what it was measured."""
    yield from lines
    yield ""
    yield made(cells)


def label(model: str) -> str:
    name = paper_model(model)
    text = model + (f" ({name})" if name else "")
    return f"**{text}**" if model == MAIN else text


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


# ---- Fermi --------------------------------------------------------------------------------------


def corrected_error(values: np.ndarray) -> float:
    """Standard error of a mean over random splits of the same sources (Nadeau & Bengio 2003).

    √((1/J + n_test/n_train) s²): the splits share their sources, so that s/√J is far too small.
    """
    return float(np.sqrt((1.0 / len(values) + 1.0 / 9.0) * np.var(values, ddof=1)))


def fermi(table: pd.DataFrame, problem: str, numbers: Mapping) -> Iterator[str]:
    header = ["model", "splits", "NLL", "paper", "error", "paper", "NLL minus logistic regression"]
    header += ["naive s.e.", "corrected s.e."]
    models = ["logistic regression", *fermi454.ON_SOME]

    def rows():
        for model in present(table, [problem], models):
            against = difference(table, problem, model, "logistic regression")
            name = paper_model(model)
            yield [
                label(model),
                str(len(scores(table, problem, model))),
                mean_error(scores(table, problem, model)),
                published(numbers.get((name, "nll"))),
                mean_error(scores(table, problem, model, "error")),
                published(numbers.get((name, "error"))),
                *(
                    [GAP] * 3
                    if model == "logistic regression" or len(against) < 2
                    else [
                        f"{against.mean():+.4f}",
                        f"{against.std(ddof=1) / np.sqrt(len(against)):.4f}",
                        f"{corrected_error(against.to_numpy()):.4f}",
                    ]
                ),
            ]

    yield from grid(header, rows())


CONFUSED = [*(f"step {t}" for t in ("none", "latent", "amortized", "first_order"))]
CONFUSED += ["softmax none", MAIN]


def confusions(table: pd.DataFrame, problem: str, model: str) -> np.ndarray:
    """Numbers of test sources [splits, true class, predicted class]."""
    return np.array(scores(table, problem, model, "confusion").tolist(), float)


def fermi_confusion(table: pd.DataFrame, problem: str, numbers: Mapping) -> Iterator[str]:
    """Mean number of test sources, rows predicted and columns true, beside tables 10 and 18."""

    def rows():
        for k, predicted in enumerate(FERMI_CLASSES):
            for model in present(table, [problem], CONFUSED):
                row = [predicted, label(model)]
                for counts, true in zip(
                    confusions(table, problem, model)[:, :, k].T, FERMI_CLASSES, strict=True
                ):
                    number = numbers[predicted].get((paper_model(model), true))
                    row.append(mean_error(counts, 2))
                    row.append(GAP if number is None else f"{number[0]:.2f} ± {number[1]:.2f}")
                yield row

    columns = (part for c in FERMI_CLASSES for part in (f"{c} (true)", "paper"))
    yield from grid(["predicted", "model", *columns], rows())


def share(counts: np.ndarray, true: int, predicted: int) -> Number:
    """Of the test sources of a class those that are given a class, over all splits, with the
    standard error of a ratio of two means over independent splits."""
    of_class = counts[:, true].sum(axis=1)
    found = counts[:, true, predicted].mean() / of_class.mean()
    rest = counts[:, true, predicted] - found * of_class
    return found, float(rest.std(ddof=1) / np.sqrt(len(rest)) / of_class.mean())


def paper_share(numbers: Mapping, name: str, true: str, predicted: str) -> float:
    """The same of the means that the paper has; it tells no error of it."""
    return numbers[predicted][name, true][0] / of_paper(numbers, name, true)


def of_paper(numbers: Mapping, name: str, true: str) -> float:
    """Mean number of test sources of a class: a column of the paper's table added up."""
    return sum(numbers[predicted][name, true][0] for predicted in FERMI_CLASSES)


def fermi_shares(table: pd.DataFrame, problems: Mapping[str, Mapping]) -> Iterator[str]:
    """How many test sources there are of each class, and which share of them is told right."""

    def rows():
        for problem, numbers in problems.items():
            models = present(table, [problem], [m for m in CONFUSED if paper_model(m)])
            counts = confusions(table, problem, models[0]).sum(axis=2)
            row = [problem, "test sources"]
            for k, true in enumerate(FERMI_CLASSES):
                row += [mean_error(counts[:, k], 2), f"{of_paper(numbers, 'MGP', true):.2f}"]
            yield row
            for model in models:
                counts = confusions(table, problem, model)
                row = [problem, f"told right, {label(model)}"]
                for k, true in enumerate(FERMI_CLASSES):
                    found, error = share(counts, k, k)
                    said = paper_share(numbers, paper_model(model), true, true)
                    row += [f"{found:.3f} ± {error:.3f}", f"{said:.3f}"]
                yield row

    columns = (part for c in FERMI_CLASSES for part in (c, "paper"))
    yield from grid(["sources", "", *columns], rows())


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
        cells = shown(table, [Setting("log-uniform").name], synthetic.STUDIES["log-uniform"][1])
        yield "log-uniform", dated(log_uniform(table), cells)
        for study, made_of in (("dimensions", dimensions), ("classes", classes)):
            names = [setting.name for setting in synthetic.SETTINGS[study]]
            for score, title in (("nll", study), ("error", f"{study} error")):
                cells = shown(table, names, VARIED_MODELS[score])
                yield title, dated(made_of(table, score), cells)
    if fermi454.RESULTS.exists():
        table = load(fermi454.RESULTS, KEY)
        confusion = {fermi454.ALL: FERMI_CONFUSION, fermi454.FOUR: FERMI_FOUR_CONFUSION}
        models = ["logistic regression", *fermi454.ON_SOME]
        for name, problem, numbers in (
            ("fermi", fermi454.ALL, FERMI),
            ("fermi four", fermi454.FOUR, FERMI_FOUR),
        ):
            yield name, dated(fermi(table, problem, numbers), shown(table, [problem], models))
            lines = fermi_confusion(table, problem, confusion[problem])
            yield f"{name} confusion", dated(lines, shown(table, [problem], CONFUSED))
        cells = shown(table, confusion, [m for m in CONFUSED if paper_model(m)])
        yield "fermi shares", dated(fermi_shares(table, confusion), cells)


if __name__ == "__main__":
    put_tables(PAGE, sections())
