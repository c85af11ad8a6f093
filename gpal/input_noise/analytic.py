"""Analytic input noise: x ~ N(E[x | x̃], Cov[x | x̃]), whose moments of f the GP takes in closed form
(`gpal.inference.analytic`). First order is its limit for small errors.

Like first order it averages log p(y | f(x)) over x, not p(y | f(x)) as `integrated` does, and takes
a mixture p(x | x̃) for a Gaussian.
"""

from __future__ import annotations

import tensorflow as tf

from gpal.input_noise.conditional import Conditional
from gpal.input_noise.none import NoInputNoise

__all__ = ["Analytic"]


class Analytic(NoInputNoise):
    """Mean and variance of f gain all orders of the error; kernels with closed forms only."""

    name = "analytic"
    uses_errors = True
    uses_root = True

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        return x.moments()
