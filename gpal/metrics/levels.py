"""Labels and probabilities of coarser classes: p of a class is the sum over the finer ones in it.

    p(agn) = p(bll) + p(fsrq)

Of a label that is a set of classes, the coarser class that holds the whole set is known, if one
does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpal.array_messages import refuse_masked
from gpal.errors import InputError, shown
from gpal.metrics.scores import Macro, refuse_other_order

__all__ = ["Level", "coarser"]

ROUNDING = 1e-12  # of a sum of probabilities


@dataclass(frozen=True)
class Level:
    """A division of C classes into K coarser ones.

    Attributes
    ----------
    names : tuple of K str
        The coarser classes.
    place : array (C,) of int
        The coarser class of each class.

    Examples
    --------
    >>> from gpal.metrics import Level
    >>> level = Level.of(["bll", "fsrq", "psr"], {"agn": ["bll", "fsrq"], "psr": ["psr"]})
    >>> level.names, level.place.tolist(), level.sums([[0.5, 0.25, 0.25]]).tolist()
    (('agn', 'psr'), [0, 0, 1], [[0.75, 0.25]])
    """

    names: tuple[str, ...]
    place: np.ndarray

    @classmethod
    def of(cls, classes: Sequence[Any] | np.ndarray, members: Mapping[str, Sequence[Any]]) -> Level:
        """The level at which each coarser class has its members.

        Parameters
        ----------
        classes : sequence of C
            In the order of the columns of probabilities.
        members : mapping of str to sequences
            Coarser class -> classes; each class is in one.

        Returns
        -------
        Level

        Raises
        ------
        InputError
            For a class that is in none, or in two.
        """
        of = [[str(name) for name in inside] for inside in members.values()]
        place = []
        for name in map(str, classes):
            found = [k for k, inside in enumerate(of) if name in inside]
            if len(found) != 1:
                raise InputError(
                    f"class '{shown(name)}' is in {len(found)} of the coarser classes"
                    f" {shown(', '.join(members), 100)}; put it into one"
                )
            place.append(found[0])
        return cls(tuple(members), np.array(place))

    def sums(self, P: Any) -> np.ndarray:
        """Probabilities (n, K) of the coarser classes, from those (n, C) of the classes.

        Parameters
        ----------
        P : array (n, C)

        Returns
        -------
        array (n, K)
        """
        sums = np.asarray(P, float) @ np.eye(len(self.names))[self.place]
        return np.where((sums > 1) & (sums < 1 + ROUNDING), 1.0, sums)

    def at(self, statistic: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[..., Any]:
        """A score, such as those of `gpal.metrics`, of the coarser classes.

        Parameters
        ----------
        statistic : function
            Of indices y (n,) and probabilities P.

        Returns
        -------
        function
            Of indices y (n,) and probabilities (n, C) of the classes.
        """
        if isinstance(statistic, Macro):
            return Macro(self.at(statistic.per_class))
        return lambda y, P: statistic(self.place[y], self.sums(P))


def coarser(
    y: Any,
    P: Any,
    classes: Sequence[str] | np.ndarray,
    members: Mapping[str, Sequence[str]],
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Labels and probabilities at a coarser level, for any score.

    Parameters
    ----------
    y : array (n,)
        Name of each source's class, or the set of those that it may be of, or their weights.
    P : array (n, C)
        Probabilities.
    classes : sequence of C str
        In the order of the columns of `P`.
    members : mapping of str to sequences of str
        Coarser class -> classes, as `Catalog.levels` has them.

    Returns
    -------
    y : array (m,) of str
        Coarser class of the sources that are known to be of one; the others are left out, with a
        warning.
    P : array (m, K)
        Sums of probabilities.
    names : tuple of K str

    Raises
    ------
    InputError
        For a class that is in none of the coarser ones, or in two.

    Examples
    --------
    >>> from gpal.metrics import coarser, negative_log_predictive_density
    >>> P = [[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.1, 0.7, 0.2]]
    >>> level = {"agn": ["bll", "fsrq"], "psr": ["psr"]}
    >>> y, Q, names = coarser(["bll", "psr", {"bll", "fsrq"}], P, ["bll", "fsrq", "psr"], level)
    >>> y.tolist(), Q.round(1).tolist()
    (['agn', 'psr', 'agn'], [[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]])
    >>> round(negative_log_predictive_density(y, Q, names), 3)
    0.28
    """
    refuse_masked(y=y, P=P)
    refuse_other_order(y, P, classes)
    level = Level.of(classes, members)
    above = dict(zip(map(str, classes), level.place.tolist(), strict=True))
    found = []
    for label in y if isinstance(y, list | tuple) else np.asarray(y).tolist():
        names = [str(name) for name in _possible(label)]
        if unknown := [name for name in names if name not in above]:
            raise InputError(
                f"class '{shown(unknown[0])}' of y is none of {shown(', '.join(above), 100)}"
            )
        places = {above[name] for name in names}
        found.append(places.pop() if len(places) == 1 else -1)
    place, P = np.array(found, int), np.asarray(P, float)
    if P.ndim != 2 or len(place) != len(P):
        raise InputError(f"y has {len(place)} labels and P the shape {P.shape}: give one per row")
    known = place >= 0
    if not known.all():
        warnings.warn(
            f"{int((~known).sum())} of {len(known)} sources are left out: their labels are sets"
            f" that no one class of {', '.join(level.names)} holds",
            stacklevel=2,
        )
    return np.array(level.names, dtype=str)[place[known]], level.sums(P[known]), level.names


def _possible(label: Any) -> list[Any]:
    """The classes that a label leaves possible."""
    if isinstance(label, Mapping):
        return [name for name, weight in label.items() if weight > 0]
    return list(label) if isinstance(label, set | frozenset) else [label]
