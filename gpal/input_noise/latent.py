"""Latent inputs (NIMGP, Villacampa-Calvo et al. 2021, sec. 3.1): a Gaussian q(x_i) per source,

    q(x_i) = N(x_i | b_i + R_i a_i, R_i diag(s_i²) R_iᵀ)          (eq. 9, in units of p(x | x̃_i))

with a_i and s_i learned for every training source. They start at 0 and 1, which is p(x | x̃_i); the
label moves them from there. A feature without error has a zero column in R, and stays.
"""

from __future__ import annotations

import tensorflow as tf

from gpal.input_noise.base import INPUT_NOISES
from gpal.input_noise.drawn import Drawn, InputPosterior

__all__ = ["Latent"]


class LatentPosterior(InputPosterior):
    """Variables [n, 2d]: a and log s side by side, so that one look-up finds both."""

    def __init__(self, n: int, d: int) -> None:
        super().__init__()
        self.values = tf.Variable(tf.zeros([n, 2 * d], tf.float64))

    def parameters_of(
        self, sources: tf.Tensor, b: tf.Tensor, root: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.split(tf.gather(self.values, sources), 2, axis=1)


@INPUT_NOISES.register
class Latent(Drawn):
    """2 d parameters per source."""

    name = "latent"
    summary = "a Gaussian q(x) learned for each source"
    source = "Villacampa-Calvo et al. 2021, NIMGP"

    def posterior(self, n: int, d: int, num_classes: int | None, seed: int) -> LatentPosterior:
        return LatentPosterior(n, d)
