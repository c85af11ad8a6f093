"""Limits: what is known of values that were not measured.

    p(limit | x) ∝ c  on one side of L,  1 − c  on the other

A source that a survey did not detect has no value, but it is known that the value lies below some L
(above it, for a magnitude), with a confidence c. Whoever takes such a value as measured is wrong,
whoever takes it as unknown forgets that it is faint. `gpal.input_noise.censored` makes use of it.

A limit may itself be uncertain: of a colour one band of which was measured, L ± s has the error of
that band. The errors of limits and of measurements are taken as independent.
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
    error       (n, d) standard deviation of L, 0 where it is known exactly; None: everywhere
    """

    value: np.ndarray
    confidence: np.ndarray
    error: Any = None

    def __post_init__(self) -> None:
        if self.error is None:
            object.__setattr__(self, "error", np.zeros(np.shape(self.value)))

    @classmethod
    def checked(cls, limits: Limits, measured: np.ndarray) -> Limits:
        """Limits for values of which `measured` [n, d] says whether they were; InputError for what
        is none."""
        parts = (limits.value, limits.confidence, limits.error)
        value, confidence, error = (np.array(part, dtype=float) for part in parts)
        shapes = [part.shape for part in (value, confidence, error)]
        if set(shapes) != {measured.shape}:
            raise InputError(
                f"limits, confidences and errors have the shapes {', '.join(map(str, shapes))},"
                f" the values have {measured.shape}"
            )
        limited = confidence != 0
        size = np.abs(confidence)
        for bad, problem in (
            (
                limited & ~((size > 0.5) & (size <= 1)),
                "has a confidence that is not above .5; give 0 where there is no limit",
            ),
            (
                limited & ~np.isfinite(value),
                "has a limit that is no number; give confidence 0 where there is none",
            ),
            (limited & ~((error >= 0) & np.isfinite(error)), "has a limit whose error is none"),
            (limited & measured, "has a limit and a value; give X_err=inf where there is a limit"),
        ):
            if bad.any():
                i, j = np.argwhere(bad)[0]
                raise InputError(f"feature {j} of row {i} {problem} ({int(bad.sum())} such in all)")
        return cls(np.where(limited, value, np.nan), confidence, np.where(limited, error, 0.0))

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
        return Limits(self.value[where], self.confidence[where], self.error[where])

    def scale(self, offset: np.ndarray, width: np.ndarray) -> Limits:
        """Of (x − offset)/width, width > 0."""
        return Limits((self.value - offset) / width, self.confidence, self.error / width)

    def transform(
        self, j: int, function: Callable, derivative: Callable, lowest: float = -np.inf
    ) -> Limits:
        """Of an increasing function of feature j that is defined above `lowest`: there a lower
        limit is none, and an upper limit is refused. Errors to first order."""
        value, confidence, error = self.value.copy(), self.confidence.copy(), self.error.copy()
        outside = self.given[:, j] & (value[:, j] <= lowest)
        below = outside & (confidence[:, j] < 0)
        if below.any():
            i = int(np.flatnonzero(below)[0])
            raise InputError(
                f"feature {j} of row {i} has the upper limit {value[i, j]:g}, where its transform"
                f" is not defined ({int(below.sum())} such in all); leave the limit out there"
            )
        confidence[outside, j], value[outside, j] = 0.0, np.nan
        given = confidence[:, j] != 0
        L = np.where(given, value[:, j], 1.0)
        value[:, j] = np.where(given, function(L), np.nan)
        error[:, j] = np.where(given, derivative(L) * error[:, j], 0.0)
        return Limits(value, confidence, error)

    @classmethod
    def stack(cls, parts: Sequence[Limits]) -> Limits:
        """Of some sources after those of others."""
        return cls(
            np.vstack([part.value for part in parts]),
            np.vstack([part.confidence for part in parts]),
            np.vstack([part.error for part in parts]),
        )
