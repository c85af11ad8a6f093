"""Sites by label: the general engine's answer to 1e-10, exact regression where m = n."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import make_data
from scipy.stats import multivariate_normal

from gpal.inference.base import Problem
from gpal.inference.constant_sites import (
    ConstantSchedule,
    LabelledRows,
    LabelSites,
    fit_constant_sites,
)
from gpal.inference.full import FullGP
from gpal.inference.held_out import choose_settings
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods.dirichlet import Dirichlet, DirichletRegression

RULE = DirichletRegression()


def sparse(data, kernels=1, classes=3, m=6, jitter=None, **options) -> SparseGP:
    kernels = [make_kernel("rbf", 3) for _ in range(kernels)]
    return SparseGP(KernelRows(kernels, data.X.numpy()[:m], classes, **options), jitter)


# name -> (options of SparseGP, sources of a block)
CASES = {
    "one block": ({"learn_Z": True}, 40),
    "blocks, one of them without a class": ({"learn_Z": True}, 6),
    "first-order noise": ({"noisy": (0, 2)}, 40),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_over_classes_are_those_of_the_rows(name, monkeypatch):
    options, size = CASES[name]
    data, likelihood = make_data(40, 3, 3), Dirichlet(3, 0.02)
    gp = sparse(data, **options)
    gp.rows.resident_elements = 6 * size
    rows, sites = LabelledRows(gp, data), LabelSites.of(RULE, likelihood)
    assert len(rows.blocks) == -(-40 // size)
    assert name != "blocks, one of them without a class" or any(
        (block.sizes.numpy() == 0).any() for block in rows.blocks
    )
    for got, want in zip(sites.of_rows(data), RULE.initial_sites(likelihood, data.Y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    got = rows.bound_and_gradient(sites), rows.solver()(sites)
    want = (
        gp.bound_and_gradient(data, sites.of_rows(data)),
        gp.posterior(data, sites.of_rows(data)),
    )
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


class NoiseOfTheRows(gpflow.functions.Function):
    def __init__(self, noise):
        super().__init__()
        self.noise = noise

    def __call__(self, X):
        return tf.constant(self.noise)


@pytest.mark.parametrize("full", [False, True])
def test_with_as_many_inducing_points_as_sources_it_is_gp_regression(full):
    """The bound is the log evidence of the targets, q(f) their regression, to 1e-8."""
    data, likelihood = make_data(25, 3, 3), Dirichlet(3, 0.02)
    gp = sparse(data, m=25, jitter=1e-13)
    if full:
        gp = FullGP(KernelRows(gp.kernels, data.X.numpy(), 3))
    fit = fit_constant_sites(Problem(gp, likelihood, RULE, data), ConstantSchedule(rounds=0))
    K = gp.kernels[0](data.X).numpy()
    target, noise = (a.numpy() for a in likelihood.targets(data.Y, tf.float64))
    evidence = sum(
        multivariate_normal(np.zeros(25), K + np.diag(noise[:, c])).logpdf(target[:, c])
        for c in range(3)
    )
    np.testing.assert_allclose(fit.bound, evidence, rtol=1e-8)
    new = np.random.default_rng(1).normal(size=(7, 3))
    mean, variance = gp.marginals(fit.posterior, new)
    for c in range(3):
        gaussian = gpflow.likelihoods.Gaussian(variance=NoiseOfTheRows(noise[:, [c]]))
        targets = data.X.numpy(), target[:, [c]]
        gpr = gpflow.models.GPR(targets, gp.kernels[0], likelihood=gaussian)
        want_mean, want_variance = gpr.predict_f(new)
        np.testing.assert_allclose(mean[:, c], want_mean[:, 0], atol=1e-8)
        np.testing.assert_allclose(variance[:, c], want_variance[:, 0], atol=1e-8)


@pytest.mark.parametrize("kernels", [1, 3])
def test_learning_ends_where_the_gradient_vanishes_and_the_general_engine_agrees(kernels):
    data, likelihood = make_data(80, 3, 3), Dirichlet(3, 0.02)
    gp = sparse(data, kernels)
    before = fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=0)).bound
    calls = []
    fit = fit_constant_sites(
        Problem(gp, likelihood, RULE, data),
        ConstantSchedule(
            tolerance=1e-12, subset=30, callback=lambda posterior, bound: calls.append(bound)
        ),
    )
    assert len(calls) == 2 and calls[-1] == pytest.approx(fit.bound / 80)
    assert fit.bound > before + 1.0
    _, gradient = gp.bound_and_gradient(data, fit.sites)
    assert max(np.abs(g).max() for g in gradient) < 1e-2
    again = fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=0))
    np.testing.assert_allclose(fit.bound, again.bound, rtol=1e-8)
    np.testing.assert_allclose(fit.posterior.alpha, again.posterior.alpha, atol=1e-6)


def test_with_a_subset_the_kernel_is_learned_for_the_concentration_chosen_before():
    data = make_data(80, 3, 3)
    gp, likelihood = sparse(data), Dirichlet(3)
    choose_settings(Problem(gp, likelihood, RULE, data), 1, seed=0)
    assert not likelihood.choose_alpha_eps
    fit = fit_constant_sites(
        Problem(gp, likelihood, RULE, data), ConstantSchedule(tolerance=1e-12, subset=30)
    )
    labels = LabelSites.of(RULE, likelihood)
    np.testing.assert_allclose(fit.sites.precision, labels.of_rows(data).precision)
    _, gradient = gp.bound_and_gradient(data, fit.sites)
    assert max(np.abs(g).max() for g in gradient) < 1e-2
