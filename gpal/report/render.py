"""Turns a result folder into report.html; reads nothing but the files in that folder."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError

from gpal.errors import InputError, shown
from gpal.files.json import read_json
from gpal.files.output import atomic_path
from gpal.files.staging import sweep
from gpal.links import Links
from gpal.names import MIXED, probability_column
from gpal.plot.style import MIXED_COLOUR, class_colours
from gpal.report.cells import cell
from gpal.report.result_files import read_sources
from gpal.report.validation import FIGURES as VALIDATION_FIGURES
from gpal.report.validation import validation_page

__all__ = ["new_members", "render_report"]

MEMBERS_PER_CLASS = 100
# What rendering meets in the files of a damaged folder, of one of another version, or not gpal's.
UNFIT = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    TemplateError,
)
FIGURES = (
    *("confusion_matrix", "reliability", "roc", "purity_completeness"),
    *("sky_map", "features", "spectra"),
)
TOLD_APART = 2.0  # standard errors of a paired difference
METRIC_TITLES = {
    "nll": "NLL (nats)",
    "error": "error",
    "brier": "Brier score",
    "ece": "calibration error",
    "macro_precision": "macro precision",
    "macro_recall": "macro recall",
    "macro_f1": "macro F1",
    "macro_auc": "macro AUC",
}


def render_report(folder: str | os.PathLike) -> Path:
    """Write `folder`/report.html from its metrics.json, probabilities.csv and figures.

    The page is one file: figures are embedded, style and script are inline, nothing is fetched.
    Raises InputError naming the file that is missing or cannot be read.
    """
    folder = Path(folder)
    sweep(folder)  # a run that was killed as it put its files there
    metrics = _read(folder / "metrics.json", read_json)
    if metrics.get("kind") == "comparison":
        raise InputError(f"'{folder}' holds a comparison of lists, which has no report")
    try:
        html = _page(folder, metrics)
    except InputError:
        raise
    except UNFIT as error:
        what = shown(error) or type(error).__name__
        raise InputError(
            f"the files in '{folder}' lack what the report shows ({what}); make the folder again"
            " with this version of gpal"
        ) from error
    with atomic_path(folder / "report.html") as temporary:
        # Half a character, as in a file name that is no UTF-8, is shown as an escape.
        temporary.write_text(html, encoding="utf-8", errors="backslashreplace")
    return folder / "report.html"


def _page(folder: Path, metrics: dict[str, Any]) -> str:
    if metrics.get("kind") == "validation":
        return validation_page(_environment(), metrics, _images(folder, VALIDATION_FIGURES))
    classes = metrics["settings"]["classes"]
    table = _read(folder / "probabilities.csv", partial(read_sources, metrics=metrics))
    deviations = {name: probability_column(name, "_std") for name in classes}
    return (
        _environment()
        .get_template("report.html")
        .render(
            metrics=metrics,
            provenance=metrics["provenance"],
            release=_release(metrics["provenance"]["catalog"]),
            main=metrics["models"][0],
            reference=metrics["models"][1],
            verdict=_verdict(metrics),
            metric_titles=METRIC_TITLES,
            classes=classes,
            measured=_measured(metrics),
            colours=class_colours(classes),
            mixed=MIXED,
            mixed_colour=MIXED_COLOUR,
            members=_with_links(new_members(table, classes), Links(**metrics["links"])),
            carried=[item for item in metrics["carried"] if item["kind"] != "mark"],
            marks=[item["name"] for item in metrics["carried"] if item["kind"] == "mark"],
            members_per_class=MEMBERS_PER_CLASS,
            largest_entropy=math.log(len(classes)),
            probability={name: probability_column(name) for name in classes},
            deviation=deviations if deviations[classes[0]] in table else None,
            figures=_images(folder, FIGURES),
            placed=bool(table["glat"].notna().any()),
        )
    )


def _verdict(metrics: dict[str, Any]) -> str:
    """Whether the classifier's probabilities are better than those of the simplest model."""
    main, reference = metrics["models"][:2]
    gap = metrics["differences"][f"{main} - {reference}"]["nll"]
    told = f"{_estimate(gap)} nats of NLL"
    if not abs(gap["mean"]) > TOLD_APART * gap["se"]:
        return f"{main} and {reference} are not told apart here: {told}."
    if gap["mean"] < 0:
        return f"{main} is better than {reference}: {told}."
    return (
        f"{reference} is better than {main}, by {told}: its probabilities are the ones to use. In"
        " Python, gpal.classify(catalog, folder, classifier=gpal.evaluation.logistic_regression())"
        " writes them."
    )


