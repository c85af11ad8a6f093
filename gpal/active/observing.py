"""What a target costs at the telescope, and whether it can be observed at all.

    weighted score = score / cost          information per unit of observing time
    not observable = NaN                   never proposed

A source is observable if it is in the visibility mask and within every limit. A limit is a pair
(lowest, highest) on a quantity of the source, such as a magnitude, a flux or a declination; None
leaves a side open, and a source whose quantity is unknown (NaN) is outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpal.array_messages import as_numbers
from gpal.errors import InputError, as_python, shown

__all__ = ["Observing", "declination_range", "exposure_time"]

NUMBER = bool | int | float | np.bool_ | np.number
ROUNDING = 1e-9  # of a score that is 0
RIGHT_ASCENSION = "ra"
Limit = tuple[float | None, float | None]


@dataclass(frozen=True)
class Observing:
    """Observing conditions of n sources.

    time     (n,) observing time of each source, any unit; None: the same for all
    visible  (n,) bool; None: all
    limits   name -> (lowest, highest), applied to the quantity of that name; of `ra`, in degrees,
             they may go through 0h: (350, 10), or (-10, 10)

    InputError for a time that is not above 0, for what is neither True nor False in `visible`, for
    a quantity that is no number, and for a limit that no number can meet.
    """

    time: np.ndarray | None = None
    visible: np.ndarray | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, limit in self.limits.items():
            try:
                if any(isinstance(side, str) for side in limit):
                    raise TypeError
                lowest, highest = (None if side is None else float(side) for side in limit)
            except (TypeError, ValueError):
                raise InputError(
                    f"the limit on '{name}' is {limit!r}; give a pair (lowest, highest) of numbers,"
                    " None for a side without a limit"
                ) from None
            low, high = _bounds((lowest, highest))
            if not low <= high and not _goes_round(name, low, high):
                raise InputError(
                    f"the limit on '{name}' is from {low:g} to {high:g}, which no source"
                    " is within; give the lowest first"
                )

    def observable(self, n: int, quantities: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """(n,) bool."""
        seen = np.ones(n, dtype=bool)
        if self.visible is not None:
            seen &= _of_length(_truths(self.visible), n, "visible")
        known = quantities or {}
        for name, limit in self.limits.items():
            if name not in known:
                raise InputError(
                    f"no quantity '{name}' to set a limit on; there are: {', '.join(known) or '-'}"
                )
            value = _of_length(_numbers(name, known[name]), n, name)
            low, high = _bounds(limit)
            seen &= np.isfinite(value)
            if not _goes_round(name, low, high):
                seen &= (value >= low) & (value <= high)
            elif high - low < 360:
                with np.errstate(invalid="ignore"):
                    seen &= (value - low) % 360 <= (high - low) % 360
        return seen

    def weigh(
        self, score: np.ndarray, quantities: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """Score per unit of time, NaN where the source cannot be observed.

        InputError for scores below 0 where times differ: per time the costlier would be better.
        """
        weighted = np.array(score, float)
        if self.time is not None:
            time = _of_length(_numbers("time", self.time), len(score), "time")
            if (time <= 0).any():
                i = int(np.flatnonzero(time <= 0)[0])
                raise InputError(f"column 'time', row {i} is {time[i]:g}; give a time above 0")
            below = weighted[weighted < -ROUNDING]
            if len(below) and len(np.unique(time[np.isfinite(time)])) > 1:
                raise InputError(
                    f"a score is {below[0]:g}, and the costlier a source the better that would be"
                    " per unit of time; give scores of 0 or more, or no times"
                )
            weighted /= np.where(np.isfinite(time), time, np.nan)
        weighted[~self.observable(len(score), quantities)] = np.nan
        return weighted


def exposure_time(magnitude: np.ndarray, reference: float, limit: float = np.inf) -> np.ndarray:
    """Time to the same signal-to-noise against a bright sky, 1 at the magnitude `reference`.

    t ∝ 10^(0.8 (mag − reference)): the signal falls as 10^(−0.4 mag), the noise of the sky does
    not. NaN fainter than `limit`, and where the magnitude is masked.
    """
    magnitude = _numbers("magnitude", magnitude)
    with np.errstate(invalid="ignore"):
        return np.where(magnitude <= limit, 10.0 ** (0.8 * (magnitude - reference)), np.nan)


def declination_range(latitude: float, airmass: float = 2.0) -> tuple[float, float]:
    """Declinations in degrees that culminate below `airmass` (plane-parallel) at a site.

    sec z ≤ airmass at culmination, where the zenith distance is z = |latitude − declination|.
    """
    if not airmass >= 1 or not -90 <= latitude <= 90:
        raise InputError(
            f"latitude {latitude} or airmass {airmass} is out of range; latitude is in degrees,"
            " airmass at least 1"
        )
    reach = float(np.rad2deg(np.arccos(1.0 / airmass)))
    return max(latitude - reach, -90.0), min(latitude + reach, 90.0)


def _bounds(limit: Limit) -> tuple[float, float]:
    """Lowest and highest, infinite on a side without a limit."""
    lowest, highest = limit
    return -np.inf if lowest is None else lowest, np.inf if highest is None else highest


def _goes_round(name: str, low: float, high: float) -> bool:
    """Whether limits of right ascension are on both sides of 0h: 350 to 10, or -10 to 10."""
    round_it = low > high or low < 0 or high > 360
    return name == RIGHT_ASCENSION and bool(np.isfinite(high - low)) and round_it


def _truths(visible: Any) -> np.ndarray:
    """As bool; 0 and 1 are that, text and NaN are not."""
    values: np.ndarray = np.asarray(np.ma.filled(np.ma.asarray(visible, dtype=object), None))
    odd = [
        i
        for i, one in enumerate(values.ravel().tolist())
        if not isinstance(one, NUMBER) or one not in (0, 1)
    ]
    if odd:
        raise InputError(
            f"column 'visible', row {odd[0]} is {shown(repr(as_python(values.ravel()[odd[0]])))}"
            f" ({len(odd)} such in all); give True or False"
        )
    return values.astype(bool)


def _numbers(name: str, values: Any) -> np.ndarray:
    """Float64, NaN where masked."""
    return np.ma.filled(np.ma.array(as_numbers(name, values), mask=np.ma.getmask(values)), np.nan)


def _of_length(values: np.ndarray, n: int, name: str) -> np.ndarray:
    if values.shape != (n,):
        raise InputError(
            f"'{name}' has shape {values.shape}; give one value for each of {n} sources"
        )
    return values
