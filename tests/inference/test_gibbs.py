"""The Gibbs sampler draws from the posterior: tests of the kind made for samplers.

What it says of class probabilities is compared with brute force in test_reference_posterior.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

from gpal.inference import gibbs
from gpal.inference.gibbs import draw_latent, transition
from gpal.inference.reference import prior_draws

pytest.importorskip("polyagamma", reason="pip install 'gpal[gibbs]'")

NUM_CLASSES = {"logistic_softmax": 3, "bernoulli_logit": 2}
LATENTS = {"logistic_softmax": 3, "bernoulli_logit": 1}


def kernel_root(n: int) -> np.ndarray:
    """R [1, n, n] of a squared-exponential kernel of variance 2 on a line."""
    x = np.linspace(0.0, 2.0, n)
    K = 2.0 * np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-8 * np.eye(n)
    return np.linalg.cholesky(K)[None]


def probabilities(likelihood: str, f: np.ndarray) -> np.ndarray:
    """p(y = c | f) [chains, C, n], written down anew."""
    p = expit(f) if likelihood == "logistic_softmax" else np.concatenate([expit(-f), expit(f)], -2)
    return p / p.sum(axis=-2, keepdims=True)


def labels_given(likelihood: str, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One-hot labels [chains, C, n] drawn from p(y | f)."""
    p = np.moveaxis(probabilities(likelihood, f), -2, -1)
    label = (rng.uniform(size=(*p.shape[:-1], 1)) > np.cumsum(p, axis=-1)).sum(axis=-1)
    return np.moveaxis(np.eye(p.shape[-1])[label], -1, -2)


def joint_distribution(likelihood: str, chains: int = 30_000, steps: int = 20) -> np.ndarray:
    """z of first and second moments of f, after steps of (y | f, then f | y) that began at the
    prior, where they should have stayed (Geweke 2004). Chains are independent."""
    rng, root = np.random.default_rng(1), kernel_root(3)
    K = (root @ np.swapaxes(root, 1, 2))[0]
    f = prior_draws(root, LATENTS[likelihood], chains, rng)
    for _ in range(steps):
        y = labels_given(likelihood, f, rng)
        f = transition(likelihood, f, y, root, K[None], rng)
    first = f.mean(axis=0) / np.sqrt(np.diag(K) / chains)
    products = f[..., :, None] * f[..., None, :]
    error = np.sqrt((K**2 + np.outer(np.diag(K), np.diag(K))) / chains)
    return np.concatenate([first.ravel(), ((products.mean(axis=0) - K) / error).ravel()])


@pytest.mark.parametrize("likelihood", sorted(NUM_CLASSES))
def test_prior_and_labels_are_kept_by_a_step_of_both(likelihood):
    z = joint_distribution(likelihood)
    assert np.abs(z).max() < 4.0 and np.sqrt(np.mean(z**2)) < 1.6, z


def printed(f, one_hot, rng):
    """n | λ, f as the paper prints it."""
    rate = rng.exponential(1.0 / expit(f).sum(axis=-2, keepdims=True))
    counts = rng.poisson(rate * expit(f))
    return one_hot + counts, 0.5 * (one_hot - counts)


def without_label(f, one_hot, rng):
    """ω ~ PG(n, f)."""
    trials, natural_mean = gibbs.augment_logistic_softmax(f, one_hot, rng)
    return trials - one_hot, natural_mean


def of_mean_rate(f, one_hot, rng):
    """λ at its mean, not drawn."""
    counts = rng.poisson(expit(-f) / expit(f).sum(axis=-2, keepdims=True))
    return one_hot + counts, 0.5 * (one_hot - counts)


@pytest.mark.parametrize("wrong", [printed, without_label, of_mean_rate])
def test_wrong_conditionals_are_found_out(wrong, monkeypatch):
    monkeypatch.setitem(gibbs.AUGMENTED, "logistic_softmax", wrong)
    z = joint_distribution("logistic_softmax")
    assert np.abs(z).max() > 6.0 and np.sqrt(np.mean(z**2)) > 2.5, z


def test_ranks_of_the_truth_among_the_draws_are_uniform():
    """Simulation-based calibration (Talts et al. 2018): every chain has data of its own."""
    rng, root, kept = np.random.default_rng(2), kernel_root(3), 15
    K = root @ np.swapaxes(root, 1, 2)
    truth = prior_draws(root, 3, 1200, rng)
    y = labels_given("logistic_softmax", truth, rng)
    f = prior_draws(root, 3, 1200, rng)
    below = np.zeros(truth.shape[:2])
    for step in range(40 + 12 * kept):
        f = transition("logistic_softmax", f, y, root, K, rng)
        if step >= 40 and step % 12 == 0:
            below += f[..., 1] < truth[..., 1]
    for c in range(3):
        counts = np.bincount((below[:, c] // 2).astype(int), minlength=8)
        expected = len(truth) * np.bincount(np.arange(kept + 1) // 2) / (kept + 1)
        assert chi2.sf(np.sum((counts - expected) ** 2 / expected), df=7) > 1e-3


def test_latent_functions_given_their_sites():
    """Moments of 20,000 draws against (K⁻¹ + Ω)⁻¹; a source without a site is among them."""
    rng, root = np.random.default_rng(3), kernel_root(4)
    K = (root @ np.swapaxes(root, 1, 2))[0]
    omega, r = np.array([0.3, 0.0, 2.0, 5.0]), np.array([1.0, 0.0, -0.5, 2.0])
    shape = (20_000, 1, 4)
    drawn = draw_latent(
        root, K[None], np.broadcast_to(omega, shape), np.broadcast_to(r, shape), rng
    )[:, 0]
    covariance = np.linalg.inv(np.linalg.inv(K) + np.diag(omega))
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((drawn.mean(axis=0) - covariance @ r) / scale).max() < 4.0 / np.sqrt(20_000)
    deviation = (np.cov(drawn.T) - covariance) / np.outer(scale, scale)
    assert np.abs(deviation).max() < 4.0 * np.sqrt(2.0 / 20_000)