def _measured(metrics: dict[str, Any]) -> dict[str, dict[str, tuple[int, int, int]]]:
    """Feature -> of the labelled sources and the candidates, where there are any: (with a value,
    with a limit, in all). Of the features that some of them lack."""
    n = {"labelled": metrics["n_labelled"], "candidates": metrics["n_targets"]}
    found = {
        feature: {
            of: (counts["measured"], counts["limits"], n[of])
            for of, counts in sets.items()
            if n[of]
        }
        for feature, sets in metrics.get("measured", {}).items()
    }
    return {
        feature: sets
        for feature, sets in found.items()
        if any(measured < all_ for measured, _, all_ in sets.values())
    }


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gpal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["estimate"] = _estimate
    environment.filters["setting"] = _setting
    environment.filters["cell"] = cell
    return environment


def _images(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Name -> data URI of the figures that the folder holds."""
    paths = {name: folder / f"{name}.png" for name in names}
    return {name: _data_uri(path) for name, path in paths.items() if path.exists()}


def new_members(
    table: pd.DataFrame, classes: Sequence[str], number: int = MEMBERS_PER_CLASS
) -> pd.DataFrame:
    """The `number` most probable candidates of every class: the first of each, then the second …

    A candidate stands under its predicted class only, so MIXED sources are not among them.
    """
    candidates = table[table["candidate"]]
    return pd.concat(
        [
            candidates[candidates["prediction"] == name]
            .nlargest(number, probability_column(name))
            .assign(probability=lambda rows, name=name: rows[probability_column(name)])
            .reset_index(drop=True)
            for name in classes
        ]
    ).sort_index(kind="stable")


def _with_links(members: pd.DataFrame, links: Links) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "links": links.of(
                row["name"], row["ra"], row["dec"], row.get("position_error", math.nan)
            ),
        }
        for row in members.to_dict("records")
    ]


def _read(path: Path, reader: Any) -> Any:
    try:
        return reader(path)
    except FileNotFoundError as error:
        raise InputError(
            f"no '{path.name}' in '{path.parent}'; make the folder with gpal classify first"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"cannot read '{path}': {what}; run gpal classify again") from error


def _release(catalog: dict[str, Any]) -> str:
    return str(catalog.get("title") or catalog.get("catalog") or "the catalog")


def _data_uri(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"


def _estimate(value: dict[str, float | None]) -> str:
    """0.250 ± 0.011, with a typographic minus and no −0.000, where there is one: few sources may
    lack a class, or be too few for an error."""
    mean, se = value["mean"], value["se"]
    if mean is None:
        return "–"
    error = "" if se is None else f" ± {se:.3f}"
    return f"{round(mean, 3) + 0.0:.3f}{error}".replace("-", "−")


def _setting(value: Any, inside: bool = False) -> str:
    """A setting in words: lists with commas, tables as `key value`, floats to four digits."""
    if isinstance(value, dict):
        text = ", ".join(f"{key} {_setting(item, inside=True)}" for key, item in value.items())
        return f"({text})" if inside else text
    if isinstance(value, list):
        text = ", ".join(_setting(item, inside=len(value) > 1) for item in value) or "none"
        return f"({text})" if inside and len(value) > 1 else text
    if isinstance(value, float):
        return f"{value:.4g}"
    return "none" if value is None else str(value)
