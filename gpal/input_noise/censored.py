"""Limits as measurements: the Gaussian that says the same of a source as its limit does.

A limit L with confidence c (`gpal.limits`) is no Gaussian measurement, but expectation propagation
finds one that has its effect: let N(m, v) be what the population and everything else that was
measured say of the feature, s the deviation of L itself (0 where it is known exactly), k = v/w with
w = v + s², z = (L − m)/√w for an upper limit and ρ = (2c − 1) φ(z)/Z,

    Z = (1 − c) + (2c − 1) Φ(z)     E[x] = m − k √w ρ     Var[x] = v (1 − k (z ρ + ρ²))

The measurement x̃ ± σ with 1/σ² = 1/Var[x] − 1/v and x̃/σ² = E[x]/Var[x] − m/v then makes of N(m, v)
what the limit makes of it, to two moments (Minka 2001). From there on it is a measurement like any
other, for every treatment of input noise. Several limits of one source are met in turn. Where a
treatment knows no population, the moments themselves are the measurement.

Of a population of several Gaussians the moments are of all components, each under the limit, in
shares s_j Z_j. The measurement is made for N(m, v), m and v of the mixture, and does to the mixture
something like it only: of two heaps at ±2 with deviations of .5 and the limit x < 0 it makes
−1.98 ± .70, where −2.00 ± .50 is right.

A limit that may be wrong, c < 1, and lies where the feature is not expected makes two heaps of
N(m, v): x is below it, or it is wrong. Then Var[x] > v, which no measurement makes of N(m, v). The
one taken there, 100 √v away, makes of it the mean E[x] and a little less than v.

Draws need no such Gaussian, and are of each component of the population, in shares s_j Z_j. With
ε, ε' ~ N(0, 1) and y = (x + s ε − m)/√w, which is N(0, 1) cut at z or, with probability (1 − c)/Z,
not cut,

    x = m + k √w y + √(v (1 − k)) ε'
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp, softmax

from gpal.errors import InputError
from gpal.input_noise.error_scaling import KNOWN, scaled_errors
from gpal.input_noise.population import Population
from gpal.limits import Limits
from gpal.measurements import Measurements

__all__ = [
    "as_measured",
    "drawn_below",
    "fit_population",
    "met",
    "moments_below",
    "with_limits_drawn",
    "with_values",
]

PASSES = 10  # over the limited features of a source
TOLERANCE = 1e-6
FARTHEST = 100.0  # √v from m: a measurement in place of a limit
# Of fitting a population: limits are met, then a step of EM is taken with what they became. In a
# second one the far measurements of doubtful limits would pull a population that has grown.
ROUNDS = 200
ENOUGH = 2e-4  # change of means and deviations in a round, in deviations


def moments_below(
    L: np.ndarray,
    confidence: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    error: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance [n] of x ~ N(m, v) that lies below L ± error with so much confidence."""
    wide = v + np.square(error)
    k = v / wide
    z = (L - m) / np.sqrt(wide)
    with np.errstate(divide="ignore"):
        log_Z = np.logaddexp(np.log1p(-confidence), np.log(2 * confidence - 1) + log_ndtr(z))
    rho = (2 * confidence - 1) * np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_Z)
    # Far below the mean differences of large numbers are lost: there ρ → −z − 1/z + 2/z³.
    far = (z < -50.0) & (confidence == 1)
    inverse = 1 / np.where(far, z, -1.0)
    rho = np.where(far, -z - inverse + 2 * inverse**3, rho)
    part = np.where(far, inverse**2 - 6 * inverse**4, 1 - z * rho - rho**2)
    return m - k * np.sqrt(wide) * rho, v * (1 - k + k * np.maximum(part, 1e-8))


def drawn_below(
    L: np.ndarray,
    confidence: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    error: np.ndarray | float,
    uniform: np.ndarray,
    normal: np.ndarray,
) -> np.ndarray:
    """Draws [n] of the same, from numbers in (0, 1) and standard normal ones [n]."""
    wide = v + np.square(error)
    k = v / wide
    z = (L - m) / np.sqrt(wide)
    with np.errstate(divide="ignore"):
        log_free, log_cut = np.log1p(-confidence), np.log(2 * confidence - 1) + log_ndtr(z)
        free = np.exp(log_free - np.logaddexp(log_free, log_cut))
    is_free = uniform < free
    within = np.where(is_free, uniform, uniform - free) / np.where(is_free, free, 1 - free)
    log_p = np.log(np.clip(within, 1e-12, 1 - 1e-12)) + np.where(is_free, 0.0, log_ndtr(z))
    return m + k * np.sqrt(wide) * ndtri_exp(log_p) + np.sqrt(v * (1 - k)) * normal


