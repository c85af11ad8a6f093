"""Softmax by the Gumbel bound: a closed form below the expectation of `softmax`.

Softmax is the arg-max of f_c plus Gumbel noise. Augmenting with that noise and optimising its
variational distribution gives (paper 000, eq. 25)

    E_q[log p(y | f)] ≥ −log(1 + P),     P = E[e^{−f_y}] Σ_{c≠y} E[e^{f_c}]
                      = −logsumexp_c u_c,
    u_y = 0,     u_c = (m_c + v_c/2) − (m_y − v_y/2)   for c ≠ y

(Jensen's inequality for −log Σ_c e^{f_c − f_y}). With w = softmax(u) and y one-hot the sites are

    ∂E/∂m = y − w,     θ = |y − w| ≥ 0.

The gap grows with the variances; the Gumbel bound is quicker and looser than quasi-random softmax.

Before log θ, where q of the Gumbel variable lies, is put at its optimum log(1 + P) the bound is

    1 − log θ − (1 + P)/θ,                                                       (eq. 24)

a sum over classes, which may be drawn at random (`class_sampled`).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes

from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.site_rules import NaturalGradient
from gpal.likelihoods.softmax import Softmax

__all__ = ["ClassSampled", "GumbelSoftmax"]


class ClassSampled(NaturalGradient):
    """The bound by some classes: k of the C, drawn without replacement, stand for all.

        P ≈ (C/k) Σ_{c drawn, c ≠ y} e^{u_c}

    has expectation P, and so has 1 − log θ − (1 + P)/θ its own value over all classes, for any
    θ > 1 that does not depend on the draw. Sites are those of all classes.
    """

    name = "class_sampled"

    @check_shapes("label_mean: [N]", "label_variance: [N]", "mean: [N, k]", "variance: [N, k]")
    @check_shapes("is_label: [N, k]", "return: [N]")
    def odds(
        self,
        label_mean: tf.Tensor,
        label_variance: tf.Tensor,
        mean: tf.Tensor,
        variance: tf.Tensor,
        is_label: tf.Tensor,
        num_classes: int,
    ) -> tf.Tensor:
        """The estimate of P by marginals of the label and of the classes drawn."""
        label = (label_mean - label_variance / 2.0)[:, None]
        terms = tf.where(is_label, tf.zeros_like(mean), tf.exp(mean + variance / 2.0 - label))
        k = tf.cast(tf.shape(mean)[1], mean.dtype)
        return num_classes / k * tf.reduce_sum(terms, axis=1)

    @check_shapes("odds: [N]", "theta: [N]", "return: [N]")
    def bound_at(self, odds: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        """1 − log θ − (1 + P)/θ."""
        return 1.0 - tf.math.log(theta) - (1.0 + odds) / theta


@LIKELIHOODS.register
class GumbelSoftmax(Softmax):
    """The softmax likelihood trained on its Gumbel bound; predictions are those of `Softmax`."""

    name = "gumbel_softmax"
    log_concave = True
    expectation = "closed-form bound"
    source = "Liu et al. 2019"
    site_rules = (NaturalGradient(), ClassSampled())

    sites_and_expectations = ClassificationLikelihood.sites_and_expectations
    coupling_points = ClassificationLikelihood.coupling_points  # none: a closed form is not sampled

    def _exponents(self, Fmu: tf.Tensor, Fvar: tf.Tensor, one_hot: tf.Tensor) -> tf.Tensor:
        label = tf.reduce_sum(one_hot * (Fmu - Fvar / 2.0), axis=-1, keepdims=True)
        return (1.0 - one_hot) * (Fmu + Fvar / 2.0 - label)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        u = self._exponents(Fmu, Fvar, self.one_hot(Y, Fmu.dtype))
        return -tf.reduce_logsumexp(u, axis=-1)

    def _sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        one_hot = self.one_hot(Y, Fmu.dtype)
        gradient = one_hot - tf.nn.softmax(self._exponents(Fmu, Fvar, one_hot), axis=-1)
        precision = tf.abs(gradient)
        return precision, gradient + precision * Fmu
