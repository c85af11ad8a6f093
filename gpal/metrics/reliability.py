"""Reliability: among the sources given probability p of a class, how many belong to it?

For class c and bin b the observed fraction is k_b / n_b, k_b ~ Binomial(n_b, ·). Its interval is
Wilson's score interval (1927), which stays inside [0, 1] and holds its level for small n_b and for
fractions near 0 and 1, where ±√(k(n−k)/n³) does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from astropy.stats import binom_conf_interval

__all__ = ["ReliabilityCurve", "reliability_curve", "reliability_table"]


@dataclass(frozen=True)
class ReliabilityCurve:
    """One class's reliability over B bins of predicted probability; NaN where a bin is empty.

    edges (B+1,), count (B,), predicted (B,) mean probability, observed (B,) fraction of members,
    lower and upper (B,) Wilson interval of the fraction at `confidence_level`.
    """

    edges: np.ndarray
    count: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    confidence_level: float


def reliability_curve(
    member: np.ndarray,
    probability: np.ndarray,
    bins: int | np.ndarray = 10,
    confidence_level: float = 0.6827,
) -> ReliabilityCurve:
    """Reliability of `probability` (n,) for `member` (n,) bool.

    `bins` is a number of bins of equal width on [0, 1], or their edges.
    """
    edges = np.linspace(0, 1, bins + 1) if isinstance(bins, int) else np.asarray(bins, float)
    size = len(edges) - 1
    bin_of = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, size - 1)
    count = np.bincount(bin_of, minlength=size)
    members = np.bincount(bin_of, weights=member, minlength=size).astype(int)
    filled = count > 0
    trials = np.where(filled, count, 1)
    empty_as_nan = np.where(filled, 1.0, np.nan)
    lower, upper = binom_conf_interval(
        np.minimum(members, trials), trials, confidence_level=confidence_level, interval="wilson"
    )
    return ReliabilityCurve(
        edges=edges,
        count=count,
        predicted=np.bincount(bin_of, weights=probability, minlength=size) / trials * empty_as_nan,
        observed=members / trials * empty_as_nan,
        lower=lower * empty_as_nan,
        upper=upper * empty_as_nan,
        confidence_level=confidence_level,
    )


def reliability_table(
    member: np.ndarray, probability: np.ndarray, bins: int = 5
) -> list[dict[str, float]]:
    """The bins of `reliability_curve` that hold sources, as plain data."""
    curve = reliability_curve(member, probability, bins)
    return [
        {
            "from": float(curve.edges[b]),
            "to": float(curve.edges[b + 1]),
            "n": int(curve.count[b]),
            "predicted": float(curve.predicted[b]),
            "observed": float(curve.observed[b]),
            "lower": float(curve.lower[b]),
            "upper": float(curve.upper[b]),
        }
        for b in np.flatnonzero(curve.count)
    ]
