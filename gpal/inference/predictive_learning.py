"""Hyper-parameters by the likelihood of every source given the others.

The bound of a sparse GP is highest at a kernel that its inducing points can follow, which is not
the one that predicts best. A few quasi-Newton steps from there, sites held, raise

    ℓ = Σ_i w_i log E p(y_i | f_i) / Σ_i w_i,      f_i ~ N(m₋, v₋)

with the moments without the source's own site of `leave_one_out.py` (and the log prior of the
hyper-parameters per source, where they have one); then the sites are met anew.
In whitened coordinates h_i = L⁻¹ k_i, K = L Lᵀ, and A = I + Σ_i θ_i h_i h_iᵀ they come of

    m_i = h_iᵀ α,  α = A⁻¹ Σ_i r_i h_i      s_i = h_iᵀ w_i,  w_i = A⁻¹ h_i      λ_i = k_ii − |h_i|²

With d_i = 1 − θ_i s_i the chain rule gives

    a = ∂ℓ/∂m = (∂ℓ/∂m₋)/d          e = ∂ℓ/∂λ = ∂ℓ/∂v₋
    b = ∂ℓ/∂s = (∂ℓ/∂m₋)(θ m₋ − r)/d + (∂ℓ/∂v₋)/d²
    G = ∂ℓ/∂A = −½ (α βᵀ + β αᵀ) − Σ_i b_i w_i w_iᵀ,      β = A⁻¹ Σ_i a_i h_i
    ∂ℓ/∂k_i = L⁻ᵀ (a_i α + r_i β + 2 b_i w_i + 2 θ_i G h_i − 2 e_i h_i)
    ∂ℓ/∂K = L⁻ᵀ (G + Σ_i e_i h_i h_iᵀ) L⁻¹        ∂ℓ/∂k_ii = e_i

summed over the latent functions of a kernel. 4 n m² flops each and evaluation.

Labels that a kernel was learned from by this say too much for themselves where they are few: up to
400 sources it was worse than the bound (docs/defaults.md).

Source: Rasmussen & Williams (2006), section 5.4.2, for regression; Sundararajan & Keerthi (2001),
"Predictive approaches for choosing hyperparameters in Gaussian processes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from threadpoolctl import threadpool_limits

from gpal.inference.base import Fit, Problem
from gpal.inference.chunks import Chunk
from gpal.inference.leave_one_out import SMALLEST, leave_one_out
from gpal.inference.parameters import assign, log_prior_of, maximise, pack
from gpal.inference.rows import Data, Sites
from gpal.inference.shared_graph import shared_graph
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.streaming import Rows, pulled_back
from gpal.likelihoods.quasi_random import (
    QuasiRandomLikelihood,
    antithetic_normal,
    gaussian_samples,
)

__all__ = ["learn_by_leaving_out", "predictive_log_density"]

ITERATIONS = 6
SOURCES = 2500  # whose likelihood is taken, drawn at random where there are more
POINTS = 64  # of its expectation, where there is no closed form
BLOCK = 240  # sources at a time, or label sets of many classes would take gigabytes
OF_USER = (
    "tolerance",
    "final_sweeps",
    "callback",
)  # options of the sweeps that meet the sites anew

# log E p(y | f) of f ~ N(m, v) [b, P]: the terms [b], and their derivatives in m and v.
LogDensity = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Gradient(NamedTuple):
    """ℓ, and its derivatives per kernel in K(Z, Z) [m, m], rows [n, m] and diagonals [n]."""

    value: float
    to_K: list[np.ndarray]
    to_rows: list[np.ndarray]
    to_diagonals: list[np.ndarray]


def learn_by_leaving_out(
    problem: Problem, fit: Fit, seed: int, options: Mapping[str, Any] | None = None
) -> Fit:
    """The fit at hyper-parameters with a higher ℓ, which are assigned; the very `fit`, as it was,
    where the sites that are met anew do not leave it higher, or nothing is to be learned.

    fit      of one node per source, with sites (else ValueError, of `leave_one_out`)
    seed     of the sources where they are drawn
    options  the user's for the inference: those that say how sites are met are heeded
    """
    gp, data, rows, sites = problem.gp, problem.data, problem.gp.as_sparse().rows, fit.sites
    n = len(data.Y)
    which = np.arange(n)
    if n > SOURCES:
        which = np.sort(np.random.default_rng(seed).choice(n, SOURCES, replace=False))
    before, start = _left_out(problem, fit, which), pack(rows.trainable_variables)
    assert sites is not None
    learn_Z, jitter = rows.Z.trainable, gp.jitter.relative
    gpflow.set_trainable(rows.Z, False)
    try:
        if not rows.trainable_variables:
            return fit
        _climb(problem, sites, which)
    finally:
        gpflow.set_trainable(rows.Z, learn_Z)
    gp.refresh(data)
    heeded = {name: value for name, value in (options or {}).items() if name in OF_USER}
    schedule = Schedule(rounds=0, initial_sweeps=0, **heeded)
    new = fit_sites(problem, schedule, gp.posterior(data, sites))
    if _left_out(problem, new, which) > before:
        return replace(
            fit, posterior=new.posterior, sites=new.sites, bounds=[*fit.bounds, *new.bounds]
        )
    assign(rows.trainable_variables, start)
    gp.jitter.relative = jitter
    gp.refresh(data)
    return fit


def _left_out(problem: Problem, fit: Fit, which: np.ndarray) -> float:
    """ℓ of a fit, and the log prior of its hyper-parameters per source."""
    moments = leave_one_out(problem, fit, which)
    data = problem.data.sources(which)
    log_p = problem.likelihood.predict_log_density(None, *moments, data.Y)
    return float(np.average(log_p, weights=data.weight)) + problem.log_prior / problem.data.size


def _climb(problem: Problem, sites: Sites, which: np.ndarray) -> None:
    gp, data = problem.gp.as_sparse(), problem.data
    of_terms = _log_density(problem.likelihood, data.sources(which).Y)
    weight = np.ones(len(which)) if data.weight is None else data.weight.numpy()[which]
    theta_r, prior_at_present = Sites(*(part.numpy() for part in sites)), log_prior_of(gp.rows)

    def value_and_gradient() -> tuple[float, list[tf.Tensor]]:
        rows = gp.rows
        K, chunk = rows.kernel_matrices(gp.jitter.value).numpy(), rows.all_of(data)
        parts = [np.asarray(part, float) for part in (*chunk.rows, *chunk.diagonals)]
        number = len(chunk.rows)
        try:
            with threadpool_limits(1):  # several would add up in another order
                back = predictive_log_density(
                    K, parts[:number], parts[number:], theta_r, which, weight, of_terms
                )
        except LinAlgError:
            return np.nan, [tf.zeros_like(variable) for variable in rows.trainable_variables]
        gradients = _to_variables(rows, data, gp.jitter.value, *map(_constants, back[1:]))
        prior, to_prior = prior_at_present()
        value = back.value + float(prior) / data.size
        return value, [g + p / data.size for g, p in zip(gradients, to_prior, strict=True)]

    maximise(gp.rows, value_and_gradient, iterations=ITERATIONS, largest_change=1.0)


def predictive_log_density(
    K: Sequence[np.ndarray],
    rows: Sequence[np.ndarray],
    diagonals: Sequence[np.ndarray],
    sites: Sites,
    which: np.ndarray,
    weight: np.ndarray,
    log_density: LogDensity,
) -> Gradient:
    """ℓ of the sources `which` [b] with weights [b], and its derivatives, by the formulas above."""
    theta, r = sites
    latents, each = theta.shape[1], theta.shape[1] // len(K)
    factors = [cholesky(part, lower=True) for part in K]
    white = [solve_triangular(L, k.T, lower=True).T for L, k in zip(factors, rows)]
    kept: list[tuple[np.ndarray, np.ndarray, Any, np.ndarray]] = []  # α, w, chol A and d
    ms, vs = [], []
    for c in range(latents):
        H, diagonal = white[c // each], diagonals[c // each]
        A = cho_factor(np.eye(H.shape[1]) + H.T @ (theta[:, c, None] * H), lower=True)
        alpha, w = cho_solve(A, H.T @ r[:, c]), cho_solve(A, H[which].T).T
        s = (w * H[which]).sum(axis=1)
        d = np.maximum(1.0 - theta[which, c] * s, SMALLEST)
        ms.append((H[which] @ alpha - s * r[which, c]) / d)
        vs.append(s / d + np.maximum(diagonal[which] - (H[which] ** 2).sum(axis=1), 0.0))
        kept.append((alpha, w, A, d))
    mean, variance = np.stack(ms, axis=1), np.stack(vs, axis=1)
    terms, to_mean, to_variance = log_density(mean, variance)
    share = weight / weight.sum()
    to_mean, to_variance = share[:, None] * to_mean, share[:, None] * to_variance

    to_H = [np.zeros_like(H) for H in white]
    to_K = [np.zeros_like(part) for part in K]
    to_diagonals = [np.zeros(len(part)) for part in diagonals]
    for c, (alpha, w, A, d) in enumerate(kept):
        j = c // each
        H, few = white[j], white[j][which]
        a, e = to_mean[:, c] / d, to_variance[:, c]
        b = a * (theta[which, c] * mean[:, c] - r[which, c]) + e / d**2
        beta = cho_solve(A, few.T @ a)
        G = -0.5 * (np.outer(alpha, beta) + np.outer(beta, alpha)) - w.T @ (b[:, None] * w)
        to_H[j] += np.outer(r[:, c], beta) + 2.0 * theta[:, c, None] * (H @ G)
        to_H[j][which] += np.outer(a, alpha) + 2.0 * b[:, None] * w - 2.0 * e[:, None] * few
        to_K[j] += G + few.T @ (e[:, None] * few)
        to_diagonals[j][which] += e
    return Gradient(
        float(share @ terms),
        [_unwhitened(L, _unwhitened(L, part).T) for L, part in zip(factors, to_K)],
        [_unwhitened(L, part) for L, part in zip(factors, to_H)],
        to_diagonals,
    )


def _unwhitened(L: np.ndarray, part: np.ndarray) -> np.ndarray:
    """part L⁻¹."""
    return solve_triangular(L, part.T, lower=True, trans="T").T


def _log_density(likelihood: Any, Y: tf.Tensor) -> LogDensity:
    def terms(mean: tf.Tensor, variance: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        if not isinstance(likelihood, QuasiRandomLikelihood):
            return likelihood.predict_log_density(None, mean, variance, Y)
        f = gaussian_samples(mean, variance, antithetic_normal(POINTS, mean.shape[1]))
        log_p = likelihood.log_derivatives(f, likelihood.one_hot(Y, f.dtype))[0]
        return tf.reduce_logsumexp(log_p, axis=0) - np.log(POINTS)

    def of_block(block: slice, mean: np.ndarray, variance: np.ndarray) -> list[np.ndarray]:
        at = tf.constant(mean[block]), tf.constant(variance[block])
        with tf.GradientTape() as tape:
            tape.watch(at)
            log_p = terms(*at, Y[block])
        return [part.numpy() for part in (log_p, *tape.gradient(log_p, at))]

    def with_derivatives(mean: np.ndarray, variance: np.ndarray) -> tuple:
        blocks = (slice(first, first + BLOCK) for first in range(0, len(mean), BLOCK))
        parts = zip(*(of_block(block, mean, variance) for block in blocks))
        return tuple(np.concatenate(part) for part in parts)

    return with_derivatives


def _constants(parts: Sequence[np.ndarray]) -> list[tf.Tensor]:
    return [tf.constant(part) for part in parts]


@shared_graph
def _to_variables(
    rows: Rows,
    data: Data,
    jitter: tf.Tensor,
    to_K: list[tf.Tensor],
    to_rows: list[tf.Tensor],
    to_diagonals: list[tf.Tensor],
) -> list[tf.Tensor]:
    """∂ℓ/∂(trainable variables)."""
    with tf.GradientTape() as tape:
        K = rows.kernel_matrices(jitter)

    def of_chunk(first: tf.Tensor, last: tf.Tensor, chunk: Chunk) -> Chunk:
        return Chunk(
            [tf.cast(part[first:last], rows.dtype) for part in to_rows],
            [part[first:last] for part in to_diagonals],
            [],
        )

    return rows.to_variables(data, of_chunk, pulled_back(rows, tape, K, tf.stack(to_K)))
