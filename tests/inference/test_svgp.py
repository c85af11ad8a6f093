"""The gradient path against GPflow's SVGP, and the slopes of the posterior mean."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.base import Fit, Problem
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.rows import Data
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.inference.svgp import SVGP, GradientSchedule, fit_svgp
from gpal.inference.svgp_lbfgs import LbfgsSchedule, fit_svgp_lbfgs
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.site_rules import NaturalGradient

D, M, C, N = 2, 6, 3, 20
RULE = NaturalGradient()


def make_data(seed: int = 0, noisy: bool = False) -> Data:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, D, D)) * (0.3 if noisy else 0.0)
    return Data(
        tf.constant(rng.normal(size=(N, D))),
        tf.constant(rng.integers(C, size=(N, 1)).astype(float)),
        tf.constant(root),
    )


def make_model(num_kernels: int, noisy: bool = False, **options) -> SVGP:
    rng = np.random.default_rng(1)
    kernels = [make_kernel("rbf", D) for _ in range(num_kernels)]
    for j, kernel in enumerate(kernels):
        kernel.kernels[0].variance.assign(1.0 + j)
    gp = SparseGP(KernelRows(kernels, rng.normal(size=(M, D)), C, noisy=(0, 1) if noisy else ()))
    model = SVGP(gp, make_likelihood("softmax", C), RULE, N, **options)
    model.q_mean.assign(rng.normal(size=(M, C)))
    model.q_root.assign(np.tril(rng.normal(size=(C, M, M)) * 0.3 + np.eye(M)))
    return model


def gpflow_model(model: SVGP) -> gpflow.models.SVGP:
    """The same q(u) in GPflow, its likelihood and its bound included."""
    kernels = model.gp.kernels
    if len(kernels) == 1:
        kernel = gpflow.kernels.SharedIndependent(kernels[0], C)
    else:
        kernel = gpflow.kernels.SeparateIndependent(kernels)
    inducing = gpflow.inducing_variables.InducingPoints(np.asarray(model.gp.Z))
    return gpflow.models.SVGP(
        kernel,
        model.likelihood,
        gpflow.inducing_variables.SharedIndependentInducingVariables(inducing),
        num_latent_gps=C,
        q_mu=np.asarray(model.q_mean),
        q_sqrt=np.asarray(model.q_root),
        num_data=N,
    )


@pytest.mark.parametrize("num_kernels", [1, C])
def test_the_bound_of_a_batch_is_that_of_gpflow(num_kernels):
    model, data = make_model(num_kernels), make_data()
    some = np.array([3, 7, 11])
    batch = data.sources(some)
    want = gpflow_model(model)
    np.testing.assert_allclose(model.kl(), want.prior_kl(), rtol=1e-10)
    bound = model.bound(batch, tf.constant(some), tf.constant(0))
    # jitter 1e-6: here relative to the kernel's variance, there absolute
    np.testing.assert_allclose(bound, want.elbo((batch.X, batch.Y)), rtol=1e-4)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("num_kernels", [1, C])
def test_the_posterior_handed_over_has_the_same_marginals(num_kernels, noisy):
    model, data = make_model(num_kernels, noisy), make_data(noisy=noisy)
    want = model.marginals(data.X, data.root)
    got = model.gp.marginals(model.posterior(), data.X, data.root if noisy else None)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    if noisy:
        _, exact = model.gp.marginals(model.posterior(), data.X)
        assert (want[1].numpy() > exact.numpy()).all()


def test_the_bound_of_all_sources_is_the_sum_over_batches():
    model, data = make_model(1), make_data()
    whole = float(model.bound(data, tf.range(N), tf.constant(0)))
    np.testing.assert_allclose(model.bound_of_all(data), whole, rtol=1e-10)


def bounds_of_a_fit(optimizer: str) -> list[float]:
    """The bound every 20 steps, from the posteriors that a callback is given; checks the last."""
    data, likelihood = make_data(), make_likelihood("softmax", C)
    gp = SparseGP(KernelRows([make_kernel("rbf", D)], data.X[:M].numpy(), C))
    bounds = []

    def record(posterior, step):
        mean, variance = gp.marginals(posterior, data.X)
        terms = likelihood.variational_expectations(None, mean, variance, data.Y)
        bounds.append(float(tf.reduce_sum(terms) - posterior.kl))

    options = {"steps": 120, "batch_size": 10, "callback": record, "callback_every": 20}
    fit = fit_svgp(
        Problem(gp, likelihood, RULE, data), GradientSchedule(optimizer=optimizer, **options)
    )
    np.testing.assert_allclose(fit.bound, bounds[-1], rtol=1e-6)
    return bounds


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "adadelta", "natgrad"])
def test_every_optimizer_climbs_and_repeats(optimizer):
    first, again = bounds_of_a_fit(optimizer), bounds_of_a_fit(optimizer)
    assert first[-1] > first[0]
    np.testing.assert_array_equal(first, again)


def held_problem(name: str) -> Problem:
    """Kernel and likelihood as they are."""
    data, kernel = make_data(), make_kernel("rbf", D)
    gpflow.set_trainable(kernel, False)
    gp = SparseGP(KernelRows([kernel], data.X[:M].numpy(), C))
    return Problem(gp, make_likelihood(name, C), RULE, data)


@pytest.mark.parametrize("name", ["softmax", "gumbel_softmax"])
def test_with_the_kernel_held_lbfgs_ends_where_natural_gradient_sites_do(name):
    problem = held_problem(name)
    found = fit_svgp_lbfgs(problem)
    assert found.converged
    schedule = Schedule(rounds=0, final_sweeps=100, tolerance=1e-12)
    sites = fit_sites(held_problem(name), schedule)
    # Of the sampled softmax the sites' rule has other derivatives than the sampled bound itself.
    closed = name == "gumbel_softmax"
    np.testing.assert_allclose(found.bound, sites.bound, rtol=1e-5 if closed else 1e-3)
    assert found.bound > sites.bound - 1e-3
    mean, want = (
        problem.gp.marginals(each.posterior, problem.data.X)[0].numpy() for each in (found, sites)
    )
    differences = [each - each.mean(axis=1, keepdims=True) for each in (mean, want)]
    np.testing.assert_allclose(*differences, atol=2e-3 if closed else 2e-2)


OPTIMIZED = {
    "adam": {"steps": 500, "learning_rate": 0.02},
    "adadelta": {"steps": 600, "learning_rate": 4.0},
    "natgrad": {"steps": 60, "natural_step": 0.5},
}


@pytest.mark.parametrize("optimizer", OPTIMIZED)
def test_with_the_kernel_held_every_optimizer_ends_where_natural_gradient_sites_do(optimizer):
    """On batches of all sources; the optimum of the Gumbel bound is that of closed-form sites."""
    problem = held_problem("gumbel_softmax")
    schedule = GradientSchedule(optimizer=optimizer, batch_size=N, **OPTIMIZED[optimizer])
    found = fit_svgp(problem, schedule)
    sites = fit_sites(
        held_problem("gumbel_softmax"), Schedule(rounds=0, final_sweeps=100, tolerance=1e-12)
    )
    assert sites.bounds[0] < sites.bound - 2.0  # there is something to be learned
    np.testing.assert_allclose(found.bound, sites.bound, rtol=5e-3)
    mean, want = (
        problem.gp.marginals(each.posterior, problem.data.X)[0].numpy() for each in (found, sites)
    )
    differences = [each - each.mean(axis=1, keepdims=True) for each in (mean, want)]
    np.testing.assert_allclose(*differences, atol=0.2)


def test_lbfgs_raises_the_bound_repeats_and_says_that_it_was_stopped():
    def fit() -> tuple[list[float], Fit]:
        problem = held_problem("softmax")
        gpflow.set_trainable(problem.gp.kernels[0], True)
        bounds = []

        def record(posterior, iteration):
            mean, variance = problem.gp.marginals(posterior, problem.data.X)
            terms = problem.likelihood.variational_expectations(
                None, mean, variance, problem.data.Y
            )
            bounds.append(float(tf.reduce_sum(terms) - posterior.kl))

        schedule = LbfgsSchedule(iterations=12, callback=record, callback_every=3)
        return bounds, fit_svgp_lbfgs(problem, schedule)

    (bounds, fitted), again = fit(), fit()
    assert len(bounds) == 4 and fitted.converged is False
    assert (np.diff(bounds) > 0).all()
    np.testing.assert_allclose(fitted.bound, bounds[-1], rtol=1e-6)
    assert (bounds, fitted.bound) == (again[0], again[1].bound)


def test_an_unknown_optimizer_lists_the_known_ones():
    gp = SparseGP(KernelRows([make_kernel("rbf", D)], np.zeros((1, D)), C))
    with pytest.raises(InputError, match="no optimizer 'sgd'; there are: adam, adadelta, natgrad"):
        fit_svgp(Problem(gp, None, RULE, make_data()), GradientSchedule(optimizer="sgd"))
