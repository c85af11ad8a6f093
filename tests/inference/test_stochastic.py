"""Stochastic sites: mini-batches lead to the fit of all rows."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import make_data

from gpal import GPClassifier
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_robust_max_by_natural_gradients_on_mini_batches_is_as_high_as_gpflows():
    """Paper 004's other method. Its bound is GPflow's of the same q, and at least what GPflow's own
    natural gradients reach with all data a step; with steps of .1 those leave the positive-definite
    matrices at once."""
    rng = np.random.default_rng(5)
    y = np.arange(150) % 3
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[y] + 0.8 * rng.normal(size=(150, 2))
    kernel = gpflow.kernels.SquaredExponential(2.0, 1.0)
    gpflow.set_trainable(kernel, False)
    classifier = GPClassifier(
        make_likelihood("robust_max", 3, delta=0.01, learn_delta=False),
        kernel=kernel,
        inference="stochastic_sites",
        input_noise="none",
        inducing_points=X[:12],
        inference_options={"steps": 100, "batch_size": 50},
    ).fit(X, y)
    data = classifier.posterior_.standardised(X), y[:, None].astype(float)
    robust_max = gpflow.likelihoods.MultiClass(3, invlink=gpflow.likelihoods.RobustMax(3, 0.01))
    svgp = classifier.posterior_.to_gpflow(standardised=True)
    svgp.likelihood, svgp.num_data = robust_max, None
    np.testing.assert_allclose(svgp.elbo(data) / 150, classifier.bound_, atol=2e-3)
    other = gpflow.models.SVGP(
        kernel, robust_max, classifier.posterior_.standardised(X[:12]), num_latent_gps=3
    )
    natural = gpflow.optimizers.NaturalGradient(0.02)
    loss = other.training_loss_closure(data)
    step = tf.function(
        lambda: natural.minimize(loss, [(other.q_mu, other.q_sqrt)]), autograph=False
    )
    for _ in range(200):
        step()
    assert classifier.bound_ > float(-loss()) / 150 - 2e-3
