"""Labels that carry weights: p(what was seen | f) ∝ Σ_c w_c p(c | f).

What is known of a source may be less than its class: a set S of classes ("an active galaxy"), or
what somebody says who errs, w_c ∝ p(what was seen | c). That it is no more must not depend on x
given the class, nor, of a set, on the class within it (coarsened at random). Weights are scaled to
max_c w_c = 1. So a class is w = 1 at it and 0 elsewhere, and its term log p(c | f); a set is w = 1
in it and 0 elsewhere, and its term log p(S | f); equal weights of all have the term 0, and say
nothing. With the shares ρ of the classes, and g_c, h_c the gradient and the negative diagonal
curvature of log p(c | f),

    log p(w | f) = logsumexp_c [log w_c + log p(c | f)],      ρ_c = w_c p(c | f) / p(w | f)
    ∂/∂f = Σ_c ρ_c g_c,        −∂²/∂f² = Σ_c ρ_c (h_c − g_c²) + (Σ_c ρ_c g_c)²

(Louis 1982), from which the sites come on the likelihood's points, as those of a class. They have
no sign: where classes of great weight are told apart less than they from the rest, θ < 0.

If every p(c | f) falls in the f_k of other classes, as that of a softmax, log p(w | f) rises or
falls in f_k as w_k is above or below Σ_c w_c p(c | f): it is monotone where w_k is the greatest
weight or the least. So it is in each f_k for classes, for sets, and for two classes; there the
nodes of an uncertain input are met together (`averaged.coupled`), where those of a class are. With
a weight between the two the coupled term is no bound, and they are met one by one.

Y holds w [N, C].

Source: Pearl (1988), "Probabilistic Reasoning in Intelligent Systems", section 2.2.2 (virtual
evidence); Heitjan & Rubin (1991), "Ignorability and coarse data"; Cour, Sapp & Taskar (2011),
"Learning from partial labels".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes

from gpal.likelihoods.quasi_random import QuasiRandomLikelihood, gaussian_samples

__all__ = ["PartialLabels"]


class PartialLabels(QuasiRandomLikelihood):
    """`base` for labels that are weights of the classes; its parameters and its predictions.

    base   a likelihood that `takes_sets`
    """

    takes_sets = True
    # Where classes are left open the last sweeps add little to the bound and much to p: of 150
    # sources, 60 of them told as sets, a refit moved p by up to .05 without, and so by .001.
    tolerance = 0.1

    def __init__(self, base: QuasiRandomLikelihood) -> None:
        super().__init__(base.num_classes, base.num_points, base.seed)
        self.base, self.latent_dim = base, base.latent_dim

    def to_data(self) -> dict[str, Any]:
        return self.base.to_data()

    @property
    def training_points(self) -> np.ndarray:
        return self.base.training_points

    @property
    def coupling_points(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.base.coupling_points

    @check_shapes("Y: [batch..., C]", "return: [batch...]")
    def monotone(self, Y: tf.Tensor) -> tf.Tensor:
        """Whether every weight is the greatest or the least."""
        least, greatest = (f(Y, axis=-1, keepdims=True) for f in (tf.reduce_min, tf.reduce_max))
        return tf.reduce_all(tf.equal(Y, least) | tf.equal(Y, greatest), axis=-1)

    @check_shapes("Y: [batch..., C]", "return: [batch..., C]")
    def one_hot(self, Y: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """The weights, in the place of zeros and a one."""
        return tf.cast(Y, dtype)

    def log_derivatives(
        self, F: tf.Tensor, one_hot: tf.Tensor, axis: int = -1
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        classes = tf.unstack(tf.eye(self.num_classes, dtype=F.dtype))
        shape = [-1 if place == axis else 1 for place in range(axis, 0)]
        parts = [self.base.log_derivatives(F, tf.reshape(c, shape), axis) for c in classes]
        log_p = tf.stack([part[0] for part in parts], axis) + tf.math.log(one_hot)
        log_sum = tf.reduce_logsumexp(log_p, axis=axis)
        shares = tf.unstack(tf.exp(log_p - tf.expand_dims(log_sum, axis)), axis=axis)
        gradient, curvature = tf.zeros_like(F), tf.zeros_like(F)
        for share, (_, g, h) in zip(shares, parts):
            rho = tf.expand_dims(share, axis)
            gradient += rho * g
            curvature += rho * (h - g * g)
        return log_sum, gradient, curvature + gradient * gradient

    @inherit_check_shapes
    def sites_and_expectations(
        self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        samples = gaussian_samples(Fmu, Fvar, self.training_points)
        parts = self.log_derivatives(samples, self.one_hot(Y, Fmu.dtype))
        log_p, gradient, precision = (tf.reduce_mean(part, axis=0) for part in parts)
        return precision, gradient + precision * Fmu, log_p

    @inherit_check_shapes
    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        return self.sites_and_expectations(Fmu, Fvar, Y)[2]

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The mean of those of the classes by their weights: at f = 0 these are their shares."""
        of_classes = self.base.initial_sites(tf.range(self.num_classes, dtype=tf.float64)[:, None])
        weights = self.one_hot(Y, tf.float64)
        shares = weights / tf.reduce_sum(weights, axis=-1, keepdims=True)
        precision, natural_mean = (tf.matmul(shares, part) for part in of_classes)
        return precision, natural_mean

    def _conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return self.base.conditional_probabilities(F)

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        return self.base.predict_proba(Fmu, Fvar)

    @inherit_check_shapes
    def _log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return self.log_derivatives(F, self.one_hot(Y, F.dtype))[0]

    @inherit_check_shapes
    def _predict_log_density(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        p = self.predict_proba(Fmu, Fvar)
        seen = tf.reduce_sum(self.one_hot(Y, p.dtype) * p, axis=-1)
        return tf.math.log(tf.maximum(seen, np.finfo(p.dtype.as_numpy_dtype).tiny))
