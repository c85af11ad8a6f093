"""A fitted model as GPflow's SVGP, whose predictions at exact inputs are the same.

GPflow takes q(u) = N(μ, S) under p(u) = N(0, K), K = K(Z, Z) + jitter·I = L Lᵀ, and predicts

    k(x, Z) K⁻¹ μ,      k(x, x) + k(x, Z) K⁻¹ (S − K) K⁻¹ k(Z, x).

These are gpal's k(x, Z) α and k(x, x) + k(x, Z) M k(Z, x), whatever the jitter of either, for

    u = L v,     E[v] = Lᵀ α,     Cov[v] = I + Lᵀ M L.

The covariance exists unless the jitter is more noise than the labels leave (a precision of the
sites above 1/jitter, 10⁶ by default): then what comes out is compared and refused.
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.affine_input import AffineInput, of_affine_input
from gpal.inference.kernels import has_active_dims
from gpal.model.fitted import FittedModel

__all__ = ["to_gpflow"]

SMALLEST = 1e-14  # eigenvalue of Cov[v]: rounding may leave less than nothing
TOLERANCE = 1e-6  # of means and variances, in units of the prior's
PROBES = 256  # inputs at which predictions are compared


def to_gpflow(
    model: FittedModel, offset: np.ndarray, width: np.ndarray, *, whiten: bool
) -> gpflow.models.SVGP:
    """The SVGP of X with which (X − offset)/width is what the model takes."""
    gp, P = model.gp, model.gp.num_latent
    kernels = [
        of_affine_input(gpflow.utilities.deepcopy(kernel), offset, width) for kernel in gp.kernels
    ]
    if len(kernels) > 1:
        no_change = np.zeros_like(offset), np.ones_like(width)
        kernels = [AffineInput(k, *no_change) if has_active_dims(k) else k for k in kernels]
    points = gpflow.inducing_variables.InducingPoints(gp.Z.numpy() * width + offset)
    means, roots, posterior = [], [], model.predictive
    for c in range(P):
        L = _factor(points, kernels[0 if len(kernels) == 1 else c])
        alpha, M = posterior.alpha[c].numpy(), posterior.M[c].numpy()
        mean, root = L.T @ alpha, _triangular_root(np.eye(len(L)) + L.T @ M @ L)
        means.append(mean if whiten else L @ mean)
        roots.append(root if whiten else L @ root)
    shared = len(kernels) == 1
    svgp = gpflow.models.SVGP(
        kernels[0] if shared else gpflow.kernels.SeparateIndependent(kernels),
        gpflow.utilities.deepcopy(model.likelihood),
        points if shared else gpflow.inducing_variables.SharedIndependentInducingVariables(points),
        num_latent_gps=P,
        q_mu=np.stack(means, axis=1),
        q_sqrt=np.stack(roots),
        whiten=whiten,
    )
    _compare(model, svgp, offset, width)
    return svgp


def _factor(
    points: gpflow.inducing_variables.InducingPoints, kernel: gpflow.kernels.Kernel
) -> np.ndarray:
    """chol K(Z, Z) with the jitter that GPflow adds."""
    jitter = gpflow.config.default_jitter()
    try:
        return np.linalg.cholesky(gpflow.covariances.Kuu(points, kernel, jitter=jitter).numpy())
    except np.linalg.LinAlgError:
        raise InputError(
            f"GPflow's jitter of {jitter:g} is too small for the kernel matrix of the inducing"
            " points: raise it, by gpflow.config.set_default_jitter"
        ) from None


def _triangular_root(covariance: np.ndarray) -> np.ndarray:
    """Lower triangular R with R Rᵀ the covariance, less its negative part."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = vectors * np.sqrt(np.maximum(values, SMALLEST))
    upper = np.linalg.qr(root.T)[1]
    return (np.sign(np.diagonal(upper))[:, None] * upper).T


def _compare(
    model: FittedModel, svgp: gpflow.models.SVGP, offset: np.ndarray, width: np.ndarray
) -> None:
    """InputError unless the predictions agree at the inducing points and at draws of the
    population."""
    population, rng = model.population, np.random.default_rng(0)
    which = rng.choice(len(population.weights), PROBES, p=population.weights)
    roots = np.linalg.cholesky(population.covariances)[which]
    normal = rng.normal(size=(PROBES, len(offset)))
    drawn = population.means[which] + np.einsum("nij,nj->ni", roots, normal)
    x = np.concatenate([model.gp.Z.numpy(), drawn])
    got = svgp.predict_f(tf.constant(x * width + offset))
    scale = np.sqrt(1.0 + np.stack([kernel(x, full_cov=False) for kernel in model.gp.kernels]).T)
    for power, part, wanted in zip((1, 2), got, model.gp.marginals(model.predictive, x)):
        off = np.max(np.abs(part - wanted) / scale**power)
        if not off < TOLERANCE * (1.0 if model.gp.rows.dtype == tf.float64 else 1e4):
            raise InputError(
                f"an SVGP with GPflow's jitter of {gpflow.config.default_jitter():g} predicts"
                f" otherwise than the model, by {off:.1g}: lower the jitter, by"
                " gpflow.config.set_default_jitter, and keep it so for the predictions"
            )
