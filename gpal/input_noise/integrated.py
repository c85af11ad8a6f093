"""Integrated input noise: rows x_s ~ p(x | x̃), R = 0, and as data term a bound of

    E_q[log (1/S) Σ_s p(y | f(x_s))],

the evidence of p(y | x̃). `gpal.likelihoods.averaged` has the two bounds that are used: the tighter
one of softmax, logistic-softmax and Bernoulli-logit with natural-gradient sites or svgp, and the
free-form optimum of a latent x, log (1/S) Σ_s exp E_q[log p(y | f(x_s))], of everything else. The
nodes are a fixed quasi-random set, so that the same call gives the same answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from scipy.stats import norm, qmc

from gpal.files.saved_data import whole_number
from gpal.input_noise.base import INPUT_NOISES, InputNoise
from gpal.input_noise.conditional import Conditional

__all__ = ["Integrated", "drawn"]


@INPUT_NOISES.register
class Integrated(InputNoise):
    """The likelihood is averaged over x ~ p(x | x̃), S fixed nodes per source.

    z_s = a_j + U_j ε_s with ε from a scrambled Sobol sequence, balanced to mean 0 and variance 1,
    whose first coordinate picks the component j of the population.
    """

    name = "integrated"
    summary = "likelihood averaged over fixed nodes of x given its measurement"

    def __init__(self, nodes: int = 16, seed: int = 0) -> None:
        self.nodes = whole_number(nodes, "nodes", 1)
        self.seed = whole_number(seed, "seed", 0, 2**32 - 1)

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name, "nodes": self.nodes, "seed": self.seed}

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        n, d = tf.shape(x.X)[0], x.X.shape[1]
        pick, normal = self.points(d)
        positions = drawn(x, pick[None], normal[None])
        return tf.reshape(positions, [n * self.nodes, d]), tf.zeros_like(x.root)

    def points(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """(uniform [S], standard normal [S, d]), always the same."""
        uniform = qmc.Sobol(d + 1, scramble=True, seed=self.seed).random(self.nodes)
        normal = norm.ppf(np.clip(uniform[:, 1:], 1e-9, 1 - 1e-9))
        normal -= normal.mean(axis=0)
        normal /= np.maximum(normal.std(axis=0), 1e-300)  # zero for a single node
        return uniform[:, 0], normal


@check_shapes("x.X: [n, d]", "return: [n, S, d]")
def drawn(x: Conditional, pick: np.ndarray, normal: np.ndarray) -> tf.Tensor:
    """Draws of x | x̃, from uniform numbers that pick the component, [n, S] or [1, S], and standard
    normal ones, [n, S, d] or [1, S, d]."""
    centre, factor = x.mean[:, :1], x.factor[:, :1]
    if x.share.shape[1] > 1:
        cumulative = tf.cumsum(x.share, axis=1)[:, None, :-1]
        component = tf.reduce_sum(tf.cast(pick[..., None] > cumulative, tf.int32), axis=2)
        centre = tf.gather(x.mean, component, batch_dims=1)
        factor = tf.gather(x.factor, component, batch_dims=1)
    z = centre + tf.linalg.matvec(factor, normal)
    return x.X[:, None] + tf.linalg.matvec(x.root[:, None], z)
