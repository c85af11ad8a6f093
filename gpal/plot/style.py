"""How every figure looks, how wide it is, and how it is written.

A figure is made through matplotlib's object interface: no pyplot, no global state, no display
needed. Colours are those of Okabe & Ito (2008), which people with colour-blindness can tell apart;
every class has its own marker too. Text and marks are sized by the labels of their axes, so that
they fit into a journal's column, and into axes that somebody else made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from gpal.errors import InputError, shown
from gpal.names import MIXED

__all__ = [
    "MARKERS",
    "MIXED",
    "MIXED_COLOUR",
    "OKABE_ITO",
    "STYLE",
    "WIDTHS",
    "Width",
    "canvas",
    "check_math",
    "class_colours",
    "class_line",
    "class_marker",
    "drawn",
    "given_axes",
    "legend",
    "new_figure",
    "sized_as",
    "styled",
]

DRAWN = 20  # characters of a name in a figure
MIXED_COLOUR = "#b8b8b8"
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
LINES = ("-", "-.", ":")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
LOOK: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
}
# In points, for a screen.
SIZES: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.labelsize": 13,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.5,
    **{f"{axis}tick.major.{part}": 3.5 for axis in "xy" for part in ("size", "pad")},
    **{f"{axis}tick.minor.size": 2.0 for axis in "xy"},
    **{f"{axis}tick.major.width": 0.8 for axis in "xy"},
    **{f"{axis}tick.minor.width": 0.6 for axis in "xy"},
}
STYLE = LOOK | SIZES
PRINTED = 2 / 3  # of that on paper: text of 8 points
ON_SCREEN, ON_PAPER = 140, 300  # dots per inch of a PNG

# Inches. `column` and `page` are the narrowest of the three, and so fit all of them.
WIDTHS = {
    "column": 3.32,
    "page": 6.97,
    "A&A column": 3.46,
    "A&A page": 7.08,
    "ApJ column": 3.35,
    "ApJ page": 7.10,
    "MNRAS column": 3.32,
    "MNRAS page": 6.97,
}
Width = str | float | None


class ShownFigure(Figure):
    """A figure without a window, which a notebook shows all the same."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()


def class_colours(classes: Sequence[str]) -> dict[str, str]:
    """Class name -> colour, the same in every figure and in the report."""
    return {str(c): OKABE_ITO[i % len(OKABE_ITO)] for i, c in enumerate(classes)}


def class_marker(i: int) -> str:
    """Marker of the class i. Where colours begin again, each comes with another one."""
    return MARKERS[(i + i // len(OKABE_ITO)) % len(MARKERS)]


def class_line(i: int) -> str:
    """Line style of the class i, likewise; dashes say other things."""
    return LINES[i // len(OKABE_ITO) % len(LINES)]


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


def canvas(width: Width, natural: float) -> tuple[float, float]:
    """(inches to lay a figure out in, their scale on paper).

    width    one of WIDTHS, or inches; None: for a screen, with `natural` inches
    natural  width of the figure on a screen
    """
    if width is None:
        return natural, 1.0
    try:
        inches = WIDTHS[width] if isinstance(width, str) else float(width)
    except (KeyError, TypeError, ValueError):
        inches = np.nan
    if not 1 <= inches <= 100:
        raise InputError(
            f"width {shown(width)!r} is none of {', '.join(map(repr, WIDTHS))}, and no number of"
            " inches from 1 to 100"
        )
    return inches / PRINTED, PRINTED


def new_figure(width: float, height: float, scale: float = 1.0) -> Figure:
    """An empty figure of that size in inches, times `scale`, which fits its parts into its frame.

    Make its axes, too, in the context of `styled(scale)`.
    """
    figure = ShownFigure(
        figsize=(width * scale, height * scale),
        dpi=ON_SCREEN if scale == 1 else ON_PAPER,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    return figure


def styled(scale: float = 1.0) -> Any:
    """A context in which axes are made: the look of gpal, with text and ticks of that scale."""
    return mpl.rc_context(LOOK | {name: scale * size for name, size in SIZES.items()})


@contextmanager
def sized_as(axes: Axes) -> Iterator[float]:
    """Text in the size of the labels of the axes; yields their scale, one as on a screen."""
    scale = float(axes.xaxis.label.get_size() / SIZES["axes.labelsize"])
    with mpl.rc_context({"font.size": scale * SIZES["font.size"], "legend.frameon": False}):
        yield scale


def given_axes(axes: Any, width: Width, number: int, what: str) -> list[Axes]:
    """Axes that a caller has made, in one list; InputError unless there are so many.

    what  the panels are for: one "per class"
    """
    found = np.ravel(np.asarray(axes, dtype=object)).tolist()
    if width is not None:
        raise InputError("axes have the width of their figure: leave `width` out, or the axes")
    if len(found) != number or not all(isinstance(each, Axes) for each in found):
        raise InputError(f"{number} axes are drawn into, {what}; got {len(found)}")
    return found


def legend(axes: Any, own: bool, wide: float, entries: int, **options: Any) -> None:
    """What is in the axes: below the figure if it is gpal's own, else in the last of them.

    wide     inches that the figure is laid out in
    entries  how many there are
    """
    if not own:
        axes[-1].legend(**options)
        return
    columns = min(entries, max(1, int(wide / 2.1)))
    axes[0].figure.legend(loc="outside lower center", ncols=columns, **options)
