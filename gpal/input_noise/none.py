"""No input noise, and with it the interface of every treatment.

A treatment turns p(x | x̃), in the model's standardised units, into the rows that a GP works on:
positions [n·S, d], S nodes per source next to each other, and a root R [n, d, d] of the covariance
of x that the GP itself takes into account. Here: rows x̃, R = 0 (MGP of Villacampa-Calvo et al.
2021). Everything is TensorFlow, differentiable in the scale and floor of the errors.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gpal.input_noise.conditional import Conditional

__all__ = ["NoInputNoise"]


class NoInputNoise:
    """Error bars are ignored; what was not measured takes its expectation."""

    name = "none"
    nodes = 1
    uses_errors = False  # of measured values
    uses_root = False  # whether R enters the GP
    gradient_only = False  # whether training draws x anew at every step, see `drawn.py`

    def to_data(self) -> dict[str, Any]:
        """Name and constructor arguments, fit for JSON; `input_noise_from_data` makes it again."""
        return {"name": self.name}

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        """(positions [n·S, d], R [n, d, d])."""
        mean, root = x.moments()
        return mean, tf.zeros_like(root)
