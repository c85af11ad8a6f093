"""Hyper-parameters by leaving one out: the gradient, and what learning does."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.inference import predictive_learning
from gpal.inference.base import Problem
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.leave_one_out import leave_one_out
from gpal.inference.parameters import Coordinates, pack
from gpal.inference.predictive_learning import learn_by_leaving_out
from gpal.inference.rows import Data
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods import make_likelihood

N, D = 90, 2
HELD = Schedule(rounds=0, final_sweeps=40, tolerance=1e-8)


def problem(likelihood: str, classes: int, shared: bool, weight=None) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    scores = np.sin(2.0 * X @ rng.normal(size=(D, classes))) + 0.3 * rng.normal(size=(N, classes))
    made = make_likelihood(likelihood, classes)
    latents = made.latent_dim
    kernels = [
        gpflow.kernels.SquaredExponential(2.0 + c, [1.5, 2.0 + 0.2 * c])
        + gpflow.kernels.Linear([0.3, 0.5])
        for c in range(1 if shared else latents)
    ]
    rows = KernelRows(kernels, X[:12] + 0.1, latents)
    data = Data(
        tf.constant(X),
        tf.constant(scores.argmax(axis=1)[:, None].astype(float)),
        tf.zeros([N, D, 0], tf.float64),
        weight,
    )
    return Problem(SparseGP(rows), made, made.site_rules[0], data)


CASES = [("softmax", 3, True), ("softmax", 3, False), ("bernoulli_logit", 2, True)]


@pytest.mark.parametrize(
    "likelihood, classes, shared",
    [*CASES[:2], pytest.param(*CASES[2], marks=pytest.mark.slow)],
)
def test_the_gradient_is_that_of_finite_differences(monkeypatch, likelihood, classes, shared):
    """In every hyper-parameter, by the value that its own formulas give."""
    weight = tf.constant(np.random.default_rng(1).uniform(0.5, 2.0, N))
    given = problem(likelihood, classes, shared, weight)
    gamma = tfp.distributions.Gamma(tf.constant(3.0, tf.float64), tf.constant(1.0, tf.float64))
    given.gp.rows.kernels[0].kernels[0].variance.prior = gamma
    fit = fit_sites(given, HELD)
    found = {}

    def instead(rows, value_and_gradient, **_):
        coordinates, step = Coordinates(rows), 1e-5
        gradient = coordinates.gradient(value_and_gradient()[1])
        x = coordinates.pack()
        for i in range(0, len(x), 1 if shared else 4):  # the kernels of 15 are alike
            values = []
            for sign in (1, -1):
                coordinates.assign(x + sign * step * np.eye(len(x))[i])
                values.append(value_and_gradient()[0])
            found[i] = gradient[i], (values[0] - values[1]) / (2 * step)
        coordinates.assign(x)

    monkeypatch.setattr(predictive_learning, "maximise", instead)
    monkeypatch.setattr(predictive_learning, "SOURCES", 70)
    learn_by_leaving_out(given, fit, seed=0)
    ours, wanted = np.array(list(found.values())).T
    assert len(ours) == (5 if shared else 4)  # the points are held
    np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-7)


def test_what_is_raised_has_weights_and_the_log_prior(monkeypatch):
    """Per source, as the value that is climbed and the one that judges the climb have it."""
    weight = tf.constant(np.random.default_rng(1).uniform(0.1, 4.0, N))
    given = problem("bernoulli_logit", 2, True, weight)
    variance = given.gp.rows.kernels[0].kernels[0].variance
    variance.prior = tfp.distributions.Exponential(tf.constant(40.0, tf.float64))
    fit, which, climbed = fit_sites(given, HELD), np.arange(0, N, 2), []
    log_p = given.likelihood.predict_log_density(
        None, *leave_one_out(given, fit, which), tf.gather(given.data.Y, which)
    )
    few = weight.numpy()[which]
    wanted = np.sum(few * log_p) / few.sum() + given.log_prior / weight.numpy().sum()
    assert abs(given.log_prior) > 10.0
    assert predictive_learning._left_out(given, fit, which) == pytest.approx(wanted, abs=1e-9)
    monkeypatch.setattr(
        predictive_learning, "maximise", lambda rows, f, **_: climbed.append(f()[0])
    )
    predictive_learning._climb(given, fit.sites, which)
    assert climbed[0] == pytest.approx(wanted, abs=1e-8)


def test_blocks_of_sources_are_all_of_them(monkeypatch):
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(50, 3)), rng.uniform(0.1, 1.0, (50, 3))
    of_terms = predictive_learning._log_density(
        make_likelihood("softmax", 3), tf.constant(rng.integers(3, size=(50, 1)).astype(float))
    )
    whole = of_terms(mean, variance)
    monkeypatch.setattr(predictive_learning, "BLOCK", 7)
    for one, two in zip(whole, of_terms(mean, variance), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize("likelihood, classes, shared", CASES)
def test_its_value_is_the_log_density_without_the_source(monkeypatch, likelihood, classes, shared):
    given = problem(likelihood, classes, shared)
    fit = fit_sites(given, HELD)
    values = []
    monkeypatch.setattr(predictive_learning, "POINTS", 4096)
    monkeypatch.setattr(predictive_learning, "maximise", lambda rows, f, **_: values.append(f()[0]))
    learn_by_leaving_out(given, fit, seed=0)
    moments = leave_one_out(given, fit)
    wanted = given.likelihood.predict_log_density(None, *moments, given.data.Y).numpy().mean()
    assert values[0] == pytest.approx(wanted, abs=2e-3 if classes > 2 else 1e-8)


def left_out(given: Problem, fit) -> float:
    log_p = given.likelihood.predict_log_density(None, *leave_one_out(given, fit), given.data.Y)
    return float(np.mean(log_p))


def test_it_raises_the_likelihood_of_sources_left_out():
    given = problem("softmax", 3, True)
    fit = fit_sites(given, HELD)
    before, Z = left_out(given, fit), given.gp.Z.numpy()
    learned = learn_by_leaving_out(given, fit, seed=0)
    assert left_out(given, learned) > before + 0.01
    np.testing.assert_array_equal(given.gp.Z, Z)
    assert learned.bound == pytest.approx(fit_sites(given, HELD, learned.posterior).bound, abs=0.3)


def test_what_does_not_raise_it_is_taken_back(monkeypatch):
    given = problem("softmax", 3, True)
    fit = fit_sites(given, HELD)
    start, jitter = pack(given.gp.rows.trainable_variables), given.gp.jitter.relative

    def spoil(rows, *_, **__):
        rows.kernels[0].kernels[0].lengthscales.assign([30.0, 30.0])
        given.gp.jitter.relative *= 100.0  # as a factorisation that fails does

    monkeypatch.setattr(predictive_learning, "maximise", spoil)
    assert learn_by_leaving_out(given, fit, seed=0) is fit
    np.testing.assert_array_equal(pack(given.gp.rows.trainable_variables), start)
    assert given.gp.jitter.relative == jitter
    again = given.gp.data_marginals(given.data, given.gp.posterior(given.data, fit.sites))
    for one, two in zip(again, given.gp.data_marginals(given.data, fit.posterior)):
        np.testing.assert_allclose(one, two, rtol=1e-8)


def test_a_kernel_that_is_held_leaves_nothing_to_learn():
    given = problem("softmax", 3, True)
    fit = fit_sites(given, HELD)
    gpflow.set_trainable(given.gp.rows.kernels[0], False)
    assert learn_by_leaving_out(given, fit, seed=0) is fit


def test_sites_are_met_as_the_user_asked():
    given = problem("softmax", 3, True)
    fit, seen = fit_sites(given, HELD), []
    options = {"tolerance": 0.0, "final_sweeps": 37, "callback": lambda *a: seen.append(a[1])}
    learned = learn_by_leaving_out(given, fit, 0, {**options, "rounds": 5, "steps": 1})
    assert learned is not fit and len(seen) == 38  # the start, and each sweep
    assert seen[-1] == pytest.approx(learned.bound / given.data.size, rel=1e-9)
