"""What a fit to exact inputs takes where that is left open: how many inducing points, and whether
the kernel is one of powers of the features with heavy tails.

*Inducing points.* The kernel is learned first from at most TRIAL_SOURCES sources with
INDUCING_POINTS; it then says how many it needs to leave no more than UNEXPLAINED of the bound open
(`conditional_variance.py`). So many are taken, from INDUCING_POINTS up to what n m² P = PRODUCTS
allows. The fit starts from that kernel where the trial had every source, and where there are more
from the kernel that the trial has started from. Where the points are is learned as well of more
than LEARNED_ABOVE sources.

*Powers* (`heavy_tails.py`). A kernel with them and one without are learned from these sources. They
are taken if the log likelihood of all sources given the others (`leaving_out.py`) is higher by
WORTH_POWERS or more.

Chosen on the development sets of workflows/benchmarks/data_sets.py (docs/defaults.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gpflow
import numpy as np
import tensorflow as tf
from threadpoolctl import threadpool_limits

from gpal.inference.base import Fit, Problem
from gpal.inference.conditional_variance import points_needed
from gpal.inference.first_lengthscale import choose_lengthscale
from gpal.inference.parameters import assign, pack
from gpal.inference.sites import SiteEngine
from gpal.model.leaving_out import BY_LABELS, chosen_temperature

__all__ = [
    "INDUCING_POINTS",
    "LEARNED_ABOVE",
    "TRIAL_SOURCES",
    "Trial",
    "best_trial",
    "most_points",
]

# With error bars; else at least. On 4FGL twice as many change the cross-validated NLL by less than
# .0001.
INDUCING_POINTS = 100
LEARNED_ABOVE = 4000  # exact sources
TRIAL_SOURCES = 1000
UNEXPLAINED = 5e-4  # nats per source
PRODUCTS = 1e9
WORTH_POWERS = 1.2  # nats of all sources


def most_points(sources: int, num_latent: int) -> int:
    """What the cost of a sweep, n m² P, allows."""
    return int(np.sqrt(PRODUCTS / (sources * num_latent)))


@dataclass
class Trial:
    """A problem of few sources, and its fit.

    start   hyper-parameters that it has started from
    """

    problem: Problem
    fit: Fit
    start: np.ndarray

    @property
    def kernels(self) -> list[gpflow.kernels.Kernel]:
        """As they were learned."""
        return self.problem.gp.kernels

    def put_back(self) -> None:
        """Hyper-parameters to where learning has started from."""
        assign(self.problem.gp.trainable_variables, self.start)

    def enough_points(self, largest: int) -> int:
        """Inducing points for the learned kernels; more than `largest` are not taken."""
        assert self.fit.sites is not None
        theta, X = self.fit.sites.precision.numpy(), self.problem.data.X.numpy()
        with threadpool_limits(1):  # several would add up in another order
            needed = points_needed(self.kernels, X, theta, UNEXPLAINED, largest)
        return max(INDUCING_POINTS, needed)

    def log_density(self, seed: int) -> float:
        """Σ_i w_i log p(y_i | all others), at the temperature at which it is highest."""
        told = chosen_temperature(BY_LABELS, self.problem, self.fit, seed, exact=True)[1]
        return -told["nll"] * self.problem.data.size


def best_trial(problems: Sequence[Problem], rounds: int, seed: int, *, starts: bool) -> Trial:
    """The first, or that by which labels tell more of each other by WORTH_POWERS.

    problems  of TRIAL_SOURCES sources at most, with exact inputs; kernels are learned in place, the
              likelihood's own parameters are left as they are given
    rounds    of learning hyper-parameters
    starts    whether the first lengthscale is to be chosen
    """
    best = _trial(problems[0], rounds, seed, starts)
    for problem in problems[1:]:
        try:
            other = _trial(problem, rounds, seed, starts)
        except (FloatingPointError, tf.errors.InvalidArgumentError):
            continue  # what need not be tried must not end a fit
        if other.log_density(seed) >= best.log_density(seed) + WORTH_POWERS:
            best = other
    return best


def _trial(problem: Problem, rounds: int, seed: int, starts: bool) -> Trial:
    problem = replace(problem, likelihood=gpflow.utilities.deepcopy(problem.likelihood))
    if starts:
        choose_lengthscale(problem, seed)
    start = pack(problem.gp.trainable_variables)
    return Trial(
        problem, SiteEngine().fit(problem, {}, rounds=rounds, seed=seed, verbose=False), start
    )
