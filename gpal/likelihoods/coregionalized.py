"""Coregionalisation: softmax of latent functions that are mixed, p(y = c | g) = softmax(W g)_c.

    f(x) = W g(x),     W [C, Q],     g_q ~ GP(0, k_q) independent     (linear model, Journel 1978)

so that the f_c of the classes are correlated: Cov[f_c(x), f_b(x')] = Σ_q W_cq W_bq k_q(x, x').
What the engine infers is g, and W is a parameter of the likelihood, learned with q(g) held. With
Q < C functions there are fewer of them to infer than classes.

    log p(y | g) = (W g)_y − logsumexp(W g)      ∂/∂g_q = W_yq − ⟨W_q⟩
    −∂²/∂g_q² = ⟨W_q²⟩ − ⟨W_q⟩² ≥ 0,             ⟨W_q⟩ = Σ_c p_c W_cq

Expectations are over q(g) = Π_q q(g_q) on the fixed points of `quasi_random`: those of f = W g with
its correlations, and the bound is a bound. An expectation that knows only the means and variances
of the f_c, as if they were independent, would be none: GPflow's LinearCoregionalization hands its
likelihood those. Sites start at the curvature bound θ_q = ½ Σ_c (W_cq − W̄_q)² (Böhning 1992).

log p is not monotone in g_q: the nodes of an uncertain input are met one by one (`averaged`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.files.saved_data import whole_number
from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.quasi_random import (
    QuasiRandomLikelihood,
    antithetic_normal,
    gaussian_samples,
)

__all__ = ["Coregionalized", "first_mixing"]


def first_mixing(num_classes: int, latents: int) -> np.ndarray:
    """W to start from: the identity, or the lowest cosines of the class, which tell all classes
    apart; Σ_q W_cq² is one, or one on average."""
    if latents == num_classes:
        return np.eye(num_classes)
    c, q = np.arange(num_classes)[:, None] + 0.5, np.arange(1, latents + 1)
    return np.sqrt(2.0 / latents) * np.cos(np.pi * c * q / num_classes)


@LIKELIHOODS.register
class Coregionalized(QuasiRandomLikelihood):
    """Softmax of mixed latent functions.

    latents       Q ≤ C; None: C, or as many as `mixing` has columns
    mixing        W [C, Q] to start from; None: `first_mixing`
    learn_mixing  whether W is learned
    num_points, seed   as for `QuasiRandomLikelihood`
    """

    name = "coregionalized"
    source = "Journel & Huijbregts 1978"
    log_concave = True
    coupling_points = ClassificationLikelihood.coupling_points  # none

    def __init__(
        self,
        num_classes: int,
        latents: int | None = None,
        mixing: Sequence[Sequence[float]] | np.ndarray | None = None,
        learn_mixing: bool = True,
        num_points: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(num_classes, num_points, seed)
        if mixing is None:
            asked = num_classes if latents is None else latents
            number = whole_number(asked, "latents", 1, num_classes)
            mixing = first_mixing(num_classes, number)
        W = np.asarray(mixing, float)
        if W.ndim != 2 or len(W) != num_classes or latents not in (None, W.shape[1]):
            wanted = f"({num_classes}, {'Q' if latents is None else latents})"
            raise InputError(f"mixing has shape {W.shape}, not {wanted}: a row for each class")
        if not W.shape[1] or not np.isfinite(W).all():
            raise InputError("mixing needs a column for each latent function, of finite numbers")
        self.latent_dim = W.shape[1]
        self.mixing = gpflow.Parameter(W, trainable=bool(learn_mixing), dtype=tf.float64)

    def _options(self) -> dict[str, Any]:
        return {
            "latents": self.latent_dim,
            "mixing": self.mixing.numpy().tolist(),
            "learn_mixing": self.mixing.trainable,
            **super()._options(),
        }

    @property
    def training_points(self) -> np.ndarray:
        return antithetic_normal(self.num_points, self.latent_dim, self.seed)

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        points = antithetic_normal(4 * self.num_points, self.latent_dim, self.seed)
        samples = gaussian_samples(Fmu, Fvar, points)
        return tf.reduce_mean(self._conditional_probabilities(samples), axis=0)

    def mixed(self, F: tf.Tensor, axis: int = -1) -> tf.Tensor:
        """W g, the Q functions on `axis`, −1 or −2."""
        W = tf.cast(tf.convert_to_tensor(self.mixing), F.dtype)
        return tf.matmul(F, W, transpose_b=True) if axis == -1 else tf.matmul(W, F)

    def _log_conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return tf.nn.log_softmax(self.mixed(F), axis=-1)

    def log_derivatives(
        self, F: tf.Tensor, one_hot: tf.Tensor, axis: int = -1
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        W = tf.cast(tf.convert_to_tensor(self.mixing), F.dtype)
        log_p = tf.nn.log_softmax(self.mixed(F, axis), axis=axis)
        p = tf.exp(log_p)

        def averaged(weights: tf.Tensor, W: tf.Tensor) -> tf.Tensor:
            return tf.matmul(weights, W) if axis == -1 else tf.matmul(W, weights, transpose_a=True)

        mean = averaged(p, W)
        gradient = averaged(one_hot + tf.zeros_like(p), W) - mean
        curvature = tf.maximum(averaged(p, W**2) - mean**2, 0.0)
        return tf.reduce_sum(one_hot * log_p, axis=axis), gradient, curvature

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        W = tf.convert_to_tensor(self.mixing)
        one_hot = self.one_hot(Y, tf.float64)
        away = W - tf.reduce_mean(W, axis=0)
        natural_mean = tf.matmul(one_hot, away)
        return 0.5 * tf.reduce_sum(away**2, axis=0) * tf.ones_like(natural_mean), natural_mean
