"""Dirichlet classification: labels turned into heteroskedastic regression targets (paper 003).

A label is a Dirichlet observation with concentrations α_y = 1 + α_ε, else α_ε. Its gamma variables
are matched by log-normal ones (eq. 6), which gives each class a target and a noise,

    σ̃²_c = log(1 + 1/α_c),     ỹ_c = log α_c − σ̃²_c/2,
    log p(y | f) := Σ_c log N(ỹ_c | f_c + μ_c, σ̃²_c),     p(y = c) = E_q softmax(f + μ)_c.    (7, 8)

So the sites are constants, θ = 1/σ̃², r = (ỹ − μ)/σ̃², and one solve is the exact posterior; the
expectation is closed:

    E = Σ_c log N(ỹ_c | m_c + μ_c, σ̃²_c) − v_c/(2 σ̃²_c).

The first is a density of ỹ and not of y: compare its bound with no other likelihood's, and do not
choose α_ε by it. The paper takes the negative log likelihood of the training labels (section 4.2),
which falls as α_ε does where the kernel can follow every label: .003 was chosen where .1 was right
(test NLL .83 against .57). Here it is that of labels held out.

The prior mean μ: f has a zero-mean prior and μ is added to it. The paper takes μ = 0, far below
which the targets of α_ε ≪ 1 lie (ỹ = −6.9 for α_ε = .01). A constant shared by the classes cancels
in the softmax, yet takes that offset off the kernel's variance; one that follows the class
frequencies makes the prediction far from all data those frequencies. `class_frequency_mean` is that
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpal.errors import InputError, as_python
from gpal.files.saved_data import is_number
from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.site_rules import NaturalGradient, Quadratic, QuadraticRule
from gpal.likelihoods.softmax import Softmax

__all__ = ["Dirichlet", "DirichletRegression", "class_frequency_mean"]


DEFAULT_ALPHA_EPS = 0.01
CANDIDATES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)


def _target(alpha: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """(ỹ, σ̃²) of concentrations α."""
    variance = tf.math.log1p(1.0 / alpha)
    return tf.math.log(alpha) - variance / 2.0, variance


def class_frequency_mean(class_counts: Sequence[float], alpha_eps: float) -> np.ndarray:
    """μ_c = log π_c + b: π the class frequencies, b such that targets less μ average to zero."""
    counts = np.asarray(class_counts, dtype=float)
    right, wrong = _target(tf.constant([1.0 + alpha_eps, alpha_eps], tf.float64))[0].numpy()
    log_frequency = np.log(counts / counts.sum())
    mean_target = (right + (len(counts) - 1) * wrong) / len(counts)
    return log_frequency - log_frequency.mean() + mean_target


class DirichletRegression(QuadraticRule["Dirichlet"]):
    """The Gaussian pseudo-likelihood itself: no local parameters, one solve."""

    name = "dirichlet"
    constant = True

    def local_parameters(
        self, likelihood: Dirichlet, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return likelihood.targets(Y, Fmu.dtype)

    def quadratic(
        self, likelihood: Dirichlet, local: tuple[tf.Tensor, tf.Tensor], Y: tf.Tensor
    ) -> Quadratic:
        target, variance = local
        terms = tf.math.log(2.0 * np.pi * variance) + target**2 / variance
        return Quadratic(1.0 / variance, target / variance, -0.5 * tf.reduce_sum(terms, axis=-1))


@LIKELIHOODS.register
class Dirichlet(Softmax):
    """Dirichlet likelihood; predictions are softmax expectations.

    alpha_eps    α_ε > 0, the pseudo-count of the classes not seen; None: .01 until a fit chooses
                 it by the NLL of labels held out
    prior_mean   μ, one value per class; None: zero, as in the paper
    Raises InputError for an α_ε that is not positive or a mean of the wrong length.
    """

    name = "dirichlet"
    log_concave = True
    expectation = "closed form"
    source = "Milios et al. 2018"
    site_rules = (DirichletRegression(), NaturalGradient())

    sites_and_expectations = ClassificationLikelihood.sites_and_expectations
    coupling_points = ClassificationLikelihood.coupling_points  # none: a closed form is not sampled

    def __init__(
        self,
        num_classes: int,
        alpha_eps: float | None = None,
        prior_mean: Sequence[float] | np.ndarray | None = None,
        num_points: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(num_classes, num_points, seed)
        if alpha_eps is not None and not (is_number(alpha_eps) and 0.0 < alpha_eps < np.inf):
            raise InputError(f"alpha_eps must be a positive number, got {alpha_eps!r}: try 0.01")
        mean = np.zeros(num_classes) if prior_mean is None else np.asarray(prior_mean, float)
        if mean.shape != (num_classes,) or not np.isfinite(mean).all():
            raise InputError(f"prior_mean needs {num_classes} numbers, got {as_python(mean)}")
        self.alpha_eps = tf.Variable(
            DEFAULT_ALPHA_EPS if alpha_eps is None else alpha_eps,
            dtype=tf.float64,
            trainable=False,
        )
        self.choose_alpha_eps, self.prior_mean = alpha_eps is None, mean

    def _options(self) -> dict[str, Any]:
        alpha_eps = None if self.choose_alpha_eps else float(self.alpha_eps.numpy())
        return {
            "alpha_eps": alpha_eps,
            "prior_mean": self.prior_mean.tolist(),
            **super()._options(),
        }

    def select_settings(self, held_out_nll: Callable[[], float]) -> bool:
        """Where α_ε is open: the candidate of least held-out NLL, from the largest, whose targets
        are the smoothest, down until the NLL rises."""
        if not self.choose_alpha_eps:
            return False
        best, least = CANDIDATES[0], np.inf
        for alpha_eps in CANDIDATES:
            self.alpha_eps.assign(alpha_eps)
            nll = held_out_nll()
            if nll > least:
                break
            best, least = alpha_eps, nll
        self.alpha_eps.assign(best)
        self.choose_alpha_eps = False
        return True

    def targets(self, Y: tf.Tensor, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """Regression targets ỹ − μ of the zero-mean f, and their variances σ̃², [batch..., C]."""
        alpha = tf.stack([1.0 + self.alpha_eps, self.alpha_eps])
        (right, wrong), (small, large) = (tf.unstack(tf.cast(a, dtype)) for a in _target(alpha))
        seen = self.one_hot(Y, dtype)
        target = wrong + (right - wrong) * seen - tf.constant(self.prior_mean, dtype)
        return target, large + (small - large) * seen

    def _log_conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return super()._log_conditional_probabilities(F + tf.constant(self.prior_mean, F.dtype))

    def log_derivatives(
        self, F: tf.Tensor, one_hot: tf.Tensor, axis: int = -1
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return super().log_derivatives(F + self._mean_along(F, axis), one_hot, axis)

    def _mean_along(self, F: tf.Tensor, axis: int) -> tf.Tensor:
        """μ with the classes on an axis of F."""
        behind = F.shape.rank - 1 - axis if axis >= 0 else -1 - axis
        return tf.reshape(tf.constant(self.prior_mean, F.dtype), [-1, *[1] * behind])

    def _conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return super()._conditional_probabilities(F + tf.constant(self.prior_mean, F.dtype))

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        return super()._predict_proba(Fmu + tf.constant(self.prior_mean, Fmu.dtype), Fvar)

    @inherit_check_shapes
    def _log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        target, variance = self.targets(Y, F.dtype)
        terms = tf.math.log(2.0 * np.pi * variance) + (target - F) ** 2 / variance
        return -0.5 * tf.reduce_sum(terms, axis=-1)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        _, variance = self.targets(Y, Fmu.dtype)
        return self._log_prob(X, Fmu, Y) - 0.5 * tf.reduce_sum(Fvar / variance, axis=-1)

    def _sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        target, variance = self.targets(Y, Fmu.dtype)
        return 1.0 / variance, target / variance

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        target, variance = self.targets(Y, tf.float64)
        return 1.0 / variance, target / variance
