"""The negative log likelihood of training labels, by which a likelihood chooses its open settings.

    NLL = −(1/n) Σ_i log (1/S) Σ_s E_q(f) p(y_i | f(x_is))

What the bound cannot tell apart, such as settings that move the targets of Dirichlet regression, is
judged by this, with hyper-parameters held (`ClassificationLikelihood.select_settings`): for a given
kernel every candidate is one solve, which costs little beside the learning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from gpal.inference.chunks import SparsePosterior
from gpal.inference.rows import Data
from gpal.likelihoods.base import ClassificationLikelihood

__all__ = ["Solver", "training_nll"]

SOURCES = 1000  # that the NLL is averaged over, drawn at random where there are more

# The posterior for the likelihood as it is, and its marginals m, v [n·S, P] at the few sources.
Solver = tuple[
    Callable[[], SparsePosterior], Callable[[SparsePosterior], tuple[tf.Tensor, tf.Tensor]]
]


def training_nll(
    likelihood: ClassificationLikelihood,
    data: Data,
    nodes: int,
    prepare: Callable[[Data], Solver],
) -> Callable[[], float]:
    """The NLL as a function of the likelihood's present settings.

    nodes    S per source
    prepare  few sources -> what solves; not before it is asked for, by most likelihoods never
    """

    @functools.cache
    def prepared() -> tuple[np.ndarray, Solver]:
        few = data
        if len(data.Y) > SOURCES:
            rows = np.random.default_rng(0).choice(len(data.Y), SOURCES, replace=False)
            few = data.sources(rows)
        return few.Y.numpy()[:, 0].astype(int), prepare(few)

    def nll() -> float:
        labels, (solve, marginals) = prepared()
        P = likelihood.training_proba(*marginals(solve())).numpy()
        P = P.reshape(-1, nodes, P.shape[1]).mean(axis=1)
        return float(-np.log(P[np.arange(len(P)), labels]).mean())

    return nll
