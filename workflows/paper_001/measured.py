"""What the studies measured, by problem and model, beside the paper's names and numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from models import DEFAULT, PAPER_NAMES

sys.path.append(str(Path(__file__).parents[1]))
from studies import GAP, made, mean_error

MAIN = f"softmax {DEFAULT}"


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
