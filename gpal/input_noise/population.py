"""The population prior p(x): a Gaussian mixture deconvolved from noisy measurements.

    p(x) = Σ_j w_j N(x | m_j, V_j),      x̃_i = x_i + ε_i,  ε_i ~ N(0, S_i),  S_i diagonal

fitted by the EM of extreme deconvolution (Bovy, Hogg & Roweis 2011). A source's own x given its
measurement, with T = V_j + S_i over its measured features o:

    E[x_o] = x̃_o − S T⁻¹ (x̃_o − m_o)      Cov[x_o] = S T⁻¹ V_j
    x_u | x_o = m_u + G (x_o − m_o) + N(0, V_uu − G V_ou),  G = V_uo V_oo⁻¹

In this form a feature with S = 0 stays exactly where it was measured, and a feature that was not
measured (u) gets the population's conditional given the others: no 1/S anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

__all__ = ["Population"]


@dataclass
class Population:
    """weights [J], means [J, d], covariances [J, d, d]."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @classmethod
    def fit(
        cls,
        X: np.ndarray,
        X_err: np.ndarray,
        num_components: int = 1,
        *,
        num_iterations: int = 100,
        tolerance: float = 1e-5,
        ridge: float = 1e-6,
        seed: int = 0,
    ) -> Population:
        """Maximum likelihood by EM from a mixture fitted to the completed measurements.

        X [n, d] with NaN where X_err is inf; `ridge` (relative to each feature's spread) keeps the
        covariances invertible. Stops when the mean log likelihood rises by less than `tolerance`.
        """
        if num_components == 1 and not (X_err > 0).any():
            spread = np.atleast_2d(np.cov(X, rowvar=False, bias=True))
            floor = ridge * np.where(np.diag(spread) > 0, np.diag(spread), 1.0)
            return cls(np.ones(1), X.mean(axis=0)[None], (spread + np.diag(floor))[None])
        filled = np.where(np.isfinite(X_err), X, np.nan)
        count = np.maximum(np.isfinite(filled).sum(axis=0), 1)
        centre = np.nansum(filled, axis=0) / count
        spread = np.nansum((filled - centre) ** 2, axis=0) / count
        floor = ridge * np.where(spread > 0, spread, 1.0)
        filled = np.where(np.isnan(filled), centre, filled)
        start = GaussianMixture(num_components, reg_covar=1e-6, random_state=seed).fit(filled)
        floors = np.broadcast_to(np.diag(floor), (num_components, *np.diag(floor).shape))
        population = cls(start.weights_, start.means_, start.covariances_ + floors)
        before = -np.inf
        for _ in range(num_iterations):
            log_likelihood, share, mean, covariance = population._expectations(X, X_err)
            total = share.sum(axis=0) + 1e-300
            means = np.einsum("ij,ijd->jd", share, mean) / total[:, None]
            deviation = mean - means
            scatter = np.einsum("ijd,ije->jde", share[..., None] * deviation, deviation)
            scatter += np.einsum("ij,ijde->jde", share, covariance)
            population = cls(total / total.sum(), means, scatter / total[:, None, None] + floors)
            if log_likelihood - before < tolerance:
                break
            before = log_likelihood
        return population

    def posterior(self, X: np.ndarray, X_err: np.ndarray):
        """Per source and component: share [n, J], mean [n, J, d] and covariance [n, J, d, d]."""
        return self._expectations(X, X_err)[1:]

    def complete(self, X: np.ndarray, X_err: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Measured entries as they are; the others by their conditional mean and deviation."""
        missing = ~np.isfinite(X_err)
        if not missing.any():
            return X, X_err
        share, mean, covariance = self.posterior(X, X_err)
        first = np.einsum("ij,ijd->id", share, mean)
        variance = np.einsum("ijdd->ijd", covariance) + (mean - first[:, None]) ** 2
        deviation = np.sqrt(np.einsum("ij,ijd->id", share, variance))
        return np.where(missing, first, X), np.where(missing, deviation, X_err)

    def _expectations(self, X: np.ndarray, X_err: np.ndarray):
        n, d = X.shape
        J = len(self.weights)
        log_density = np.empty((n, J))
        mean, covariance = np.empty((n, J, d)), np.zeros((n, J, d, d))
        patterns, which = np.unique(np.isfinite(X_err), axis=0, return_inverse=True)
        which = np.ravel(which)
        for k, measured in enumerate(patterns):
            rows = np.flatnonzero(which == k)
            o, u = np.flatnonzero(measured), np.flatnonzero(~measured)
            S = X_err[np.ix_(rows, o)] ** 2
            for j in range(J):
                m, V = self.means[j], self.covariances[j]
                residual = X[np.ix_(rows, o)] - m[o]
                V_oo = V[np.ix_(o, o)]
                T = V_oo + S[:, :, None] * np.eye(len(o))
                both = np.linalg.solve(T, np.dstack([residual, np.broadcast_to(V_oo, T.shape)]))
                solved, gain = both[:, :, 0], both[:, :, 1:]
                log_det = np.linalg.slogdet(T)[1] if len(o) else np.zeros(len(rows))
                log_density[rows, j] = np.log(self.weights[j] + 1e-300) - 0.5 * (
                    np.sum(residual * solved, axis=1) + log_det + len(o) * np.log(2 * np.pi)
                )
                # Not S − S T⁻¹ S, which cancels to nothing where an error is huge.
                block = S[:, :, None] * gain
                block = 0.5 * (block + block.transpose(0, 2, 1))
                block *= (S > 0)[:, :, None] & (S > 0)[:, None, :]
                to_missing = np.linalg.solve(V_oo, V[np.ix_(o, u)]).T
                own, spread = np.empty((len(rows), d)), np.empty((len(rows), d, d))
                own[:, o] = X[np.ix_(rows, o)] - S * solved
                own[:, u] = m[u] + (own[:, o] - m[o]) @ to_missing.T
                cross = to_missing @ block
                spread[:, o[:, None], o] = block
                spread[:, u[:, None], o] = cross
                spread[:, o[:, None], u] = cross.transpose(0, 2, 1)
                spread[:, u[:, None], u] = (
                    V[np.ix_(u, u)] - to_missing @ V[np.ix_(o, u)] + cross @ to_missing.T
                )
                mean[rows, j], covariance[rows, j] = own, spread
        log_evidence = logsumexp(log_density, axis=1)
        share = np.exp(log_density - log_evidence[:, None])
        return float(log_evidence.mean()), share, mean, covariance
