"""Two bounds of a likelihood averaged over its uncertain input, against sampling and the tape."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from gpal.errors import InputError
from gpal.inference.capabilities import check
from gpal.inference.rows import meet
from gpal.input_noise.integrated import Integrated
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.likelihoods.averaged import coupled, separate
from gpal.likelihoods.quasi_random import QuasiRandomLikelihood
from gpal.likelihoods.site_rules import NaturalGradient

RULE = NaturalGradient()
COUPLED = ["bernoulli_logit", "logistic_softmax", "softmax"]
NODES, N = 4, 6


def quasi_random(name: str) -> bool:
    return issubclass(LIKELIHOODS[name], QuasiRandomLikelihood)


def made(name: str, num_points: int | None = None):
    """Of two classes, or of three; `num_points` where there are quasi-random points."""
    options = {"num_points": num_points} if num_points and quasi_random(name) else {}
    return make_likelihood(name, 2 if LIKELIHOODS[name].classes == "two" else 3, **options)


def marginals(likelihood, seed: int, spread: float = 1.5, variance: float = 2.0):
    """m, v [N·NODES, P] and labels [N, 1]."""
    rng = np.random.default_rng(seed)
    shape = N * NODES, likelihood.latent_dim
    m = tf.constant(spread * rng.normal(size=shape))
    v = tf.constant(rng.uniform(0.1, 1.0, size=shape) * variance)
    return m, v, tf.constant(rng.integers(likelihood.num_classes, size=(N, 1)).astype(float))


def repeated(Y):
    return tf.repeat(Y, NODES, axis=0)


def test_which_likelihoods_are_coupled():
    """In gpal itself: another package's are not said a second time."""
    own = {k.name: k for k in LIKELIHOODS.classes() if k.__module__.startswith("gpal.")}
    coupled = {name for name in own if RULE.couples(made(name))}
    assert coupled == set(COUPLED), "those with coupling_points are listed in COUPLED above"
    for name, likelihood in own.items():
        assert likelihood.is_coupled() == (name in COUPLED)
        for rule in likelihood.site_rules:
            assert rule.couples(made(name)) == (name in COUPLED and type(rule) is NaturalGradient)


@pytest.mark.parametrize("name", COUPLED)
def test_natural_gradients_without_sites_are_refused_where_precisions_have_no_sign(name):
    likelihood = made(name)
    with pytest.raises(InputError, match="not log-concave"):
        check(likelihood, "integrated", "svgp_natgrad", likelihood.num_classes)
    if likelihood.log_concave:
        check(likelihood, Integrated(nodes=1), "svgp_natgrad", likelihood.num_classes)
    check(likelihood, "integrated", "svgp", likelihood.num_classes)


@pytest.mark.parametrize("name", COUPLED)
def test_log_p_is_monotone_in_every_latent_function(name):
    """On which the proof rests: rising in the label's own, falling in all others."""
    likelihood, rng = made(name), np.random.default_rng(0)
    F = tf.constant(5.0 * rng.normal(size=(500, likelihood.latent_dim)))
    for label in range(likelihood.num_classes):
        one_hot = likelihood.one_hot(tf.fill([500, 1], float(label)), tf.float64)
        gradient = likelihood.log_derivatives(F, one_hot)[1].numpy()
        if likelihood.latent_dim == 1:
            sign = np.array([2 * label - 1])
        else:
            sign = np.where(np.arange(likelihood.num_classes) == label, 1, -1)
        assert (gradient * sign >= 0.0).all()


