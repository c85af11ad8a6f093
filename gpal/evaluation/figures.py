"""The figures of a classification: confusion matrix, reliability, sky map, feature scatter.

Every function returns a matplotlib Figure in the style of gpal.evaluation.figure_style.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from gpal.evaluation.calibration import reliability_curve
from gpal.evaluation.cross_validation import Estimate
from gpal.evaluation.figure_style import (
    MARKERS,
    MIXED,
    MIXED_COLOUR,
    STYLE,
    class_colours,
    drawn,
    new_figure,
)
from gpal.measurements import Measurements

__all__ = [
    "confusion_figure",
    "feature_figure",
    "most_informative_pair",
    "reliability_figure",
    "sky_figure",
]


def confusion_figure(confusion: Estimate, classes: Sequence[str], counts: Sequence[int]) -> Figure:
    """(C, C) matrix normalised by truth, mean ± s.e. in per cent; `counts` sources per class."""
    size = len(classes)
    with mpl.rc_context(STYLE):
        names = [drawn(c) for c in classes]
        longest = max(map(len, names))
        figure = new_figure(3.2 + 1.1 * size + 0.13 * max(0, longest - 8), 2.4 + 0.95 * size)
        axes = figure.add_subplot()
        image = axes.imshow(confusion.mean, cmap="Blues", vmin=0, vmax=1)
        for i, j in np.ndindex(size, size):
            axes.text(
                j,
                i,
                f"{100 * confusion.mean[i, j]:.1f}\n± {100 * confusion.se[i, j]:.1f}",
                ha="center",
                va="center",
                linespacing=1.25,
                color="white" if confusion.mean[i, j] > 0.55 else "#1a1a1a",
            )
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if longest > 10 else {}
        axes.set_xticks(range(size), names, **slant)
        rows = [f"{name}\n({n})" for name, n in zip(names, counts, strict=True)]
        axes.set_yticks(range(size), rows)
        axes.set_xlabel("predicted class")
        axes.set_ylabel("catalogue class (sources)")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label("sources of the class, per cent")
        bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25", "50", "75", "100"])
        bar.outline.set_visible(False)
    return figure


def reliability_figure(y: np.ndarray, P: np.ndarray, classes: Sequence[str]) -> Figure:
    """One panel per class: observed fraction against predicted probability; counts below."""
    columns = min(len(classes), 4)
    rows = -(-len(classes) // columns)
    with mpl.rc_context(STYLE):
        figure = new_figure(3.3 * columns + 0.5, 4.7 * rows)
        grid = figure.add_gridspec(2 * rows, columns, height_ratios=[3.2, 1] * rows)
        for c, (name, colour) in enumerate(class_colours(classes).items()):
            row, column = divmod(c, columns)
            curve = reliability_curve(y == c, P[:, c])
            axes = figure.add_subplot(grid[2 * row, column])
            axes.plot([0, 1], [0, 1], color="#777777", lw=1, ls="--", zorder=1)
            axes.errorbar(
                curve.predicted,
                curve.observed,
                yerr=[
                    np.maximum(curve.observed - curve.lower, 0),
                    np.maximum(curve.upper - curve.observed, 0),
                ],
                fmt=MARKERS[c % len(MARKERS)],
                ms=6.5,
                color=colour,
                ecolor=colour,
                elinewidth=1.6,
                capsize=3,
                zorder=3,
            )
            axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=drawn(name))
            axes.set_xticks([0, 0.5, 1], labels=[])
            axes.set_yticks([0, 0.5, 1])
            counts = figure.add_subplot(grid[2 * row + 1, column])
            counts.bar(
                curve.edges[:-1],
                curve.count,
                np.diff(curve.edges),
                align="edge",
                color=colour,
                alpha=0.75,
                edgecolor="white",
            )
            counts.set_yscale("log")
            counts.set(xlim=(-0.03, 1.03), ylim=(0.8, 2 * len(y)))
            counts.set_xticks([0, 0.5, 1], labels=["0", "0.5", "1"])
            counts.set_xlabel(f"predicted p({drawn(name)})")
            if column == 0:
                axes.set_ylabel("fraction observed")
                counts.set_ylabel("sources")
    return figure


def sky_figure(
    glon: np.ndarray,
    glat: np.ndarray,
    prediction: np.ndarray,
    candidate: np.ndarray,
    classes: Sequence[str],
) -> Figure:
    """Mollweide map in Galactic coordinates, degrees, longitude growing to the left.

    `candidate` sources stand out in the colour of their predicted class, grey where MIXED; all
    others are pale dots behind them. Sources without a position are left out.
    """
    with mpl.rc_context(STYLE):
        figure = new_figure(10.5, 6.0)
        axes = figure.add_subplot(projection="mollweide")
        x = -np.deg2rad((np.asarray(glon, float) + 180) % 360 - 180)
        latitude = np.deg2rad(np.asarray(glat, float))
        axes.scatter(
            x[~candidate], latitude[~candidate], s=3, color="#dddddd", lw=0, label="other sources"
        )
        names = [MIXED, *classes]
        colours = {MIXED: MIXED_COLOUR, **class_colours(classes)}
        for i, name in enumerate(names):
            rows = candidate & (prediction == name)
            axes.scatter(
                x[rows],
                latitude[rows],
                s=8 if name == MIXED else 11,
                marker="o" if name == MIXED else MARKERS[(i - 1) % len(MARKERS)],
                color=colours[name],
                lw=0,
                alpha=0.85,
                label=f"{drawn(name)} ({rows.sum()})",
                zorder=2 + (name != MIXED),
            )
        axes.grid(color="#d8d8d8", lw=0.6)
        axes.set_axisbelow(True)
        ticks = np.arange(-120, 121, 60)
        axes.set_xticks(np.deg2rad(ticks), labels=[])
        for tick in ticks:  # on the parallel −45°: the equator is where the sources crowd
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
            where = (np.deg2rad(tick), np.deg2rad(-45))
            axes.text(
                *where, f"{-tick % 360}°", size=10, color="#444444", ha="center", bbox=box, zorder=9
            )
        axes.set_yticks(np.deg2rad([-60, -30, 0, 30, 60]))
        axes.tick_params(labelsize=10, labelcolor="#444444")
        axes.set_xlabel("Galactic longitude (deg)")
        axes.set_ylabel("Galactic latitude (deg)")
        figure.legend(loc="outside lower center", ncols=min(len(names) + 1, 5), markerscale=2)
    return figure


def most_informative_pair(sources: Measurements, y: np.ndarray) -> tuple[int, int]:
    """The two features in which the classes y (n,) separate best, by their numbers.

    Best: highest mean log probability of a quadratic discriminant (one Gaussian per class) of the
    pair, on the sources where both were measured. It judges the pair together, so that a second
    feature which only repeats the first is not chosen.
    """
    X = sources.X

    def separation(pair: tuple[int, int]) -> float:
        measured = np.isfinite(X[:, pair]).all(axis=1)
        values, index = X[np.ix_(measured, pair)], y[measured]
        values = (values - values.mean(axis=0)) / (values.std(axis=0) + np.finfo(float).tiny)
        discriminant = QuadraticDiscriminantAnalysis(reg_param=1e-3).fit(values, index)
        log_probability = discriminant.predict_log_proba(values)
        return float(np.mean(log_probability[np.arange(len(index)), index]))

    return max(combinations(range(X.shape[1]), 2), key=separation)


def feature_figure(
    sources: Measurements,
    axis_labels: Sequence[str],
    label: np.ndarray,
    prediction: np.ndarray,
    candidate: np.ndarray,
    classes: Sequence[str],
) -> Figure:
    """Sources with two features and error bars: labelled sources left, candidates right, same axes.

    axis_labels are drawn as they stand, mathematics between two $ as such. Labelled sources take
    the colour of `label` ('' for none), candidates that of `prediction`. The axes span the central
    99 % of the measured values.
    """
    X, X_err = sources.X, sources.X_err
    measured = sources.measured.all(axis=1)
    with mpl.rc_context(STYLE):
        figure = new_figure(11.5, 6.2)
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        colours = {MIXED: MIXED_COLOUR, **class_colours(classes)}
        shown = (
            ("labelled, by catalogue class", label != "", label),
            ("candidates, by predicted class", candidate, prediction),
        )
        for axes, (title, rows, group) in zip(panels, shown, strict=True):
            for i, (name, colour) in enumerate(colours.items()):
                chosen = rows & measured & (group == name)
                x, y, dx, dy = X[chosen, 0], X[chosen, 1], X_err[chosen, 0], X_err[chosen, 1]
                axes.errorbar(x, y, dy, dx, fmt="none", ecolor=colour, elinewidth=0.5, alpha=0.13)
                axes.scatter(
                    x,
                    y,
                    s=9,
                    marker="o" if name == MIXED else MARKERS[(i - 1) % len(MARKERS)],
                    color=colour,
                    lw=0,
                    zorder=3,
                    label=drawn(name) if axes is panels[1] else None,
                )
            axes.set_title(f"{np.sum(rows & measured):,} {title}")
            axes.set_xlabel(axis_labels[0])
        panels[0].set_ylabel(axis_labels[1])
        for axis, values in zip("xy", X[measured].T, strict=True):
            low, high = np.quantile(values, [0.005, 0.995])
            margin = 0.08 * (high - low)
            panels[0].set(**{f"{axis}lim": (low - margin, high + margin)})
        figure.legend(loc="outside lower center", ncols=len(colours), markerscale=2.5)
    return figure
