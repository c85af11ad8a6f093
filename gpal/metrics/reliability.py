"""Reliability: among the sources given probability p of a class, how many belong to it?

For class c and bin b the observed fraction is k_b / n_b, k_b ~ Binomial(n_b, ·). Its interval is
Wilson's score interval (1927), which stays inside [0, 1] and holds its level for small n_b and for
fractions near 0 and 1, where ±√(k(n−k)/n³) does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from astropy.stats import binom_conf_interval

from gpal.errors import InputError, shown
from gpal.metrics.purity import check_members
from gpal.metrics.scores import check_bins

__all__ = ["ReliabilityCurve", "reliability_curve", "reliability_table"]


@dataclass(frozen=True)
class ReliabilityCurve:
    """One class's reliability over B bins of predicted probability; NaN where a bin is empty.

    Attributes
    ----------
    edges : array (B + 1,)
        Of the bins.
    count : array (B,) of int
        Sources in each bin.
    predicted : array (B,)
        Mean probability.
    observed : array (B,)
        Fraction of members.
    lower : array (B,)
        Wilson interval of the fraction.
    upper : array (B,)
        Its other end.
    confidence_level : float
        Of that interval.

    Examples
    --------
    >>> from gpal.metrics import reliability_curve
    >>> curve = reliability_curve([True, False, True], [0.9, 0.8, 0.7], bins=2)
    >>> curve.count
    array([0, 3])
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
    """Reliability of the probabilities of one class: what they say, and what came of it.

    Parameters
    ----------
    member : array (n,) of bool
        Whether a source belongs to the class.
    probability : array (n,)
        That it does, as predicted.
    bins : int or array (B + 1,)
        Bins of equal width on [0, 1], or their edges.
    confidence_level : float
        Of the interval of the observed fraction; 0.6827 is one sigma.

    Returns
    -------
    ReliabilityCurve

    Raises
    ------
    InputError
        Where shapes differ, on what is no probability or no membership, and on edges that do not
        ascend or leave a probability out.

    Examples
    --------
    >>> import numpy as np
    >>> from gpal.metrics import reliability_curve
    >>> p = np.repeat([0.25, 0.75], 8)
    >>> member = np.tile([True, False, False, False, True, True, True, False], 2)
    >>> curve = reliability_curve(member, p, bins=2)
    >>> curve.predicted, curve.observed
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    member, probability = check_members(member, probability)
    if not 0 < confidence_level < 1:
        raise InputError(f"confidence_level is between 0 and 1, got {confidence_level}")
    if np.ndim(bins) == 0:
        check_bins(bins)
        number = int(bins)  # type: ignore[arg-type]
        bins = np.arange(number + 1) / number
    edges = np.asarray(bins, float)
    size = len(edges) - 1
    if size < 1 or not (np.diff(edges) > 0).all():
        raise InputError(f"edges of bins ascend, got {shown(edges.tolist(), 100)}")
    if len(probability) and not edges[0] <= probability.min() <= probability.max() <= edges[-1]:
        raise InputError(
            f"probabilities are from {probability.min():g} to {probability.max():g}, and the bins"
            f" from {edges[0]:g} to {edges[-1]:g}; give edges that hold all of them"
        )
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
    """The bins of `reliability_curve` that hold sources, as plain data.

    Parameters
    ----------
    member : array (n,) of bool
        Whether a source belongs to the class.
    probability : array (n,)
        That it does, as predicted.
    bins : int
        Bins of equal width on [0, 1].

    Returns
    -------
    list of dict
        With "from", "to", "n", "predicted", "observed", "lower" and "upper".

    Examples
    --------
    >>> from gpal.metrics import reliability_table
    >>> [row] = reliability_table([True, False], [0.1, 0.15])
    >>> row["n"], row["observed"]
    (2, 0.5)
    """
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
