"""What a fitted model says of its latent functions, over q(f) and over the input of each source.

With S nodes x_s per source that stand for p(x | x̃),

    E[f]            (1/S) Σ_s m(x_s)
    Var[f]          (1/S) Σ_s (v(x_s) + m(x_s)²) − E[f]²
    Cov[f_i, f_j]   (1/S²) Σ_st k(x_is, x_jt) + k(x_is, Z) M k(Z, x_jt)      i ≠ j

for inputs are independent of each other. First-order input noise has one node, and the variance of
the slope in v; of a source with features that were not measured it has one per draw of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from scipy.linalg import LinAlgError, cholesky

from gpal.errors import InputError
from gpal.files.saved_data import whole_number
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.measurements import Measurements
from gpal.model.fitted import FittedModel
from gpal.names import check_seed

__all__ = [
    "check_draws",
    "covariance",
    "covariance_at",
    "mean_over_inputs",
    "moments",
    "samples",
    "square_root",
]

LARGE = 1000  # rows from which on a covariance's root is Cholesky's, ten times cheaper
ROWS = 256  # of a prior covariance, at a time
SLOPE_POINTS = 16
ROUNDING = 1e-9  # of a variance, taken apart
JITTERS = (1e-5, 1e-4)  # of the mean variance, the first with which there is one


def moments(model: FittedModel, sources: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance [n, P]."""

    def of_mixture(m: tf.Tensor, v: tf.Tensor, nodes: int) -> tuple[np.ndarray, np.ndarray]:
        means, variances = (part.numpy().reshape(-1, nodes, part.shape[1]) for part in (m, v))
        return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)

    mean, variance = model.over_nodes(of_mixture, sources)
    return mean, variance


def covariance(model: FittedModel, sources: Measurements) -> np.ndarray:
    """[P, n, n]; on the diagonal the variance of `moments`."""
    blocks, owner = _nodes(model, sources)
    share = (owner == np.arange(len(sources))[:, None]) / np.bincount(owner)[:, None]
    joint = share @ np.stack(list(_covariances_at_nodes(model, blocks))) @ share.T
    i = np.arange(len(sources))
    joint[:, i, i] = moments(model, sources)[1].T
    return joint


def check_draws(number: Any, seed: Any) -> None:
    """InputError unless these are a number of draws, and a seed."""
    whole_number(number, "num_samples", 1)
    check_seed(seed)


def samples(model: FittedModel, sources: Measurements, number: int, seed: int) -> np.ndarray:
    """[number, n, P] draws of f, joint over the sources, at an input drawn for each.

    Costs the cube of the number of all nodes: for some thousand at most.
    """
    check_draws(number, seed)
    rng = np.random.default_rng(seed)
    blocks, owner = _nodes(model, sources)
    by_source, count = np.argsort(owner, kind="stable"), np.bincount(owner)
    picked = by_source[np.cumsum(count) - count + rng.integers(count, size=(number, len(count)))]
    drawn = []
    for f, slope in _drawn_at_nodes(model, blocks, number, rng):
        f += slope * rng.normal(size=f.shape)
        drawn.append(np.take_along_axis(f, picked, axis=1))
    return np.stack(drawn, axis=2)


