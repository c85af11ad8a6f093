"""GPflow's likelihoods of classes as those of gpal that are the same p(y | f).

    Softmax(C)                        softmax
    MultiClass(C), robust-max, C > 2  step with δ = ε
    Bernoulli, its probit             probit with δ = 10⁻³, the floor of GPflow's link
    Bernoulli, tf.sigmoid             bernoulli_logit

Expectations may differ by what GPflow's quadrature or draws are off by. For two classes gpal's step
has one latent function and GPflow's robust-max two: there is no counterpart.
"""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from gpflow.likelihoods.utils import inv_probit

from gpal.errors import InputError
from gpal.likelihoods.additive_noise import Probit, Step
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.bernoulli_logit import BernoulliLogit
from gpal.likelihoods.softmax import Softmax

__all__ = ["of_gpflow", "own_likelihood"]

PROBIT_FLOOR = 1e-3


def of_gpflow(likelihood: Any) -> Any:
    """`own_likelihood` of a likelihood object; a name as it is."""
    if isinstance(likelihood, gpflow.likelihoods.Likelihood):
        return own_likelihood(likelihood)
    return likelihood


def own_likelihood(likelihood: Any) -> ClassificationLikelihood:
    """gpal's likelihood for GPflow's, one of gpal as it is; InputError where there is none."""
    if isinstance(likelihood, ClassificationLikelihood):
        return likelihood
    kind = type(likelihood)
    if kind is gpflow.likelihoods.Softmax:
        return Softmax(likelihood.num_classes)
    if kind is gpflow.likelihoods.MultiClass and likelihood.num_classes > 2:
        epsilon = likelihood.invlink.epsilon
        step = Step(likelihood.num_classes, float(epsilon.numpy()), bool(epsilon.trainable))
        if epsilon.trainable:
            step.delta.prior, step.delta.prior_on = epsilon.prior, epsilon.prior_on
        return step
    if kind is gpflow.likelihoods.Bernoulli:
        if likelihood.invlink is inv_probit:
            return Probit(2, PROBIT_FLOOR, learn_delta=False)
        if likelihood.invlink in (tf.sigmoid, tf.nn.sigmoid, tf.math.sigmoid):
            return BernoulliLogit()
    raise InputError(
        f"the likelihood {kind.__name__} has no counterpart among gpal's of classes: use"
        " gpflow.likelihoods.Softmax, MultiClass of three classes or more, Bernoulli with the"
        " probit or tf.sigmoid, or one of gpal.likelihoods"
    )
