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
    sources       how many sources these are; of a file, as many as it has values
    """

    lower: np.ndarray
    upper: np.ndarray
    values: np.ndarray
    sources: int

    @classmethod
    def of(cls, sources: Measurements) -> TrainingSample:
        X = sources.X
        few = _some(X, MOST, np.random.default_rng(0))
        return cls(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0), few, len(X))

    def with_more(self, other: TrainingSample) -> TrainingSample:
        """Of both: each of all their sources is kept with the same probability."""
        sources, values = self.sources + other.sources, [self.values, other.values]
        if sources > MOST:
            rng = np.random.default_rng(sources)
            number = rng.hypergeometric(self.sources, other.sources, MOST)
            numbers = (number, MOST - number)
            values = [_some(X, some, rng) for X, some in zip(values, numbers, strict=True)]
        lower, upper = np.fmin(self.lower, other.lower), np.fmax(self.upper, other.upper)
        return TrainingSample(lower, upper, np.vstack(values), sources)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"training_range": np.stack([self.lower, self.upper]), "training": self.values}

    @classmethod
    def from_arrays(cls, training_range: np.ndarray, training: np.ndarray) -> TrainingSample:
        lower, upper = training_range
        if np.isinf(training).any() or (lower > upper).any():
            raise InputError("the arrays 'training' and 'training_range' hold no values and ranges")
        return cls(lower, upper, training, len(training))


def _some(X: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn at random, in their order; all of them where there are no more."""
    return X if len(X) <= number else X[np.sort(rng.permutation(len(X))[:number])]
