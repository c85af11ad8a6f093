"""The treatments of input noise that run on the site engine, behind one interface.

A treatment turns measurements (x̃, σ) in the model's standardised units into the rows that the
engine works on: positions [n·S, d], S nodes per source next to each other, and a variance [n, d]
that enters to first order. Training and prediction use the same treatment, always: mixing them
hurts. Nodes are a fixed quasi-random set, so that the same call gives the same answer.

    none         rows x̃, variance 0                      (MGP, Villacampa-Calvo et al. 2021)
    first_order  rows x̃, variance σ²                     (NIMGP_FO, the same paper, sec. 3.4)
    integrated   rows x_s ~ p(x | x̃) under the population prior, variance 0: the data term is
                 log (1/S) Σ_s exp E_q[log p(y | f(x_s))], a lower bound by Jensen

A feature that was not measured (σ = inf) is completed from the population: conditional mean and,
where the treatment uses errors, conditional deviation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm, qmc

from gpal.errors import InputError
from gpal.input_noise.population import Population

__all__ = [
    "TREATMENTS",
    "FirstOrder",
    "Integrated",
    "NoInputNoise",
    "input_noise_from_data",
    "make_input_noise",
]


class NoInputNoise:
    """Error bars are ignored."""

    name = "none"
    nodes = 1

    def to_data(self) -> dict[str, Any]:
        """Name and constructor arguments, fit for JSON; `input_noise_from_data` makes it again."""
        return {"name": self.name}

    def noisy_features(self, X_err: np.ndarray) -> tuple[int, ...]:
        """Features that carry a first-order variance."""
        return ()

    def rows(self, X: np.ndarray, X_err: np.ndarray, population: Population):
        """(positions [n·S, d], variance [n, d])."""
        completed, _ = population.complete(X, X_err)
        return completed, np.zeros_like(completed)


class FirstOrder(NoInputNoise):
    """Var f gains (∂m/∂x)ᵀ V (∂m/∂x): exact for a latent function that is linear over the bar."""

    name = "first_order"

    def noisy_features(self, X_err: np.ndarray) -> tuple[int, ...]:
        return tuple(int(d) for d in np.flatnonzero((X_err > 0).any(axis=0)))

    def rows(self, X: np.ndarray, X_err: np.ndarray, population: Population):
        completed, error = population.complete(X, X_err)
        return completed, error**2


class Integrated(NoInputNoise):
    """The likelihood is averaged over x ~ p(x | x̃), S fixed nodes per source.

    Nodes are b + R ε with R Rᵀ = Cov[x | x̃], ε from a scrambled Sobol sequence whose first
    coordinate picks the component of the population; rows of R for exact features are exactly zero.
    """

    name = "integrated"

    def __init__(self, nodes: int = 16, seed: int = 0) -> None:
        self.nodes, self.seed = nodes, seed

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name, "nodes": self.nodes, "seed": self.seed}

    def rows(self, X: np.ndarray, X_err: np.ndarray, population: Population):
        n, d = X.shape
        share, mean, covariance = population.posterior(X, X_err)
        uniform = qmc.Sobol(d + 1, scramble=True, seed=self.seed).random(self.nodes)
        normal = norm.ppf(np.clip(uniform[:, 1:], 1e-9, 1 - 1e-9))
        normal -= normal.mean(axis=0)
        normal /= np.maximum(normal.std(axis=0), 1e-300)  # zero for a single node
        cumulative = np.cumsum(share, axis=1)
        component = (uniform[:, 0][None, :, None] > cumulative[:, None, :-1]).sum(axis=2)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        root[np.diagonal(covariance, axis1=2, axis2=3) <= 0] = 0.0
        sources = np.arange(n)[:, None]
        positions = mean[sources, component] + np.einsum(
            "isde,se->isd", root[sources, component], normal
        )
        return positions.reshape(n * self.nodes, d), np.zeros((n, d))


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
