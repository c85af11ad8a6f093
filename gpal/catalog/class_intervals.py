"""Classes that are intervals of a number, as redshift bins are.

    class = "z_spec"
    [classes]
    edges = [0, 0.5, 1, 1.5]        # 0-0.5, 0.5-1 and 1-1.5

The class of x is low-high where low ≤ x < high, the last one with its end; a row without a number
has no class. Raises InputError on a number outside the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gpal.errors import InputError

__all__ = ["check_edges", "interval_names", "intervals"]


def check_edges(edges: Sequence[float]) -> None:
    """Raise InputError unless the edges rise and make two classes that print differently."""
    if len(edges) < 3 or not np.all(np.diff(edges) > 0):
        raise InputError(
            f"edges = {list(edges)} in [classes]: give three rising numbers or more, which make"
            " two classes or more"
        )
    if len(set(interval_names(edges))) < len(edges) - 1:
        raise InputError("edges in [classes] differ beyond six digits: give coarser ones")


def interval_names(edges: Sequence[float]) -> list[str]:
    """'0-0.5', '0.5-1', ..."""
    return [f"{low:g}-{high:g}" for low, high in pairwise(edges)]


def intervals(
    values: np.ndarray,
    edges: Sequence[float],
    column: str,
    stored: Sequence[float] | None = None,
) -> np.ndarray:
    """(n,) names of the intervals that the values lie in, '' where there is no value.

    stored   the edges as the column would hold them, in single precision where it has that; None:
             as they are
    """
    stored = edges if stored is None else stored
    known = np.isfinite(values)
    outside = known & ((values < stored[0]) | (values > stored[-1]))
    if outside.any():
        i = int(np.argmax(outside))
        raise InputError(
            f"column '{column}', row {i}: {values[i]:g} is in no class, these go from {edges[0]:g}"
            f" to {edges[-1]:g} ({int(outside.sum())} such in all); widen edges in [classes]"
        )
    names = np.array(interval_names(edges))
    k = np.searchsorted(stored, np.where(known, values, stored[0]), side="right") - 1
    return np.where(known, names[np.minimum(k, len(names) - 1)], "")
