"""How many inducing points a fit to exact inputs takes where that is left open.

The kernel is learned first from at most TRIAL_SOURCES sources with INDUCING_POINTS; it then says
how many it needs to leave no more than UNEXPLAINED of the bound open (`conditional_variance.py`).
So many are taken, from INDUCING_POINTS up to what n m² P = PRODUCTS allows. The fit starts from
that kernel where the trial had every source, and where there are more from the kernel that the
trial has started from. Where the points are is learned as well of more than LEARNED_ABOVE sources.
Chosen on the development sets of workflows/benchmarks/data_sets.py (docs/defaults.md).
"""

from __future__ import annotations

import gpflow
import numpy as np
from threadpoolctl import threadpool_limits

from gpal.inference.base import Problem
from gpal.inference.conditional_variance import points_needed
from gpal.inference.parameters import assign, pack
from gpal.inference.sites import SiteEngine

__all__ = ["INDUCING_POINTS", "LEARNED_ABOVE", "TRIAL_SOURCES", "enough_points", "most_points"]

# With error bars; else at least. On 4FGL twice as many change the cross-validated NLL by less than
# .0001.
INDUCING_POINTS = 100
LEARNED_ABOVE = 4000  # exact sources
TRIAL_SOURCES = 1000
UNEXPLAINED = 5e-4  # nats per source
PRODUCTS = 1e9


def most_points(sources: int, num_latent: int) -> int:
    """What the cost of a sweep, n m² P, allows."""
    return int(np.sqrt(PRODUCTS / (sources * num_latent)))


def enough_points(problem: Problem, rounds: int, seed: int, largest: int, sources: int) -> int:
    """Inducing points for the kernels of the problem, which are learned in place; of more sources
    than the problem has they are put back.

    problem   of TRIAL_SOURCES sources at most, with exact inputs and INDUCING_POINTS
    rounds    of learning hyper-parameters
    largest   more are not taken
    sources   of the fit that the points are for
    """
    variables = problem.gp.trainable_variables
    start = pack(variables)
    # The likelihood's own parameters are left as they are given.
    problem = Problem(
        problem.gp, gpflow.utilities.deepcopy(problem.likelihood), problem.rule, problem.data
    )
    fit = SiteEngine().fit(problem, {}, rounds=rounds, seed=seed, verbose=False)
    assert fit.sites is not None
    theta, kernels = fit.sites.precision.numpy(), problem.gp.kernels
    with threadpool_limits(1):  # several would add up in another order
        needed = points_needed(kernels, problem.data.X.numpy(), theta, UNEXPLAINED, largest)
    if sources > len(problem.data.Y):
        # Learned from where few sources have taken it, the bound of all ended lower.
        assign(variables, start)
    return max(INDUCING_POINTS, needed)
