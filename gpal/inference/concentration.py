"""α_ε of the Dirichlet likelihood by the training negative log likelihood (paper 003, sec. 4.2).

The bound of Dirichlet regression is a density of its targets, which move with α_ε: it cannot
choose. For a given kernel every α_ε is one solve: the candidates cost little beside the learning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import tensorflow as tf

from gpal.inference.chunks import SparsePosterior
from gpal.inference.rows import Data, Sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods.dirichlet import Dirichlet, DirichletRegression

__all__ = ["CANDIDATES", "choose_alpha_eps"]

CANDIDATES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
SOURCES = 1000  # that the NLL is averaged over, drawn at random where there are more


def choose_alpha_eps(
    gp: SparseGP,
    likelihood: Dirichlet,
    data: Data,
    solve: Callable[[], SparsePosterior] | None = None,
    marginals_at: Callable[[Data], Callable] | None = None,
) -> None:
    """Give the likelihood the candidate α_ε of least training NLL, hyper-parameters as they are.

    solve          the posterior for the likelihood's present α_ε; None: by the rows' sites
    marginals_at   sources -> (posterior -> m, v there); None: those of `gp`
    """
    scores = []
    if solve is None:
        gp.refresh(data)
        solve = lambda: _posterior(gp, likelihood, data)  # noqa: E731
    few = data
    if len(data.Y) > SOURCES:
        rows = np.random.default_rng(0).choice(len(data.Y), SOURCES, replace=False)
        few = data.sources(rows)
    marginals = partial(gp.data_marginals, few) if marginals_at is None else marginals_at(few)
    labels = few.Y.numpy()[:, 0].astype(int)
    for alpha_eps in CANDIDATES:
        likelihood.alpha_eps.assign(alpha_eps)
        # The few points of training: their errors are common to the candidates.
        mean, variance = marginals(solve())
        P = likelihood.expected_probabilities(mean, variance, likelihood.num_points).numpy()
        P = P.reshape(-1, gp.nodes, P.shape[1]).mean(axis=1)
        scores.append(-np.log(P[np.arange(len(P)), labels]).mean())
    likelihood.alpha_eps.assign(CANDIDATES[int(np.argmin(scores))])
    likelihood.choose_alpha_eps = False


def _posterior(gp: SparseGP, likelihood: Dirichlet, data: Data) -> SparsePosterior:
    precision, natural_mean = DirichletRegression().initial_sites(likelihood, data.Y)
    nodes = gp.nodes
    sites = (tf.repeat(s / nodes, nodes, axis=0) for s in (precision, natural_mean))
    return gp.posterior(data, Sites(*sites))
