"""Leave-one-out in closed form, against fits without the source."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal.inference.base import Fit, Problem
from gpal.inference.full import FullGP
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.leave_one_out import leave_one_out
from gpal.inference.rows import Data, Sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods import make_likelihood

N, P = 12, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Z = RNG.normal(size=(5, 2))
DATA = Data(
    tf.constant(X), tf.constant(RNG.integers(P, size=(N, 1)).astype(float)), tf.zeros([N, 2, 0])
)
SITES = Sites(tf.constant(RNG.uniform(0.0, 0.3, size=(N, P))), tf.constant(RNG.normal(size=(N, P))))


def kernels(shared: bool) -> list[gpflow.kernels.Kernel]:
    scales = [0.8] if shared else [0.5, 0.8, 1.3]
    return [gpflow.kernels.SquaredExponential(2.0, scale) for scale in scales]


def process(kind: str, shared: bool) -> FullGP | SparseGP:
    if kind == "full":
        return FullGP(KernelRows(kernels(shared), X, P))
    return SparseGP(KernelRows(kernels(shared), Z if kind == "sparse" else X, P))


def problem_and_fit(gp: FullGP | SparseGP, sites: Sites = SITES) -> tuple[Problem, Fit]:
    likelihood = make_likelihood("softmax", P)
    gp.refresh(DATA)
    fit = Fit(gp.posterior(DATA, sites), sites=sites)
    return Problem(gp, likelihood, likelihood.site_rules[0], DATA), fit


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["full", "sparse", "sparse at X"])
def test_it_is_the_posterior_of_the_other_sites(kind, shared):
    gp = process(kind, shared)
    problem, fit = problem_and_fit(gp)
    mean, variance = leave_one_out(problem, fit)
    for i in range(N):
        others = Sites(
            *(tf.constant(np.where(np.arange(N)[:, None] == i, 0.0, part)) for part in SITES)
        )
        wanted = gp.data_marginals(DATA, gp.posterior(DATA, others))
        np.testing.assert_allclose(mean[i], wanted[0][i], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(variance[i], wanted[1][i], rtol=1e-6)


def test_of_gaussian_noise_it_is_what_a_regression_without_the_source_says():
    """Rasmussen & Williams (2006), eq. 5.12: sites of a Gaussian likelihood are the data."""
    noise, y = 0.3, RNG.normal(size=(N, P))
    sites = Sites(tf.fill([N, P], tf.constant(1 / noise, tf.float64)), tf.constant(y / noise))
    mean, variance = leave_one_out(*problem_and_fit(process("full", True), sites))
    inverse = np.linalg.inv(kernels(True)[0](X).numpy() + noise * np.eye(N))
    precision = np.diag(inverse)[:, None]
    np.testing.assert_allclose(mean, y - inverse @ y / precision, rtol=1e-8)
    np.testing.assert_allclose(variance, np.tile(1 / precision - noise, P), rtol=1e-8)


def test_of_some_sources_it_is_that_of_all():
    problem, fit = problem_and_fit(process("sparse", True))
    some = np.array([7, 2])
    for part, of_all in zip(leave_one_out(problem, fit, some), leave_one_out(problem, fit)):
        np.testing.assert_array_equal(part, of_all.numpy()[some])


def test_open_variance_is_that_of_f_given_u():
    kernel, gp = kernels(True)[0], process("sparse", True)
    K, k = kernel(Z).numpy(), kernel(X, Z).numpy()
    wanted = np.diag(kernel(X)) - np.einsum("ni,ni->n", k, np.linalg.solve(K, k.T).T)
    np.testing.assert_allclose(gp.open_variance(DATA), np.tile(wanted[:, None], P), rtol=1e-5)
    np.testing.assert_allclose(process("sparse at X", True).open_variance(DATA), 0.0, atol=1e-6)
    assert not process("full", True).open_variance(DATA).numpy().any()


def test_it_needs_sites_and_one_node():
    problem, fit = problem_and_fit(process("sparse", True))
    with pytest.raises(ValueError, match="needs a site for each source"):
        leave_one_out(problem, replace(fit, sites=None))
    several = SparseGP(KernelRows(kernels(True), Z, P, nodes=2))
    with pytest.raises(ValueError, match="and one node"):
        leave_one_out(replace(problem, gp=several), fit)
