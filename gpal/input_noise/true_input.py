"""The model of the error bars: how far a measurement may be from the true input, and p(x | x̃).

    V_i = s² σ_i² + τ²      per feature: scale s, floor τ, given or learned

A covariance per source keeps its correlations while its diagonal is scaled so. p(x | x̃) follows
under the population prior (`conditional.py`), or under a flat prior, which is N(x̃, V_i): there a
value that was not measured is completed from the population first, as nothing else is known of it.
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from numpy.typing import ArrayLike

from gpal.input_noise.conditional import (
    NO_MEASUREMENT,
    Conditional,
    Unconditioned,
    condition,
    error_root,
)
from gpal.input_noise.error_scaling import KNOWN, scaled_errors
from gpal.input_noise.population import Population

__all__ = ["LEARN_ERRORS", "TrueInput"]

LEARN_ERRORS = ("none", "scale", "floor", "both")
# Added to the deviation of a completed value, which is no error bar: what is learned of those must
# leave it alone.
COMPLETED = 1e6
# Where a learned floor starts, in widths of the features: at zero its logarithm has no gradient.
SMALLEST_FLOOR = 0.1


class TrueInput(tf.Module):
    """p(x | x̃) in standardised units.

    population  prior of x; also completes what was not measured
    flat        ignore the prior where there is a measurement
    scale       s [d] or scalar
    floor       τ [d] or scalar
    learn       one of LEARN_ERRORS
    """

    def __init__(
        self,
        population: Population,
        *,
        flat: bool = False,
        scale: ArrayLike = 1.0,
        floor: ArrayLike = 0.0,
        learn: str = "none",
    ) -> None:
        super().__init__()
        self.population, self.flat, self.learn = population, flat, learn
        d = population.means.shape[1]
        scales = np.array(np.broadcast_to(np.asarray(scale, float), d))
        floors = np.array(np.broadcast_to(np.asarray(floor, float), d))
        self.scale = _parameter(scales, learn in ("scale", "both"))
        if learn in ("floor", "both"):
            floors = np.maximum(floors, SMALLEST_FLOOR)
        self.floor = _parameter(floors, learn in ("floor", "both"))

    def under_population(self) -> TrueInput:
        """The same errors under the population prior."""
        return TrueInput(self.population, scale=self.scale.numpy(), floor=self.floor.numpy())

    @check_shapes(
        "X: [n, d]",
        "X_err: [n, d]",
        "X_cov: [n, d, d]",
        "return[0]: [n, d]",
        "return[1]: [n, d, d]",
    )
    def measurement(
        self, X: np.ndarray, X_err: np.ndarray, X_cov: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(x̃ [n, d], D [n, d, d]) with all values finite, as `__call__` takes them: of a flat prior
        what was not measured by its conditional mean and deviation."""
        missing = X_err >= NO_MEASUREMENT
        if not self.flat:
            centre = self.population.weights @ self.population.means
            return np.where(missing, centre, X), error_root(X_err, X_cov)
        scaled = scaled_errors(X_err, X_cov, self.scale.numpy(), self.floor.numpy())
        X, deviation = self.population.complete(X, *scaled)
        if X_cov is not None:  # a huge error has a covariance too
            X_cov = np.where(missing[:, :, None] | missing[:, None, :], 0.0, X_cov)
        root = error_root(np.where(missing, deviation, X_err), X_cov)
        if self._scales:
            root = root + COMPLETED * missing[:, :, None] * np.eye(X.shape[1])
        return X, root

    def __call__(self, X: tf.Tensor, root: tf.Tensor) -> Conditional:
        """p(x | x̃) for x̃ [n, d] and the root [n, d, d] of the errors as they were given."""
        root = self.scaled(root)
        if not self.flat:
            return condition(X, root, *self.population.arrays())
        return Unconditioned.of(X, root)

    @check_shapes("root: [n, d, d]", "return: [n, d, d]")
    def scaled(self, root: tf.Tensor) -> tf.Tensor:
        """D of V = s² σ² + τ² from that of σ²; what was not measured stays so, what was completed
        has its own deviation, and what is known whatever τ is becomes exact."""
        root = tf.convert_to_tensor(root, tf.float64)
        if not self._scales:
            return root
        squared = tf.reduce_sum(root**2, axis=2)
        exact = squared == 0.0
        one, zero = tf.ones_like(squared), tf.zeros_like(squared)
        sigma = tf.sqrt(tf.where(exact, one, squared))
        direction = tf.where(
            exact[..., None], tf.eye(root.shape[1], dtype=tf.float64), root / sigma[..., None]
        )
        variance = self.scale**2 * squared + self.floor**2
        positive = variance > 0.0
        new = tf.where(positive, tf.sqrt(tf.where(positive, variance, one)), zero)
        new = tf.where(sigma >= NO_MEASUREMENT, sigma, new)
        new = tf.where(sigma >= COMPLETED, sigma - COMPLETED, new)
        new = tf.where(~exact & (sigma < 2 * KNOWN), zero, new)
        return new[..., None] * direction

    @property
    def _scales(self) -> bool:
        """Whether errors are others than those given."""
        if self.learn != "none":
            return True
        return bool((self.scale.numpy() != 1).any() or self.floor.numpy().any())

    @property
    def adds_noise(self) -> bool:
        """Whether a feature without an error bar has one nevertheless."""
        return bool(self.floor.numpy().any())

    @property
    def known_error(self) -> float:
        """The error of a value that is known exactly: no floor is added to it."""
        return KNOWN if self.adds_noise else 0.0


def _parameter(value: np.ndarray, trainable: bool) -> gpflow.Parameter:
    transform = tfp.bijectors.Exp() if trainable else None
    return gpflow.Parameter(value, transform=transform, trainable=trainable, dtype=tf.float64)
