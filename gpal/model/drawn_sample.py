"""A sample of sources that come in blocks: the same sources whatever the blocks are.

Each source i draws u_i ~ U(0, 1), all from one stream in the order of the sources. In the sample
are the `number` smallest u, and of every stratum s (a class; what has an error in a feature) the
FEWEST smallest of its own, so that nothing that is rare is missing. With T and T_s the smallest u
that did not come in by each door (1 where all did), source i is in the sample with probability
π_i = max(T, max_s T_s), and counts

    w_i = 1 / π_i

times (Horvitz & Thompson 1952): the data's part of the bound is in expectation that of all. (Did
each count once, the bound would be that of fewer sources, whose best kernel is a smoother one.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpal.measurements import Measurements

__all__ = ["FEWEST", "DrawnSample"]

FEWEST = 100  # sources of a stratum


@dataclass
class DrawnSample:
    """number  of sources, and those that strata add
    seed    of the stream
    first   place of the first source in it
    """

    number: int
    seed: int
    first: int = 0
    _kept: list[tuple[Measurements, np.ndarray, np.ndarray, np.ndarray]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        # Each u takes one step of the stream.
        self._generator = np.random.Generator(np.random.PCG64(self.seed).advance(self.first))

    def add(self, sources: Measurements, y: np.ndarray, weight: np.ndarray | None = None) -> None:
        """More sources [b] with their labels and how often they count."""
        u = self._generator.random(len(sources))
        times = np.ones(len(sources)) if weight is None else np.asarray(weight, float)
        self._keep(sources, np.asarray(y), u, times)

    def with_more(self, later: DrawnSample) -> DrawnSample:
        """Of both; `later` began where this one stopped."""
        for block in later._kept:
            self._keep(*block)
        return self

    def thin_out(self) -> DrawnSample:
        """Without what cannot be in the sample any more."""
        if self._kept:
            self._thin_out()
        return self

    def _keep(self, *block: Any) -> None:
        self._kept.append(block)
        # Blocks are joined before they are thinned out, or every small one would be sorted anew.
        if sum(len(block[2]) for block in self._kept) > 4 * self.number:
            self._thin_out()

    def result(self) -> tuple[Measurements, np.ndarray, np.ndarray | None]:
        """(sources, y, weights), in the order of the stream; weights None where all count once."""
        inclusion = self._thin_out()
        sources, y, u, times = self._kept[0]
        drawn = u < inclusion
        weight = (times / inclusion)[drawn]
        return sources[drawn], y[drawn], None if (weight == 1).all() else weight

    def _thin_out(self) -> np.ndarray:
        """Keep what may be in the sample, and the first that is not; π [kept] of these."""
        parts = self._kept
        sources = parts[0][0] if len(parts) == 1 else Measurements.stack([p[0] for p in parts])
        y, u, times = (np.concatenate([p[k] for p in parts]) for k in (1, 2, 3))
        inclusion = np.full(len(u), _threshold(u, self.number))
        for stratum in _strata(sources, y):
            own = _threshold(u[stratum], FEWEST)
            inclusion[stratum] = np.maximum(inclusion[stratum], own)
        inside = u <= inclusion
        self._kept = [(sources[inside], y[inside], u[inside], times[inside])]
        return inclusion[inside]


def _threshold(u: np.ndarray, number: int) -> float:
    """The smallest that is not one of the `number` smallest; 1 where all are."""
    return 1.0 if len(u) <= number else float(np.partition(u, number)[number])


def _strata(sources: Measurements, y: np.ndarray) -> list[np.ndarray]:
    """Indices of the sources of each class, and of those with an error in each feature; of weights
    (`gpal.model.labels`), of those in which the same classes have the greatest."""
    if y.ndim == 2:
        y = np.unique(y == y.max(axis=1, keepdims=True), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(y, kind="stable")
    first = np.flatnonzero(np.r_[True, y[order][1:] != y[order][:-1]])
    classes = np.split(order, first[1:])
    noisy = sources.X_err > 0
    return [*classes, *(np.flatnonzero(noisy[:, j]) for j in range(noisy.shape[1]))]
