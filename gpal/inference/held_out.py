"""The choice of a likelihood's open settings: by labels that the posterior has not seen.

    NLL = −(1/n) Σ_i log (1/S) Σ_s E_q(f | labels of the other folds) p(y_i | f(x_is))

What the bound cannot tell apart, such as settings that move the targets of Dirichlet regression, is
judged by this (`ClassificationLikelihood.select_settings`). The NLL of the labels that were learned
from would not do: it falls as long as the targets of the classes move apart. Kernel and settings go
together, so that hyper-parameters are learned for each candidate, always from the same start: what
the last candidate has taught is another maximum for the next. They are those of all the sources,
only q(f) is found without a fold.

The site engine does all of it, whatever inference the fit is by, on SOURCES sources at most.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpal.inference.base import Problem
from gpal.inference.chunks import SparsePosterior
from gpal.inference.parameters import assign, pack
from gpal.inference.rows import Data
from gpal.inference.single_latent import site_rule
from gpal.inference.sites import SUBSET_ROUNDS, SiteEngine
from gpal.likelihoods.base import ClassificationLikelihood

__all__ = ["choose_settings"]

FOLDS = 5
SOURCES = 2000  # drawn at random where there are more


def choose_settings(problem: Problem, rounds: int, seed: int) -> None:
    """Let the likelihood choose what is open in it; hyper-parameters are left as learned for that.

    rounds   of learning hyper-parameters that the fit may take; 0: they are held
    seed     of the sources where they are drawn, and of the folds
    """
    likelihood = problem.likelihood
    if not isinstance(likelihood, ClassificationLikelihood):
        return
    generator, data = np.random.default_rng(seed), problem.data
    if len(data.Y) > SOURCES:
        data = data.sources(generator.choice(len(data.Y), SOURCES, replace=False))
    problem = replace(problem, rule=site_rule(None, likelihood), data=data)
    labels = data.Y.numpy()[:, 0].astype(int)
    fold_of = _folds(labels, generator)
    without_fold = replace(problem, gp=problem.gp.as_sparse())
    start = pack(problem.variables)
    best: list = [np.inf, start]

    def nll() -> float:
        assign(problem.variables, start)
        _fit(problem, min(rounds, SUBSET_ROUNDS), seed)
        held_out = np.empty(len(labels))
        for fold in range(FOLDS):
            here = np.flatnonzero(fold_of == fold)
            if len(here):
                rest = data.sources(np.flatnonzero(fold_of != fold))
                p = _probabilities(replace(without_fold, data=rest), data.sources(here))
                held_out[here] = p[np.arange(len(here)), labels[here]]
        losses = -np.log(np.maximum(held_out, np.finfo(float).tiny))
        score = float(np.average(losses, weights=data.weight))
        if score < best[0]:
            best[:] = score, pack(problem.variables)
        return score

    if likelihood.select_settings(nll):
        assign(problem.variables, best[1])


def _fit(problem: Problem, rounds: int, seed: int) -> SparsePosterior:
    return SiteEngine().fit(problem, {}, rounds=rounds, seed=seed, verbose=False).posterior


def _probabilities(problem: Problem, held_out: Data) -> np.ndarray:
    """p(y) [n, C] of sources that are not among those of the problem."""
    posterior = _fit(problem, 0, 0)
    p = problem.likelihood.predict_proba(*problem.gp.data_marginals(held_out, posterior))
    return p.numpy().reshape(-1, problem.gp.nodes, p.shape[-1]).mean(axis=1)


def _folds(labels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The fold [n] of each source, at random, every class in all of them as far as it goes."""
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), int)
    fold[order] = np.arange(len(labels)) % FOLDS
    return fold
