"""vi-JJ-full and vi-JJ-hybrid: their optimum is that of the closed form."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from dense_reference import make_data

from gpal.inference.base import Problem
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.local_parameters import LocalSchedule, fit_local_parameters
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.bernoulli_logit import JaakkolaJordan

RULE = JaakkolaJordan()


def problem(learn: bool):
    data = make_data(40, 3, 2, seed=3)
    kernel = make_kernel("rbf", 3)
    gpflow.set_trainable(kernel, learn)
    gp = SparseGP(KernelRows([kernel], data.X.numpy()[::4], 1))
    return gp, make_likelihood("bernoulli_logit", 2), data


@pytest.mark.parametrize("hybrid", [False, True])
def test_with_the_kernel_held_the_optimum_is_that_of_the_closed_form(hybrid):
    gp, likelihood, data = problem(learn=False)
    state = fit_local_parameters(
        Problem(gp, likelihood, RULE, data), LocalSchedule(rounds=30, iterations=50), hybrid=hybrid
    )
    gp, likelihood, data = problem(learn=False)
    closed = fit_sites(
        Problem(gp, likelihood, RULE, data), Schedule(rounds=0, final_sweeps=100, tolerance=1e-12)
    )
    np.testing.assert_allclose(state.bound, closed.bound, atol=1e-3)


@pytest.mark.parametrize("hybrid", [pytest.param(False, marks=pytest.mark.slow), True])
def test_learning_the_kernel_with_them_raises_the_bound(hybrid):
    gp, likelihood, data = problem(learn=True)
    state = fit_local_parameters(Problem(gp, likelihood, RULE, data), hybrid=hybrid)
    held = fit_local_parameters(Problem(*problem(learn=False)[:2], RULE, data), hybrid=hybrid)
    assert state.bound > held.bound + 0.5
    assert (np.diff(state.bounds[1:]) > -1e-6).all()


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_step_too_far_is_a_wall_and_not_the_end(hybrid, monkeypatch):
    """On twonorm with 50 points the first step of the search leaves no factor of K(Z, Z)."""
    gp, likelihood, data = problem(learn=True)
    collapsed, calls = gp.bound_and_gradient, []

    def refused(*given):
        calls.append(given)
        if len(calls) in (2, 3):
            gp.jitter.relative = 1e-2
            raise FloatingPointError("the kernel matrix is not positive definite")
        return collapsed(*given)

    monkeypatch.setattr(gp, "bound_and_gradient", refused)
    state = fit_local_parameters(Problem(gp, likelihood, RULE, data), hybrid=hybrid)
    held = fit_local_parameters(Problem(*problem(learn=False)[:2], RULE, data), hybrid=hybrid)
    assert len(calls) > 6 and state.bound > held.bound + 0.5
    assert gp.jitter.relative == 1e-8
