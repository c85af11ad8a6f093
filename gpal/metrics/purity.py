"""Lists of sources: those whose probability of a class is at least a threshold t.

    purity        fraction of the listed sources that are of the class      (precision)
    completeness  fraction of the sources of the class that are listed      (recall)
    promised      mean probability of the listed sources: the purity to expect where the
                  probabilities are calibrated, known without knowing one class

Purity does not always grow with t. The list of a stated purity is the longest one that reaches it,
so the most complete. Its interval is Wilson's (1927), of listed sources of which each is of the
class or not; that the threshold was chosen on the same sources makes the purity a little too good,
the more the fewer are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from astropy.stats import binom_conf_interval
from sklearn.metrics import precision_recall_curve

from gpal.array_messages import as_numbers, refuse_masked
from gpal.errors import InputError, as_python, shown

__all__ = [
    "PureList",
    "PurityCurve",
    "check_members",
    "promised_threshold",
    "pure_list",
    "purity_curve",
]

ROUNDING = 1e-12  # of a mean probability


@dataclass(frozen=True)
class PurityCurve:
    """The lists at all T thresholds that differ, the longest first.

    Attributes
    ----------
    threshold : array (T,)
        Ascending: every probability that some source has.
    listed : array (T,) of int
        Sources with at least that probability.
    purity : array (T,)
    completeness : array (T,)
        NaN where no source is of the class.
    promised : array (T,)
        Mean probability of the listed.

    Examples
    --------
    >>> from gpal.metrics import purity_curve
    >>> purity_curve([True, False, True], [0.9, 0.6, 0.5]).completeness
    array([1. , 0.5, 0.5])
    """

    threshold: np.ndarray
    listed: np.ndarray
    purity: np.ndarray
    completeness: np.ndarray
    promised: np.ndarray


@dataclass(frozen=True)
class PureList:
    """The longest list of a stated purity, among sources of known class.

    Attributes
    ----------
    asked : float
        The purity that was stated.
    threshold : float
        Lowest probability in the list; NaN, as all that follows, where no list is so pure.
    listed : int
        Sources in it; 0 where no list is so pure.
    purity : float
        Of the list.
    lower, upper : float
        Wilson interval of it, at one sigma.
    promised : float
        Mean probability of the listed.
    completeness : float

    Examples
    --------
    >>> from gpal.metrics import pure_list
    >>> pure_list([False], [0.9], purity=0.5).listed
    0
    """

    asked: float
    threshold: float
    listed: int
    purity: float
    lower: float
    upper: float
    promised: float
    completeness: float


def purity_curve(member: Any, probability: Any) -> PurityCurve:
    """Purity and completeness at every threshold on the probability of a class.

    Parameters
    ----------
    member : array (n,) of bool
        Whether a source is of the class.
    probability : array (n,)
        That it is, by a model that did not see its class.

    Returns
    -------
    PurityCurve

    Raises
    ------
    InputError
        Where shapes differ, and on what is no probability.

    Examples
    --------
    >>> from gpal.metrics import purity_curve
    >>> curve = purity_curve([True, True, False, True], [0.9, 0.7, 0.7, 0.4])
    >>> curve.threshold, curve.listed, curve.purity.round(2)
    (array([0.4, 0.7, 0.9]), array([4, 3, 1]), array([0.75, 0.67, 1.  ]))
    """
    member, p = check_members(member, probability)
    if member.any():
        purity, completeness, threshold = precision_recall_curve(member, p)
        purity, completeness = purity[:-1], completeness[:-1]  # the last is of no threshold
    else:
        threshold = np.unique(p)
        purity, completeness = np.zeros(len(threshold)), np.full(len(threshold), np.nan)
    ascending = np.sort(p)
    first = np.searchsorted(ascending, threshold)
    listed = len(p) - first
    total = np.cumsum(ascending[::-1])[::-1][first]
    return PurityCurve(threshold, listed, purity, completeness, total / listed)


def check_members(member: Any, probability: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays (n,), bool and float; InputError where they are none, or of two lengths."""
    refuse_masked(member=member, probability=probability)
    missing = np.ravel(pd.isna(np.asarray(member, dtype=object)))
    if missing.any():
        raise InputError(f"row {int(missing.argmax())} of member is missing; give True or False")
    member, p = np.asarray(member), as_numbers("probability", probability)
    if member.ndim != 1 or member.shape != p.shape:
        raise InputError(
            f"member has shape {member.shape} and probability {p.shape}: give one of each per"
            " source, and for several classes a class at a time"
        )
    odd = ~np.isin(member, (0, 1))
    if odd.any():
        row = int(odd.argmax())
        raise InputError(
            f"member, row {row}: {shown(repr(as_python(member[row])))} does not say whether the"
            " source is of the class; give True or False, as y == name"
        )
    if not ((p >= 0) & (p <= 1)).all():
        row = int((~((p >= 0) & (p <= 1))).argmax())
        raise InputError(f"row {row}: {shown(p[row])} is no probability, which is from 0 to 1")
    return member.astype(bool), p


def pure_list(member: Any, probability: Any, purity: float = 0.9) -> PureList:
    """The threshold of the longest list that is as pure as stated.

    Parameters
    ----------
    member : array (n,) of bool
        Whether a source is of the class.
    probability : array (n,)
        That it is, by a model that did not see its class.
    purity : float
        That the list is to reach.

    Returns
    -------
    PureList
        Where no list reaches it, one of no source: its threshold is NaN.

    Raises
    ------
    InputError
        As `purity_curve` does, and for a purity that is not between 0 and 1.

    Examples
    --------
    >>> from gpal.metrics import pure_list
    >>> found = pure_list([True, True, False, True, False], [0.9, 0.8, 0.6, 0.5, 0.2], 0.75)
    >>> found.threshold, found.listed, found.purity, found.completeness, round(found.promised, 2)
    (0.5, 4, 0.75, 1.0, 0.7)
    """
    _check_purity(purity)
    curve = purity_curve(member, probability)
    reached = np.flatnonzero(curve.purity >= purity)
    if not len(reached):
        return PureList(purity, np.nan, 0, *[np.nan] * 5)
    k = reached[0]
    members = round(curve.purity[k] * curve.listed[k])
    lower, upper = binom_conf_interval(members, curve.listed[k], interval="wilson")
    return PureList(
        asked=purity,
        threshold=float(curve.threshold[k]),
        listed=int(curve.listed[k]),
        purity=float(curve.purity[k]),
        lower=float(lower),
        upper=float(upper),
        promised=float(curve.promised[k]),
        completeness=float(curve.completeness[k]),
    )


def promised_threshold(probability: Any, purity: float = 0.9) -> float:
    """The lowest probability in the longest list that promises a purity, of sources of unknown
    class: their mean probability is at least that.

    Parameters
    ----------
    probability : array (n,)
        That a source is of the class.
    purity : float
        That the list is to promise.

    Returns
    -------
    float
        NaN where no list promises it.

    Raises
    ------
    InputError
        As `pure_list` does.

    Examples
    --------
    >>> from gpal.metrics import promised_threshold
    >>> promised_threshold([0.9, 0.8, 0.6, 0.5, 0.2], 0.75)
    0.6
    """
    _check_purity(purity)
    curve = purity_curve(np.full(np.shape(probability), True), probability)
    reached = curve.threshold[curve.promised >= purity - ROUNDING]
    return float(reached.min()) if len(reached) else np.nan


def _check_purity(purity: float) -> None:
    if not 0 < purity <= 1:
        raise InputError(f"purity is a fraction, got {shown(purity)}; give one such as 0.9")
