"""Strategies from draws of the model: the less its latent functions agree, the better."""

from __future__ import annotations

import numpy as np

from gpal.active import scores
from gpal.active.strategies.base import STRATEGIES, Strategy

__all__ = ["Bald", "VariationRatio"]


@STRATEGIES.register
class VariationRatio(Strategy):
    """1 − share of the draws that vote for the most popular class."""

    name = "variation_ratio"
    summary = "Share of the model's draws that vote against the most popular class"
    source = "Freeman 1965"
    needs_draws = True

    def score(self, p: np.ndarray) -> np.ndarray:
        return scores.variation_ratio(p)


@STRATEGIES.register
class Bald(Strategy):
    """I(y; f | x), the model part of the predictive entropy, nats."""

    name = "bald"
    summary = "Information that a label has about the latent functions"
    source = "Houlsby et al. 2011, arXiv:1112.5745"
    needs_draws = True

    def score(self, p: np.ndarray) -> np.ndarray:
        return scores.bald(p)
