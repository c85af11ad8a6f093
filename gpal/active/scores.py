"""How informative a label would be: one score per source, the larger the better to ask for.

The mathematics of the strategies that `gpal.active.strategies` registers.

From class probabilities P [n, C]:

    entropy           H[p] = −Σ_c p_c ln p_c, nats          (Shannon 1948)
    margin            1 − (p_(1) − p_(2)), the two largest  (Scheffer et al. 2001)
    least_confidence  1 − max_c p_c                         (Lewis & Gale 1994)

From draws p_ts = p(y | f_s, x_t) [n, T, S, C]: T inputs x_t ~ p(x | x̃) that the measurement x̃
allows, S latent functions f_s of the posterior:

    variation_ratio   1 − share of the draws that vote for the most popular class (Freeman 1965)
    bald              information that a label has on f: the model part below
                      (Houlsby et al. 2011, arXiv:1112.5745)

The three-way split of predictive entropy, with p̄_t = mean_s p_ts and p̄ = mean_t p̄_t:

    total        H[p̄]
    measurement  H[p̄] − mean_t H[p̄_t]             = I(y; x | x̃)      the error bar
    model        mean_t (H[p̄_t] − mean_s H[p_ts])  = I(y; f | x)      BALD at the true x
    overlap      mean_ts H[p_ts]                                      the classes themselves

All four come from the same draws, so the parts add up to the total exactly, and each is
non-negative because entropy is concave. x_t must follow a population prior p(x): with a flat one
the inputs leave the data and the model part is overstated.

Functions give an array [n]; `masked` puts NaN at sources that are labelled already.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "EntropySplit",
    "bald",
    "entropy",
    "entropy_split",
    "least_confidence",
    "margin",
    "masked",
    "variation_ratio",
]


def entropy(P: np.ndarray) -> np.ndarray:
    """Entropy of the last axis, nats."""
    from scipy.special import entr  # here: the command line lists strategies in its help

    return entr(P).sum(axis=-1)


def margin(P: np.ndarray) -> np.ndarray:
    """One minus the distance between the two most probable classes."""
    two = np.partition(P, -2, axis=-1)[..., -2:]
    return 1.0 - (two[..., 1] - two[..., 0])


def least_confidence(P: np.ndarray) -> np.ndarray:
    """Probability that the most probable class is wrong."""
    return 1.0 - P.max(axis=-1)


def variation_ratio(draws: np.ndarray) -> np.ndarray:
    """Share of draws [n, T, S, C] that do not vote for the most popular class."""
    num_classes = draws.shape[-1]
    votes = draws.argmax(axis=-1).reshape(len(draws), -1)
    counts = (votes[:, :, None] == np.arange(num_classes)).sum(axis=1)
    return 1.0 - counts.max(axis=1) / votes.shape[1]


class EntropySplit(NamedTuple):
    """Parts of the predictive entropy, each [n], nats; see the top of this file."""

    measurement: np.ndarray
    model: np.ndarray
    overlap: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return self.measurement + self.model + self.overlap


def entropy_split(draws: np.ndarray) -> EntropySplit:
    """The three parts from draws [n, T, S, C]."""
    at_input = draws.mean(axis=2)
    given_measurement = entropy(at_input.mean(axis=1))
    given_input = entropy(at_input).mean(axis=1)
    given_both = entropy(draws).mean(axis=(1, 2))
    # Non-negative by Jensen; rounding may leave −1e-16.
    return EntropySplit(
        np.maximum(given_measurement - given_input, 0.0),
        np.maximum(given_input - given_both, 0.0),
        given_both,
    )


def bald(draws: np.ndarray) -> np.ndarray:
    """Information of a label about the latent functions, nats."""
    return entropy_split(draws).model


def masked(score: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """The score with NaN where `labelled` (mask or row numbers)."""
    score = np.array(score, dtype=float)
    score[labelled] = np.nan
    return score
