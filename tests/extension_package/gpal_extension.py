"""A package of somebody else's: a likelihood with its own site rule, a treatment and a strategy.

Nothing here is registered: `tests/test_registry.py` does so by the decorator and by entry points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from gpal.active.strategies import Strategy
from gpal.input_noise import InputNoise
from gpal.input_noise.conditional import Conditional
from gpal.likelihoods.site_rules import NaturalGradient, Quadratic, QuadraticRule
from gpal.likelihoods.softmax import Softmax

__all__ = ["BoehningSoftmax", "GiniImpurity", "RegressionCalibration"]


class Boehning(QuadraticRule["BoehningSoftmax"]):
    """logsumexp f ≤ logsumexp ξ + gᵀ(f − ξ) + ¼ |f − ξ|², g = softmax ξ; best at ξ = m."""

    name = "boehning"

    def local_parameters(
        self, likelihood: BoehningSoftmax, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        return Fmu

    def quadratic(self, likelihood: BoehningSoftmax, local: tf.Tensor, Y: tf.Tensor) -> Quadratic:
        g = tf.nn.softmax(local)
        constant = -tf.reduce_logsumexp(local, axis=-1)
        constant += tf.reduce_sum(g * local - 0.25 * local**2, axis=-1)
        natural_mean = likelihood.one_hot(Y, local.dtype) - g + 0.5 * local
        return Quadratic(0.5 * tf.ones_like(local), natural_mean, constant)


class BoehningSoftmax(Softmax):
    """Softmax met by a quadratic bound of constant curvature."""

    name = "boehning_softmax"
    expectation = "closed-form bound"
    source = "Böhning 1992"
    site_rules = (Boehning(), NaturalGradient())


class RegressionCalibration(InputNoise):
    """x̃ moved towards E[x | x̃] by a fraction `strength`, and taken for exact there."""

    name = "regression_calibration"
    summary = "a measurement replaced by what is expected of it"
    source = "Carroll et al. 2006"

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name, "strength": self.strength}

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        mean, root = x.moments()
        return x.X + self.strength * (mean - x.X), tf.zeros_like(root)


class GiniImpurity(Strategy):
    """1 − Σ_c p_c²: that two labels drawn from p differ."""

    name = "gini_impurity"
    summary = "that two labels drawn from the probabilities differ"
    source = "Breiman et al. 1984"

    def score(self, p: np.ndarray) -> np.ndarray:
        return 1.0 - np.sum(p**2, axis=-1)
