"""No input noise: rows x̃, R = 0 (MGP of Villacampa-Calvo et al. 2021)."""

from __future__ import annotations

import tensorflow as tf

from gpal.input_noise.base import INPUT_NOISES, InputNoise
from gpal.input_noise.conditional import Conditional

__all__ = ["NoInputNoise"]


@INPUT_NOISES.register
class NoInputNoise(InputNoise):
    """Error bars are ignored; what was not measured takes its expectation in training, and is drawn
    in a prediction (`gpal.model.completion`)."""

    name = "none"
    summary = "error bars ignored"
    source = "Villacampa-Calvo et al. 2021, MGP"
    uses_errors = False

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        mean, root = x.moments()
        return mean, tf.zeros_like(root)
