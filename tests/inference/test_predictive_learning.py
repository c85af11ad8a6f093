"""Hyper-parameters by leaving one out: the gradient, and what learning does."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

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


@pytest.mark.parametrize("likelihood, classes, shared", CASES)
def test_the_gradient_is_that_of_finite_differences(monkeypatch, likelihood, classes, shared):
    """In every hyper-parameter, by the value that its own formulas give."""
    weight = tf.constant(np.random.default_rng(1).uniform(0.5, 2.0, N))
    given = problem(likelihood, classes, shared, weight)
    fit = fit_sites(given, HELD)
    found = {}

    def instead(rows, value_and_gradient, **_):
        coordinates, step = Coordinates(rows), 1e-5
        gradient = coordinates.gradient(value_and_gradient()[1])
        x = coordinates.pack()
        for i in range(len(x)):
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
    assert len(ours) == (5 if shared else 15)  # the points are held
    np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-7)


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
    start = pack(given.gp.rows.trainable_variables)

    def spoil(rows, *_, **__):
        rows.kernels[0].kernels[0].lengthscales.assign([30.0, 30.0])

    monkeypatch.setattr(predictive_learning, "maximise", spoil)
    assert learn_by_leaving_out(given, fit, seed=0) is fit
    np.testing.assert_array_equal(pack(given.gp.rows.trainable_variables), start)
    again = given.gp.data_marginals(given.data, given.gp.posterior(given.data, fit.sites))
    for one, two in zip(again, given.gp.data_marginals(given.data, fit.posterior)):
        np.testing.assert_allclose(one, two, rtol=1e-8)
