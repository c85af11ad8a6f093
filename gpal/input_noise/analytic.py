"""Analytic input noise: x ~ N(E[x | x̃], Cov[x | x̃]), whose moments of f the GP takes in closed form
(`gpal.inference.psi_rows`). First order is its limit for small errors.

Like first order it averages log p(y | f(x)) over x, not p(y | f(x)) as `integrated` does, and takes
a mixture p(x | x̃) for a Gaussian.
"""

from __future__ import annotations

import tensorflow as tf

from gpal.input_noise.base import INPUT_NOISES, InputNoise
from gpal.input_noise.conditional import Conditional

__all__ = ["Analytic"]


@INPUT_NOISES.register
class Analytic(InputNoise):
    """Mean and variance of f gain all orders of the error; kernels with closed forms only."""

    name = "analytic"
    summary = "moments of f over a Gaussian x in closed form (psi statistics)"
    source = "Titsias & Lawrence 2010"
    uses_root = True
    closed_form_moments = True
    kernel_gap = (
        "input noise 'analytic' has closed forms for sums of linear, constant and one"
        " squared-exponential kernel"
    )

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        return x.moments()
