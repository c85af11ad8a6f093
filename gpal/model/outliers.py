"""Values too far from all others to say how wide a feature is.

The deviation of n values of which one lies z deviations of the others away is larger by about
z/√n: one wrong value of 10⁶ puts all the others on one point. Standardisation therefore leaves out
of mean and deviation, though not of the data, values that are

    |x − median| > 30 s,      s = (75 % quantile − 25 % quantile)/1.349

where they are at most one in a hundred, or one in all. If there are more, they are the tail of the
feature and not errors in it; and where half of the values are equal, s says nothing. In the model
no value is farther than 100 deviations away: a linear kernel would follow it.
"""

from __future__ import annotations

import numpy as np

__all__ = ["FARTHEST", "without_outliers"]

FAR = 30.0
LARGEST_FRACTION = 0.01
FARTHEST = 100.0


def without_outliers(values: np.ndarray) -> np.ndarray:
    """Values [n, d] with NaN for what is missing, and for the outliers of each feature."""
    low, median, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=0)
    scale = (high - low) / 1.349
    far = (np.abs(values - median) > FAR * scale) & (scale > 0)
    few = far.sum(axis=0) <= np.maximum(1.0, LARGEST_FRACTION * np.isfinite(values).sum(axis=0))
    return np.where(far & few, np.nan, values)
