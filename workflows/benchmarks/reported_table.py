"""The generated part of docs/defaults.md, from the cells of choose_defaults.py and reported.py.

Text outside the two markers of the page is written by hand and stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from cells import read
from choose_defaults import FIRST, SECOND
from choose_defaults import TABLE as CHOSEN
from data_sets import DEVELOPMENT, REPORTED
from reported import METHODS
from reported import TABLE as RESULTS

sys.path.append(str(Path(__file__).parents[1]))
from studies import mean_error, put_tables

__all__ = ["write_page"]

PAGE = Path(__file__).parents[2] / "docs" / "defaults.md"
NAMES = {
    "default": "GPClassifier()",
    "logistic": "logistic regression",
    "boosting": "boosting",
    "gpflow": "GPflow SVGP",
    "gpc": "scikit-learn GPC",
}


def frame_of(table: Path) -> pd.DataFrame:
    columns = ["data_set", "method", "seed", "nll", "error", "seconds"]
    return pd.DataFrame(list(read(table).values()), columns=columns)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def development(base: str, names: Sequence[str]) -> Iterator[str]:
    """NLL of a setting, and what others add to it: mean over the splits that both have, with their
    number where it is not the setting's own."""
    table = frame_of(CHOSEN).pivot_table(index=["data_set", "seed"], columns="method", values="nll")
    names = [name for name in names if name in table and name != base]
    yield row("data set", f"{base} (splits)", *names)
    yield row(*["---"] * (len(names) + 2))
    for data_set in (name for name in DEVELOPMENT if name in table.index.get_level_values(0)):
        cells = table.loc[data_set]
        own = cells[base].dropna()
        added = [(cells[name] - own).dropna() for name in names]
        if len(own):
            values = (gain(values, len(own)) for values in added)
            yield row(data_set, f"{own.mean():.3f} ({len(own)})", *values)


def gain(values: pd.Series, splits: int) -> str:
    if not len(values):
        return "–"
    return f"{values.mean():+.3f}" + (f" ({len(values)})" if len(values) != splits else "")


def reported() -> Iterator[str]:
    """Mean NLL with its standard error over the splits, and the average ranks of these means, of
    the methods that were measured on every set."""
    frame = frame_of(RESULTS)
    methods = [method for method in METHODS if method in set(frame.method)]
    on = frame.groupby("method").data_set.nunique()
    ranked = [method for method in methods if on[method] == on.max()]
    yield row("data set", *(NAMES[method] for method in methods))
    yield row(*["---"] * (len(methods) + 1))
    for data_set in (name for name in REPORTED if name in set(frame.data_set)):
        of_set = frame[frame.data_set == data_set]
        splits = [of_set[of_set.method == method].nll for method in methods]
        yield row(data_set, *(f"{mean_error(nll, 4)} ({len(nll)})" for nll in splits))
    means = frame.groupby(["data_set", "method"]).nll.mean().unstack()[ranked].dropna()
    if len(means):
        ranks = means.rank(axis=1).mean()
        cells = (f"{ranks[m]:.2f}" if m in ranked else "–" for m in methods)
        yield row(f"average rank of these means, {len(means)} sets", *cells)


def against(other: str) -> str:
    """On how many reported sets the default is ahead of another, on the splits both have."""
    frame = frame_of(RESULTS).set_index(["data_set", "seed"])
    default, theirs = (frame[frame.method == m].nll for m in ("default", other))
    difference = (default - theirs).dropna().groupby("data_set")
    if not len(difference):
        return f"- {NAMES[other]}: not measured yet."
    mean = difference.mean()
    worse = [
        f"{name} ({mean_error(values, 3)}, {len(values)} splits)"
        for name, values in difference
        if mean[name] > 0
    ]
    behind = f"; behind on {', '.join(worse)}" if worse else ""
    return f"- {NAMES[other]}: ahead on {int((mean < 0).sum())} of {len(mean)} sets{behind}."


def write_page() -> None:
    """Put the tables between the markers."""
    parts = [
        "## Development sets: NLL, and what a setting adds to it",
        *development("before", [*FIRST, "logistic", "boosting"]),
        "## The same, and what was tried on 25 November",
        *development("november", list(SECOND)),
        "## Reported sets, NLL (number of splits)",
        *reported(),
        "`GPClassifier()` against the others, on the splits that both have:",
        "\n".join(against(other) for other in METHODS[1:]),
    ]
    text = ""
    for part in parts:
        text += part + ("\n" if part.startswith("|") else "\n\n")
    for heading in ("## The same", "## Reported", "`GPClassifier()` against"):
        text = text.replace(heading, f"\n{heading}")
    put_tables(PAGE, [("written by reported.py", text.splitlines())])
    print(text)
