"""Labels that are sets or carry weights, against Monte Carlo, the tape and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from likelihood_truths import draws
from scipy.special import log_expit, log_softmax, logsumexp

from gpal.inference.rows import meet
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.likelihoods.averaged import coupled
from gpal.likelihoods.partial_labels import PartialLabels
from gpal.likelihoods.site_rules import NaturalGradient

C = 4
MIXING = np.random.default_rng(5).normal(size=(C, 3))
LOG_P = {  # log p(c | f), a second time
    "softmax": lambda f: log_softmax(f, axis=-1),
    "logistic_softmax": lambda f: log_softmax(log_expit(f), axis=-1),
    "coregionalized": lambda f: log_softmax(f @ MIXING.T, axis=-1),
}
WEIGHTS = np.array(
    [
        *([1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]),  # sets
        *([1, 0.2, 0.2, 0.2], [1, 0.25, 0, 0], [0.3, 1, 0.1, 0.02], [0, 0.6, 1, 1]),
    ]
)
MONOTONE = np.array([True] * 6 + [False] * 3)
Y = tf.constant(WEIGHTS)


def made(name: str, num_points: int = 4096) -> PartialLabels:
    options = {"mixing": MIXING} if name == "coregionalized" else {}
    return PartialLabels(make_likelihood(name, C, num_points=num_points, **options))


def marginals(likelihood, rows: int = len(WEIGHTS), seed: int = 0):
    rng, shape = np.random.default_rng(seed), (rows, likelihood.latent_dim)
    return tf.constant(1.5 * rng.normal(size=shape)), tf.constant(rng.uniform(0.1, 2.0, shape))


def expectation(name, m, v, weights) -> float:
    """E_q log Σ_c w_c p(c | f) of one source, by draws."""
    log_p = LOG_P[name](m + np.sqrt(v) * draws(len(m))[: 2**15])
    return float(logsumexp(log_p, axis=1, b=weights).mean())


def test_which_likelihoods_take_sets():
    own = {k.name for k in LIKELIHOODS.classes() if k.__module__.startswith("gpal.")}
    assert {name for name in own if LIKELIHOODS[name].takes_sets} == set(LOG_P)


@pytest.mark.parametrize("name", LOG_P)
def test_expectations_and_sites_are_those_of_monte_carlo(name):
    """∂E/∂m and −2 ∂E/∂v by finite differences of draws that are the same on both sides."""
    likelihood = made(name)
    m, v = marginals(likelihood)
    precision, natural_mean, terms = likelihood.sites_and_expectations(m, v, Y)
    gradient, step = (natural_mean - precision * m).numpy(), 1e-2
    for i in (0, 2, 6, 7):
        weights = WEIGHTS[i]
        at = m[i].numpy(), v[i].numpy()
        assert terms.numpy()[i] == pytest.approx(expectation(name, *at, weights), abs=2e-3)
        for c, shift in enumerate(step * np.eye(likelihood.latent_dim)):
            up, down = (expectation(name, at[0] + s, at[1], weights) for s in (shift, -shift))
            assert gradient[i, c] == pytest.approx((up - down) / (2 * step), abs=4e-3)
            up, down = (expectation(name, at[0], at[1] + s, weights) for s in (shift, -shift))
            assert precision.numpy()[i, c] == pytest.approx(-(up - down) / step, abs=8e-3)
    assert precision.numpy().min() < -0.01  # not log-concave


@pytest.mark.parametrize("name", LOG_P)
def test_a_set_of_one_class_is_that_class_and_of_all_says_nothing(name):
    likelihood, classes = made(name, 32), np.arange(C, dtype=float)[:, None]
    m, v, alone = *marginals(likelihood, C), tf.eye(C, dtype=tf.float64)
    for mine, of_class in zip(
        likelihood.sites_and_expectations(m, v, alone),
        likelihood.base.sites_and_expectations(m, v, tf.constant(classes)),
    ):
        np.testing.assert_allclose(mine, of_class, atol=1e-12)
    for mine, of_class in zip(
        likelihood.initial_sites(alone),
        likelihood.base.initial_sites(tf.constant(classes)),
    ):
        np.testing.assert_allclose(mine, of_class, atol=1e-12)
    for part in likelihood.sites_and_expectations(m, v, tf.ones_like(alone)):
        np.testing.assert_allclose(part, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", LOG_P)
@pytest.mark.parametrize("axis", [-1, -2])
def test_log_derivatives_are_those_of_log_p(name, axis):
    likelihood = made(name, 32)
    F = tf.constant(
        3.0 * np.random.default_rng(1).normal(size=(len(WEIGHTS), likelihood.latent_dim))
    )
    with tf.GradientTape() as second:
        second.watch(F)
        with tf.GradientTape() as first:
            first.watch(F)
            log_p = likelihood.log_prob(None, F, Y)
        slope = first.gradient(log_p, F)
    hessian = second.batch_jacobian(slope, F).numpy()
    truth = logsumexp(LOG_P[name](F.numpy()), axis=1, b=WEIGHTS)
    np.testing.assert_allclose(log_p, truth, atol=1e-12)
    weights = likelihood.one_hot(Y, tf.float64)
    if axis == -2:
        F, weights = tf.transpose(F), tf.transpose(weights)
    found, gradient, curvature = likelihood.log_derivatives(F, weights, axis)
    if axis == -2:
        gradient, curvature = tf.transpose(gradient), tf.transpose(curvature)
    np.testing.assert_allclose(found, log_p, atol=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    np.testing.assert_allclose(curvature, -np.einsum("ncc->nc", hessian), atol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "logistic_softmax"])
def test_where_log_p_is_monotone_in_every_latent_function(name):
    """On which the bound of nodes that are met together rests."""
    likelihood, rng = made(name, 32), np.random.default_rng(0)
    np.testing.assert_array_equal(likelihood.monotone(Y), MONOTONE)
    for weights, monotone in zip(WEIGHTS, MONOTONE):
        F = tf.constant(5.0 * rng.normal(size=(300, C)))
        gradient = likelihood.log_derivatives(F, tf.constant(weights))[1].numpy()
        rises = gradient * np.where(weights == 1, 1, -1) >= -1e-14
        assert rises.all() == monotone


def test_nodes_of_an_uncertain_input_that_are_met_together_have_a_bound():
    """Below E_q log (1/S) Σ_s p(w | f_s), whatever the covariances of q; where it is monotone,
    above the separate one, and else that one."""
    likelihood, nodes, rng = made("softmax"), 3, np.random.default_rng(2)
    m, v = marginals(likelihood, nodes * len(WEIGHTS), 2)
    rows = tf.repeat(Y, nodes, axis=0)
    terms = coupled(likelihood, m, v, rows, nodes)[2].numpy()
    sites, met = meet(NaturalGradient(), likelihood, m, v, Y, nodes)
    np.testing.assert_allclose(met[MONOTONE], terms[MONOTONE])
    assert np.isfinite(sites.precision.numpy()).all()
    apart = tf.reshape(likelihood.variational_expectations(None, m, v, rows), [-1, nodes]).numpy()
    apart = logsumexp(apart, axis=1) - np.log(nodes)
    assert (terms > apart - 1e-9)[MONOTONE].all()
    np.testing.assert_allclose(met.numpy()[~MONOTONE], apart[~MONOTONE])
    alone = meet(NaturalGradient(), likelihood, m[-nodes:], v[-nodes:], Y[-1:], nodes)
    np.testing.assert_allclose(sites.precision[-nodes:], alone[0].precision)
    root = np.linalg.cholesky(np.full((nodes, nodes), 0.6) + 0.4 * np.eye(nodes))
    m, v = (part.numpy().reshape(-1, nodes, C) for part in (m, v))
    for i, weights in enumerate(WEIGHTS):
        f = m[i] + np.sqrt(v[i]) * np.einsum(
            "st,ktc->ksc", root, rng.normal(size=(200_000, nodes, C))
        )
        log_p = logsumexp(log_softmax(f, axis=-1), axis=-1, b=weights)
        truth = (logsumexp(log_p, axis=1) - np.log(nodes)).mean()
        assert met[i] <= truth + 3e-3


def test_met_together_a_weight_between_the_others_has_no_bound():
    """At one node p falls where f_b rises, at the other it rises: with one ε for both they make up
    for each other. As classes and weights of two or three kinds have it, independent functions."""
    likelihood = PartialLabels(make_likelihood("softmax", 3, num_points=4096))
    m = np.array([[3.0, 0.0, -3.0], [-3.0, 0.0, 3.0]])
    v = np.array([[0.01, 16.0, 0.01]] * 2)
    w = np.array([1.0, 0.5, 0.0])
    f = m + np.sqrt(v) * np.random.default_rng(0).normal(size=(200_000, 2, 3))
    log_p = logsumexp(log_softmax(f, axis=-1), axis=-1, b=w)
    truth = (logsumexp(log_p, axis=1) - np.log(2)).mean()
    given = tf.constant(m), tf.constant(v), tf.constant([w])
    together = coupled(likelihood, *given[:2], tf.repeat(given[2], 2, axis=0), 2)[2].numpy()[0]
    assert together > truth + 0.03
    assert meet(NaturalGradient(), likelihood, *given, 2)[1].numpy()[0] < truth


def test_predictions_are_those_of_the_likelihood_itself():
    likelihood = made("softmax", 32)
    m, v = marginals(likelihood)
    p = likelihood.base.predict_proba(m, v)
    np.testing.assert_array_equal(likelihood.predict_proba(m, v), p)
    density = np.exp(likelihood.predict_log_density(None, m, v, Y))
    np.testing.assert_allclose(density, (p.numpy() * WEIGHTS).sum(axis=1))
    assert likelihood.to_data() == likelihood.base.to_data()
