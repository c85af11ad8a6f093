"""From measurements to the rows that a GP works on: p(x | x̃), then a treatment of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from gpal.inference.rows import Data
from gpal.input_noise.base import InputNoise
from gpal.input_noise.censored import as_measured
from gpal.input_noise.conditional import NO_MEASUREMENT
from gpal.input_noise.true_input import TrueInput
from gpal.measurements import Measurements

__all__ = ["InputRows"]


class InputRows(tf.Module):
    """treatment ∘ p(x | x̃); its variables are those of the error model."""

    def __init__(self, true_input: TrueInput, treatment: InputNoise) -> None:
        super().__init__()
        self.true_input, self.treatment = true_input, treatment

    def measurement(self, sources: Measurements) -> tuple[np.ndarray, np.ndarray]:
        """(x̃, D) as `__call__` takes them; a treatment that ignores errors sees none, and D of
        shape [n, d, 0] stands for exact values."""
        sources = self.without_limits(self.as_used(sources))
        X, X_err, X_cov = sources.X, sources.X_err, sources.covariance
        if not self.treatment.uses_errors:
            missing = self.not_measured(sources)
            if not missing.any():  # nothing to condition, which costs n d³
                return X, np.zeros((*X.shape, 0))
            X_err, X_cov = np.where(missing, np.inf, self.true_input.known_error), None
        return self.true_input.measurement(X, X_err, X_cov)

    def as_used(self, sources: Measurements) -> Measurements:
        """Without the errors that the treatment ignores."""
        if self.treatment.uses_errors:
            return sources
        X_err = np.where(sources.measured, self.true_input.known_error, np.inf)
        return replace(sources, X_err=X_err, covariance=None, noisy=None)

    def not_measured(self, sources: Measurements) -> np.ndarray:
        """[n, d] bool: values that tell nothing. An error so large that its value tells nothing is
        ignored with all others, where errors are."""
        if not self.treatment.uses_errors:
            return ~sources.measured
        return np.asarray(sources.X_err >= NO_MEASUREMENT)

    def without_limits(self, sources: Measurements, marginal: bool | None = None) -> Measurements:
        """Measurements in place of limits; `marginal`, of a treatment that knows no population: the
        moments of what lies there."""
        if sources.limits is None:
            return sources
        x = self.true_input
        return as_measured(
            sources,
            x.population,
            marginal=x.flat or not self.treatment.uses_errors if marginal is None else marginal,
            scale=x.scale.numpy(),
            floor=x.floor.numpy(),
        )

    @property
    def nodes(self) -> int:
        """Rows per source in training."""
        return self.treatment.training_nodes

    def __call__(
        self, X: np.ndarray | tf.Tensor, root: np.ndarray | tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(rows [n·S, d], R [n, d, d]) of training, for x̃ [n, d] and D [n, d, d]."""
        if root.shape[2] == 0:
            return tf.convert_to_tensor(X), tf.convert_to_tensor(root)
        x = self.true_input(X, root)
        return x.moments() if self.treatment.gradient_only else self.treatment.rows(x)

    def prediction(
        self, X: np.ndarray | tf.Tensor, root: np.ndarray | tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The same at which to predict."""
        if root.shape[2] == 0:
            return tf.convert_to_tensor(X), tf.convert_to_tensor(root)
        return self.treatment.rows(self.true_input(X, root))

    @check_shapes("sources.X: [n, d]", "labels: [n, classes...]")
    def data(
        self, sources: Measurements, labels: np.ndarray, weight: np.ndarray | None = None
    ) -> Data:
        """Training data: the rows themselves, or the measurements where errors are learned."""
        X, root = (tf.constant(part) for part in self.measurement(sources))
        if self.true_input.learn == "none":
            X, root = self(X, root)
        times = None if weight is None else tf.constant(weight, tf.float64)
        return Data(X, tf.constant(labels.reshape(len(labels), -1).astype(float)), root, times)
