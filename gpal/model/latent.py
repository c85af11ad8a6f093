"""What a fitted model says of its latent functions, over q(f) and over the input of each source.

With S nodes x_s per source that stand for p(x | x̃),

    E[f]            (1/S) Σ_s m(x_s)
    Var[f]          (1/S) Σ_s (v(x_s) + m(x_s)²) − E[f]²
    Cov[f_i, f_j]   (1/S²) Σ_st k(x_is, x_jt) + k(x_is, Z) M k(Z, x_jt)      i ≠ j

for inputs are independent of each other. First-order input noise has one node, and the variance of
the slope in v.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.measurements import Measurements
from gpal.model.fitted import FittedModel

__all__ = ["covariance", "moments", "samples"]


def moments(model: FittedModel, sources: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance [n, P]."""
    means, variances = _at_nodes(model, sources)
    return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)


def covariance(model: FittedModel, sources: Measurements) -> np.ndarray:
    """[P, n, n]; on the diagonal the variance of `moments`."""
    n, S = len(sources), model.nodes
    joint = _covariance_at_nodes(model, sources).reshape(-1, n, S, n, S).mean(axis=(2, 4))
    i = np.arange(n)
    joint[:, i, i] = moments(model, sources)[1].T
    return joint


def samples(model: FittedModel, sources: Measurements, number: int, seed: int) -> np.ndarray:
    """[number, n, P] draws of f, joint over the sources, at an input drawn for each.

    Costs (n·S)³: for some thousand nodes at most.
    """
    n, S = len(sources), model.nodes
    rng = np.random.default_rng(seed)
    means, variances = _at_nodes(model, sources)
    picked = np.arange(n) * S + rng.integers(S, size=(number, n))
    drawn = np.empty((number, n, means.shape[2]))
    for c, joint in enumerate(_covariance_at_nodes(model, sources)):
        mean, variance = means[:, :, c].ravel(), variances[:, :, c].ravel()
        values, vectors = np.linalg.eigh(joint)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        f = mean + rng.normal(size=(number, n * S)) @ root.T
        # What the slope of f adds to the variance has nothing to do with other sources.
        slope = np.sqrt(np.maximum(variance - np.diagonal(joint), 0.0))
        f += slope * rng.normal(size=f.shape)
        drawn[:, :, c] = np.take_along_axis(f, picked, axis=1)
    return drawn


def _at_nodes(model: FittedModel, sources: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """m, v [n, S, P]."""
    shape = (len(sources), model.nodes, model.gp.num_latent)
    mean, variance = (np.concatenate(part) for part in zip(*model.marginal_blocks(sources)))
    return mean.reshape(shape), variance.reshape(shape)


def _covariance_at_nodes(model: FittedModel, sources: Measurements) -> np.ndarray:
    """Cov_q[f(x_a), f(x_b)] [P, n·S, n·S] at the nodes themselves."""
    gp = model.gp
    if model.input_noise.closed_form_moments and gp.noisy:
        raise InputError(
            f"input noise '{model.input_noise.name}' has no covariance between sources; use"
            " input_noise='integrated'"
        )
    rows, _ = model.rows(sources)
    covariances = []
    for c in range(gp.num_latent):
        kernel = gp.kernels[0 if len(gp.kernels) == 1 else c]
        K = kernel(rows, gp.Z)
        explained = tf.matmul(K, tf.matmul(model.posterior.M[c], K, transpose_b=True))
        covariances.append((kernel(rows) + explained).numpy())
    return np.stack(covariances)
