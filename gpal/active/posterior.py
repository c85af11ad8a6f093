"""Draws of p(y | f_s, x_t) from a fitted GPClassifier, for every source: [n, T, S, C].

    x_t ~ p(x | x̃) ∝ N(x̃ | x, V) p(x)    T fixed quasi-random nodes under the population prior that
                                          the classifier learned, whatever its treatment of input
                                          noise, V with its error scale and floor; one node where
                                          every feature is exact
    f_s(x_t) = m(x_t) + √v(x_t) ε_s       S fixed points; only marginals enter the scores

A classifier that has no posterior of a latent function (any of scikit-learn's) gives its
probabilities as a single draw: its model part and measurement part are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpal.active import scores
from gpal.active.scores import EntropySplit, entropy_split

__all__ = ["class_probabilities", "probability_draws", "score_sources", "split_sources"]

NODES = 32
SAMPLES = 64


def probability_draws(
    classifier: Any,
    X: np.ndarray,
    X_err: np.ndarray | None = None,
    X_cov: np.ndarray | None = None,
    *,
    nodes: int = NODES,
    samples: int = SAMPLES,
) -> np.ndarray:
    """p(y | f_s, x_t) for every source, class weights of the classifier's `prior` included."""
    parts = list(_draws(classifier, X, X_err, nodes, samples, X_cov))
    return np.concatenate(parts)


def split_sources(
    classifier: Any,
    X: np.ndarray,
    X_err: np.ndarray | None = None,
    X_cov: np.ndarray | None = None,
    *,
    nodes: int = NODES,
    samples: int = SAMPLES,
) -> EntropySplit:
    """The three-way split of predictive entropy for every source."""
    blocks = _draws(classifier, X, X_err, nodes, samples, X_cov)
    parts = [entropy_split(block) for block in blocks]
    return EntropySplit(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def score_sources(
    classifier: Any, X: np.ndarray, X_err: np.ndarray | None = None, score: str = "entropy"
) -> np.ndarray:
    """One of `scores.SCORES` for every source."""
    function: Callable[[np.ndarray], np.ndarray] = getattr(scores, score)
    if score in ("variation_ratio", "bald"):
        blocks = _draws(classifier, X, X_err, NODES, SAMPLES)
        return np.concatenate([function(block) for block in blocks])
    return function(class_probabilities(classifier, X, X_err))


def class_probabilities(
    classifier: Any, X: np.ndarray, X_err: np.ndarray | None = None
) -> np.ndarray:
    """`predict_proba` with the error bars where there are any."""
    return classifier.predict_proba(X, **({} if X_err is None else {"X_err": X_err}))


def _draws(
    classifier: Any,
    X: np.ndarray,
    X_err: np.ndarray | None,
    nodes: int,
    samples: int,
    X_cov: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    if not hasattr(classifier, "probability_draws"):
        yield class_probabilities(classifier, X, X_err)[:, None, None, :]
        return
    yield from classifier.probability_draws(X, X_err, X_cov, nodes=nodes, samples=samples)
