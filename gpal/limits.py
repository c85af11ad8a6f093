"""Limits: what is known of values that were not measured.

    p(limit | x) ∝ c  on one side of L,  1 − c  on the other

A source that a survey did not detect has no value, but it is known that the value lies below some L
(above it, for a magnitude), with a confidence c. Whoever takes such a value as measured is wrong,
whoever takes it as unknown forgets that it is faint. `gpal.input_noise.censored` makes use of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpal.errors import InputError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of n sources × d features.

    value       (n, d) L, NaN where there is none
    confidence  (n, d) c, a probability above .5: −c where the value lies below L (an upper limit),
                +c where it lies above it (a lower limit), 0 where there is none
    """

    value: np.ndarray
    confidence: np.ndarray

    @classmethod
    def checked(cls, value: Any, confidence: Any, measured: np.ndarray) -> Limits:
        """Limits for values of which `measured` [n, d] says whether they were; InputError for what
        is none."""
        value, confidence = (np.array(part, dtype=float) for part in (value, confidence))
        if value.shape != measured.shape or confidence.shape != measured.shape:
            raise InputError(
                f"limits have the shapes {value.shape} and {confidence.shape}, the values have"
                f" {measured.shape}"
            )
        limited = confidence != 0
        size = np.abs(confidence)
        for bad, problem in (
            (limited & ~((size > 0.5) & (size <= 1)), "has a confidence that is not above .5"),
            (limited & ~np.isfinite(value), "has a limit that is no number"),
            (limited & measured, "has a limit and a value; give X_err=inf where there is a limit"),
        ):
            if bad.any():
                i, j = np.argwhere(bad)[0]
                raise InputError(f"feature {j} of row {i} {problem} ({int(bad.sum())} such in all)")
        return cls(np.where(limited, value, np.nan), confidence)

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Limits:
        """No limit on any of so many values."""
        return cls(np.full(shape, np.nan), np.zeros(shape))

    @property
    def given(self) -> np.ndarray:
        """(n, d) where there is one."""
        return self.confidence != 0

    def __getitem__(self, where: Any) -> Limits:
        """Sources, or (sources, features), as of an array."""
        return Limits(self.value[where], self.confidence[where])

    def scale(self, offset: np.ndarray, width: np.ndarray) -> Limits:
        """Of (x − offset)/width, width > 0."""
        return Limits((self.value - offset) / width, self.confidence)

    def transform(self, j: int, function: Callable, lowest: float = -np.inf) -> Limits:
        """Of an increasing function of feature j that is defined above `lowest`: there a lower
        limit is none, and an upper limit is refused."""
        value, confidence = self.value.copy(), self.confidence.copy()
        outside = self.given[:, j] & (value[:, j] <= lowest)
        below = outside & (confidence[:, j] < 0)
        if below.any():
            i = int(np.flatnonzero(below)[0])
            raise InputError(
                f"feature {j} of row {i} has the upper limit {value[i, j]:g}, where its transform"
                f" is not defined ({int(below.sum())} such in all); leave the limit out there"
            )
        confidence[outside, j], value[outside, j] = 0.0, np.nan
        value[:, j] = function(np.where(np.isnan(value[:, j]), 1.0, value[:, j]))
        value[~(confidence[:, j] != 0), j] = np.nan
        return Limits(value, confidence)

    @classmethod
    def stack(cls, parts: Sequence[Limits]) -> Limits:
        """Of some sources after those of others."""
        return cls(
            np.vstack([part.value for part in parts]),
            np.vstack([part.confidence for part in parts]),
        )
