"""α_ε of the Dirichlet likelihood by the training negative log likelihood (paper 003, sec. 4.2).

The bound of Dirichlet regression is a density of its targets, which move with α_ε: it cannot
choose. For a given kernel every α_ε is one solve: the candidates cost little beside the learning.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpal.inference.rows import Data, Sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods.dirichlet import Dirichlet
from gpal.likelihoods.site_rules import DirichletRegression

__all__ = ["CANDIDATES", "choose_alpha_eps"]

CANDIDATES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)


def choose_alpha_eps(gp: SparseGP, likelihood: Dirichlet, data: Data) -> Dirichlet:
    """The likelihood with the candidate α_ε of least training NLL, hyper-parameters as they are."""
    rule, nodes = DirichletRegression(), gp.nodes
    scores = []
    gp.refresh(data)
    for alpha_eps in CANDIDATES:
        candidate = Dirichlet(likelihood.num_classes, alpha_eps, likelihood.prior_mean)
        precision, natural_mean = rule.initial_sites(candidate, data.Y)
        sites = Sites(*(tf.repeat(s / nodes, nodes, axis=0) for s in (precision, natural_mean)))
        posterior = gp.posterior(data, sites)
        marginals = gp.data_marginals(data, posterior)
        P = candidate.predict_proba(*marginals).numpy()
        P = P.reshape(-1, nodes, P.shape[1]).mean(axis=1)
        labels = data.Y.numpy()[:, 0].astype(int)
        scores.append(-np.log(P[np.arange(len(P)), labels]).mean())
    best = CANDIDATES[int(np.argmin(scores))]
    return Dirichlet(likelihood.num_classes, best, likelihood.prior_mean)