def met(
    X: np.ndarray,
    X_err: np.ndarray,
    X_cov: np.ndarray | None,
    limits: Limits,
    population: Population,
    *,
    marginal: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """(X, X_err) [n, d] with a measurement in place of each limit; without one where it says
    nothing.

    marginal  mean and deviation of x instead, given everything: for whoever knows no population
    """
    given = limits.given
    rows = np.flatnonzero(given.any(axis=1))
    X, X_err = X.copy(), X_err.copy()
    few, errors, some = X[rows], X_err[rows], limits[rows]
    cov = None if X_cov is None else X_cov[rows]
    columns = np.flatnonzero(given.any(axis=0))
    several = given.sum(axis=1).max() > 1
    moments = np.zeros((2, *few.shape))
    for _ in range(PASSES if several else 1):
        before = moments.copy()
        for j in columns.tolist():
            which = np.flatnonzero(some.given[:, j])
            others = errors[which].copy()
            others[:, j] = np.inf
            share, mean_of, cov_of = population.posterior(
                few[which], others, None if cov is None else cov[which]
            )
            means, variances = mean_of[:, :, j], cov_of[:, :, j, j]
            m, v = _mixed(share, means, variances)
            mean, variance = _below(some[which, j], np.ones((len(m), 1)), m[:, None], v[:, None])
            moved = np.abs(mean - m) / np.sqrt(v)
            tells = moved > TOLERANCE
            precision = np.maximum(1 / variance - 1 / v, moved / (FARTHEST * v))
            safe = np.where(tells, precision, 1 / v)
            few[which, j] = np.where(tells, m + (mean - m) * (1 + 1 / (v * safe)), np.nan)
            errors[which, j] = np.where(tells, 1 / np.sqrt(safe), np.inf)
            if marginal and share.shape[1] > 1:
                mean, variance = _below(some[which, j], share, means, variances)
            moments[0, which, j], moments[1, which, j] = mean, np.sqrt(variance)
        change = np.abs(moments - before) / np.where(some.given, moments[1], 1.0)
        if change.size == 0 or change.max() < TOLERANCE:
            break
    if marginal:
        few = np.where(some.given, moments[0], few)
        errors = np.where(some.given, moments[1], errors)
    X[rows], X_err[rows] = few, errors
    return X, X_err


def _mixed(
    share: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance [n] of a mixture of Gaussians [n, J]."""
    mean = np.sum(share * means, axis=1)
    return mean, np.sum(share * (variances + (means - mean[:, None]) ** 2), axis=1)


def _below(
    limits: Limits, share: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance [n] of a mixture of Gaussians [n, J] under limits [n]: those of each
    component, in shares s_j Z_j."""
    sign, size = -np.sign(limits.confidence)[:, None], np.abs(limits.confidence)[:, None]
    L, error, means = sign * limits.value[:, None], limits.error[:, None], sign * means
    z = (L - means) / np.sqrt(variances + error**2)
    with np.errstate(divide="ignore"):
        log_share = np.log(share) + np.logaddexp(
            np.log1p(-size), np.log(2 * size - 1) + log_ndtr(z)
        )
    below = moments_below(L, size, means, variances, error)
    mean, variance = _mixed(softmax(log_share, axis=1), *below)
    return sign[:, 0] * mean, variance


def as_measured(
    sources: Measurements,
    population: Population,
    *,
    marginal: bool,
    scale: np.ndarray,
    floor: np.ndarray,
) -> Measurements:
    """The sources with measurements in place of their limits.

    scale, floor  of the errors [d]: those of the new measurements are such that V = s² σ² + τ² is
                  theirs
    """
    if sources.limits is None:
        return sources
    if not np.all(scale > 0):
        raise InputError("error_scale=0 leaves no limits: give it more than 0, or drop the limits")
    X_err, X_cov = scaled_errors(sources.X_err, sources.covariance, scale, floor)
    X, error = met(sources.X, X_err, X_cov, sources.limits, population, marginal=marginal)
    made = sources.limits.given & np.isfinite(error)
    new = np.sqrt(np.maximum(error**2 - floor**2, 1e-12 * error**2), where=made, out=error * 1.0)
    new = np.where(made, new / scale, sources.X_err)
    covariance = sources.covariance
    if covariance is not None:
        covariance = covariance.copy()
        diagonal = np.einsum("ndd->nd", covariance)
        diagonal[made] = new[made] ** 2
    return replace(
        sources,
        X=np.where(made, X, sources.X),
        X_err=new,
        covariance=covariance,
        limits=None,
    )


def with_limits_drawn(
    sources: Measurements,
    population: Population,
    normal: np.ndarray,
    *,
    scale: np.ndarray,
    floor: np.ndarray,
) -> Measurements:
    """S copies of each source next to each other, with an exact value in place of each limit: drawn
    feature by feature, given what was measured and drawn, and the limits that are left.

    normal  [S, 3 d] standard normal numbers, independent of each other
    scale, floor  of the errors, see `as_measured`
    """
    S, d = len(normal), sources.X.shape[1]
    copies = sources[np.repeat(np.arange(len(sources)), S)]
    if sources.limits is None or copies.limits is None:
        return copies
    pick, first, second = ndtr(normal[:, :d]), ndtr(normal[:, d : 2 * d]), normal[:, 2 * d :]
    left = as_measured(sources, population, marginal=False, scale=scale, floor=floor)
    X, cov = np.repeat(left.X, S, axis=0), left.covariance
    if cov is not None:
        cov = np.repeat(cov, S, axis=0)
    X_err, cov = scaled_errors(np.repeat(left.X_err, S, axis=0), cov, scale, floor)
    for j in np.flatnonzero(copies.limits.given.any(axis=0)).tolist():
        rows = np.flatnonzero(copies.limits.given[:, j])
        limits, errors = copies.limits[rows], X_err[rows]
        errors[:, j] = np.inf
        share, mean, covariance = population.posterior(
            X[rows], errors, None if cov is None else cov[rows]
        )
        sign = -np.sign(limits.confidence[:, j])
        limit = (sign * limits.value[:, j], np.abs(limits.confidence[:, j]))
        m, v = sign[:, None] * mean[:, :, j], covariance[:, :, j, j]
        component = _component(*limit, m, v, limits.error[:, j], share, pick[rows % S, j])
        m, v = (np.take_along_axis(part, component[:, None], 1)[:, 0] for part in (m, v))
        numbers = first[rows % S, j], second[rows % S, j]
        X[rows, j] = sign * drawn_below(*limit, m, v, limits.error[:, j], *numbers)
        X_err[rows, j] = 0.0
    return with_values(copies, copies.limits.given, X, KNOWN if np.any(floor) else 0.0)


def with_values(
    sources: Measurements, where: np.ndarray, values: np.ndarray, error: float = 0.0
) -> Measurements:
    """The sources with exactly known values at `where` [n, d], and without limits; `error` is KNOWN
    where errors have a floor."""
    covariance = sources.covariance
    if covariance is not None:
        covariance = np.where(where[:, :, None] | where[:, None, :], 0.0, covariance)
        diagonal = np.einsum("ndd->nd", covariance)
        diagonal[where] = error**2
    return replace(
        sources,
        X=np.where(where, values, sources.X),
        X_err=np.where(where, error, sources.X_err),
        covariance=covariance,
        limits=None,
    )


def _component(
    L: np.ndarray,
    confidence: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    error: np.ndarray,
    share: np.ndarray,
    pick: np.ndarray,
) -> np.ndarray:
    """Component [n] of the population, m, v and share [n, J], by uniform numbers `pick` [n]."""
    z = (L[:, None] - m) / np.sqrt(v + np.square(error)[:, None])
    c = confidence[:, None]
    with np.errstate(divide="ignore"):
        log_Z = np.logaddexp(np.log1p(-c), np.log(2 * c - 1) + log_ndtr(z)) + np.log(share)
    weight = np.exp(log_Z - log_Z.max(axis=1, keepdims=True))
    cumulative = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    return np.sum(pick[:, None] > cumulative[:, :-1], axis=1)


def fit_population(
    X: np.ndarray,
    X_err: np.ndarray,
    X_cov: np.ndarray | None,
    limits: Limits | None,
    **options: Any,
) -> Population:
    """`Population.fit` of measurements and limits; `options` are its own.

    What lies below a limit is not missing at random: a population without it would be too bright.
    """
    population = Population.fit(X, X_err, X_cov, **options)
    if limits is None:
        return population
    for _ in range(ROUNDS):
        x, error = met(X, X_err, X_cov, limits, population)
        few = {**options, "first": population, "num_iterations": 1, "tolerance": -np.inf}
        new = Population.fit(x, error, X_cov, **few)
        width = np.sqrt(np.einsum("jdd->jd", population.covariances))
        moved = np.abs(new.means - population.means) / width
        wider = np.abs(np.sqrt(np.einsum("jdd->jd", new.covariances)) / width - 1)
        population = new
        if max(moved.max(), wider.max()) < ENOUGH:
            break
    return population
