"""What every classification likelihood p(y | f) of gpal offers.

Shapes: N sources, C classes, P latent functions (P = C for multi-class, P = 1 for binary).

    Fmu, Fvar   [N, P]  marginals q(f_i) = N(m_i, v_i), latent functions independent
    Y           [N, 1]  class index 0 … C−1 (as in gpflow's MultiClass and Bernoulli)

A likelihood is an ordinary `gpflow.likelihoods.Likelihood`, so it also works inside plain GPflow
models. On top it supplies

    conditional_probabilities(F)   p(y = c | f) at given latent values
    predict_proba(Fmu, Fvar)       E_q(f) p(y = c | f)
    sites(Fmu, Fvar, Y)            precision θ and natural mean r of the Gaussian that meets
                                   E_q(f) log p(y | f) at q (methods: the natural-gradient row)

         θ = −2 ∂E/∂v,     r = ∂E/∂m + θ m,      E = E_q(f)[log p(y | f)]

after Khan & Lin (2017), "Conjugate-computation variational inference".
"""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes

__all__ = ["ClassificationLikelihood", "natural_gradient_sites"]


def natural_gradient_sites(
    likelihood: gpflow.likelihoods.Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """(θ, r) of any GPflow likelihood by differentiating its variational expectations.

    θ is not clipped: a non-log-concave likelihood can give θ < 0, and what to do then is the
    engine's decision.
    """
    with tf.GradientTape() as tape:
        tape.watch([Fmu, Fvar])
        expectations = likelihood.variational_expectations(None, Fmu, Fvar, Y)
    gradient_mean, gradient_variance = tape.gradient(expectations, [Fmu, Fvar])
    precision = -2.0 * gradient_variance
    return precision, gradient_mean + precision * Fmu


class ClassificationLikelihood(gpflow.likelihoods.Likelihood):
    """Base class: a subclass gives `_conditional_probabilities`, `_variational_expectations` and
    `_predict_proba`; `_sites` too where it has a closed form."""

    def __init__(self, num_classes: int, latent_dim: int) -> None:
        super().__init__(input_dim=None, latent_dim=latent_dim, observation_dim=None)
        self.num_classes = num_classes

    @check_shapes("F: [batch..., P]", "return: [batch..., C]")
    def conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        """p(y = c | f)."""
        return self._conditional_probabilities(F)

    @check_shapes("Fmu: [N, P]", "Fvar: [N, P]", "return: [N, C]")
    def predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """E_q(f) p(y = c | f); rows sum to one."""
        return self._predict_proba(Fmu, Fvar)

    @check_shapes(
        "Fmu: [N, P]", "Fvar: [N, P]", "Y: [N, 1]", "return[0]: [N, P]", "return[1]: [N, P]"
    )
    def sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Site precisions θ and natural means r at the marginals q(f_i) = N(Fmu, Fvar)."""
        return self._sites(Fmu, Fvar, Y)

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Sites to start from; by default those met at the prior q(f) = N(0, 1)."""
        shape = (tf.shape(Y)[0], self.latent_dim)
        dtype = gpflow.default_float()
        return self._sites(tf.zeros(shape, dtype), tf.ones(shape, dtype), Y)

    def _conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def _sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return natural_gradient_sites(self, Fmu, Fvar, Y)

    def _one_hot(self, Y: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        return tf.one_hot(tf.cast(tf.reshape(Y, [-1]), tf.int32), self.num_classes, dtype=dtype)

    # ---- the GPflow side, in terms of the above --------------------------------------------------

    @inherit_check_shapes
    def _log_prob(self, X, F, Y):
        p = self._conditional_probabilities(F)
        labels = tf.cast(tf.squeeze(Y, -1), tf.int32)
        return tf.math.log(tf.gather(p, labels, axis=-1, batch_dims=len(labels.shape)))

    @inherit_check_shapes
    def _conditional_mean(self, X, F):
        return self._conditional_probabilities(F)

    @inherit_check_shapes
    def _conditional_variance(self, X, F):
        p = self._conditional_probabilities(F)
        return p - p**2

    @inherit_check_shapes
    def _predict_mean_and_var(self, X, Fmu, Fvar):
        p = self._predict_proba(Fmu, Fvar)
        return p, p - p**2

    @inherit_check_shapes
    def _predict_log_density(self, X, Fmu, Fvar, Y):
        p = self._predict_proba(Fmu, Fvar)
        return tf.math.log(tf.reduce_sum(self._one_hot(Y, p.dtype) * p, axis=-1))
