"""Features with heavy tails, and the powers that bring them in.

A feature whose excess kurtosis is above `HEAVY` has most of its sources in a small part of its
range, and one lengthscale is not right for them and for the tail. For such a feature the kernel can
be one of its power p(x/s; λ) (`gpal.inference.power_input`), with the unit s and the λ that make it
most nearly normal,

    s, λ = argmax −½ log Var p(x/s; λ) + (λ − 1) E sign(x) log(1 + |x|/s) − log s,

mean and variance those of the sources with their weights, s from a tenth of the geometric mean of
|x| (where x is not zero) to the width of the feature. Zero stays zero: counts and fluxes are
measured from there. Whether powers are taken is left to the labels (`gpal.model.trial`), as what is
most nearly normal is not always what tells classes apart.

Source: Yeo & Johnson (2000), equations (2.1) and (3.1).
"""

from __future__ import annotations

import gpflow
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import yeojohnson

from gpal.inference.power_input import PowerInput
from gpal.inference.rows import Data

__all__ = ["powers_of_heavy_tails", "with_powers"]

HEAVY = 3.0  # excess kurtosis
UNITS = 12  # that are tried
MOST = 4.0  # λ from 1 − MOST to 1 + MOST, and
SATURATED = -20.0  # no power of one and the farthest value below e to this: digits would be lost
NARROW = 1e-8  # deviation of powers of values that are nearly alike, beside these
PRECISION = 1e-3
ZERO = 1e-12  # in widths: what rounding leaves of it
NEUTRAL = {"power": 1.0, "shift": 0.0, "unit": 1.0, "offset": 0.0, "width": 1.0}


def with_powers(
    kernels: list[gpflow.kernels.Kernel], data: Data, zero: np.ndarray
) -> list[list[gpflow.kernels.Kernel]]:
    """The kernels alone, or, where features of the data have heavy tails, the kernels of powers of
    their inputs, twice: all powers 1 at first, then of these features the most nearly normal ones.
    (They have one structure, so that they share their graphs.)

    zero    [d]: where the features are 0, in units of the data
    """
    weight = None if data.weight is None else data.weight.numpy()
    powers = powers_of_heavy_tails(data.X.numpy(), zero, weight)
    if (powers["power"] == 1).all():
        return [kernels]
    none = {name: np.full(len(zero), value) for name, value in NEUTRAL.items()}
    return [
        [PowerInput(kernel, **each) for kernel in gpflow.utilities.deepcopy(kernels)]
        for each in (none, powers)
    ]


def powers_of_heavy_tails(
    X: np.ndarray, zero: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Arguments [d] of `PowerInput` for standardised X [n, d]: power 1 of features without heavy
    tails, which stay as they are.

    zero    [d]: where the features are 0, in the same units
    weight  [n] of the sources, None: they count once
    """
    d = X.shape[1]
    powers = {name: np.full(d, value) for name, value in NEUTRAL.items()}
    for j in range(d):
        few_values = len(np.unique(X[:, j])) < 3  # of which any power is the same again
        if few_values or _excess_kurtosis(X[:, j], weight) <= HEAVY:
            continue
        x = X[:, j] - zero[j]
        loss, power, unit = _most_nearly_normal(x, weight)
        if not np.isfinite(loss):
            continue
        changed = yeojohnson(x / unit, power)
        offset = np.average(changed, weights=weight)
        found = (power, -zero[j], unit, offset, np.sqrt(_variance(changed, weight)))
        for name, value in zip(powers, found, strict=True):
            powers[name][j] = value
    return powers


def _excess_kurtosis(x: np.ndarray, weight: np.ndarray | None) -> float:
    fourth = np.average((x - np.average(x, weights=weight)) ** 4, weights=weight)
    return fourth / _variance(x, weight) ** 2 - 3.0


def _variance(x: np.ndarray, weight: np.ndarray | None) -> float:
    return np.average((x - np.average(x, weights=weight)) ** 2, weights=weight)


def _most_nearly_normal(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """What is least of the negative of the formula above, and at which λ and s, x in units of the
    width; the first is infinite where no power keeps the values apart."""
    some = np.abs(x) > ZERO
    logarithm, of_some = np.log(np.abs(x[some])), None if weight is None else weight[some]
    smallest = 0.1 * np.exp(np.average(logarithm, weights=of_some))
    units = np.geomspace(smallest, 1.0, UNITS) if smallest < 1.0 else [1.0]
    return min((*_power_in_unit(x, unit, weight), unit) for unit in units)


def _power_in_unit(x: np.ndarray, unit: float, weight: np.ndarray | None) -> tuple[float, float]:
    """What is least in this unit, and at which λ."""
    x = x / unit
    of_jacobian = np.average(np.sign(x) * np.log1p(np.abs(x)), weights=weight)

    def loss(power: float) -> float:
        changed = yeojohnson(x, power)
        variance = _variance(changed, weight)
        if not (NARROW * np.abs(changed).max()) ** 2 < variance < np.inf:
            return np.inf
        return 0.5 * np.log(variance) - (power - 1.0) * of_jacobian + np.log(unit)

    above, below = np.log1p(max(x.max(), ZERO)), np.log1p(max(-x.min(), ZERO))
    lowest, highest = max(1.0 - MOST, SATURATED / above), min(1.0 + MOST, 2.0 - SATURATED / below)
    least = minimize_scalar(loss, bounds=(lowest, highest), options={"xatol": PRECISION})
    return float(least.fun), float(least.x)
