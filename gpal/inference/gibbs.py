"""Gibbs sampling of the augmented logistic likelihoods (paper 004).

With λ ~ gamma, n ~ Poisson and ω ~ Pólya-Gamma beside f the likelihood is a product of Gaussian
sites (`gpal.likelihoods.logistic_softmax.Cavi`). In turn, for every source,

    λ | f           ~ Ga(1, Σ_c σ(f_c))                     all three given f at once,
    n_c | λ, f      ~ Po(λ σ(−f_c))                         one after the other
    ω_c | n, f, y   ~ PG(y_c + n_c, f_c)

    f_c | n, ω, y   ~ N(Σ r, Σ),     Σ = (K⁻¹ + diag ω_c)⁻¹,     r = (y_c − n_c)/2

y one-hot. (The paper prints Po(λ σ(f_c)) for n, with which the chain has another distribution, and
draws λ given n, from Ga(1 + Σ_c n_c, C), which is right but one more thing to wait for.) Binary
logit is the same with PG(1, f) and r = ±½ (Polson, Scott & Windle 2013). The draw of f needs no
inverse of K: with g ~ N(K r, K), Ω = diag ω and ε ~ N(0, I)

    f = g − K Ω^½ A⁻¹ (Ω^½ g + ε),     A = I + Ω^½ K Ω^½.

Where λ is large and all σ(f_c) are small the chain moves slowly along their common scale, on which
p(y | f) hardly depends. A step costs C n³/3 for each chain.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from gpal.errors import InputError
from gpal.inference.reference import REFERENCES, ChainSchedule, Reference, prior_draws

__all__ = ["Gibbs", "augment_bernoulli", "augment_logistic_softmax", "draw_latent", "transition"]


@REFERENCES.register
class Gibbs(Reference):
    """Auxiliary variables given f, and f given them, in turns."""

    name: ClassVar[str] = "gibbs"
    summary: ClassVar[str] = "Gibbs sampler of the augmented logistic likelihoods"
    source: ClassVar[str] = "Galy-Fajou et al. 2019"

    @classmethod
    def why_not(cls, likelihood: Any) -> str:
        if likelihood.name in AUGMENTED:
            return ""
        return f"'{cls.name}' draws the augmented {' and '.join(AUGMENTED)} only"

    def sample(
        self, roots: np.ndarray, likelihood: Any, labels: np.ndarray, schedule: ChainSchedule
    ) -> np.ndarray:
        rng = np.random.default_rng(schedule.seed)
        covariances = roots @ np.swapaxes(roots, -1, -2)
        one_hot = np.eye(likelihood.num_classes)[labels].T
        f = prior_draws(roots, likelihood.latent_dim, schedule.chains, rng)
        kept = np.empty((schedule.draws, *f.shape))
        for step in range(-schedule.burn_in, schedule.draws * schedule.thin):
            f = transition(likelihood.name, f, one_hot, roots, covariances, rng)
            if step >= 0 and step % schedule.thin == 0:
                kept[step // schedule.thin] = f
        return np.swapaxes(kept, -1, -2)


def transition(
    likelihood: str,
    f: np.ndarray,
    one_hot: np.ndarray,
    roots: np.ndarray,
    covariances: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The next f [chains, P, n]; one_hot [C, n], or [chains, C, n] of labels of their own."""
    trials, natural_mean = AUGMENTED[likelihood](f, one_hot, rng)
    precision = np.zeros_like(f)
    drawn = trials > 0  # PG(0, f) is zero
    precision[drawn] = _polya_gamma()(trials[drawn], f[drawn], random_state=rng)
    return draw_latent(roots, covariances, precision, natural_mean, rng)


def augment_logistic_softmax(
    f: np.ndarray, one_hot: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """y + n and (y − n)/2 [chains, C, n], n drawn given f."""
    rate = rng.exponential(1.0 / expit(f).sum(axis=-2, keepdims=True))
    counts = rng.poisson(rate * expit(-f))
    return one_hot + counts, 0.5 * (one_hot - counts)


def augment_bernoulli(
    f: np.ndarray, one_hot: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """1 and y − ½ [chains, 1, n]: there is nothing else to draw."""
    return np.ones_like(f), np.broadcast_to(one_hot[..., 1:, :] - 0.5, f.shape)


AUGMENTED = {
    "bernoulli_logit": augment_bernoulli,
    "logistic_softmax": augment_logistic_softmax,
}


def draw_latent(
    roots: np.ndarray,
    covariances: np.ndarray,
    precision: np.ndarray,
    natural_mean: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """f [chains, P, n] given its sites, by the formula above."""
    root = np.sqrt(precision)[..., None]
    g = covariances @ natural_mean[..., None] + roots @ rng.normal(size=root.shape)
    A = np.eye(root.shape[-2]) + root * covariances * np.swapaxes(root, -1, -2)
    noisy = root * g + rng.normal(size=root.shape)
    return (g - covariances @ (root * np.linalg.solve(A, noisy)))[..., 0]


def _polya_gamma() -> Any:
    """`polyagamma.random_polyagamma`; InputError with what to type where it is not installed."""
    try:
        from polyagamma import random_polyagamma
    except ImportError:
        raise InputError(
            "the Gibbs sampler needs polyagamma, which is not installed; type"
            " `pip install polyagamma`, or choose method='hmc'"
        ) from None
    return random_polyagamma
