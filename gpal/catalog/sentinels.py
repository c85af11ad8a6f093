"""Numbers that stand for "no value": those that a schema declares, and those that look like it.

A column of magnitudes from 14 to 22 in which -99 stands 73 times has 73 values that nobody
measured. Such a number is written in nines, or is the largest of its type, and lies outside of all
values, or at their edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["PERHAPS", "Suspect", "is_sentinel", "suspects", "unlikely"]

CLOSE = 1e-6  # relative: 9.99 is another number in single precision
# 9, 99, ..., 99999999, and 9.9 to 9.9999, 99.9 to 99.999, ...; 9 itself is too common
NINES = np.array(
    [10.0**digits - 10.0**-decimals for digits in range(1, 9) for decimals in range(5)][1:]
)
TYPES = np.array([32767, 32768, 2147483647, 2147483648, 1e20, 1e30, 1e31, 1e37, 3.4028235e38])
SUSPICIOUS = np.concatenate([[-9.0], -NINES, NINES, -TYPES, TYPES])
POWERS = 10.0 ** np.arange(1, 9)  # as CLOSE to 999.9999 as that is to itself in single precision
PERHAPS = (0.0, -1.0)  # also values of their own right: suspected where they are far from others


@dataclass(frozen=True)
class Suspect:
    """A number that looks like a sentinel: how often it is there, and if it is one surely."""

    number: float
    count: int
    certain: bool


def is_sentinel(values: np.ndarray, sentinels: Iterable[float]) -> np.ndarray:
    """Mask of the cells that hold one of the numbers `sentinels`."""
    numbers = np.unique(np.fromiter(sentinels, dtype=float))
    found = np.zeros(values.shape, dtype=bool)
    if len(numbers):
        above = np.searchsorted(numbers, values)
        for nearest in (above - 1, above):
            number = numbers[np.clip(nearest, 0, len(numbers) - 1)]
            found |= np.abs(values - number) <= CLOSE * np.abs(number)
    return found


def suspects(values: np.ndarray) -> list[Suspect]:
    """The numbers in a column that look like sentinels and were not declared.

    Below or above all other values, or at their edge. Certain are those that are repeated and
    farther from the others than the central half of these is wide; 0 and -1 are no more than
    suspected there. So is a single one that is farther from them than they are from each other.
    """
    values = values[np.isfinite(values)]
    unlikely = _is_suspicious(values)
    found = [_far(values[~unlikely], number) for number in PERHAPS]
    numbers, counts = np.unique(values[unlikely], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist()):
        # another suspect on the other side of the values, -99 and 99, is none of the values
        rest = values[values != number] if unlikely.all() else values[~unlikely]
        if not len(rest) or rest.min() < number < rest.max():
            continue
        gap, width = _gap(rest, number)
        repeated = count > 1
        certain = repeated and gap > width
        alone = abs(number) >= 99 and gap > rest.max() - rest.min() > 0
        if repeated or alone:
            found.append(Suspect(number, count, certain))
    return [suspect for suspect in found if suspect is not None]


def unlikely(values: np.ndarray) -> tuple[dict[float, int], np.ndarray]:
    """How often the numbers that are written like sentinels are there, be they values or not; and
    the other values."""
    values = values[np.isfinite(values)]
    written_so = _is_suspicious(values) | is_sentinel(values, PERHAPS)
    numbers, counts = np.unique(values[written_so], return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist())), values[~written_so]


def _is_suspicious(values: np.ndarray) -> np.ndarray:
    """Mask of the cells that hold one of SUSPICIOUS, and not rather a power of ten, be it with a
    sign that others have: −99999999 is −10⁸ in single precision, and no magnitude."""
    found = is_sentinel(values, SUSPICIOUS)
    numbers, which = np.unique(values[found], return_inverse=True)
    signs = [sign for sign in (-1.0, 1.0) if (sign * values[~found] > 0).any()]
    powers = np.concatenate([[np.inf], *(sign * POWERS for sign in signs)])
    to_power, to_suspicious = (
        np.abs(numbers[:, np.newaxis] - known).min(axis=1) for known in (powers, SUSPICIOUS)
    )
    found[found] = (to_suspicious < to_power)[which]
    return found


def _far(values: np.ndarray, number: float) -> Suspect | None:
    """A number that is repeated and far from all others, with all of them on one side."""
    others, count = values[values != number], int((values == number).sum())
    if count < 2 or not len(others) or others.min() < number < others.max():
        return None
    gap, width = _gap(others, number)
    return Suspect(number, count, False) if gap > width > 0 else None  # not of flags 0 and 1


def _gap(others: np.ndarray, number: float) -> tuple[float, float]:
    """How far a number outside of others is from them, and the width of their central half."""
    lower, upper = np.quantile(others, [0.25, 0.75])
    return max(others.min() - number, number - others.max()), upper - lower
