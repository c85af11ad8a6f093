"""When more labels have stopped to change the answer.

Stabilising predictions (Bloodgood & Vijay-Shanker 2009, CoNLL, 39-47): successive models predict a
fixed set of unlabelled sources; if their agreement, Cohen's kappa (1960)

    κ = (p_o − p_e) / (1 − p_e),   p_o observed agreement, p_e agreement by chance,

averages 0.99 or more over the last three comparisons, the paper stops. Models a few labels apart
agree whatever they know, so here each comparison spans at least 20 labels.

This is advice: stable predictions can be stably wrong, and nothing in gpal stops by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["StopAdvice", "cohen_kappa", "stop_advice"]

THRESHOLD = 0.99
WINDOW = 3
STEP = 20


@dataclass(frozen=True)
class StopAdvice:
    """stop: whether the criterion is met; None while there are too few models to say.

    kappas   agreement of each model with the one before it, the oldest first
    labels   number of labels of the later model of each pair
    """

    stop: bool | None
    kappas: tuple[float, ...]
    labels: tuple[int, ...]
    threshold: float = THRESHOLD
    window: int = WINDOW
    step: int = STEP

    def __str__(self) -> str:
        if self.stop is None:
            return (
                f"too early to advise on stopping: {len(self.kappas)} of {self.window} comparisons"
                f" of models {self.step} labels apart"
            )
        mean = np.mean(self.kappas[-self.window :])
        compared = f"mean kappa of the last {self.window} comparisons {mean:.3f}"
        if self.stop:
            return (
                f"predictions have stabilised ({compared}, criterion {self.threshold:g}): more"
                " labels are unlikely to change them; check them on held-out labels before stopping"
            )
        return f"predictions still change ({compared}, criterion {self.threshold:g}): go on"


def cohen_kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Agreement of two predictions (n,) corrected for chance; 1 if both name one class only."""
    classes = np.union1d(first, second)
    observed = float(np.mean(first == second))
    chance = float(sum(np.mean(first == c) * np.mean(second == c) for c in classes))
    return 1.0 if chance == 1.0 else (observed - chance) / (1.0 - chance)


def stop_advice(
    predictions: Sequence[tuple[int, np.ndarray]],
    *,
    threshold: float = THRESHOLD,
    window: int = WINDOW,
    step: int = STEP,
) -> StopAdvice:
    """Advice from (number of labels, predicted class of every source of the stop set) per model,
    the oldest first.

    From the newest model backwards, each model is compared with the newest one before it that has
    at least `step` labels fewer; the others are passed over. So a model of before labels were taken
    back does not speak for those that are left.
    """
    chain: list[tuple[int, np.ndarray]] = []
    for labels, predicted in reversed(predictions):
        if not chain or labels <= chain[-1][0] - step:
            chain.append((labels, predicted))
    chain.reverse()
    pairs = list(pairwise(chain))
    kappas = tuple(cohen_kappa(a[1], b[1]) for a, b in pairs)
    stop = None if len(kappas) < window else bool(np.mean(kappas[-window:]) >= threshold)
    return StopAdvice(stop, kappas, tuple(b[0] for _, b in pairs), threshold, window, step)
