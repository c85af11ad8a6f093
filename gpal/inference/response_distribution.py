"""p(y) of a response whose latent value is Gaussian, however narrow p(y | f) is beside it.

    p(y) = ∫ p(y | f) N(f | m, v) df,  its logarithm, mean and variance

GPflow takes 20 Gauss-Hermite points of N(m, v) where there is no closed form: where p(y | f) is
narrower than they are apart, as that of a precise measurement or of a large count far from the
training inputs, the density of some y is too low by many nats and that of others too high. Here the
range m ± 2000 √v is cut into panels of 8 Gauss-Legendre points that become narrower towards m and
the maxima of p(y | f) and of p(y | f) N(f | m, v). The likelihoods of `single_latent.py` that have
no closed form have one maximum in f under GPflow's own links, so no other place is narrow; under a
link that goes both up and down, as a square, one of two is found.

The moments are GPflow's, but for a Student-t of two degrees of freedom or fewer: its variance is
infinite, where theirs is negative or a division by zero, and of one or fewer it has no mean.
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from scipy.special import logsumexp

from gpal.errors import InputError
from gpal.inference.graph import compiled
from gpal.inference.single_latent import QUADRATURE, facts_of

__all__ = ["has_variance", "response_log_density", "response_moments"]

FARTHEST = 1000.0  # √v: the likeliest f of a y far off
NARROWEST = 1e-6  # √v, a panel
PANELS = 49  # limits of panels about each of the three points
_A = np.arcsinh(2 * FARTHEST / NARROWEST)
ABOUT = NARROWEST * np.sinh(np.linspace(-_A, _A, PANELS))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
FINER, STEPS = np.linspace(0.0, 1.0, 25), 12  # of the search for a maximum
SHARPEST = 1e-8  # √v beside m, so that panels are wider than the rounding of f
ROOT_2PI = np.sqrt(2 * np.pi)
BLOCK = 1000  # sources at a time

Function = Callable[[np.ndarray], np.ndarray]


@check_shapes("mean: [n, P]", "variance: [n, P]", "y: [n, 1]", "return: [n]")
def response_log_density(
    likelihood: gpflow.likelihoods.Likelihood,
    mean: np.ndarray,
    variance: np.ndarray,
    y: np.ndarray,
) -> np.ndarray:
    """log p(y): its own of a likelihood that has it in closed form, of classes, or from
    elsewhere."""
    mean, variance, y = (np.asarray(part, float) for part in (mean, variance, y))
    if facts_of(likelihood).prediction != QUADRATURE:
        return likelihood.predict_log_density(None, mean, variance, y).numpy()
    blocks = [slice(first, first + BLOCK) for first in range(0, len(y), BLOCK)]
    column = tf.TensorSpec([None, 1], tf.float64)
    log_prob = compiled(lambda f, y: likelihood.log_prob(None, f, y), column, column)
    parts = [_of_block(log_prob, mean[b], variance[b], y[b]) for b in blocks]
    return np.concatenate([np.zeros(0), *parts])


def has_variance(likelihood: gpflow.likelihoods.ScalarLikelihood) -> bool:
    return not isinstance(likelihood, gpflow.likelihoods.StudentT) or likelihood.df > 2


def response_moments(
    likelihood: gpflow.likelihoods.ScalarLikelihood, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and variance of y [n, 1]. InputError where it has no mean."""
    if not has_variance(likelihood):
        if likelihood.df <= 1:
            raise InputError(
                f"a Student-t response with df={float(likelihood.df):g} has no mean; take df above"
                " 1, or predict_f or predict_log_density"
            )
        return mean, tf.fill(tf.shape(variance), tf.constant(np.inf, variance.dtype))
    return likelihood.predict_mean_and_var(None, mean, variance)


def _of_block(
    log_prob: Callable[..., tf.Tensor], m: np.ndarray, v: np.ndarray, y: np.ndarray
) -> np.ndarray:
    deviation = np.maximum(np.sqrt(v), SHARPEST * np.maximum(np.abs(m), 1.0))

    def log_p(f: np.ndarray) -> np.ndarray:
        """log p(y | f) [n, k], -inf where a link has overflowed."""
        flat = np.reshape(f, [-1, 1]), np.repeat(y, f.shape[1], axis=0)
        value = log_prob(*flat).numpy().reshape(f.shape)
        return np.where(np.isnan(value), -np.inf, value)

    def joint(f: np.ndarray) -> np.ndarray:
        return log_p(f) - 0.5 * ((f - m) / deviation) ** 2 - np.log(ROOT_2PI * deviation)

    about = deviation * ABOUT
    centres = [m, *(_maximum(function, m + about) for function in (log_p, joint))]
    limits = np.concatenate([centre + about for centre in centres], axis=1)
    limits = np.sort(np.clip(limits, m + about[:, :1], m + about[:, -1:]), axis=1)
    middle, half = (limits[:, 1:] + limits[:, :-1]) / 2, np.diff(limits, axis=1) / 2
    f = (middle[:, :, None] + half[:, :, None] * NODES).reshape(len(m), -1)
    weights = (half[:, :, None] * WEIGHTS).reshape(len(m), -1)
    return logsumexp(joint(f), b=weights, axis=1)


def _maximum(function: Function, f: np.ndarray) -> np.ndarray:
    """Where a function with one maximum has it [n, 1], from values f [n, k] in order."""
    for _ in range(STEPS):
        best = np.argmax(function(f), axis=1)[:, None]
        lower, upper = (
            np.take_along_axis(f, np.clip(best + side, 0, f.shape[1] - 1), 1) for side in (-1, 1)
        )
        f = lower + (upper - lower) * FINER
    return (lower + upper) / 2.0
