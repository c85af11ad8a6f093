"""The report of a prospective validation, from the files of its folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment

from gpal.plot.style import class_colours

__all__ = ["FIGURES", "validation_page"]

FIGURES = (
    *("scores", "reliability", "reliability_corrected", "reliability_by_origin"),
    *("calibration", "roc", "purity_completeness"),
)


def validation_page(
    environment: Environment, metrics: Mapping[str, Any], figures: Mapping[str, str]
) -> str:
    """The HTML of a folder that `gpal validate` made."""
    origin = metrics["provenance"]
    classes = metrics["settings"]["classes"]
    return environment.get_template("validation.html").render(
        metrics=metrics,
        provenance=origin,
        old=_title(origin["catalog"]),
        new=_title(origin["new_catalog"]),
        main=metrics["models"][0],
        recommended=metrics["settings"]["correction"],
        variant=next(iter(metrics["variants"])),
        classes=classes,
        colours=class_colours(classes),
        figures=figures,
    )


def _title(catalog: Mapping[str, Any]) -> str:
    return str(catalog.get("title") or catalog.get("file") or "the catalog")
