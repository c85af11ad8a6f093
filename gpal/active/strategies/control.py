"""The control of every strategy: sources at random."""

from __future__ import annotations

import numpy as np

from gpal.active.batch import random_batch, top_batch
from gpal.active.strategies.base import STRATEGIES, Strategy

__all__ = ["Random"]


@STRATEGIES.register
class Random(Strategy):
    """Scores in [0, 1) that know nothing of the sources but their number.

    random_state   seed of the scores
    """

    name = "random"
    summary = "Sources at random, the control"
    needs_model = False

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def seeded(self, random_state: int) -> Random:
        return Random(random_state)

    def score(self, p: np.ndarray) -> np.ndarray:
        return np.random.default_rng([self.random_state, len(p)]).random(len(p))

    def choose(
        self, score: np.ndarray, X: np.ndarray, number: int, random_state: int | None = None
    ) -> np.ndarray:
        """Drawn anew for every seed; without one, by the scores, which are random already."""
        if random_state is None:
            return top_batch(score, number)
        return random_batch(score, number, random_state)
