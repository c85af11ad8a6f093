"""The figures of a prospective validation: scores of all models, and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpal.errors import InputError
from gpal.plot.results import metrics_of, refuses_unfit_folders
from gpal.plot.style import (
    MARKERS,
    OKABE_ITO,
    Width,
    canvas,
    class_colours,
    drawn,
    given_axes,
    legend,
    new_figure,
    sized_as,
    styled,
)

__all__ = ["ALONG", "calibration", "reliability_by_origin", "scores"]

# Quantity of metrics.json -> what it is called at an axis.
ALONG = {
    "significance": "significance in the old release (sigma)",
    "error_size": "error size, in units of the spread",
}


@refuses_unfit_folders
def scores(data: Any, *, axes: Any = None, width: Width = None) -> np.ndarray:
    """NLL and its 95 % interval of every model: a panel per choice of features.

    Parameters
    ----------
    data : ValidationResult, folder, or mapping
        What `validate` returned, its folder, or its metrics.
    axes : array of Axes, optional
        To draw into, one per choice of features. Without them a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    array of Axes
        One per choice of features.

    Examples
    --------
    >>> import gpal
    >>> nll = {"nll": {"mean": 0.41, "lower": 0.38, "upper": 0.45}}
    >>> variants = {"all features": {"train": {"GPClassifier": nll, "logistic regression": nll}}}
    >>> [ax] = gpal.plot.scores({"kind": "validation", "variants": variants}, width="column")
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['GPClassifier', 'logistic regression']
    """
    variants = _part(data, "variants")
    first = next(iter(variants.values()))
    models = list(next(iter(first.values())))
    wide, scale = canvas(width, 6.2 * len(variants) + 1.8)
    if own := axes is None:
        columns = min(len(variants), max(1, int((wide - 1.8) / 4)))
        rows = -(-len(variants) // columns)
        with styled(scale):
            figure = new_figure(wide, 0.8 + rows * (0.8 + 0.75 * len(models)), scale)
            axes = figure.subplots(rows, columns, sharey=True, sharex=True, squeeze=False)
            for spare in axes.ravel()[len(variants) :]:
                spare.remove()
            axes = axes.ravel()[: len(variants)]
    panels = np.array(
        given_axes(axes, None if own else width, len(variants), "one per choice of features")
    )
    with sized_as(panels[0]) as scale:
        for ax, (variant, corrections) in zip(panels, variants.items(), strict=True):
            for k, (correction, of_models) in enumerate(corrections.items()):
                shift = 0.17 * (k - (len(corrections) - 1) / 2)
                nll = [of_models[model]["nll"] for model in models]
                mean = [value["mean"] for value in nll]
                ax.errorbar(
                    mean,
                    [i + shift for i in range(len(models))],
                    xerr=[
                        [value["mean"] - value["lower"] for value in nll],
                        [value["upper"] - value["mean"] for value in nll],
                    ],
                    fmt=MARKERS[k],
                    ms=6 * scale,
                    color=OKABE_ITO[k],
                    elinewidth=1.3 * scale,
                    capsize=2.5 * scale,
                    label=correction.replace("train", "labelled sources")
                    if ax is panels[0] or not own
                    else None,
                )
            ax.set_title(drawn(variant, 48))
            ax.set_xlabel(f"NLL{' of the examined sources' if wide > 7 else ''} (nats)")
            ax.grid(axis="x", color="#e4e4e4", lw=0.7 * scale)
            ax.set_axisbelow(True)
            ax.set_yticks(range(len(models)), models)
            ax.set_ylim(len(models) - 0.5, -0.5)
        legend(panels, own, wide, len(first), title="class fractions from")
    return panels


@refuses_unfit_folders
def reliability_by_origin(
    data: Any, classes: Sequence[str] | None = None, *, axes: Any = None, width: Width = None
) -> np.ndarray:
    """Observed fraction against predicted probability: a row per origin, a panel per class.

    The origin of a target is what the old release called it. Numbers are sources per bin.

    Parameters
    ----------
    data : ValidationResult, folder, or mapping
        What `validate` returned, its folder, or its metrics; or, with `classes`, origin ->
        "n_examined" and "reliability", which is class -> `gpal.metrics.reliability_table`.
    classes : sequence of C str, optional
        Of such a mapping.
    axes : array of Axes, optional
        To draw into, C per origin. Without them a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    array (origins, C) of Axes

    Examples
    --------
    >>> import gpal
    >>> bins = gpal.metrics.reliability_table([True, False, True], [0.9, 0.4, 0.8])
    >>> origins = {"unassociated": {"n_examined": 3, "reliability": {"psr": bins}}}
    >>> axes = gpal.plot.reliability_by_origin(origins, ["psr"])
    >>> axes[0, 0].get_title()
    'unassociated: psr'
    """
    if classes is None:
        metrics = _of_validation(data)
        data, classes = metrics["by_origin"], metrics["settings"]["classes"]
    shown = {name: part["reliability"] for name, part in data.items() if part["n_examined"]}
    shape = len(shown), len(classes)
    wide, scale = canvas(width, 3.3 * len(classes) + 0.5)
    narrow = wide < 2.6 * len(classes)  # no room for a title on each
    if own := axes is None:
        with styled(scale):
            figure = new_figure(wide, len(shown) * (0.5 + 0.9 * wide / len(classes)), scale)
            axes = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False)
    what = f"{shape[0]} origins by {shape[1]} classes"
    panels = given_axes(axes, None if own else width, shape[0] * shape[1], what)
    grid = np.array(panels).reshape(shape)
    for row, (origin, curves) in zip(grid, shown.items(), strict=True):
        for ax, (c, colour) in zip(row, class_colours(classes).items(), strict=True):
            bins = curves[c]
            x, y = ([b[key] for b in bins] for key in ("predicted", "observed"))
            below = [max(b["observed"] - b["lower"], 0) for b in bins]
            above = [max(b["upper"] - b["observed"], 0) for b in bins]
            with sized_as(ax) as scale:
                ax.plot([0, 1], [0, 1], color="#777777", lw=scale, ls="--", zorder=1)
                ax.errorbar(
                    x,
                    y,
                    yerr=[below, above],
                    fmt="o",
                    ms=6 * scale,
                    color=colour,
                    elinewidth=1.6 * scale,
                    capsize=3 * scale,
                )
                for b in bins:
                    place, aside = (b["predicted"], b["observed"]), (6 * scale, -10 * scale)
                    offset = {"textcoords": "offset points", "size": 8 * scale}
                    ax.annotate(str(b["n"]), place, aside, **offset)
                ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
                if not narrow:
                    ax.set_title(f"{drawn(origin)}: {drawn(c)}")
        row[0].set_ylabel(drawn(origin) if narrow else "fraction observed")
    for ax, c in zip(grid[-1], classes, strict=True):
        ax.set_xlabel(f"{'' if narrow else 'predicted '}p({drawn(c)})")
    if narrow:
        grid[0, 0].figure.supylabel("fraction observed", size=grid[0, 0].xaxis.label.get_size())
    return grid


@refuses_unfit_folders
def calibration(
    data: Any, *, correction: str = "by origin", axes: Any = None, width: Width = None
) -> np.ndarray:
    """Accuracy with its interval beside mean confidence, in bins: a panel per quantity.

    Parameters
    ----------
    data : ValidationResult, folder, or mapping
        What `validate` returned, its folder, or its metrics; or axis label -> rows of
        `gpal.evaluation.covariate_shift.calibration_by`.
    correction : str
        "train" or "by origin": class fractions that the probabilities refer to.
    axes : array of Axes, optional
        To draw into, one per quantity. Without them a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    array of Axes
        One per quantity.

    Examples
    --------
    >>> import gpal
    >>> row = {"from": 4, "to": 9, "n": 50, "confidence": 0.83}
    >>> row |= {"accuracy": 0.8, "accuracy_lower": 0.74, "accuracy_upper": 0.85}
    >>> [ax] = gpal.plot.calibration({"significance (sigma)": [row]}, width="column")
    >>> ax.get_xlabel()
    'significance (sigma)'
    """
    if (found := _part(data, "calibration")) is not data:
        if correction not in found:
            raise InputError(f"no correction '{correction}' here; there are: {', '.join(found)}")
        data = {ALONG.get(name, name): bins for name, bins in found[correction].items()}
    wide, scale = canvas(width, 5.4 * len(data) + 0.4)
    stacked = wide < 4 * len(data)
    if own := axes is None:
        shape = (len(data), 1) if stacked else (1, len(data))
        with styled(scale):
            figure = new_figure(wide, 0.6 + 4.0 * shape[0], scale)
            axes = figure.subplots(*shape, sharey=True, squeeze=False)
    panels = np.array(given_axes(axes, None if own else width, len(data), "one per quantity"))
    for ax, (label, bins) in zip(panels, data.items(), strict=True):
        place = range(len(bins))
        accuracy = [b["accuracy"] for b in bins]
        with sized_as(ax) as scale:
            ax.errorbar(
                place,
                accuracy,
                yerr=[
                    [max(b["accuracy"] - b["accuracy_lower"], 0) for b in bins],
                    [max(b["accuracy_upper"] - b["accuracy"], 0) for b in bins],
                ],
                fmt="o",
                ms=7 * scale,
                color=OKABE_ITO[0],
                elinewidth=1.6 * scale,
                capsize=3 * scale,
                label="accuracy" if ax is panels[0] or not own else None,
            )
            ax.plot(
                place,
                [b["confidence"] for b in bins],
                marker="D",
                ms=6 * scale,
                lw=1.5 * scale,
                ls="--",
                color=OKABE_ITO[1],
                label="mean confidence" if ax is panels[0] or not own else None,
            )
            names = [f"{b['from']:.2g} to {b['to']:.2g}\nn = {b['n']}" for b in bins]
            ax.set_xticks(place, names, fontsize=9 * scale)
            ax.set_xlabel(drawn(label, 48))
            lowest = [min(b["accuracy"], b["accuracy_lower"], b["confidence"]) for b in bins]
            ax.set_ylim(min([0.5, *(value - 0.02 for value in lowest)]), 1.02)
            if ax is panels[0] or (own and stacked):
                ax.set_ylabel("largest probability right")
    with sized_as(panels[0]):
        legend(panels, own, wide, 2)
    return panels


def _part(data: Any, name: str) -> Mapping[str, Any]:
    """That part of metrics.json; the part itself as it is."""
    part = isinstance(data, Mapping) and name not in data
    return data if part else _of_validation(data)[name]


def _of_validation(data: Any) -> Mapping[str, Any]:
    metrics = metrics_of(data)
    if metrics.get("kind") != "validation":
        raise InputError("this is a figure of a validation: give what `gpal validate` made")
    return metrics
