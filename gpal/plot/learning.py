"""The figure of a study of strategies: what every further label brought."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from gpal.errors import InputError
from gpal.files.csv import read_csv
from gpal.plot.results import is_path, read
from gpal.plot.style import (
    MIXED_COLOUR,
    Width,
    canvas,
    class_colours,
    drawn,
    given_axes,
    new_figure,
    sized_as,
    styled,
)

__all__ = ["learning_curves"]

CONTROL = "random"  # what the other strategies are compared with
TITLES = {"error": "test error", "nll": "test NLL (nats)"}


def learning_curves(
    data: Any,
    curves: Mapping[str, Mapping[str, np.ndarray]] | None = None,
    *,
    axes: Any = None,
    width: Width = None,
) -> np.ndarray:
    """Test error and NLL against labels: means over repeats, bands of one standard error.

    The strategy `random` is grey; the level that it ends with is dotted.

    Parameters
    ----------
    data : Study, folder, or mapping
        What `gpal.active.simulate.simulate` returned, or the folder that it wrote; or strategy ->
        (L,) numbers of labels.
    curves : mapping, optional
        Strategy -> score -> (R, L) of R repeats.
    axes : array of Axes, optional
        To draw into, one per score. Without them a figure is made.
    width : str or float, optional
        Of that figure: one of `WIDTHS`, or inches; without it, for a screen.

    Returns
    -------
    array of Axes
        One per score.

    Examples
    --------
    >>> import gpal
    >>> import numpy as np
    >>> labels = {"entropy": np.array([10, 20, 30])}
    >>> curves = {"entropy": {"error": np.array([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]])}}
    >>> [ax] = gpal.plot.learning_curves(labels, curves, width="column")
    >>> ax.get_ylabel()
    'test error'
    """
    found = _means(data, curves)
    metrics = list(next(iter(found.values()))[1])
    wide, scale = canvas(width, 10.0)
    if own := axes is None:
        shape = (len(metrics), 1) if wide < 7 else (1, len(metrics))
        with styled(scale):
            tall = 0.6 * wide * shape[0] if wide < 7 else 0.4 * wide
            axes = new_figure(wide, tall, scale).subplots(*shape, squeeze=False)
    panels = np.array(given_axes(axes, None if own else width, len(metrics), "one per score"))
    others = [name for name in found if name != CONTROL]
    colours = {**class_colours(others), CONTROL: MIXED_COLOUR}
    for ax, name in zip(panels, metrics, strict=True):
        with sized_as(ax) as scale:
            for strategy, (x, of_scores) in found.items():
                (mean, band), colour = of_scores[name], colours[strategy]
                title = drawn(strategy.replace("_", " "))
                ax.plot(x, mean, color=colour, lw=1.5 * scale, label=title)
                ax.fill_between(x, mean - band, mean + band, color=colour, alpha=0.25, lw=0)
                known = mean[np.isfinite(mean)]
                if strategy == CONTROL and len(known):  # the level that it ends with
                    level = isotonic_regression(known, increasing=False)[-1]
                    ax.axhline(level, color=colour, ls=":", lw=scale)
            ax.set(xlabel="labels", ylabel=TITLES.get(name, name))
    with sized_as(panels[-1]):
        panels[-1].legend()
    return panels


def _means(data: Any, curves: Any) -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Strategy -> labels (L,), and score -> (2, L) mean and standard error."""
    if curves is None and is_path(data):
        return _means_of_folder(Path(data))
    if curves is None:
        if not hasattr(data, "curves"):
            raise InputError(
                f"a {type(data).__name__} is no study: give what gpal.active.simulate.simulate"
                " returned, its folder, or the labels and the curves of every strategy"
            )
        data, curves = data.labels, data.curves
    if set(data) != set(curves):
        raise InputError(
            f"labels are of {', '.join(data)} and curves of {', '.join(curves)}: give both of each"
        )

    def of_repeats(curve: np.ndarray) -> np.ndarray:
        band = curve.std(0, ddof=min(1, len(curve) - 1)) / np.sqrt(len(curve))
        return np.stack([curve.mean(0), band])

    return {
        strategy: (
            np.asarray(data[strategy]),
            {name: of_repeats(np.asarray(curve, float)) for name, curve in of_scores.items()},
        )
        for strategy, of_scores in curves.items()
    }


def _means_of_folder(folder: Path) -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
    kinds = {f"{name}{part}": float for name in TITLES for part in ("", "_se")}
    table = read(
        folder / "curves.csv",
        lambda path: read_csv(path, {"strategy": str, "labels": float, **kinds}),
    )
    found = {}
    for strategy in dict.fromkeys(table["strategy"].tolist()):
        rows = table["strategy"] == strategy
        parts = {name: [table[name][rows], table[f"{name}_se"][rows]] for name in TITLES}
        # One repeat has no standard error.
        of_scores = {
            name: np.stack([mean, np.nan_to_num(se)]) for name, (mean, se) in parts.items()
        }
        found[strategy] = table["labels"][rows], of_scores
    return found
