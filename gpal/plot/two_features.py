"""Sources in two features, with error bars: those of known class, and the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpal.errors import InputError
from gpal.plot.pairs import sources_of
from gpal.plot.style import (
    MIXED,
    MIXED_COLOUR,
    Width,
    canvas,
    class_colours,
    class_marker,
    drawn,
    given_axes,
    legend,
    new_figure,
    sized_as,
    styled,
)

__all__ = ["features"]

MOST_SPANNED = 1_000  # all within the axes: of more the farthest would press the rest together
LONG = 36  # characters of a title in one line
MOST_DRAWN = 10_000  # with error bars in a panel: more hide each other, and take minutes


def features(
    data: Any,
    table: Any = None,
    *,
    label: Any = None,
    prediction: Any = None,
    candidate: Any = None,
    classes: Sequence[str] | None = None,
    pair: Sequence[str] | None = None,
    axis_labels: Sequence[str] | None = None,
    axes: Any = None,
    width: Width = None,
) -> np.ndarray:
    """Sources in two features, with error bars: those of known class, and the candidates.

    Both panels have the same axes. Of more than 1,000 sources they span the central 99 % of the
    measured values and a margin, and the titles say how many are outside. Of more than 10,000 a
    panel shows that many, drawn at random, and says so.

    Parameters
    ----------
    data : ClassificationResult, Catalog, or Measurements (n sources)
        What `classify` returned; a catalog, with its probabilities as `table`; or measurements,
        with `label` and `prediction`.
    table : Table or folder, optional
        Probabilities of the catalog's sources, or the folder of the result that holds them.
    label, prediction : array (n,) of str, optional
        Known and predicted class of measurements; '' for none.
    candidate : array (n,) of bool, optional
        Which of them are shown on the right; those with a prediction.
    classes : sequence of str, optional
        Which colours to take, in this order.
    pair : two str, optional
        Names of the features; the two in which the known classes separate best.
    axis_labels : two str, optional
        Drawn as they stand, mathematics between two $ as such.
    axes : two Axes, optional
        To draw into. Without them a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    array (2,) of Axes

    Examples
    --------
    >>> import gpal
    >>> sources = gpal.Measurements([[20.1, 0.3], [19.5, 1.1]], 0.1, ("magnitude", "colour"))
    >>> left, right = gpal.plot.features(sources, label=["star", ""], prediction=["", "quasar"])
    >>> left.get_title(), right.get_title()
    ('1 labelled, by catalogue class', '1 candidates, by predicted class')
    """
    found = sources_of(data, table, label, prediction, candidate, classes, pair)
    sources, label, prediction, candidate, classes = found[:5]
    axis_labels = found.axis_labels if axis_labels is None else axis_labels
    if isinstance(axis_labels, str) or len(axis_labels) != 2:
        raise InputError(f"axis_labels are {axis_labels!r}: give two")
    wide, scale = canvas(width, 11.5)
    own = axes is None
    if own:
        stacked = wide < 7
        with styled(scale):
            figure = new_figure(wide, 1.7 * wide if stacked else 0.54 * wide, scale)
            shape = (2, 1) if stacked else (1, 2)
            axes = figure.subplots(*shape, sharex=True, sharey=True)
    panels = np.array(given_axes(axes, None if own else width, 2, "labelled and candidates"))
    X, X_err = sources.X, sources.X_err
    measured = sources.measured.all(axis=1)
    colours = {MIXED: MIXED_COLOUR, **class_colours(classes)}
    shown = (
        ("labelled, by catalogue class", label != "", label),
        ("candidates, by predicted class", candidate, prediction),
    )
    low, high = _span(X[measured])
    outside = np.any(np.clip(X, low, high) != X, axis=1)
    with sized_as(panels[0]) as scale:
        for ax, (title, rows, group) in zip(panels, shown, strict=True):
            some = _some(rows & measured)
            for i, (name, colour) in enumerate(colours.items()):
                chosen = some & (group == name)
                x, y, dx, dy = X[chosen, 0], X[chosen, 1], X_err[chosen, 0], X_err[chosen, 1]
                bars = {"ecolor": colour, "elinewidth": 0.5 * scale, "alpha": 0.13}
                ax.errorbar(x, y, dy, dx, fmt="none", **bars)
                ax.scatter(
                    x,
                    y,
                    s=9 * scale**2,
                    marker="o" if name == MIXED else class_marker(i - 1),
                    color=colour,
                    lw=0,
                    zorder=3,
                    label=drawn(name) if ax is panels[1] else None,
                )
            number, all_of = np.sum(some & np.isin(group, list(colours))), np.sum(rows)
            many = f"{number:,} of {all_of:,}" if number < all_of else f"{all_of:,}"
            cut = np.sum(some & outside)
            text = f"{many} {title}" + (f" ({cut:,} outside)" if cut else "")
            ax.set_title(text if len(text) < LONG else text.replace(", by", ",\nby"))
            ax.set_xlabel(axis_labels[0])
            if ax is panels[0] or (own and wide < 7):
                ax.set_ylabel(axis_labels[1])
        for ax in panels:
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        legend(panels, own, wide, len(colours), markerscale=2.5)
    return panels


def _span(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits (2,) and (2,) of the axes: all sources and a margin, of many the central 99 %."""
    if not len(X):
        return np.zeros(2), np.ones(2)
    ends = [0.0, 1.0] if len(X) <= MOST_SPANNED else [0.005, 0.995]
    low, high = np.quantile(X, ends, axis=0)
    margin = 0.08 * (high - low)
    return low - margin, high + margin


def _some(rows: np.ndarray) -> np.ndarray:
    """(n,) bool: `rows`, or MOST_DRAWN of them, the same at every call."""
    if rows.sum() <= MOST_DRAWN:
        return rows
    chosen = np.random.default_rng(0).choice(np.flatnonzero(rows), MOST_DRAWN, replace=False)
    return np.isin(np.arange(len(rows)), chosen)
