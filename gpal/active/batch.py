"""Several targets at once without near-duplicates.

Diverse mini-batch (Zhdanov 2019, arXiv:1901.05954): of the β·k most informative sources, k-means in
the standardised features with the score as weight gives k clusters; each gives its most informative
source. β = 1 is the plain top k; a larger β trades informativeness for diversity.
"""

from __future__ import annotations

import warnings

import numpy as np

from gpal.errors import InputError
from gpal.files.saved_data import whole_number

__all__ = ["check_number", "diverse_batch", "random_batch", "top_batch"]

BETA = 10


def top_batch(score: np.ndarray, number: int) -> np.ndarray:
    """Rows of the `number` largest scores, the largest first; NaN is never taken."""
    available = np.flatnonzero(~np.isnan(score))
    check_number(number, len(available))
    return available[np.argsort(-score[available], kind="stable")[:number]]


def random_batch(score: np.ndarray, number: int, random_state: int = 0) -> np.ndarray:
    """Rows at random among those that have a score: the control of every strategy."""
    available = np.flatnonzero(~np.isnan(score))
    check_number(number, len(available))
    return np.random.default_rng(random_state).choice(available, number, replace=False)


def diverse_batch(
    score: np.ndarray,
    X: np.ndarray,
    number: int,
    *,
    beta: int = BETA,
    random_state: int = 0,
) -> np.ndarray:
    """Rows of `number` informative sources that differ, the most informative first.

    X  [n, d] values, any units; a value that was not measured (NaN) counts as the feature's mean
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    available = int((~np.isnan(score)).sum())
    check_number(number, available)
    candidates = top_batch(score, min(beta * number, available))
    if number == 1 or len(candidates) == number:
        return candidates[:number]
    X = np.where(np.isfinite(X).any(axis=0), X, 0.0)  # measured nowhere: nobody differs in it
    spread = np.nanstd(X, axis=0)
    standard = (X[candidates] - np.nanmean(X, axis=0)) / np.where(spread > 0, spread, 1.0)
    standard = np.where(np.isfinite(standard), standard, 0.0)
    weight = np.maximum(score[candidates], 1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct sources than clusters
        means = KMeans(number, n_init=3, random_state=random_state)
        cluster = means.fit_predict(standard, sample_weight=weight)
    # Candidates stand in order of their score, so the first of a cluster is its best.
    first = np.sort(np.unique(cluster, return_index=True)[1])
    rest = np.setdiff1d(np.arange(len(candidates)), first)
    return candidates[np.sort(np.concatenate([first, rest])[:number])]


def check_number(number: int, available: int) -> None:
    """InputError where so many cannot be asked for."""
    whole_number(number, "the number of sources to ask for", 1)
    if number > available:
        raise InputError(
            f"{number} sources asked for, {available} left to choose from; ask for fewer or loosen"
            " the limits"
        )
