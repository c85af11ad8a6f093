"""Figures of a prospective validation: scores of all models, and calibration along a quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from gpal.evaluation.figure_style import (
    MARKERS,
    OKABE_ITO,
    STYLE,
    class_colours,
    drawn,
    new_figure,
)

__all__ = ["calibration_figure", "origin_reliability_figure", "score_figure"]


def score_figure(scores: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """NLL and its 95 % interval: a panel per feature variant, a mark per correction.

    scores  variant -> correction -> model -> {"nll": {"mean", "lower", "upper"}}
    """
    first = next(iter(scores.values()))
    models = list(next(iter(first.values())))
    with mpl.rc_context(STYLE):
        figure = new_figure(6.2 * len(scores) + 1.8, 1.6 + 0.75 * len(models))
        panels = figure.subplots(1, len(scores), sharey=True, sharex=True, squeeze=False)[0]
        for axes, (variant, corrections) in zip(panels, scores.items(), strict=True):
            for k, (correction, of_models) in enumerate(corrections.items()):
                shift = 0.17 * (k - (len(corrections) - 1) / 2)
                nll = [of_models[model]["nll"] for model in models]
                mean = [value["mean"] for value in nll]
                axes.errorbar(
                    mean,
                    [i + shift for i in range(len(models))],
                    xerr=[
                        [value["mean"] - value["lower"] for value in nll],
                        [value["upper"] - value["mean"] for value in nll],
                    ],
                    fmt=MARKERS[k],
                    ms=6,
                    color=OKABE_ITO[k],
                    elinewidth=1.3,
                    capsize=2.5,
                    label=correction.replace("train", "labelled sources")
                    if axes is panels[0]
                    else None,
                )
            axes.set_title(drawn(variant, 48))
            axes.set_xlabel("NLL of the examined sources (nats)")
            axes.grid(axis="x", color="#e4e4e4", lw=0.7)
            axes.set_axisbelow(True)
        panels[0].set_yticks(range(len(models)), models)
        panels[0].invert_yaxis()
        figure.legend(loc="outside lower center", ncols=len(first), title="class fractions from")
    return figure


def origin_reliability_figure(
    by_origin: Mapping[str, Mapping[str, Any]], classes: Sequence[str]
) -> Figure:
    """Observed fraction against predicted probability: a row per origin, a panel per class.

    by_origin  origin -> {"n_examined", "reliability": class -> calibration.reliability_table}
    """
    shown = {name: part["reliability"] for name, part in by_origin.items() if part["n_examined"]}
    with mpl.rc_context(STYLE):
        figure = new_figure(3.3 * len(classes) + 0.5, 3.3 * len(shown))
        grid = figure.subplots(len(shown), len(classes), sharex=True, sharey=True, squeeze=False)
        for panels, (origin, curves) in zip(grid, shown.items(), strict=True):
            for axes, (c, colour) in zip(panels, class_colours(classes).items(), strict=True):
                bins = curves[c]
                x, y = ([b[key] for b in bins] for key in ("predicted", "observed"))
                below = [max(b["observed"] - b["lower"], 0) for b in bins]
                above = [max(b["upper"] - b["observed"], 0) for b in bins]
                axes.plot([0, 1], [0, 1], color="#777777", lw=1, ls="--", zorder=1)
                axes.errorbar(
                    x, y, yerr=[below, above], fmt="o", color=colour, elinewidth=1.6, capsize=3
                )
                for b in bins:
                    place = (b["predicted"], b["observed"])
                    axes.annotate(str(b["n"]), place, (6, -10), textcoords="offset points", size=8)
                axes.set(
                    xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=f"{drawn(origin)}: {drawn(c)}"
                )
        for axes in grid[:, 0]:
            axes.set_ylabel("fraction observed")
        for axes, c in zip(grid[-1], classes, strict=True):
            axes.set_xlabel(f"predicted p({drawn(c)})")
    return figure


def calibration_figure(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Accuracy with its interval beside mean confidence, in bins; one panel per quantity.

    rows  axis label -> rows of gpal.evaluation.covariate_shift.calibration_by
    """
    with mpl.rc_context(STYLE):
        figure = new_figure(5.4 * len(rows) + 0.4, 4.6)
        panels = figure.subplots(1, len(rows), sharey=True, squeeze=False)[0]
        for axes, (label, bins) in zip(panels, rows.items(), strict=True):
            place = range(len(bins))
            accuracy = [b["accuracy"] for b in bins]
            axes.errorbar(
                place,
                accuracy,
                yerr=[
                    [max(b["accuracy"] - b["accuracy_lower"], 0) for b in bins],
                    [max(b["accuracy_upper"] - b["accuracy"], 0) for b in bins],
                ],
                fmt="o",
                ms=7,
                color=OKABE_ITO[0],
                elinewidth=1.6,
                capsize=3,
                label="accuracy" if axes is panels[0] else None,
            )
            axes.plot(
                place,
                [b["confidence"] for b in bins],
                marker="D",
                ms=6,
                ls="--",
                color=OKABE_ITO[1],
                label="mean confidence" if axes is panels[0] else None,
            )
            names = [f"{b['from']:.2g} to {b['to']:.2g}\nn = {b['n']}" for b in bins]
            axes.set_xticks(place, names, fontsize=9)
            axes.set_xlabel(label)
            axes.set_ylim(min(0.5, *accuracy), 1.02)
        panels[0].set_ylabel("largest probability right")
        figure.legend(loc="outside lower center", ncols=2)
    return figure
