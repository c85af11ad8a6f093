"""Draws of p(f | y) beside a fitted classifier: what its Gaussian q(f) loses.

    classifier = GPClassifier("logistic_softmax").fit(X, y)
    reference = reference_posterior(classifier, "gibbs")
    classifier.predict_proba(X_new) - reference.predict_proba(X_new)

Likelihood, kernels and their hyper-parameters are the classifier's as they were learned; f is that
of the full GP at its n training inputs, which are exact, whether it has inducing points or not.
With K = R Rᵀ, whitened draws v = R⁻¹ f and A = R⁻¹ K(X, x), f at another input x is

    f(x) | f ~ N(Aᵀ v, k(x, x) − |A|²),

and probabilities are the mean over draws of the likelihood's own expectation under it. K has a
relative jitter of 10⁻⁸: a part of f that no data see.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from sklearn.utils.validation import check_is_fitted

from gpal.errors import InputError
from gpal.inference.cholesky import Jitter, jittered_cholesky
from gpal.inference.covariances import square_covariance
from gpal.inference.reference import REFERENCES, ChainSchedule
from gpal.model.labels import are_weights

__all__ = ["MOST_SOURCES", "SampledPosterior", "reference_posterior"]

# Every draw costs n³, of each latent function.
MOST_SOURCES = 1000
JITTER = 1e-8
MIXED = 1.1  # R-hat of every f, above which the chains are warned of
BATCHES = 4
BLOCK = 200_000  # draws × inputs whose probabilities are taken at once


def reference_posterior(classifier: Any, method: str = "hmc", **schedule: int) -> SampledPosterior:
    """Draws of p(f | y) of a fitted `GPClassifier`, at most MOST_SOURCES exact training inputs.

    method    a name in `gpal.inference.reference.REFERENCES`
    schedule  draws, chains, burn_in, thin and seed of `ChainSchedule`

    Raises InputError for a likelihood that the method does not take, for error bars, weights or too
    many sources, and for a classifier that does not hold its sources. Warns of chains that have not
    come to one distribution.
    """
    check_is_fitted(classifier)
    model, sampler, chains = (
        classifier.model_,
        REFERENCES.find(method),
        ChainSchedule.of(**schedule),
    )
    if reason := sampler.why_not(type(model.likelihood)):
        raise InputError(f"{reason}: fit with another likelihood, or choose another method")
    sources, labels = _training_sources(classifier)
    kernels = model.gp.kernels
    K = tf.stack([square_covariance(kernel, tf.constant(sources.X)) for kernel in kernels])
    jitter = Jitter(JITTER)
    roots = jitter.run(lambda: jittered_cholesky(K, jitter.value), lambda root: root)
    f = sampler().sample(roots.numpy(), model.likelihood, labels, chains)
    standardised = classifier.posterior_.standardised
    posterior = SampledPosterior(model, sources.X, roots, f, standardised)
    worst = posterior.rhat.max()
    if not worst < MIXED:
        warnings.warn(
            f"the {chains.chains} chains of '{method}' have not come to one distribution: R-hat of"
            f" some f is {worst:.2f}; give more draws, burn_in or thin",
            stacklevel=2,
        )
    return posterior


def _training_sources(classifier: Any) -> tuple[Any, np.ndarray]:
    """Standardised sources and class indices that the classifier was fitted to."""
    if classifier.batch_ is None:
        raise InputError(
            "the classifier does not hold the sources that it was fitted to, as one read from a"
            " file or fitted in batches: call `fit` here"
        )
    sources, labels, weight = classifier.batch_
    if are_weights(labels):
        raise InputError(
            "a reference posterior is of sources of one known class: fit without those whose label"
            " is a set or has weights"
        )
    if weight is not None:
        raise InputError("a reference posterior takes no sample_weight: fit without")
    if classifier.model_.input_noise.name != "none":
        raise InputError("a reference posterior is of exact inputs: fit without error bars")
    if len(sources) > MOST_SOURCES:
        raise InputError(
            f"a reference posterior of {len(sources)} sources would take too long:"
            f" fit to at most {MOST_SOURCES}"
        )
    return sources, labels


class SampledPosterior:
    """Draws of f, and what they say of other inputs, which are exact and in the user's units.

    f     [draws, chains, n, P]  at the training inputs
    rhat  [n, P]  of the halves of all chains (Gelman & Rubin 1992): 1 where they agree
    """

    def __init__(
        self,
        model: Any,
        X: np.ndarray,
        roots: tf.Tensor,
        f: np.ndarray,
        standardised: Callable[[Any], np.ndarray],
    ) -> None:
        self.f = f
        self._model, self._X, self._roots = model, tf.constant(X), roots
        self._standardised = standardised
        latents = np.moveaxis(f.reshape(-1, *f.shape[2:]), 0, -1)  # [n, P, draws · chains]
        latents = np.moveaxis(latents, 1, 0)
        self._whitened = tf.linalg.triangular_solve(roots, tf.constant(latents))

    @property
    def rhat(self) -> np.ndarray:
        return tfp.mcmc.potential_scale_reduction(
            self.f, independent_chain_ndims=1, split_chains=True
        ).numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """E[p(y = c | f(x)) | y], (n, C); columns in the order of `classes_`, for the class
        fractions of the training set."""
        return self.predict_proba_with_error(X)[0]

    def predict_proba_with_error(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same, and its standard error (n, C), as the chains have an end: that of the means of
        BATCHES parts of each chain, which are taken to be independent."""
        x = tf.constant(self._standardised(X))
        draws, chains = self.f.shape[:2]
        rows = max(1, BLOCK // (draws * chains))
        parts = []
        for first in range(0, len(x), rows):
            p = self._probabilities(x[first : first + rows])
            p = p.reshape(draws, chains, *p.shape[1:])
            of_parts = np.stack([part.mean(axis=0) for part in np.array_split(p, BATCHES)])
            error = of_parts.std(axis=(0, 1), ddof=1) / np.sqrt(BATCHES * chains)
            parts.append((p.mean(axis=(0, 1)), error))
        mean, error = (np.concatenate(part) for part in zip(*parts))
        return mean, error

    def _probabilities(self, x: tf.Tensor) -> np.ndarray:
        """p(y | x, f_s) [draws · chains, n, C]."""
        mean, variance = self._conditional(x)
        shape = tf.shape(mean)
        flat = tf.reshape(mean, [-1, mean.shape[-1]])
        spread = tf.reshape(tf.broadcast_to(variance, shape), flat.shape)
        p = self._model.likelihood.predict_proba(flat, spread).numpy()
        return p.reshape(*mean.shape[:2], -1)

    @check_shapes("x: [n, d]", "return[0]: [S, n, P]", "return[1]: [n, P]")
    def _conditional(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and variance of f(x) given each draw of f."""
        kernels = self._model.gp.kernels
        A = tf.linalg.triangular_solve(
            self._roots, tf.stack([kernel(self._X, x) for kernel in kernels])
        )
        mean = tf.einsum("qmn,pms->snp" if len(kernels) == 1 else "pmn,pms->snp", A, self._whitened)
        prior = tf.stack([kernel(x, full_cov=False) for kernel in kernels], axis=-1)
        variance = prior - tf.transpose(tf.reduce_sum(A**2, axis=1))
        variance = tf.maximum(variance, 1e-10 * prior)
        return mean, tf.broadcast_to(variance, [x.shape[0], mean.shape[-1]])
