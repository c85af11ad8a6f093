"""Stochastic sites: mini-batches lead to the fit of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from dense_reference import make_data

from gpal.inference.base import Problem
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.inference.stochastic import StochasticSchedule, fit_stochastic_sites
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.site_rules import NaturalGradient, make_site_rule


@pytest.mark.parametrize(
    "name, rule", [("softmax", "natural_gradient"), ("logistic_softmax", "cavi")]
)
def test_with_the_kernel_held_the_bound_is_that_of_all_rows(name, rule):
    data = make_data(300, 3, 3, seed=3)
    gp, likelihood = (
        SparseGP(KernelRows([make_kernel("rbf", 3)], data.X.numpy()[::20], 3)),
        make_likelihood(name, 3),
    )
    rule = make_site_rule(rule, likelihood)
    state = fit_stochastic_sites(
        Problem(gp, likelihood, rule, data),
        StochasticSchedule(steps=60, batch_size=60, learning_rate=0.0),
    )
    whole = fit_sites(
        Problem(gp, likelihood, rule, data), Schedule(rounds=0, final_sweeps=50, tolerance=1e-9)
    )
    assert whole.bounds[0] < whole.bound - 5.0  # there is something to be learned
    np.testing.assert_allclose(state.bound, whole.bound, atol=0.3)


def test_the_same_seed_draws_the_same_batches():
    bounds = []
    for seed in (0, 0, 1):
        data = make_data(200, 3, 2, seed=3)
        gp = SparseGP(KernelRows([make_kernel("rbf", 3)], data.X.numpy()[::20], 1))
        likelihood, rule = make_likelihood("probit", 2), NaturalGradient()
        state = fit_stochastic_sites(
            Problem(gp, likelihood, rule, data),
            StochasticSchedule(steps=20, batch_size=50, seed=seed),
        )
        bounds.append(state.bound)
    assert bounds[0] == bounds[1] != bounds[2]
