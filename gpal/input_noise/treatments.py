"""The treatments of input noise that run on the site engine, behind one interface.

A treatment turns p(x | x̃), in the model's standardised units, into the rows that the engine works
on: positions [n·S, d], S nodes per source next to each other, and a root R [n, d, d] of the
covariance that enters to first order. Training and prediction use the same treatment, always:
mixing them hurts. Nodes are a fixed quasi-random set, so that the same call gives the same answer.

    none         rows x̃, R = 0                          (MGP, Villacampa-Calvo et al. 2021)
    first_order  rows E[x | x̃], R Rᵀ = Cov[x | x̃]       (NIMGP_FO, the same paper, sec. 3.4)
    integrated   rows x_s ~ p(x | x̃), R = 0: the data term is
                 log (1/S) Σ_s exp E_q[log p(y | f(x_s))], a lower bound by Jensen

Everything here is TensorFlow, differentiable in the scale and floor of the errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from scipy.stats import norm, qmc

from gpal.errors import InputError
from gpal.input_noise.conditional import Conditional

__all__ = [
    "TREATMENTS",
    "FirstOrder",
    "Integrated",
    "NoInputNoise",
    "input_noise_from_data",
    "make_input_noise",
]


class NoInputNoise:
    """Error bars are ignored; what was not measured takes its expectation."""

    name = "none"
    nodes = 1
    uses_errors = False  # of measured values
    to_first_order = False

    def to_data(self) -> dict[str, Any]:
        """Name and constructor arguments, fit for JSON; `input_noise_from_data` makes it again."""
        return {"name": self.name}

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        """(positions [n·S, d], R [n, d, d])."""
        mean, root = x.moments()
        return mean, tf.zeros_like(root)


class FirstOrder(NoInputNoise):
    """Var f gains (∂m/∂x)ᵀ Cov[x] (∂m/∂x): exact for a latent function linear over the error."""

    name = "first_order"
    uses_errors = True
    to_first_order = True

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        return x.moments()


class Integrated(NoInputNoise):
    """The likelihood is averaged over x ~ p(x | x̃), S fixed nodes per source.

    z_s = a_j + U_j ε_s with ε from a scrambled Sobol sequence, balanced to mean 0 and variance 1,
    whose first coordinate picks the component j of the population.
    """

    name = "integrated"
    uses_errors = True

    def __init__(self, nodes: int = 16, seed: int = 0) -> None:
        self.nodes, self.seed = nodes, seed

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name, "nodes": self.nodes, "seed": self.seed}

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        n, d = tf.shape(x.X)[0], x.X.shape[1]
        pick, normal = self.points(d)
        centre, factor = x.mean[:, :1], x.factor[:, :1]
        if x.share.shape[1] > 1:
            cumulative = tf.cumsum(x.share, axis=1)[:, None, :-1]
            component = tf.reduce_sum(tf.cast(pick[None, :, None] > cumulative, tf.int32), axis=2)
            centre = tf.gather(x.mean, component, batch_dims=1)
            factor = tf.gather(x.factor, component, batch_dims=1)
        z = centre + tf.linalg.matvec(factor, normal[None])
        positions = x.X[:, None] + tf.linalg.matvec(x.root[:, None], z)
        return tf.reshape(positions, [n * self.nodes, d]), tf.zeros_like(x.root)

    def points(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """(uniform [S], standard normal [S, d]), always the same."""
        uniform = qmc.Sobol(d + 1, scramble=True, seed=self.seed).random(self.nodes)
        normal = norm.ppf(np.clip(uniform[:, 1:], 1e-9, 1 - 1e-9))
        normal -= normal.mean(axis=0)
        normal /= np.maximum(normal.std(axis=0), 1e-300)  # zero for a single node
        return uniform[:, 0], normal


TREATMENTS: dict[str, type[NoInputNoise]] = {
    treatment.name: treatment for treatment in (NoInputNoise, FirstOrder, Integrated)
}


def make_input_noise(treatment: str | NoInputNoise) -> NoInputNoise:
    """A treatment by name, or the object itself."""
    if isinstance(treatment, NoInputNoise):
        return treatment
    if treatment not in TREATMENTS:
        raise InputError(f"no input noise '{treatment}'; there are: {', '.join(TREATMENTS)}")
    return TREATMENTS[treatment]()


def input_noise_from_data(data: dict[str, Any]) -> NoInputNoise:
    """Inverse of a treatment's `to_data`."""
    return TREATMENTS[data["name"]](**{k: v for k, v in data.items() if k != "name"})
