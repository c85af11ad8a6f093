"""How every figure looks, and how it is written.

A figure is made through matplotlib's object interface (no pyplot, no global state, no display
needed); `save_figure` writes it as PNG with the provenance inside. Colours are those of Okabe & Ito
(2008), which people with colour-blindness can tell apart; every class has its own marker too.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from gpal.errors import InputError, shown
from gpal.files.output import atomic_path
from gpal.names import MIXED
from gpal.provenance import to_json

__all__ = [
    "MARKERS",
    "MIXED",
    "MIXED_COLOUR",
    "OKABE_ITO",
    "STYLE",
    "check_math",
    "class_colours",
    "drawn",
    "new_figure",
    "save_figure",
]

DRAWN = 20  # characters of a name in a figure
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


def drawn(text: object, length: int = DRAWN) -> str:
    """Someone else's text as it is drawn in a figure: as it stands, but shortened in its middle.

    Matplotlib would take what is between two $ for mathematics, and leave a name that begins with _
    out of a legend.
    """
    name = str(text)
    if len(name) > length:
        name = f"{name[: length - length // 3]}…{name[1 - length // 3 :]}"
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def check_math(label: str) -> None:
    """Raise InputError where a schema's label for an axis is mathematics that cannot be drawn."""
    if not is_math_text(label):
        return
    try:
        with mpl.rc_context(STYLE):
            MathTextParser("path").parse(label)
    except ValueError as error:
        raise InputError(
            f"the label '{shown(label)}' of a feature cannot be drawn: what is between two $ is"
            " mathematics, as TeX writes it; correct it in the schema, or write \\$ for a dollar"
        ) from error


def save_figure(figure: Figure, path: str | os.PathLike, provenance: Mapping[str, Any]) -> None:
    """Write a PNG whose text chunks `Software` and `Description` carry the provenance."""
    metadata = {"Software": f"gpal {provenance.get('gpal')}", "Description": to_json(provenance)}
    with atomic_path(path) as temporary, warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(temporary, format="png", dpi=140, metadata=metadata)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, which fits its parts into its frame."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