def mean_over_inputs(
    model: FittedModel,
    sources: Measurements,
    number: int,
    seed: int,
    function: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """[number, n, C] (1/S) Σ_s g(f(x_s)) over the S inputs of each source, for draws of f that are
    joint over the sources and these inputs; first-order input noise, which is the slope's variance
    in f, is averaged over by fixed points.

    function  g of f [number, nodes, P], [number, nodes, C]

    Costs the cube of the number of all nodes: for some thousand at most.
    """
    check_draws(number, seed)
    blocks, owner = _nodes(model, sources)
    draws = list(_drawn_at_nodes(model, blocks, number, np.random.default_rng(seed)))
    f, slope = (np.stack(part, axis=-1) for part in zip(*draws, strict=True))
    if slope.any():
        points = antithetic_normal(SLOPE_POINTS, f.shape[2])
        total = sum(function(f + slope * point) for point in points)
        values = np.asarray(total) / len(points)
    else:
        values = function(f)
    by_source, count = np.argsort(owner, kind="stable"), np.bincount(owner)
    total = np.add.reduceat(values[:, by_source], np.cumsum(count) - count, axis=1)
    return total / count[:, None]


def _drawn_at_nodes(
    model: FittedModel, blocks: list[Measurements], number: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draws [number, nodes] of one latent function after another, joint over the nodes, and the
    deviation [nodes] that the slope of f adds, which has nothing to do with other sources."""
    marginals = zip(*(model.marginals(block) for block in blocks), strict=True)
    means, variances = (np.concatenate(part) for part in marginals)
    for c, joint in enumerate(_covariances_at_nodes(model, blocks)):
        f = means[:, c] + rng.normal(size=(number, len(means))) @ square_root(joint).T
        slope = np.maximum(variances[:, c] - np.diagonal(joint), 0.0)
        yield f, np.sqrt(np.where(slope > ROUNDING * variances[:, c], slope, 0.0))


def _nodes(model: FittedModel, sources: Measurements) -> tuple[list[Measurements], np.ndarray]:
    """The sources in blocks, with what was not measured drawn, and whose nodes these are."""
    blocks, owners = [], []
    for rows, block, nodes in model.completed(sources):
        blocks.append(block)
        owners.append(np.repeat(rows, nodes))
    return blocks, np.concatenate(owners)


def _covariances_at_nodes(model: FittedModel, blocks: list[Measurements]) -> Iterator[np.ndarray]:
    """Cov_q[f(x_a), f(x_b)] [nodes, nodes] at the nodes of all blocks, one latent function after
    another."""
    gp = model.gp
    if model.input_noise.closed_form_moments and gp.noisy:
        raise InputError(
            f"input noise '{model.input_noise.name}' has no covariance between sources; use"
            " input_noise='integrated'"
        )
    return _covariances_at(model, tf.concat([model.rows(block)[0] for block in blocks], axis=0))


def covariance_at(model: FittedModel, inputs: tf.Tensor) -> np.ndarray:
    """Cov_q[f(x_a), f(x_b)] [P, n, n] at exact inputs [n, d] in standardised units."""
    return np.stack(list(_covariances_at(model, inputs)))


def _covariances_at(model: FittedModel, inputs: tf.Tensor) -> Iterator[np.ndarray]:
    gp = model.gp
    for c, M in enumerate(np.asarray(model.predictive.M)):
        if c < len(gp.kernels):  # else they share the first one
            K, prior = gp.kernels[c](inputs, gp.Z).numpy(), _prior_covariance(gp.kernels[c], inputs)
        joint = K @ (M @ K.T)
        joint += prior
        yield joint


def _prior_covariance(kernel: gpflow.kernels.Kernel, inputs: tf.Tensor) -> np.ndarray:
    """k(x_a, x_b) [n, n], some rows of the lower triangle at a time: what is made of a few rows
    stays in the processor's cache, and half of the matrix is the other half."""
    n = len(inputs)
    prior = np.empty((n, n))
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        rows = kernel(inputs[first:last], inputs[:last]).numpy()
        prior[first:last, :last] = rows
        prior[:first, first:last] = rows[:, :first].T
    np.fill_diagonal(prior, kernel(inputs, full_cov=False))  # with the noise of a White kernel
    return prior


def square_root(covariance: np.ndarray) -> np.ndarray:
    """R with R Rᵀ the covariance [n, n], which rounding may have left singular or below it."""
    for jitter in JITTERS if len(covariance) >= LARGE else ():
        shifted = covariance.copy()
        shifted.flat[:: len(shifted) + 1] += jitter * np.trace(covariance) / len(covariance)
        try:
            # Its transpose, the same, is in the order that LAPACK takes without a copy.
            return cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
