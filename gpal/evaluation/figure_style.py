"""How every figure looks, and how it is written.

A figure is made through matplotlib's object interface (no pyplot, no global state, no display
needed); `save_figure` writes it as PNG with the provenance inside. Colours are those of Okabe & Ito
(2008), which people with colour-blindness can tell apart; every class has its own marker too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gpal.output_files import atomic_path
from gpal.provenance import to_json

__all__ = [
    "MARKERS",
    "MIXED",
    "MIXED_COLOUR",
    "OKABE_ITO",
    "STYLE",
    "class_colours",
    "new_figure",
    "save_figure",
]

MIXED = "MIXED"
MIXED_COLOUR = "#b8b8b8"
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.labelsize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
}


def class_colours(classes: Sequence[str]) -> dict[str, str]:
    """Class name -> colour, the same in every figure and in the report."""
    return {str(c): OKABE_ITO[i % len(OKABE_ITO)] for i, c in enumerate(classes)}


def save_figure(figure: Figure, path: str | os.PathLike, provenance: Mapping[str, Any]) -> None:
    """Write a PNG whose text chunks `Software` and `Description` carry the provenance."""
    metadata = {"Software": f"gpal {provenance.get('gpal')}", "Description": to_json(provenance)}
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=140, metadata=metadata)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, which fits its parts into its frame."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
