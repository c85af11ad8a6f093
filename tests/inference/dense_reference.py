"""E1 and E2 written out in NumPy, unwhitened, with every matrix dense: the truth of these tests."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpal.inference.rows import Data, Sites


def make_data(n: int, d: int, num_classes: int, nodes: int = 1, seed: int = 0) -> Data:
    """Classes with overlap: the largest of C random smooth functions, plus noise."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(n, d))
    X = np.repeat(centre, nodes, axis=0)
    if nodes > 1:
        X += 0.3 * rng.normal(size=X.shape)
    directions = rng.normal(size=(2 * d, num_classes))
    scores = np.hstack([centre, np.cos(2.0 * centre)]) @ directions
    labels = np.argmax(scores + 0.7 * rng.gumbel(size=scores.shape), axis=1)
    root = np.tril(rng.uniform(-0.3, 0.6, size=(n, d, d)))
    return Data(tf.constant(X), tf.constant(labels[:, None].astype(float)), tf.constant(root))


def make_sites(rows: int, num_latent: int, seed: int = 1) -> Sites:
    rng = np.random.default_rng(seed)
    return Sites(
        tf.constant(rng.uniform(0.05, 1.5, size=(rows, num_latent))),
        tf.constant(rng.normal(size=(rows, num_latent))),
    )


def take(data: Data, sites: Sites, sources: np.ndarray, nodes: int = 1) -> tuple[Data, Sites]:
    """The sources of a partition."""
    rows = (sources[:, None] * nodes + np.arange(nodes)).ravel()
    return (
        data.sources(sources),
        Sites(tf.gather(sites.precision, rows), tf.gather(sites.natural_mean, rows)),
    )


def numerical_derivatives(kernel, X: np.ndarray, Z: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """∂k(x_i, z_j)/∂x_id by central differences, [d, n, m]."""
    shifts = step * np.eye(X.shape[1])
    moved = np.concatenate([X + sign * s for s in shifts for sign in (1.0, -1.0)])
    ahead, behind = kernel(moved, Z).numpy().reshape(-1, 2, len(X), len(Z)).swapaxes(0, 1)
    return (ahead - behind) / (2 * step)


class Dense:
    """K, k, k_ii and D R of one latent function of a GP, and what E1 and E2 make of them."""

    def __init__(self, gp, data: Data, sites: Sites, latent: int, jitter: float | None = None):
        kernel = gp.kernels[0] if len(gp.kernels) == 1 else gp.kernels[latent]
        Z, X = gp.Z.numpy(), data.X.numpy()
        K = kernel(Z).numpy()
        jitter = float(gp.jitter.value) if jitter is None else jitter
        self.K = K + jitter * np.mean(np.diag(K)) * np.eye(len(K))
        self.k, self.k_diag = kernel(X, Z).numpy(), kernel.K_diag(X).numpy()
        self.theta = sites.precision.numpy()[:, latent]
        self.r = sites.natural_mean.numpy()[:, latent]
        self.slopes: list[np.ndarray] = []
        if gp.noisy:
            root = np.repeat(data.root.numpy(), gp.nodes, axis=0)
            derivatives = numerical_derivatives(kernel, X, Z)
            self.slopes = [np.einsum("nd,dnm->nm", root[:, :, k], derivatives) for k in gp.noisy]
        self.K_inverse = np.linalg.inv(self.K)

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """(μ, Σ) of E1; the slopes enter the mean only."""
        B = self.K + self.k.T @ (self.theta[:, None] * self.k)
        B_mean = B + sum(D.T @ (self.theta[:, None] * D) for D in self.slopes)
        mu = self.K @ np.linalg.solve(B_mean, self.k.T @ self.r)
        return mu, self.K @ np.linalg.solve(B, self.K)

    def collapsed(self) -> float:
        """J of E2."""
        B = self.K + self.k.T @ (self.theta[:, None] * self.k)
        B_mean = B + sum(D.T @ (self.theta[:, None] * D) for D in self.slopes)
        rho = self.k.T @ self.r
        conditional = self.k_diag - np.sum(self.k @ self.K_inverse * self.k, axis=1)
        return (
            0.5 * rho @ np.linalg.solve(B_mean, rho)
            + 0.5 * np.linalg.slogdet(self.K)[1]
            - 0.5 * np.linalg.slogdet(B)[1]
            - 0.5 * np.sum(self.theta * conditional)
        )

    def kl(self, mu: np.ndarray, Sigma: np.ndarray) -> float:
        """KL(N(μ, Σ) ‖ N(0, K))."""
        ratio = self.K_inverse @ Sigma
        return 0.5 * (
            np.trace(ratio) + mu @ self.K_inverse @ mu - len(mu) - np.linalg.slogdet(ratio)[1]
        )

    def marginals(self, mu: np.ndarray, Sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """m, v of every row, slope variance included."""
        kappa = self.k @ self.K_inverse
        v = self.k_diag - np.sum(kappa * self.k, axis=1) + np.sum(kappa @ Sigma * kappa, axis=1)
        slope = sum((D @ self.K_inverse @ mu) ** 2 for D in self.slopes)
        return kappa @ mu, v + slope

    def explicit(self, mu: np.ndarray, Sigma: np.ndarray) -> float:
        """Σ_i (r_i m_i − ½ θ_i (m_i² + v_i)) − KL: what (μ, Σ) should maximise."""
        m, v = self.marginals(mu, Sigma)
        return np.sum(self.r * m - 0.5 * self.theta * (m**2 + v)) - self.kl(mu, Sigma)


def posterior_moments(gp, posterior, latent: int, jitter: float) -> tuple[np.ndarray, np.ndarray]:
    """(μ, Σ) from α = K⁻¹μ and M = K⁻¹(Σ − K)K⁻¹."""
    kernel = gp.kernels[0] if len(gp.kernels) == 1 else gp.kernels[latent]
    K = kernel(gp.Z.numpy()).numpy()
    K = K + jitter * np.mean(np.diag(K)) * np.eye(len(K))
    return K @ posterior.alpha.numpy()[latent], K + K @ posterior.M.numpy()[latent] @ K
