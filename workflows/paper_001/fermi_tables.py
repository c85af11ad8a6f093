"""The tables of docs/noisy_inputs.md of 454 Fermi sources, beside tables 9, 10, 17 and 18."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import fermi454
import numpy as np
import pandas as pd
from measured import MAIN, dated, difference, label, paper_model, present, published, scores, shown
from models import KEY
from paper_numbers import (
    FERMI,
    FERMI_CLASSES,
    FERMI_CONFUSION,
    FERMI_FOUR,
    FERMI_FOUR_CONFUSION,
    Number,
)

sys.path.append(str(Path(__file__).parents[1]))
from studies import GAP, grid, load, mean_error

CONFUSED = [*(f"step {t}" for t in ("none", "latent", "amortized", "first_order"))]
CONFUSED += ["softmax none", MAIN]


def fermi_sections() -> Iterator[tuple[str, Iterator[str]]]:
    """Name of a pair of markers, and the lines between them."""
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
