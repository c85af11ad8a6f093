"""Step, probit and logit: the class whose noisy latent value wins (paper 000).

    g_c = f_c + N(0, a),     p(y | g) = 1 − δ  if y is the winner,  δ/(C − 1)  otherwise

The winner is arg-max_c g_c; of two classes there is one latent function, and class 1 wins if g > 0.
The error variance a = 0 is the step (robust-max), 1 the probit, 2.897 the logit: a Gaussian within
.0095 of the logistic distribution function in p, far below it in the tails (of latent values spread
by 2 the p < .01 are e^−2.3 of it on average). With three classes and more that is no longer near
the softmax: p of the same f, spread by 2, differ by up to .10 with 3, 10 and 26 classes. a is not a
hyper-parameter: the bound always grows as it falls. With q(f) = N(m, v) and t = a + v, the label
wins with probability

    S = Φ(± m/√t)                                              two classes, + for y = 1
    S = E_{g ~ N(m_y, t_y)} Π_{c≠y} Φ((g − m_c)/√t_c)          more

    E_q(g)[log p(y | g)] = S log(1 − δ) + (1 − S) log(δ/(C − 1))                 (eqs. 8, 18)
    p(y)                 = (1 − δ) S + (1 − S) δ/(C − 1)                         (eqs. 9, 19)

The first is the bound that q(f) is trained on: below E_q(f)[log p(y | f)], p(y | f) = E[p(y | g)],
by Jensen's inequality, and equal to it for the step. For fixed q it is largest at δ = 1 − mean S
(eq. 27). With z = ± m/√t and L = log((1 − δ)/δ) the binary sites are

    ∂E/∂m = ± L φ(z)/√t,     θ = L z φ(z)/t      (negative where the label loses: z < 0);

multi-class sites come by differentiation. They start at the largest curvature, which is at z = 1.

The multi-class integral over g is a trapezoidal sum over ±6 standard deviations. Largest error of S
with 32 points, against 1,501 to 4,001 over ±9, in 15 to 40 sources with means spread by 2:

    variances of a source within   a factor of 10            a factor of 1,000
    classes                        3      10     26     100    3      10     26     100
    step                           1e-7   1e-5   1e-5   3e-5   .013   .024   .013   .003
    probit                         2e-10  3e-8   2e-7   1e-6   .001   .001   .001   4e-4
    logit                          2e-10  4e-10  3e-8   9e-7   4e-7   8e-5   5e-4   5e-5

log S is right to .004 on average, and to .06, where S < .01. (Gauss-Hermite of the same size, which
the paper uses: 1e-5 for the step with 26 classes, .04 at a = 0 and a thousandfold.)
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes

from gpal.errors import InputError
from gpal.files.saved_data import is_number, whole_number
from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.normal import normal_cdf, normal_pdf
from gpal.likelihoods.site_rules import natural_gradient_sites

__all__ = ["AdditiveNoise", "Logit", "Probit", "Step"]

FEWEST = 16  # fewer points from -6 to 6 miss probabilities by hundredths
VARIANCE_FLOOR = 1e-10  # for a = 0 where v = 0 too


class AdditiveNoise(ClassificationLikelihood):
    """The formulas above for an error variance a that a subclass names.

    num_classes   C ≥ 2; one latent function if C = 2, else C of them
    delta         robust label noise δ, in (0, (C − 1)/C): at the upper end labels say nothing
    learn_delta   whether δ is trainable
    num_points    nodes of the multi-class integral, fewer than 16 with a warning
    Raises InputError for a δ out of range.
    """

    expectation = "closed form (two), quadrature"
    prediction = "closed form (two), quadrature"
    source = "Liu et al. 2019"
    error_variance: ClassVar[float]

    def __init__(
        self,
        num_classes: int,
        delta: float = 1e-2,
        learn_delta: bool = True,
        num_points: int = 32,
    ) -> None:
        super().__init__(num_classes, latent_dim=1 if num_classes == 2 else num_classes)
        chance = 1.0 - 1.0 / num_classes
        if not (is_number(delta) and 0.0 < delta < chance):
            raise InputError(
                f"delta must be between 0 and {chance:g} for {num_classes} classes, got {delta!r}: "
                "give a fraction of wrong labels such as 0.01"
            )
        interval = tfp.bijectors.Sigmoid(low=np.float64(0.0), high=np.float64(chance))
        self.delta = gpflow.Parameter(delta, transform=interval, trainable=learn_delta)
        nodes = np.linspace(-6.0, 6.0, whole_number(num_points, "num_points", 1))
        if num_points < FEWEST and num_classes > 2:
            warnings.warn(
                f"{num_points} nodes of an integral from -6 to 6 miss probabilities by hundredths"
                f" and more; give num_points={FEWEST} or more, as the 32 that are usual",
                stacklevel=2,
            )
        self._nodes, self._weights = nodes, np.exp(-0.5 * nodes**2)
        self._weights /= self._weights.sum()
        self.num_points = num_points

    def _options(self) -> dict[str, Any]:
        return {
            "delta": float(self.delta.numpy()),
            "learn_delta": self.delta.trainable,
            "num_points": self.num_points,
        }

    @check_shapes(
        "Fmu: [batch..., P]", "Fvar: [batch..., P]", "Y: [batch..., 1]", "return: [batch...]"
    )
    def winning_probability(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """S: that the label's noisy latent value wins."""
        Fmu, total = tf.convert_to_tensor(Fmu), self._total_variance(Fvar)
        if self.num_classes == 2:
            return normal_cdf(self._sign(Y, Fmu.dtype) * Fmu / tf.sqrt(total))[..., 0]
        return self._integral(Fmu, total, self.one_hot(Y, Fmu.dtype))

    @check_shapes("Fmu: [batch..., P]", "Fvar: [batch..., P]", "Y: [batch..., 1]", "return: []")
    def optimal_delta(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """δ that maximises the bound for fixed q, float64, kept off the ends of its interval."""
        losing = 1.0 - tf.reduce_mean(tf.cast(self.winning_probability(Fmu, Fvar, Y), tf.float64))
        return tf.clip_by_value(losing, 1e-6, 0.99 * (1.0 - 1.0 / self.num_classes))

    def _total_variance(self, Fvar: tf.Tensor) -> tf.Tensor:
        return tf.maximum(self.error_variance + Fvar, VARIANCE_FLOOR)

    def _sign(self, Y: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        return 2.0 * self.one_hot(Y, dtype)[..., 1:] - 1.0

    def _integral(self, mean: tf.Tensor, variance: tf.Tensor, one_hot: tf.Tensor) -> tf.Tensor:
        nodes = self._nodes.reshape(-1, *[1] * (len(mean.shape) - 1))
        label_mean = tf.reduce_sum(one_hot * mean, axis=-1)
        label_scale = tf.sqrt(tf.reduce_sum(one_hot * variance, axis=-1))
        g = label_mean + label_scale * tf.constant(nodes, mean.dtype)
        below = normal_cdf((g[..., None] - mean) / tf.sqrt(variance))
        # A product by logarithms: its derivative stays finite where a factor is zero.
        smallest = np.finfo(mean.dtype.as_numpy_dtype).tiny
        log_below = (1.0 - one_hot) * tf.math.log(tf.maximum(below, smallest))
        product = tf.exp(tf.reduce_sum(log_below, axis=-1))
        return tf.tensordot(tf.constant(self._weights, mean.dtype), product, axes=1)

    def _winning_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """S of every class, [batch..., C], normalised: the sums' errors are not shared."""
        total = self._total_variance(Fvar)
        if self.num_classes == 2:
            one = normal_cdf(Fmu / tf.sqrt(total))
            zero = normal_cdf(-Fmu / tf.sqrt(total))
            return tf.concat([zero, one], axis=-1)
        classes = tf.unstack(tf.eye(self.num_classes, dtype=Fmu.dtype))
        S = tf.stack([self._integral(Fmu, total, one_hot) for one_hot in classes], axis=-1)
        return S / tf.reduce_sum(S, axis=-1, keepdims=True)

    def _log_label_noise(self, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """log(1 − δ) and log(δ/(C − 1))."""
        delta = tf.convert_to_tensor(self.delta)
        wrong = delta / (self.num_classes - 1)
        return tf.cast(tf.math.log1p(-delta), dtype), tf.cast(tf.math.log(wrong), dtype)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        log_right, log_wrong = self._log_label_noise(Fmu.dtype)
        S = self.winning_probability(Fmu, Fvar, Y)
        return S * log_right + (1.0 - S) * log_wrong

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        delta = tf.cast(tf.convert_to_tensor(self.delta), Fmu.dtype)
        S = self._winning_probabilities(Fmu, Fvar)
        return (1.0 - delta) * S + (1.0 - S) * delta / (self.num_classes - 1)

    def _conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return self._predict_proba(F, tf.zeros_like(F))

    def _sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if self.num_classes > 2:
            return natural_gradient_sites(self, Fmu, Fvar, Y)
        log_right, log_wrong = self._log_label_noise(Fmu.dtype)
        sign, total = self._sign(Y, Fmu.dtype), self._total_variance(Fvar)
        z = sign * Fmu / tf.sqrt(total)
        slope = (log_right - log_wrong) * normal_pdf(z) / tf.sqrt(total)
        precision = slope * z / tf.sqrt(total)
        return precision, sign * slope + precision * Fmu

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        prior = tf.ones((tf.shape(Y)[0], self.latent_dim), tf.float64)
        _, natural_mean = self._sites(tf.zeros_like(prior), prior, Y)
        log_right, log_wrong = self._log_label_noise(tf.float64)
        # The winner is decided by g of variance a + 1, or by the difference of two such.
        total = (1.0 + self.error_variance) * (1.0 if self.num_classes == 2 else 2.0)
        return (log_right - log_wrong) * normal_pdf(prior) / total, natural_mean


@LIKELIHOODS.register
class Step(AdditiveNoise):
    """a = 0: the class with the largest latent value; robust-max."""

    name = "step"
    aliases = ("robust_max",)
    error_variance = 0.0
    smooth = False


@LIKELIHOODS.register
class Probit(AdditiveNoise):
    """a = 1: (multinomial) probit."""

    name = "probit"
    error_variance = 1.0


@LIKELIHOODS.register
class Logit(AdditiveNoise):
    """a = 2.897: a Gaussian error in place of the logistic one."""

    name = "logit"
    error_variance = 2.897
