"""What a threshold on the probability of a class gives: ROC, and purity against completeness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from sklearn.metrics import roc_curve

from gpal.metrics import pure_list, purity_curve, roc_auc
from gpal.plot.results import known_of
from gpal.plot.style import (
    Width,
    canvas,
    class_colours,
    class_line,
    class_marker,
    drawn,
    given_axes,
    legend,
    new_figure,
    sized_as,
    styled,
)

__all__ = ["purity_completeness", "roc"]

NATURAL = 6.2  # inches on a screen
LIMITS = (-0.02, 1.02)


def roc(
    data: Any,
    P: Any = None,
    classes: Sequence[str] | None = None,
    *,
    model: str | None = None,
    correction: str = "train",
    ax: Axes | None = None,
    width: Width = None,
) -> Axes:
    """ROC curve of each class against the rest, with the area under it.

    A class that no source has, or every one, has no curve.

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
    >>> P = [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]]
    >>> ax = gpal.plot.roc(["bll", "bll", "psr", "psr"], P, ["bll", "psr"])
    >>> [line.get_label() for line in ax.lines[1:]]
    ['bll (AUC 0.750)', 'psr (AUC 0.750)']
    """
    y, P, classes = known_of(data, P, classes, model, correction)
    areas = roc_auc(y, P)
    ax, own, wide = _one(ax, width)
    with sized_as(ax) as scale:
        ax.plot([0, 1], [0, 1], color="#777777", lw=scale, ls="--", zorder=1)
        for c, (name, colour) in enumerate(class_colours(classes).items()):
            known = areas[c] == areas[c]
            false, true, _ = roc_curve(y == c, P[:, c]) if known else ([], [], [])
            label = f"{drawn(name)} ({f'AUC {areas[c]:.3f}' if known else 'no AUC'})"
            ax.plot(false, true, color=colour, ls=class_line(c), lw=2 * scale, label=label)
        ax.set(xlim=LIMITS, ylim=LIMITS)
        ax.set_xlabel("other sources listed, fraction")
        ax.set_ylabel("completeness")
        legend([ax], own, wide, len(classes))
    return ax


def purity_completeness(
    data: Any,
    P: Any = None,
    classes: Sequence[str] | None = None,
    *,
    purity: float | None = 0.9,
    model: str | None = None,
    correction: str = "train",
    ax: Axes | None = None,
    width: Width = None,
) -> Axes:
    """Purity against completeness of the list above every threshold, class by class.

    Dashed is the purity that the probabilities promise, their mean over the list. A mark is at the
    longest list of a stated purity, see `gpal.metrics.pure_list`.

    Parameters
    ----------
    data : result, folder, CrossValidation, or array (n,)
        What `classify`, `validate` or `cross_validate` returned; the folder of a result; or the
        known classes, indices or names, with `P` and `classes`.
    P : array (n, C), optional
        Probabilities.
    classes : sequence of C str, optional
        Names in the order of the columns of `P`.
    purity : float, optional
        Where the marks are; None for none.
    model : str, optional
        One of those that a result compares; the first.
    correction : str
        Of a validation: "train" or "by origin", see `gpal.evaluation.prospective`.
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
    >>> P = [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]]
    >>> y, classes = ["bll", "bll", "psr", "psr"], ["bll", "psr"]
    >>> ax = gpal.plot.purity_completeness(y, P, classes, purity=0.6)
    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['promised', 'bll (p ≥ 0.40)', 'psr (p ≥ 0.50)']
    """
    y, P, classes = known_of(data, P, classes, model, correction)
    ax, own, wide = _one(ax, width)
    with sized_as(ax) as scale:
        ax.plot([], [], color="#777777", lw=1.2 * scale, ls="--", label="promised")
        if purity is not None:
            ax.axhline(purity, color="#777777", lw=0.8 * scale, ls=":", zorder=1)
        for c, (name, colour) in enumerate(class_colours(classes).items()):
            member, label = y == c, drawn(name)
            curve = purity_curve(member, P[:, c])
            if purity is not None:
                listed = pure_list(member, P[:, c], purity)
                mark = {"ms": 8 * scale, "mec": "white", "mew": scale, "zorder": 4}
                ax.plot(
                    [listed.completeness],
                    [listed.purity],
                    marker=class_marker(c),
                    color=colour,
                    ls="",
                    **mark,
                )
                at = f"p ≥ {listed.threshold:.2f}" if listed.listed else f"never {purity:g}"
                label = f"{label} ({at})"
            promised = {"color": colour, "lw": 1.2 * scale, "ls": "--"}
            ax.plot(curve.completeness, curve.promised, **promised)
            observed = {"color": colour, "ls": class_line(c), "lw": 2 * scale, "label": label}
            ax.plot(curve.completeness, curve.purity, **observed)
        ax.set(xlim=LIMITS, ylim=LIMITS)
        ax.set_xlabel("completeness")
        ax.set_ylabel("purity")
        legend([ax], own, wide, 1 + len(classes))
    return ax


def _one(ax: Axes | None, width: Width) -> tuple[Axes, bool, float]:
    """The axes to draw into, whether they are gpal's own, and the width to lay out in."""
    wide, scale = canvas(width, NATURAL)
    if own := ax is None:
        with styled(scale):
            ax = new_figure(wide, 0.95 * wide, scale).add_subplot()
    (ax,) = given_axes(ax, None if own else width, 1, "one in all")
    return ax, own, wide
