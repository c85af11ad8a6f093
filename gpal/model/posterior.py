"""The posterior q(f) of a fitted model as a function of exactly known inputs, in the user's units.

Of P latent functions with kernels k, inducing points Z, α [P, m] and M [P, m, m]:

    E[f(x)]            m(x) = k(x, Z) α
    Cov[f(x), f(x')]   k(x, x') + k(x, Z) M k(Z, x')
    ∂m/∂x              Σ_j α_j ∂k(x, z_j)/∂x
    ∂v/∂x              ∂k(x, x)/∂x + 2 Σ_j (M k(Z, x))_j ∂k(x, z_j)/∂x
    ∂p/∂x              ∂p/∂m ∂m/∂x + ∂p/∂v ∂v/∂x,       p(m, v) = E_q p(y | f)

Inputs are (n, d), exact: how a measurement's error bars spread f is `latent.py`, behind the
estimators' `predict_latent` and `sample_latent`. Latent functions are independent a posteriori.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from gpal.array_messages import refuse_masked
from gpal.errors import InputError, as_python
from gpal.inference.response_distribution import response_log_density
from gpal.model import latent
from gpal.model.fitted import FittedModel
from gpal.model.outliers import FARTHEST
from gpal.model.to_gpflow import to_gpflow

__all__ = ["ClassPosterior", "Posterior"]

BLOCK = 4096  # rows whose derivatives of f are held at once
PROBABILITY_BLOCK = 512  # and of the probabilities, which are integrals


class Posterior:
    """q(f) of a `NoisyInputGP`, as its `posterior_`.

    model     in standardised units
    exact     the estimator's door: sources in any form -> values (n, d) in standardised units
    offset, width   [d] of the standardisation (X − offset)/width
    """

    def __init__(
        self,
        model: FittedModel,
        exact: Callable[[Any], np.ndarray],
        offset: np.ndarray,
        width: np.ndarray,
    ) -> None:
        self._model, self._exact = model, exact
        self._offset, self._width = offset, width

    @property
    def num_latent(self) -> int:
        """P."""
        return self._model.gp.num_latent

    # ---- latent functions ------------------------------------------------------------------------

    def predict_f(self, X: Any, *, full_cov: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, P) and variance (n, P) of f(x).

        full_cov  the covariance (P, n, n) of all rows in place of the variance
        """
        x = self._exact(X)
        mean, variance = self._marginals(x)
        if full_cov:
            return mean.numpy(), latent.covariance_at(self._model, tf.constant(x))
        return mean.numpy(), variance.numpy()

    def sample_f(self, X: Any, num_samples: int = 1, *, seed: int = 0) -> np.ndarray:
        """(num_samples, n, P) latent functions, drawn jointly at all rows; costs n³."""
        latent.check_draws(num_samples, seed)
        mean, covariance = self.predict_f(X, full_cov=True)
        rng, (n, P) = np.random.default_rng(seed), mean.shape
        drawn = np.empty((num_samples, n, P))
        for c in range(P):
            root = latent.square_root(covariance[c])
            drawn[:, :, c] = mean[:, c] + rng.normal(size=(num_samples, n)) @ root.T
        return drawn

    def predict_f_gradient(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """∂E[f]/∂x and ∂Var[f]/∂x, each (n, P, d), per unit of X."""
        blocks = [self._slopes(block) for block in _blocks(self._exact(X))]
        mean, variance = (np.concatenate(parts) / self._width for parts in zip(*blocks))
        return mean, variance

    def predict_log_density(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x) = log E_q p(y | f(x)) (n,) of new responses y (n,)."""
        x, y = self._exact(X), self._response(y)
        if y.shape != (len(x),):
            raise InputError(f"y has shape {y.shape}, one value for each of {len(x)} rows")
        likelihood = self._model.likelihood
        return response_log_density(likelihood, *self._marginals(x), y[:, None])

    def _response(self, y: Any) -> np.ndarray:
        """As the likelihood takes it."""
        refuse_masked(y=y)
        y = np.asarray(y, dtype=float)
        if y.ndim == 1:
            self._model.check_response(y)
        return y

    def _marginals(self, x: np.ndarray) -> tuple[tf.Tensor, tf.Tensor]:
        return self._model.gp.marginals(self._model.predictive, x)

    def _slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂m/∂x and ∂v/∂x [n, P, d] in standardised units, float64 whatever the rows are; 0 where x
        is taken to be at `outliers.FARTHEST`, beyond which nothing changes."""
        gp, (alpha, M, _) = self._model.gp, self._model.predictive
        X, Z = tf.constant(x), tf.convert_to_tensor(gp.Z)
        shared = len(gp.kernels) == 1
        of_mean, of_variance = [], []
        for j, kernel in enumerate(gp.kernels):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(X)
                K, k = kernel(X, Z), kernel(X, full_cov=False)
            prior = _gradient(tape, k, X, None)
            for c in range(self.num_latent) if shared else [j]:
                of_mean.append(_gradient(tape, K, X, tf.ones_like(K) * alpha[c]))
                of_variance.append(prior + _gradient(tape, K, X, 2.0 * tf.matmul(K, M[c])))
        moves = (np.abs(x) < FARTHEST)[:, None, :]
        return np.stack(of_mean, axis=1) * moves, np.stack(of_variance, axis=1) * moves

    # ---- GPflow ----------------------------------------------------------------------------------

    def to_gpflow(self, *, whiten: bool = True, standardised: bool = False) -> gpflow.models.SVGP:
        """GPflow's SVGP of this posterior: the same predictions at exact inputs.

        whiten        whether q is of v with u = L v, K(Z, Z) = L Lᵀ, or of u itself
        standardised  the model takes X in `standardised` units, and its kernels are the fitted
                      ones; otherwise it takes X as the estimator does, and each kernel is wrapped
                      in one that standardises

        Error bars, the population and class weights of `prior` stay behind. GPflow adds a jitter
        to K(Z, Z), `gpflow.config.default_jitter()`, which must be at predictions what it was here.
        Raises InputError where that is too large for q(f) to be written by.
        """
        d = len(self._offset)
        scaling = (np.zeros(d), np.ones(d)) if standardised else (self._offset, self._width)
        return to_gpflow(self._model, *scaling, whiten=whiten)

    def standardised(self, X: Any) -> np.ndarray:
        """(X − offset)/width (n, d), as the kernels take it."""
        return self._exact(X)


class ClassPosterior(Posterior):
    """q(f) of a `GPClassifier`, as its `posterior_`: with the probabilities that it gives.

    Columns of probabilities are in the order of `classes_`. They refer to the class fractions of
    the training set: weights of the classifier's `prior` are no part of q(f).
    """

    def __init__(
        self,
        model: FittedModel,
        exact: Callable[[Any], np.ndarray],
        offset: np.ndarray,
        width: np.ndarray,
        classes: np.ndarray,
    ) -> None:
        super().__init__(model, exact, offset, width)
        self._classes = classes

    def predict_proba(self, X: Any) -> np.ndarray:
        """E_q p(y = c | f(x)), (n, C)."""
        return self._model.likelihood.predict_proba(*self._marginals(self._exact(X))).numpy()

    def sample_proba(self, X: Any, num_samples: int = 1, *, seed: int = 0) -> np.ndarray:
        """p(y = c | f_s(x)) (num_samples, n, C) of the functions that `sample_f` draws."""
        f = self.sample_f(X, num_samples, seed=seed)
        return self._model.likelihood.conditional_probabilities(tf.constant(f)).numpy()

    def predict_proba_gradient(self, X: Any) -> np.ndarray:
        """∂E_q p(y = c | f(x))/∂x (n, C, d), per unit of X."""
        blocks = _blocks(self._exact(X), PROBABILITY_BLOCK)
        gradients = [self._probability_slopes(block) for block in blocks]
        return np.concatenate(gradients) / self._width

    def _probability_slopes(self, x: np.ndarray) -> np.ndarray:
        m, v = self._marginals(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([m, v])
            p = tf.unstack(self._model.likelihood.predict_proba(m, v), axis=1)
        to_mean, to_variance = (
            np.stack([_gradient(tape, p_c, part, None) for p_c in p], axis=1) for part in (m, v)
        )
        of_mean, of_variance = self._slopes(x)
        return to_mean @ of_mean + to_variance @ of_variance

    def _response(self, y: Any) -> np.ndarray:
        refuse_masked(y=y)
        y = np.asarray(y)
        known = self._classes.tolist()
        unknown = [label for label in y.ravel().tolist() if label not in known]
        if unknown:
            raise InputError(f"class {as_python(unknown[0])!r} is not one of {as_python(known)}")
        return np.searchsorted(self._classes, y).astype(float)


def _gradient(
    tape: tf.GradientTape, target: tf.Tensor, source: tf.Tensor, seeds: tf.Tensor | None
) -> np.ndarray:
    zero = tf.UnconnectedGradients.ZERO
    return tape.gradient(target, source, seeds, unconnected_gradients=zero).numpy()


def _blocks(x: np.ndarray, size: int = BLOCK) -> list[np.ndarray]:
    return [x[first : first + size] for first in range(0, len(x), size)]
