"""A kernel of powers of its inputs, which bring in heavy tails: k(φ(x), φ(x')).

    φ_j(x) = (p((x_j + shift_j)/unit_j; λ_j) − offset_j)/width_j

    p(x; λ) =  ((1 + x)^λ − 1)/λ             x ≥ 0, log(1 + x) where λ = 0
              −((1 − x)^(2 − λ) − 1)/(2 − λ)   x < 0, −log(1 − x) where λ = 2

p rises everywhere, is smooth but for its second derivative in 0, and is x itself for λ = 1. No φ is
taken to be beyond ±`FARTHEST`: on the side without a tail p grows faster than x.

Source: Yeo & Johnson (2000), "A new family of power transformations to improve normality or
symmetry", Biometrika 87, equation (2.1).
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from numpy.typing import ArrayLike

from gpal.inference.changed_input import ChangedInput

__all__ = ["PowerInput", "yeo_johnson"]

FARTHEST = 100.0
LARGEST = 700.0  # exponent
LEAST = np.nextafter(-1.0, 0.0)  # of λ p(x; λ), which is above −1 but for rounding
SMALLEST = 1e-100  # of powers; below, the logarithm is the same to the last bit


class PowerInput(ChangedInput):
    """Any kernel of φ(x).

    base_kernel           its active dimensions are its own
    power, shift, unit    λ_j, what is added to x_j, and in what it is measured [d]; λ_j = 1 leaves
                          a feature as it is, in other units
    offset, width         of the powers [d]

    All are parameters that are not learned (a graph does not depend on their values).
    """

    def __init__(
        self,
        base_kernel: gpflow.kernels.Kernel,
        power: ArrayLike = 1.0,
        shift: ArrayLike = 0.0,
        unit: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        width: ArrayLike = 1.0,
    ) -> None:
        super().__init__(base_kernel)
        self.power, self.shift, self.unit = _fixed(power), _fixed(shift), _fixed(unit)
        self.offset, self.width = _fixed(offset), _fixed(width)

    def inner(self, X: tf.Tensor) -> tf.Tensor:
        """φ(x)."""
        powers = yeo_johnson((X + self.shift) / self.unit, self.power)
        return tf.clip_by_value((powers - self.offset) / self.width, -FARTHEST, FARTHEST)

    def outer(self, inner: np.ndarray) -> np.ndarray:
        """The x of φ(x) [n, d], between values of φ that there are."""
        powers, power = inner * self.width.numpy() + self.offset.numpy(), self.power.numpy()
        above, below = _one_and(powers, power), -_one_and(-powers, 2.0 - power)
        x = np.where(powers < 0, below, above)
        return np.where(power == 1.0, powers, x) * self.unit.numpy() - self.shift.numpy()


def _fixed(value: ArrayLike) -> gpflow.Parameter:
    return gpflow.Parameter(np.asarray(value, float), trainable=False, dtype=tf.float64)


@check_shapes("x: [broadcast shape...]", "power: [broadcast shape...]", "return: [shape...]")
def yeo_johnson(x: tf.Tensor, power: tf.Tensor) -> tf.Tensor:
    """p(x; λ) of the formulas above."""
    x = tf.convert_to_tensor(x)
    power = tf.convert_to_tensor(power, x.dtype)
    negative, zero = x < 0, tf.zeros_like(x)
    # Neither branch of a `where` may be without a derivative where the other one is taken.
    above, below = tf.maximum(x, zero), tf.maximum(-x, zero)
    powers = tf.where(
        negative, -_power_of_one_and(below, 2.0 - power), _power_of_one_and(above, power)
    )
    return tf.where(tf.equal(power, 1.0), x, powers)


def _power_of_one_and(x: tf.Tensor, power: tf.Tensor) -> tf.Tensor:
    """((1 + x)^λ − 1)/λ of x ≥ 0, without a loss of digits where either is small."""
    is_log = tf.abs(power) < SMALLEST
    divisor = tf.where(is_log, tf.ones_like(power), power)
    logarithm = tf.math.log1p(x)
    exponent = tf.minimum(power * logarithm, LARGEST)
    return tf.where(is_log, logarithm, tf.math.expm1(exponent) / divisor)


def _one_and(powers: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Inverse of `_power_of_one_and`; 0 of what is below 0."""
    powers, is_log = np.maximum(powers, 0.0), np.abs(power) < SMALLEST
    divisor = np.where(is_log, 1.0, power)
    inside = np.maximum(power * powers, LEAST)
    return np.expm1(np.where(is_log, powers, np.log1p(inside) / divisor))
