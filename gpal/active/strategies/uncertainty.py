"""Strategies from the class probabilities alone: the less sure the prediction, the better."""

from __future__ import annotations

import numpy as np

from gpal.active import scores
from gpal.active.strategies.base import STRATEGIES, Strategy

__all__ = ["Entropy", "LeastConfidence", "Margin"]


@STRATEGIES.register
class Entropy(Strategy):
    """H[p] = −Σ_c p_c ln p_c, nats."""

    name = "entropy"
    summary = "Entropy of the class probabilities"
    source = "Shannon 1948"

    def score(self, p: np.ndarray) -> np.ndarray:
        return scores.entropy(p)


@STRATEGIES.register
class Margin(Strategy):
    """1 − (p_(1) − p_(2)), of the two largest."""

    name = "margin"
    summary = "How close the two most probable classes are"
    source = "Scheffer et al. 2001"

    def score(self, p: np.ndarray) -> np.ndarray:
        return scores.margin(p)


@STRATEGIES.register
class LeastConfidence(Strategy):
    """1 − max_c p_c."""

    name = "least_confidence"
    summary = "Probability that the most probable class is wrong"
    source = "Lewis & Gale 1994"

    def score(self, p: np.ndarray) -> np.ndarray:
        return scores.least_confidence(p)
