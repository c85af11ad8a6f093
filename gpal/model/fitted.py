"""The fitted model: q(f) with all that prediction needs, in standardised units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from gpal.inference.input_rows import InputRows
from gpal.inference.sparse import SparseGP, SparsePosterior
from gpal.input_noise.none import NoInputNoise
from gpal.input_noise.population import Population
from gpal.input_noise.true_input import TrueInput
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.quasi_random import antithetic_normal

__all__ = ["FittedModel", "blocks"]

# Sources per block of a prediction: bounds memory at nodes × samples × classes per source.
BLOCK = 1000
POSTERIOR_SAMPLES = 256


@dataclass
class FittedModel:
    """q(f) with all that prediction needs, in standardised units."""

    gp: SparseGP
    posterior: SparsePosterior
    likelihood: ClassificationLikelihood
    input_noise: NoInputNoise
    true_input: TrueInput
    bound: float
    settings: dict[str, Any]

    @property
    def population(self) -> Population:
        """The prior of x that was fitted, whatever the treatment makes of it."""
        return self.true_input.population

    def marginals(
        self, X: np.ndarray, X_err: np.ndarray, X_cov: np.ndarray | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v of q(f) at every node: tensors [n·S, P]."""
        inputs = InputRows(self.true_input, self.input_noise)
        rows, root = inputs.prediction(*inputs.measurement(X, X_err, X_cov))
        return self.gp.marginals(self.posterior, rows, root if self.input_noise.uses_root else None)

    def predict_proba(
        self, X: np.ndarray, X_err: np.ndarray, X_cov: np.ndarray | None = None
    ) -> np.ndarray:
        """E over q(f) and over the input of p(y | f(x)), [n, C]."""
        parts = []
        for part in blocks(X, X_err, X_cov):
            p = self.likelihood.predict_proba(*self.marginals(*part))
            p = p.numpy().reshape(-1, self.input_noise.nodes, p.shape[-1]).mean(axis=1)
            parts.append(p / p.sum(axis=1, keepdims=True))
        return np.concatenate(parts)

    def predict_proba_std(
        self,
        X: np.ndarray,
        X_err: np.ndarray,
        X_cov: np.ndarray | None = None,
        *,
        ratio: np.ndarray,
    ) -> np.ndarray:
        """Deviation of p(y | f(x)), reweighted by `ratio`, over q(f) and the input; [n, C]."""
        parts = []
        for part in blocks(X, X_err, X_cov):
            mean, variance = self.marginals(*part)
            points = antithetic_normal(POSTERIOR_SAMPLES, mean.shape[1])[:, None, :]
            p = self.likelihood.conditional_probabilities(mean + tf.sqrt(variance) * points).numpy()
            p = p * ratio
            p /= p.sum(axis=-1, keepdims=True)
            nodes = self.input_noise.nodes
            p = p.reshape(len(points), -1, nodes, p.shape[-1])
            parts.append(p.std(axis=(0, 2)))
        return np.concatenate(parts)


def blocks(*arrays: np.ndarray | None):
    """Slices of BLOCK sources of each array; None stays None."""
    assert arrays[0] is not None
    for i in range(0, len(arrays[0]), BLOCK):
        yield tuple(None if array is None else array[i : i + BLOCK] for array in arrays)
