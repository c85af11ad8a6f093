"""What each likelihood is, written a second time in NumPy, for brute-force comparison.

A truth takes latent values f [S, P] and needs no knowledge of how gpal evaluates expectations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import log_expit, log_softmax, softmax
from scipy.stats import norm, qmc

DRAWS = 2**20
DELTA = 0.03  # label noise of the additive-noise likelihoods under test
ALPHA_EPS = 0.05


@functools.lru_cache(maxsize=8)
def draws(dimension: int) -> np.ndarray:
    """2²⁰ standard-normal points; their seed is not the library's."""
    uniform = qmc.Sobol(dimension, scramble=True, seed=20240).random(DRAWS)
    return norm.ppf(np.clip(uniform, 1e-12, 1 - 1e-12))


def samples(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """f ~ N(m, diag v) for one source, [DRAWS, P]."""
    return mean + np.sqrt(variance) * draws(len(mean))


@dataclass(frozen=True)
class Truth:
    """probabilities   p(y | f), [S, C]
    trained         log of what the expectations average, log p(y | f) unless said; [S]
    options         constructor arguments of the likelihood under test
    classes         numbers of classes to test with
    tolerance       error allowed of E, of θ and r, and of predictions
    is_density_of_y whether `trained` is a log probability of the label
    """

    probabilities: Callable[[np.ndarray, int], np.ndarray]
    trained: Callable[[np.ndarray, int, int], np.ndarray]
    options: dict
    classes: tuple[int, ...] = (2, 3, 6)
    tolerance: tuple[float, float, float] = (1e-5, 1e-4, 1e-5)
    is_density_of_y: bool = True


def _smooth(log_p):
    return (
        lambda f, C: np.exp(log_p(f)),
        lambda f, y, C: log_p(f)[:, y],
    )


def _logistic_softmax(f):
    return log_softmax(log_expit(f), axis=1)


def _softmax(f):
    return log_softmax(f, axis=1)


def _bernoulli(f):
    return log_expit(np.hstack([-f, f]))


def _winner(g, C):
    return (g[:, 0] > 0).astype(int) if C == 2 else g.argmax(axis=1)


def _additive_noise(a, classes):
    """The noise on f is drawn, once for every row, and the winner looked up."""

    def label_log_probability(winner, y, C):
        return np.where(winner == y, np.log(1 - DELTA), np.log(DELTA / (C - 1)))

    def winner(f, C):
        return _winner(f + np.sqrt(a) * np.random.default_rng(5).standard_normal(f.shape), C)

    def trained(f, y, C):
        return label_log_probability(winner(f, C), y, C)

    def probabilities(f, C):
        won = winner(f, C)
        return np.exp([label_log_probability(won, y, C) for y in range(C)]).T

    return Truth(
        probabilities,
        trained,
        {"delta": DELTA},
        classes,
        tolerance=(1e-2, 1e-4, 3e-3),
    )


def _dirichlet_log_density(f, y, C):
    total = 0.0
    for c in range(C):
        alpha = ALPHA_EPS + (c == y)
        variance = np.log((alpha + 1) / alpha)
        total = total + norm.logpdf(np.log(alpha) - variance / 2, f[:, c], np.sqrt(variance))
    return total


MIXING = np.array([[0.9, 0.3], [-0.4, 0.8], [-0.2, -0.7]])

TRUTHS: dict[str, Truth] = {
    "softmax": Truth(*_smooth(_softmax), {}, tolerance=(5e-3, 5e-3, 2e-3)),
    "coregionalized": Truth(
        *_smooth(lambda f: _softmax(f @ MIXING.T)),
        {"mixing": MIXING.tolist()},
        (3,),
        tolerance=(5e-3, 5e-3, 3e-3),
    ),
    "gumbel_softmax": Truth(*_smooth(_softmax), {}, (2, 6), tolerance=(5e-3, 1e-4, 2e-3)),
    "logistic_softmax": Truth(*_smooth(_logistic_softmax), {}, tolerance=(5e-3, 5e-3, 2e-3)),
    "step": _additive_noise(0.0, (2, 3, 6)),
    "robust_max": _additive_noise(0.0, (3,)),
    "probit": _additive_noise(1.0, (2, 3)),
    "logit": _additive_noise(2.897, (2, 6)),
    "bernoulli_logit": Truth(*_smooth(_bernoulli), {}, classes=(2,)),
    "dirichlet": Truth(
        lambda f, C: softmax(f, axis=1),
        _dirichlet_log_density,
        {"alpha_eps": ALPHA_EPS},
        (2, 6),
        tolerance=(1e-4, 1e-6, 2e-3),
        is_density_of_y=False,
    ),
}


def slow(name: str, num_classes: int) -> tuple:
    """Marks: six classes are a slow study where three are tried as well."""
    return (pytest.mark.slow,) if num_classes == 6 and 3 in TRUTHS[name].classes else ()


def assert_finite(results: dict, m, v, Y) -> None:
    """Of results with a row per source; the message has the first source whose row is not."""
    for name, result in results.items():
        finite = np.isfinite(np.reshape(result, (len(m), -1))).all(axis=1)
        i = int(np.argmin(finite))
        at = " ".join(f"{key} = {np.asarray(x)[i]}" for key, x in (("m", m), ("v", v), ("y", Y)))
        assert finite.all(), f"{name} is {np.asarray(result)[i]} at {at}"


__all__ = ["ALPHA_EPS", "DELTA", "TRUTHS", "Truth", "assert_finite", "draws", "samples", "slow"]
