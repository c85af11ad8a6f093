"""What a query strategy is: a score per source by what a model says of it, and a choice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from gpal.active.batch import diverse_batch
from gpal.registry import Register

__all__ = ["STRATEGIES", "Strategy", "as_strategy"]


class Strategy(ABC):
    """How informative a label of each source would be: the largest scores are asked for first.

    name         by which it is chosen
    summary      one line, what the score is
    source       where it was published; '' for none
    needs_draws  whether `score` takes draws of the probabilities instead of the probabilities
    needs_model  whether it takes what a model says at all; without, labels need no fit in between
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str] = ""
    needs_draws: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True

    @abstractmethod
    def score(self, p: np.ndarray) -> np.ndarray:
        """(n,) scores.

        p  class probabilities (n, C); with `needs_draws` p(y | f_s, x_t), (n, T, S, C), for T
           inputs that the measurement allows and S draws of the latent functions, block by block;
           (n, 0) where no model is needed
        """

    def seeded(self, random_state: int) -> Strategy:
        """The strategy of a campaign with this seed: itself, unless its scores are drawn."""
        return self

    def choose(
        self, score: np.ndarray, X: np.ndarray, number: int, random_state: int | None = None
    ) -> np.ndarray:
        """Rows of the `number` sources to ask for at once, the best first.

        score         (n,), NaN for what must not be asked for
        X             (n, d) values: several sources should differ in them
        random_state  seed of what is drawn; None: the same question has the same answer
        """
        return diverse_batch(score, X, number, random_state=random_state or 0)


STRATEGIES: Register[Strategy] = Register(
    "strategy", "gpal.active.strategies", "gpal.strategies", Strategy
)


def as_strategy(strategy: Any) -> Strategy:
    """A strategy by its name, or as it is; InputError with all names where there is none."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        return strategy()
    return STRATEGIES.find(strategy)()