@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("axis", [-1, -2])
def test_log_derivatives_are_those_of_log_p(name, axis):
    likelihood, rng = made(name), np.random.default_rng(1)
    C, P = likelihood.num_classes, likelihood.latent_dim
    labels = tf.constant(rng.integers(C, size=(7, 1)).astype(float))
    F, one_hot = tf.constant(3.0 * rng.normal(size=(7, P))), likelihood.one_hot(labels, tf.float64)
    with tf.GradientTape() as second:
        second.watch(F)
        with tf.GradientTape() as first:
            first.watch(F)
            log_p = likelihood.log_prob(None, F, labels)
        slope = first.gradient(log_p, F)
    hessian = second.batch_jacobian(slope, F).numpy()
    if axis == -2:
        F, one_hot = tf.transpose(F), tf.transpose(one_hot)
    found, gradient, curvature = likelihood.log_derivatives(F, one_hot, axis)
    if axis == -2:
        gradient, curvature = tf.transpose(gradient), tf.transpose(curvature)
    np.testing.assert_allclose(found, log_p, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    np.testing.assert_allclose(curvature, -np.einsum("ncc->nc", hessian), atol=1e-12)


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_sites_are_the_gradients_of_their_bound(name):
    """∂E/∂m = r − θ m exactly; −2 ∂E/∂v = θ up to the points' accuracy (Price's identity)."""
    likelihood = made(name, num_points=4096)
    m, v, Y = marginals(likelihood, 2)
    with tf.GradientTape() as tape:
        tape.watch([m, v])
        precision, natural_mean, terms = coupled(likelihood, m, v, repeated(Y), NODES)
    to_m, to_v = tape.gradient(terms, [m, v])
    np.testing.assert_allclose(natural_mean - precision * m, to_m, atol=1e-12)
    np.testing.assert_allclose(precision, -2.0 * to_v, atol=4e-4)
    assert np.abs(precision.numpy()).max() > 0.05
    assert (precision.numpy() < 0).any()  # so the engine has to be ready for them


def sampled(likelihood, m, v, Y, correlation, number: int, seed: int) -> np.ndarray:
    """log (1/S) Σ_s p(y | f_s) for draws with that correlation [S, S] of nodes: [number, N]."""
    rng, P = np.random.default_rng(seed), likelihood.latent_dim
    root = np.linalg.cholesky(correlation + 1e-12 * np.eye(NODES))
    epsilon = np.einsum("st,xntp->xnsp", root, rng.normal(size=(number, N, NODES, P)))
    f = m.numpy() + np.sqrt(v.numpy()) * epsilon.reshape(number, N * NODES, P)
    log_p = likelihood.log_prob(None, tf.constant(f), repeated(Y)).numpy()
    return logsumexp(log_p.reshape(number, N, NODES), axis=2) - np.log(NODES)


@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(COUPLED), seed=st.integers(0, 10**6))
def test_separate_is_below_coupled_is_below_the_expectation_for_any_covariance(name, seed):
    """The expectation of log p(y | x̃) by Monte Carlo, with correlations of either sign."""
    likelihood = made(name, num_points=1024)
    m, v, Y = marginals(likelihood, seed, variance=6.0)
    low = separate(*likelihood.sites_and_expectations(m, v, repeated(Y)), NODES)[2].numpy()
    high = coupled(likelihood, m, v, repeated(Y), NODES)[2].numpy()
    slack = 1e-12 if quasi_random(name) else 1e-3  # both on the same points, or on others
    assert (low <= high + slack).all()
    loadings = np.random.default_rng(seed).normal(size=(NODES, 2))
    covariance = loadings @ loadings.T + 0.1 * np.eye(NODES)
    width = np.sqrt(np.diag(covariance))
    draws = sampled(likelihood, m, v, Y, covariance / np.outer(width, width), 4000, seed)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (high <= draws.mean(axis=0) + 5.0 * error + 3e-3).all()


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_is_the_expectation_where_nodes_move_together(name):
    likelihood = made(name, num_points=1024)
    m, v, Y = marginals(likelihood, 3)
    draws = sampled(likelihood, m, v, Y, np.ones((NODES, NODES)), 20_000, 0)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    terms = coupled(likelihood, m, v, repeated(Y), NODES)[2].numpy()
    assert (np.abs(terms - draws.mean(axis=0)) <= 5.0 * error + 1e-3).all()


@pytest.mark.parametrize("name", COUPLED)
def test_equal_nodes_are_one_source(name):
    likelihood = made(name)
    m, v, Y = marginals(likelihood, 4)
    m, v = m[:N], v[:N]
    many = coupled(likelihood, tf.repeat(m, NODES, 0), tf.repeat(v, NODES, 0), repeated(Y), NODES)
    one = coupled(likelihood, m, v, Y, 1)
    np.testing.assert_allclose(many[2], one[2], rtol=1e-12)
    for found, whole in zip(many[:2], one[:2], strict=True):
        total = found.numpy().reshape(N, NODES, -1).sum(axis=1)
        np.testing.assert_allclose(total, whole, atol=1e-12)
    plain = likelihood.sites_and_expectations(m, v, Y)
    for found, expected in zip(one, plain, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_engine_clips_negative_precisions_and_keeps_the_gradient():
    likelihood = made("softmax")
    m, v, Y = marginals(likelihood, 2)
    precision, natural_mean, terms = coupled(likelihood, m, v, repeated(Y), NODES)
    sites, met_terms = meet(RULE, likelihood, m, v, Y, NODES)
    np.testing.assert_allclose(met_terms, terms, rtol=1e-12)
    assert (sites.precision.numpy() >= 0).all() and (precision.numpy() < 0).any()
    np.testing.assert_allclose(
        sites.natural_mean - sites.precision * m, natural_mean - precision * m, atol=1e-12
    )
