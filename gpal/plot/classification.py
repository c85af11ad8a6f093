"""The figures of a classification: confusion matrix, reliability, sky."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpal.errors import InputError
from gpal.metrics import reliability_curve
from gpal.plot.results import confusion_of, known_of, places_of
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

__all__ = ["confusion_matrix", "reliability", "sky_map"]

PROJECTIONS = ("mollweide", "hammer", "aitoff")


def confusion_matrix(
    data: Any,
    P: Any = None,
    classes: Sequence[str] | None = None,
    *,
    model: str | None = None,
    ax: Axes | None = None,
    width: Width = None,
) -> Axes:
    """How sources of one class are taken for another, in per cent of the class.

    Parameters
    ----------
    data : result, folder, CrossValidation, or array (n,)
        What `classify`, `validate` or `cross_validate` returned; the folder of a result; or the
        known classes, indices or names, with `P` and `classes`.
    P : array (n, C), optional
        Probabilities. Without folds there is no error to show.
    classes : sequence of C str, optional
        Names in the order of the columns of `P`.
    model : str, optional
        One of those that a result compares; the first.
    ax : Axes, optional
        To draw into. Without it a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gpal
    >>> P = [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]
    >>> ax = gpal.plot.confusion_matrix(["star", "star", "quasar"], P, ["star", "quasar"])
    >>> ax.get_xlabel()
    'predicted class'
    """
    mean, se, counts, classes = confusion_of(data, P, classes, model)
    names = [drawn(c) for c in classes]
    size, longest = len(names), max(map(len, names))
    if own := ax is None:
        wide, scale = canvas(width, 3.4 + 1.1 * size + 0.13 * max(0, longest - 4))
        with styled(scale):
            tall = (2.4 + 0.95 * size) * min(1, wide / (3.2 + 1.1 * size))
            ax = new_figure(wide, tall, scale).add_subplot()
    (ax,) = given_axes(ax, None if own else width, 1, "one in all")
    with sized_as(ax):
        image = ax.imshow(mean, cmap="Blues", vmin=0, vmax=1)
        for i, j in np.ndindex(size, size):
            known = np.isfinite(mean[i, j])
            error = ""
            if known and se is not None and np.isfinite(se[i, j]):
                error = f"\n± {100 * se[i, j]:.1f}"
            ax.text(
                j,
                i,
                f"{100 * mean[i, j]:.1f}{error}" if known else "–",
                ha="center",
                va="center",
                linespacing=1.25,
                color="white" if mean[i, j] > 0.55 else "#1a1a1a",
            )
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if longest > 10 else {}
        ax.set_xticks(range(size), names, **slant)
        rows = [f"{name}\n({n})" for name, n in zip(names, counts, strict=True)]
        ax.set_yticks(range(size), rows)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("catalogue class (sources)")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
        bar.set_label("sources of the class, per cent", size=ax.xaxis.label.get_size())
        bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25", "50", "75", "100"])
        bar.outline.set_visible(False)
    return ax


def reliability(
    data: Any,
    P: Any = None,
    classes: Sequence[str] | None = None,
    *,
    model: str | None = None,
    correction: str = "train",
    axes: Any = None,
    width: Width = None,
) -> np.ndarray:
    """Observed fraction against predicted probability, and how many sources there are of it.

    Error bars are Wilson intervals at one sigma, see `gpal.metrics.reliability_curve`.

    Parameters
    ----------
    data : result, folder, CrossValidation, or array (n,)
        What `classify`, `validate` or `cross_validate` returned; the folder of a result; or the
        known classes, indices or names, with `P` and `classes`.
    P : array (n, C), optional
        Probabilities.
    classes : sequence of C str, optional
        Names in the order of the columns of `P`.
    model : str, optional
        One of those that a result compares; the first.
    correction : str
        Of a validation: "train" or "by origin", see `gpal.evaluation.prospective`.
    axes : array of 2 C or C Axes, optional
        To draw into: curves, then counts; C axes take curves alone. Without it a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    array (2, C) of Axes
        Curves above, counts below; (1, C) where there are no counts.

    Examples
    --------
    >>> import gpal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], size=100)
    >>> y = (rng.random((100, 1)) > P.cumsum(axis=1)).sum(axis=1)
    >>> axes = gpal.plot.reliability(y, P, ["bll", "fsrq", "psr"], width="page")
    >>> axes.shape, axes[0, 2].get_title()
    ((2, 3), 'psr')
    """
    y, P, classes = known_of(data, P, classes, model, correction)
    size = len(classes)
    if axes is None:
        panels, left = _reliability_panels(size, width)
    else:
        rows = 1 if np.size(np.asarray(axes, dtype=object)) == size else 2
        what = f"one for each of the {size} classes and, if there is room, one for its counts"
        panels = np.array(given_axes(axes, width, rows * size, what)).reshape(rows, size)
        left = range(0, size, size)
    for c, (name, colour) in enumerate(class_colours(classes).items()):
        curve = reliability_curve(y == c, P[:, c])
        upper, lower = panels[0, c], panels[-1, c]
        with sized_as(upper) as scale:
            upper.plot([0, 1], [0, 1], color="#777777", lw=scale, ls="--", zorder=1)
            upper.errorbar(
                curve.predicted,
                curve.observed,
                yerr=[
                    np.maximum(curve.observed - curve.lower, 0),
                    np.maximum(curve.upper - curve.observed, 0),
                ],
                fmt=class_marker(c),
                ms=6.5 * scale,
                color=colour,
                ecolor=colour,
                elinewidth=1.6 * scale,
                capsize=3 * scale,
                zorder=3,
            )
            upper.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=drawn(name))
            upper.set_xticks([0, 0.5, 1], labels=[])
            upper.set_yticks([0, 0.5, 1])
            if lower is not upper:
                lower.bar(
                    curve.edges[:-1],
                    curve.count,
                    np.diff(curve.edges),
                    align="edge",
                    color=colour,
                    alpha=0.75,
                    edgecolor="white",
                    linewidth=scale,
                )
                lower.set_yscale("log")
                lower.set(xlim=(-0.03, 1.03), ylim=(0.8, 2 * len(y)))
            lower.set_xticks([0, 0.5, 1], labels=["0", "0.5", "1"])
            lower.set_xlabel(f"predicted p({drawn(name)})")
            if c in left:
                upper.set_ylabel("fraction observed")
                if lower is not upper:
                    lower.set_ylabel("sources")
    return panels


def _reliability_panels(size: int, width: Width) -> tuple[np.ndarray, range]:
    """(2, C) axes, curves above counts, in as many rows as the width asks for; the leftmost."""
    wide, scale = canvas(width, 3.3 * min(size, 4) + 0.5)
    columns = min(size, 4, max(1, int(wide / 2.4)))
    rows = -(-size // columns)
    with styled(scale):
        figure = new_figure(wide, rows * (1.4 + wide / columns * 0.95), scale)
        grid = figure.add_gridspec(2 * rows, columns, height_ratios=[3.2, 1] * rows)
        panels = np.array(
            [
                [figure.add_subplot(grid[2 * row + k, column]) for k in (0, 1)]
                for row, column in (divmod(c, columns) for c in range(size))
            ]
        )
    return panels.T, range(0, size, columns)


def sky_map(
    data: Any,
    glat: Any = None,
    prediction: Any = None,
    candidate: Any = None,
    classes: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    width: Width = None,
) -> Axes:
    """Where the candidates are: Galactic coordinates, longitude growing to the left.

    Candidates stand out in the colour of their predicted class, grey where MIXED; all other sources
    are pale dots behind them. Sources without a position are left out.

    Parameters
    ----------
    data : result, folder, Table, or array (n,)
        What `classify` or `predict` returned; the folder of a result; or Galactic longitudes in
        degrees, with the latitudes and what was predicted.
    glat : array (n,), optional
        Galactic latitudes in degrees.
    prediction : array (n,) of str, optional
        Predicted classes, or "MIXED".
    candidate : array (n,) of bool, optional
        Which sources stand out; all.
    classes : sequence of str, optional
        Which colours to take, in this order; those that are predicted.
    ax : Axes, optional
        To draw into, with `projection="mollweide"`. Without it a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gpal
    >>> ax = gpal.plot.sky_map([10.0, 120.0, 250.0], [5.0, -30.0, 60.0], ["psr", "bll", "MIXED"])
    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['not candidates', 'MIXED (1)', 'bll (1)', 'psr (1)']
    """
    glon, glat, prediction, candidate, classes = places_of(
        data, glat, prediction, candidate, classes
    )
    wide, scale = canvas(width, 10.5)
    if own := ax is None:
        with styled(scale):
            figure = new_figure(wide, 1.2 + 0.46 * wide, scale)
            ax = figure.add_subplot(projection="mollweide")
    (ax,) = given_axes(ax, None if own else width, 1, "one in all")
    if ax.name not in PROJECTIONS:
        raise InputError(
            f"axes with the projection '{ax.name}' show no sky: make them with one of"
            f" {', '.join(PROJECTIONS)}"
        )
    candidate = candidate & np.isfinite(glon) & np.isfinite(glat)
    with sized_as(ax) as scale:
        x = -np.deg2rad((glon + 180) % 360 - 180)
        latitude = np.deg2rad(glat)
        area = scale**2 * min(1, wide / 10.5)
        others = {"s": 3 * area, "color": "#dddddd", "lw": 0, "label": "not candidates"}
        ax.scatter(x[~candidate], latitude[~candidate], **others)
        names = [MIXED, *classes]
        colours = {MIXED: MIXED_COLOUR, **class_colours(classes)}
        for i, name in enumerate(names):
            rows = candidate & (prediction == name)
            ax.scatter(
                x[rows],
                latitude[rows],
                s=(8 if name == MIXED else 11) * area,
                marker="o" if name == MIXED else class_marker(i - 1),
                color=colours[name],
                lw=0,
                alpha=0.85,
                label=f"{drawn(name)} ({rows.sum()})",
                zorder=2 + (name != MIXED),
            )
        rest = candidate & ~np.isin(prediction, names)
        if rest.any():
            label = f"of other classes ({rest.sum()})"
            ax.scatter(x[rest], latitude[rest], s=8 * area, color="#999999", lw=0, label=label)
        ax.grid(color="#d8d8d8", lw=0.6 * scale)
        ax.set_axisbelow(True)
        ticks = np.arange(-120, 121, 60)
        ax.set_xticks(np.deg2rad(ticks), labels=[])
        small = 10 * scale
        for tick in ticks:  # on the parallel −45°: the equator is where the sources crowd
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
            where = (np.deg2rad(tick), np.deg2rad(-45))
            ax.text(
                *where,
                f"{-tick % 360}°",
                size=small,
                color="#444444",
                ha="center",
                bbox=box,
                zorder=1.5,  # above the grid, below the candidates
            )
        ax.set_yticks(np.deg2rad([-60, -30, 0, 30, 60]))
        ax.tick_params(labelsize=small, labelcolor="#444444")
        ax.set_xlabel("Galactic longitude (deg)")
        ax.set_ylabel("Galactic latitude (deg)")
        legend([ax], own, wide, min(len(names) + 1, 5), markerscale=2)
    return ax
