"""The population prior p(x): a Gaussian mixture deconvolved from noisy measurements.

    p(x) = Σ_j w_j N(x | m_j, P_j),      x̃_i = x_i + D_i ε_i,  ε_i ~ N(0, I)

fitted by the EM of extreme deconvolution (Bovy, Hogg & Roweis 2011): the E-step is
`conditional.condition`, the M-step the moments of what it gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from check_shapes import check_shapes
from sklearn.mixture import GaussianMixture

from gpal.errors import InputError
from gpal.input_noise.conditional import NO_MEASUREMENT, Conditional, condition, error_root
from gpal.measurements import informative

__all__ = ["Population"]


@dataclass
class Population:
    """weights [J], means [J, d], covariances [J, d, d]."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @classmethod
    @check_shapes("X: [n, d]", "X_err: [n, d]", "X_cov: [n, d, d]")
    def fit(
        cls,
        X: np.ndarray,
        X_err: np.ndarray,
        X_cov: np.ndarray | None = None,
        *,
        num_components: int = 1,
        num_iterations: int = 200,
        tolerance: float = 1e-5,
        ridge: float = 1e-6,
        seed: int = 0,
        weight: np.ndarray | None = None,
        first: Population | None = None,
    ) -> Population:
        """Maximum likelihood by EM from a mixture fitted to the measurements, with draws of one
        Gaussian in place of what was not measured.

        X [n, d] with NaN where X_err is inf; `ridge` (relative to each feature's spread) keeps the
        covariances invertible. Stops when the mean log likelihood rises by less than `tolerance`.
        weight [n]: how many times a source counts; None: once. first: a population to start from
        instead.
        """
        if num_components > len(X):
            raise InputError(
                f"a population of {num_components} Gaussians needs as many sources, there are"
                f" {len(X)}: give a smaller `population`"
            )
        values = np.where(informative(X, X_err), X, np.nan)
        times = np.ones(len(X)) if weight is None else np.asarray(weight, float)
        count = np.sum(np.isfinite(values) * times[:, None], axis=0)
        count = np.where(count > 0, count, 1.0)  # 0: a feature nobody measured
        centre = np.nansum(values * times[:, None], axis=0) / count
        spread = np.nansum((values - centre) ** 2 * times[:, None], axis=0) / count
        floor = np.diag(ridge * np.where(spread > 0, spread, 1.0))
        start = np.where(np.isnan(values), centre, values)
        if first is not None:
            population = first
        elif num_components == 1:
            covariance = np.atleast_2d(np.cov(start, rowvar=False, ddof=0, aweights=weight))
            mean = np.average(start, axis=0, weights=weight)
            population = cls(np.ones(1), mean[None], (covariance + floor)[None])
            if not (X_err > 0).any():
                return population
        else:
            if np.isnan(values).any():
                # The mean in their place would be a heap, with a Gaussian that EM never leaves.
                one = cls.fit(X, X_err, X_cov, ridge=ridge, weight=weight)
                start = np.where(np.isnan(values), one.draws(X, X_err, X_cov, seed=seed), values)
            mixture = GaussianMixture(num_components, reg_covar=1e-6, random_state=seed).fit(start)
            population = cls(mixture.weights_, mixture.means_, mixture.covariances_ + floor)
        filled = np.where(X_err < NO_MEASUREMENT, X, centre)
        root = error_root(X_err, X_cov)
        before = -np.inf
        for _ in range(num_iterations):
            x = condition(filled, root, *population.arrays())
            share, mean, covariance = _component_moments(x)
            share = share * times[:, None]
            total = share.sum(axis=0) + 1e-300
            means = np.einsum("ij,ijd->jd", share, mean) / total[:, None]
            away = mean - means
            scatter = np.einsum("ijd,ije->jde", share[..., None] * away, away)
            scatter += np.einsum("ij,ijde->jde", share, covariance)
            population = cls(total / total.sum(), means, scatter / total[:, None, None] + floor)
            log_likelihood = float(np.average(x.log_evidence, weights=weight))
            if log_likelihood - before < tolerance:
                break
            before = log_likelihood
        return population

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `conditional.condition` takes."""
        return self.weights, self.means, self.covariances

    @check_shapes("X: [n, d]", "X_err: [n, d]", "X_cov: [n, d, d]")
    def condition(
        self, X: np.ndarray, X_err: np.ndarray, X_cov: np.ndarray | None = None
    ) -> Conditional:
        """p(x | x̃) of measurements; a value that was not measured (X_err inf) may be NaN."""
        centre = self.weights @ self.means
        filled = np.where(X_err < NO_MEASUREMENT, X, centre)
        return condition(filled, error_root(X_err, X_cov), *self.arrays())

    @check_shapes("X: [n, d]", "X_err: [n, d]", "X_cov: [n, d, d]", "return: [n, d]")
    def draws(
        self,
        X: np.ndarray,
        X_err: np.ndarray,
        X_cov: np.ndarray | None = None,
        *,
        seed: int = 0,
    ) -> np.ndarray:
        """One x of each measurement, from a Gaussian with the mean and covariance of x | x̃."""
        mean, root = (part.numpy() for part in self.condition(X, X_err, X_cov).moments())
        ε = np.random.default_rng(seed).normal(size=mean.shape)
        return mean + (root @ ε[..., None])[..., 0]

    @check_shapes(
        "X: [n, d]",
        "X_err: [n, d]",
        "X_cov: [n, d, d]",
        "return[0]: [n, J]",
        "return[1]: [n, J, d]",
        "return[2]: [n, J, d, d]",
    )
    def posterior(
        self, X: np.ndarray, X_err: np.ndarray, X_cov: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per source and component: share [n, J], mean [n, J, d] and covariance [n, J, d, d]."""
        return _component_moments(self.condition(X, X_err, X_cov))

    @check_shapes(
        "X: [n, d]",
        "X_err: [n, d]",
        "X_cov: [n, d, d]",
        "return[0]: [n, d]",
        "return[1]: [n, d]",
    )
    def complete(
        self, X: np.ndarray, X_err: np.ndarray, X_cov: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Measured entries as they are; the others by their conditional mean and deviation."""
        missing = X_err >= NO_MEASUREMENT
        if not missing.any():
            return X, X_err
        mean, root = (part.numpy() for part in self.condition(X, X_err, X_cov).moments())
        deviation = np.sqrt(np.sum(root**2, axis=2))
        return np.where(missing, mean, X), np.where(missing, deviation, X_err)


def _component_moments(x: Conditional) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    root, factor = x.root.numpy()[:, None], x.factor.numpy()
    R = root @ factor
    mean = x.X.numpy()[:, None] + (root @ x.mean.numpy()[..., None])[..., 0]
    return x.share.numpy(), mean, R @ np.swapaxes(R, 2, 3)
