"""Numbers that stand for "no value": those that a schema declares, and those that look like it.

A column of magnitudes from 14 to 22 in which -99 stands 73 times has 73 values that nobody
measured. Such a number is written in nines, and lies outside of all values, or at their edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["Suspect", "is_sentinel", "suspects"]

CLOSE = 1e-6  # relative: 9.99 is another number in single precision
# 9, 99, ..., 99999999, and 9.9 to 9.9999, 99.9 to 99.999, ...; 9 itself is too common
NINES = np.array(
    [10.0**digits - 10.0**-decimals for digits in range(1, 9) for decimals in range(5)][1:]
)
SUSPICIOUS = np.concatenate([[-9.0], -NINES, NINES])


@dataclass(frozen=True)
class Suspect:
    """A number that looks like a sentinel: how often it is there, and if it is one surely."""

    number: float
    count: int
    certain: bool


def is_sentinel(values: np.ndarray, sentinels: Iterable[float]) -> np.ndarray:
    """Mask of the cells that hold one of the numbers `sentinels`."""
    found = np.zeros(values.shape, dtype=bool)
    for number in sentinels:
        found |= np.abs(values - number) <= CLOSE * abs(number)
    return found


def suspects(values: np.ndarray) -> list[Suspect]:
    """The numbers in a column that look like sentinels and were not declared.

    Written in nines and below or above all other values, or at their edge. Certain are those that
    are repeated and farther from the others than the central half of these is wide. A single one is
    suspected where it is farther from them than they are from each other.
    """
    values = values[np.isfinite(values)]
    unlikely = is_sentinel(values, SUSPICIOUS)
    if not unlikely.any():
        return []
    found = []
    numbers, counts = np.unique(values[unlikely], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist()):
        # another suspect on the other side of the values, -99 and 99, is none of the values
        rest = values[~unlikely]
        if not len(rest):
            rest = values[values != number]
        if not len(rest) or rest.min() < number < rest.max():
            continue
        gap = max(rest.min() - number, number - rest.max())
        lower, upper = np.quantile(rest, [0.25, 0.75])
        repeated = count > 1
        certain = repeated and gap > max(upper - lower, 0.0)
        if certain or (repeated and gap >= 0) or gap > rest.max() - rest.min() > 0:
            found.append(Suspect(number, count, certain))
    return found
