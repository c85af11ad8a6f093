"""Sources near the Galactic plane apart from the rest.

Near the plane the diffuse emission is bright and sources overlap, values are less well known, and
the classes have other shares. Scores of the whole sky are mostly those of high latitudes.
"""

from __future__ import annotations

from typing import Any

import astropy.units as u
import numpy as np
from astropy.coordinates import SkyCoord

__all__ = ["LATITUDE", "by_latitude", "galactic_latitude"]

LATITUDE = 10.0  # degrees, as papers on gamma-ray sources divide the sky


def galactic_latitude(ra: Any, dec: Any) -> np.ndarray:
    """(n,) degrees, from right ascension and declination in degrees; NaN where unknown."""
    position = SkyCoord(np.asarray(ra, float) * u.deg, np.asarray(dec, float) * u.deg, frame="icrs")
    return np.asarray(position.galactic.b.deg)


def by_latitude(glat: Any) -> dict[str, np.ndarray]:
    """Name of a part of the sky -> (n,) bool, the sources in it; {} where no position is known.

    Sources of unknown position are in neither part.
    """
    distance = np.abs(np.asarray(glat, float))
    if not np.isfinite(distance).any():
        return {}
    return {
        f"|b| < {LATITUDE:g} deg": distance < LATITUDE,
        f"|b| >= {LATITUDE:g} deg": distance >= LATITUDE,
    }
