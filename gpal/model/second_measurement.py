"""What a second measurement may leave of a source, before it is made.

It is such that errors shrink from σ to κ σ: their variance falls from v = s² σ² + τ² to
v₊ = s² κ² σ² + τ², so that the second one has 1/v' = 1/v₊ − 1/v. With x ~ p(x | x̃) under the
population prior and ε ~ N(0, I), independent of it,

    x̃_new = (1 − v₊/v) (x + √v' ε) + (v₊/v) x̃

where ε is correlated as the errors are. x and ε are of one fixed set of 2 d coordinates, which are
uncorrelated from 4 d outcomes on. Features that were not measured stay so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import tensorflow as tf

from gpal.inference.input_rows import InputRows
from gpal.input_noise.conditional import error_root
from gpal.input_noise.integrated import Integrated, drawn
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.measurements import Measurements
from gpal.model.fitted import FittedModel

__all__ = ["outcomes"]


def outcomes(
    model: FittedModel, sources: Measurements, shrink: float, number: int
) -> Iterator[Measurements]:
    """The sources, in standardised units, after each of `number` equally likely outcomes."""
    d = sources.X.shape[1]
    true_input = model.true_input
    normal = antithetic_normal(number + number % 2, 2 * d, seed=1)[:number]
    pick = (np.random.default_rng(1).permutation(number) + 0.5) / number
    under_population = true_input.under_population()
    rows = InputRows(under_population, Integrated())
    x = under_population(*map(tf.convert_to_tensor, rows.measurement(sources)))
    inputs = drawn(x, pick[None], normal[None, :, :d]).numpy()
    measured = sources.measured
    variance = (true_input.scale.numpy() * np.where(measured, sources.X_err, 0.0)) ** 2
    floor = true_input.floor.numpy() ** 2
    before, after = variance + floor, shrink**2 * variance + floor
    learns = before > after
    kept = np.where(learns, after / np.where(learns, before, 1.0), 1.0)
    deviation = np.sqrt(np.where(learns, after / np.where(learns, 1.0 - kept, 1.0), 0.0))
    correlated = _correlation_root(sources)
    for t in range(number):
        epsilon = normal[t, d:] if correlated is None else correlated @ normal[t, d:]
        again = inputs[:, t] + deviation * epsilon
        combined = (1.0 - kept) * again + kept * np.where(measured, sources.X, 0.0)
        yield replace(
            sources,
            X=np.where(measured, combined, sources.X),
            X_err=np.where(measured, shrink * sources.X_err, sources.X_err),
            covariance=_shrunk(sources.covariance, shrink),
        )


def _correlation_root(sources: Measurements) -> np.ndarray | None:
    """[n, d, d] C with C Cᵀ the correlation of the errors; None where there is none."""
    if sources.covariance is None:
        return None
    noisy = sources.measured & (sources.X_err > 0)
    root = error_root(sources.X_err, sources.covariance)
    direction = root / np.where(noisy, sources.X_err, 1.0)[:, :, None]
    return np.where(noisy[:, :, None], direction, np.eye(sources.X.shape[1]))


def _shrunk(covariance: np.ndarray | None, shrink: float) -> np.ndarray | None:
    """κ² times the covariance; what was not measured stays so, also for κ = 0."""
    if covariance is None:
        return None
    return np.where(np.isinf(covariance), covariance, shrink**2 * np.nan_to_num(covariance))
