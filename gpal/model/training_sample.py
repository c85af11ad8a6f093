"""What a model learned from, as far as it is kept: the range of every feature, and values.

By them a later table can be told from the sources that the model knows: other units, other sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpal.errors import InputError
from gpal.measurements import Measurements

__all__ = ["MOST", "TrainingSample"]

MOST = 10_000  # sources whose values are kept


@dataclass(frozen=True)
class TrainingSample:
    """In the units of the fit, d features.

    lower, upper  (d,) smallest and largest value that was measured, NaN where none was
    values        (m, d) of all sources, or of MOST of them drawn at random; NaN: not measured
    """

    lower: np.ndarray
    upper: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, sources: Measurements) -> TrainingSample:
        X = sources.X
        return cls(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0), _few(X))

    def with_more(self, other: TrainingSample) -> TrainingSample:
        """Of both."""
        return TrainingSample(
            np.fmin(self.lower, other.lower),
            np.fmax(self.upper, other.upper),
            _few(np.vstack([self.values, other.values])),
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"training_range": np.stack([self.lower, self.upper]), "training": self.values}

    @classmethod
    def from_arrays(cls, training_range: np.ndarray, training: np.ndarray) -> TrainingSample:
        lower, upper = training_range
        if np.isinf(training).any() or (lower > upper).any():
            raise InputError("the arrays 'training' and 'training_range' hold no values and ranges")
        return cls(lower, upper, training)


def _few(X: np.ndarray) -> np.ndarray:
    if len(X) <= MOST:
        return X
    return X[np.sort(np.random.default_rng(0).permutation(len(X))[:MOST])]
