"""Amortized latent inputs (NIMGP_NN, Villacampa-Calvo et al. 2021, sec. 3.2): one network for all,

    (a_i, log s_i) = network(b_i, log σ_i, y_i),      q(x_i) as in `drawn.py`

where y_i is one-hot and σ_i² is the diagonal of R_i R_iᵀ: the error bars differ between sources,
and with them what a label says about x. Two hidden layers of 50 rectified units; the last layer
starts at zero, so that q(x_i) starts at p(x | x̃_i). The number of parameters does not grow with n.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from gpal.files.saved_data import whole_number
from gpal.input_noise.base import INPUT_NOISES
from gpal.input_noise.drawn import Drawn, InputPosterior

__all__ = ["Amortized"]

# Errors below this fraction of a feature's width look alike to the network.
SMALLEST_ERROR = 0.01


class AmortizedPosterior(InputPosterior):
    """The network; a feature without error has a = 0 and s = 1 whatever it says.

    weights  of all layers in one variable, each [inputs + 1, outputs] with the biases as last row:
             a step of Adam costs some twenty operations per variable, as much as the layers do
    """

    def __init__(self, d: int, num_classes: int | None, units: int, seed: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        widths = [2 * d + (num_classes or 1), units, units, 2 * d]
        self.shapes = [(inputs + 1, outputs) for inputs, outputs in pairwise(widths)]
        generator = np.random.default_rng(seed)
        layers = [np.zeros(shape) for shape in self.shapes]
        for layer in layers[:-1]:
            limit = np.sqrt(6.0 / (len(layer) - 1 + units))  # Glorot & Bengio 2010
            layer[:-1] = generator.uniform(-limit, limit, [len(layer) - 1, units])
        self.weights = tf.Variable(np.concatenate([layer.ravel() for layer in layers]))

    def parameters_of(
        self, sources: tf.Tensor, b: tf.Tensor, root: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        sigma = tf.sqrt(tf.reduce_sum(root**2, axis=2) + SMALLEST_ERROR**2)
        if self.num_classes is None or Y.shape[1] > 1:  # a response, or weights of the classes
            labels = tf.cast(Y, tf.float64)
        else:
            labels = tf.one_hot(tf.cast(Y[:, 0], tf.int32), self.num_classes, dtype=tf.float64)
        output = self.network(tf.concat([b, tf.math.log(sigma), labels], axis=1))
        noisy = tf.cast(tf.reduce_any(root != 0.0, axis=1), tf.float64)
        a, log_s = tf.split(output, 2, axis=1)
        return noisy * a, noisy * log_s

    def network(self, h: tf.Tensor) -> tf.Tensor:
        """[B, inputs] to [B, outputs]."""
        flat = tf.split(self.weights, [int(np.prod(shape)) for shape in self.shapes])
        *hidden, last = (tf.reshape(part, shape) for part, shape in zip(flat, self.shapes))
        for layer in hidden:
            h = tf.nn.relu(tf.matmul(h, layer[:-1]) + layer[-1])
        return tf.matmul(h, last[:-1]) + last[-1]


@INPUT_NOISES.register
class Amortized(Drawn):
    """`units` per hidden layer."""

    name = "amortized"
    summary = "a Gaussian q(x) for each source from one neural network"
    source = "Villacampa-Calvo et al. 2021, NIMGP_NN"

    def __init__(self, nodes: int = 16, seed: int = 0, units: int = 50) -> None:
        super().__init__(nodes, seed)
        self.units = whole_number(units, "units", 1)

    def to_data(self) -> dict[str, Any]:
        return {**super().to_data(), "units": self.units}

    def posterior(self, n: int, d: int, num_classes: int | None, seed: int) -> AmortizedPosterior:
        return AmortizedPosterior(d, num_classes, self.units, seed)
