"""Resampled inputs, a baseline (MGP with sampling; Villacampa-Calvo et al. 2021, appendix B.1):

    x_i ~ N(b_i, R_i R_iᵀ) drawn anew for every mini-batch, labels ignored

Prediction is at b = E[x | x̃] alone. With population="flat" b is the measurement and R Rᵀ its
covariance, which is the paper's baseline. The bound has the expectation over x outside the
logarithm and so counts the noise twice.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpal.input_noise.base import INPUT_NOISES
from gpal.input_noise.conditional import Conditional
from gpal.input_noise.drawn import Drawn, InputPosterior

__all__ = ["Resampled"]


@INPUT_NOISES.register
class Resampled(Drawn):
    """Draws from p(x | x̃) in training; one node, E[x | x̃], in prediction."""

    name = "resampled"
    summary = "x drawn anew for every mini-batch, a baseline"
    source = "Villacampa-Calvo et al. 2021, appendix B.1"

    def __init__(self) -> None:
        super().__init__(nodes=1)

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name}

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        mean, root = x.moments()
        return mean, tf.zeros_like(root)

    def posterior(self, n: int, d: int, num_classes: int | None, seed: int) -> InputPosterior:
        return InputPosterior()
