"""What a fitted model says of every source: draws of its probabilities, their entropy in three
parts, and scores.

    p(y | f_s, x_t)  [n, T, S, C]     x_t ~ p(x | x̃),   f_s ~ q(f)

as GPClassifier's `probability_draws` gives them. A classifier that has no posterior of a latent
function (any of scikit-learn's) gives its probabilities as a single draw: its model part and
measurement part are zero.

Sources are Measurements, or values X with X_err or X_cov.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpal.active.scores import EntropySplit, entropy_split
from gpal.active.strategies import Strategy, as_strategy
from gpal.errors import InputError
from gpal.evaluation import any_classifier
from gpal.evaluation.any_classifier import Sources, as_sources
from gpal.measurements import Measurements

__all__ = ["probability_draws", "score_sources", "split_sources"]

NODES = 32
SAMPLES = 64


def probability_draws(
    classifier: Any,
    X: Measurements | np.ndarray,
    X_err: Any = None,
    X_cov: np.ndarray | None = None,
    *,
    nodes: int = NODES,
    samples: int = SAMPLES,
) -> np.ndarray:
    """p(y | f_s, x_t) for every source, class weights of the classifier's `prior` included."""
    return np.concatenate(list(_draws(classifier, as_sources(X, X_err, X_cov), nodes, samples)))


def split_sources(
    classifier: Any,
    X: Measurements | np.ndarray,
    X_err: Any = None,
    X_cov: np.ndarray | None = None,
    *,
    nodes: int = NODES,
    samples: int = SAMPLES,
) -> EntropySplit:
    """The three-way split of predictive entropy for every source."""
    blocks = _draws(classifier, as_sources(X, X_err, X_cov), nodes, samples)
    parts = [entropy_split(block) for block in blocks]
    return EntropySplit(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def score_sources(
    classifier: Any,
    X: Measurements | np.ndarray,
    X_err: Any = None,
    X_cov: np.ndarray | None = None,
    *,
    score: str | Strategy = "entropy",
) -> np.ndarray:
    """(n,) scores of a strategy, by its name or itself."""
    strategy, sources = as_strategy(score), as_sources(X, X_err, X_cov)
    if not strategy.needs_model:
        scores = strategy.score(np.empty((len(sources), 0)))
    elif strategy.needs_draws:
        if not hasattr(classifier, "probability_draws"):
            raise InputError(
                f"strategy '{strategy.name}' asks where draws of the probabilities differ, and"
                f" {type(classifier).__name__} has none: take a GPClassifier, or strategy 'entropy'"
            )
        blocks = _draws(classifier, sources, NODES, SAMPLES)
        scores = np.concatenate([strategy.score(block) for block in blocks])
    else:
        scores = strategy.score(any_classifier.predict_proba(classifier, sources))
    scores = np.asarray(scores, dtype=float)
    if scores.shape != (len(sources),):
        raise InputError(
            f"strategy '{strategy.name}' gave scores of shape {scores.shape} for {len(sources)}"
            " sources; its `score` must give one for each"
        )
    return scores


def _draws(classifier: Any, sources: Sources, nodes: int, samples: int) -> Iterator[np.ndarray]:
    """Blocks of sources, in order."""
    if hasattr(classifier, "probability_draws"):
        return classifier.probability_draws(sources, nodes=nodes, samples=samples)
    return iter([any_classifier.predict_proba(classifier, sources)[:, None, None, :]])
