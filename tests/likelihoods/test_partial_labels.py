"""Labels that are sets of classes, against Monte Carlo, the tape and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from likelihood_truths import draws
from scipy.special import log_expit, log_softmax, logsumexp

from gpal.inference.rows import meet
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.likelihoods.averaged import coupled
from gpal.likelihoods.partial_labels import PartialLabels, for_labels
from gpal.likelihoods.site_rules import NaturalGradient
from gpal.model.labels import codes_of, members_of, number_of_classes

C = 4
MIXING = np.random.default_rng(5).normal(size=(C, 3))
LOG_P = {  # log p(c | f), a second time
    "softmax": lambda f: log_softmax(f, axis=-1),
    "logistic_softmax": lambda f: log_softmax(log_expit(f), axis=-1),
    "coregionalized": lambda f: log_softmax(f @ MIXING.T, axis=-1),
}
SETS = [(0, 1), (2,), (0, 2, 3), (1, 3), (0, 1, 2, 3)]
MEMBERS = np.array([[c in S for c in range(C)] for S in SETS])
CODES = codes_of(MEMBERS)
Y = tf.constant(CODES[:, None].astype(float))


def made(name: str, num_points: int = 4096) -> PartialLabels:
    options = {"mixing": MIXING} if name == "coregionalized" else {}
    return PartialLabels(make_likelihood(name, C, num_points=num_points, **options))


def marginals(likelihood, rows: int = len(SETS), seed: int = 0):
    rng, shape = np.random.default_rng(seed), (rows, likelihood.latent_dim)
    return tf.constant(1.5 * rng.normal(size=shape)), tf.constant(rng.uniform(0.1, 2.0, shape))


def expectation(name, m, v, members) -> float:
    """E_q log Σ_{c∈S} p(c | f) of one source, by draws."""
    log_p = LOG_P[name](m + np.sqrt(v) * draws(len(m))[: 2**15])
    return float(logsumexp(log_p[:, members], axis=1).mean())


def test_which_likelihoods_take_sets():
    own = {k.name for k in LIKELIHOODS.classes() if k.__module__.startswith("gpal.")}
    assert {name for name in own if LIKELIHOODS[name].takes_sets} == set(LOG_P)


def test_a_code_is_a_class_or_its_set():
    rng = np.random.default_rng(0)
    for number in (2, 5, 52):
        members = rng.random((200, number)) < 0.2
        members[~members.any(axis=1), 0] = True
        codes = codes_of(members)
        np.testing.assert_array_equal(members_of(codes, number), members)
        assert number_of_classes(codes) == 1 + np.flatnonzero(members.any(axis=0)).max()
        np.testing.assert_array_equal(codes.astype(float).astype(int), codes)
    np.testing.assert_array_equal(
        PartialLabels(make_likelihood("softmax", C)).one_hot(Y, tf.float64), MEMBERS
    )


@pytest.mark.parametrize("name", LOG_P)
def test_expectations_and_sites_are_those_of_monte_carlo(name):
    """∂E/∂m and −2 ∂E/∂v by finite differences of draws that are the same on both sides."""
    likelihood = made(name)
    m, v = marginals(likelihood)
    precision, natural_mean, terms = likelihood.sites_and_expectations(m, v, Y)
    gradient, step = (natural_mean - precision * m).numpy(), 1e-2
    for i in (0, 2):
        members = MEMBERS[i]
        at = m[i].numpy(), v[i].numpy()
        assert terms.numpy()[i] == pytest.approx(expectation(name, *at, members), abs=2e-3)
        for c, shift in enumerate(step * np.eye(likelihood.latent_dim)):
            up, down = (expectation(name, at[0] + s, at[1], members) for s in (shift, -shift))
            assert gradient[i, c] == pytest.approx((up - down) / (2 * step), abs=4e-3)
            up, down = (expectation(name, at[0], at[1] + s, members) for s in (shift, -shift))
            assert precision.numpy()[i, c] == pytest.approx(-(up - down) / step, abs=8e-3)
    assert precision.numpy().min() < -0.01  # not log-concave


@pytest.mark.parametrize("name", LOG_P)
def test_a_set_of_one_class_is_that_class_and_of_all_says_nothing(name):
    likelihood, classes = made(name, 32), np.arange(C, dtype=float)[:, None]
    m, v = marginals(likelihood, C)
    for mine, of_class in zip(
        likelihood.sites_and_expectations(m, v, tf.constant(classes)),
        likelihood.base.sites_and_expectations(m, v, tf.constant(classes)),
    ):
        np.testing.assert_allclose(mine, of_class, atol=1e-12)
    for mine, of_class in zip(
        likelihood.initial_sites(tf.constant(classes)),
        likelihood.base.initial_sites(tf.constant(classes)),
    ):
        np.testing.assert_allclose(mine, of_class, atol=1e-12)
    for part in likelihood.sites_and_expectations(m, v, tf.fill([C, 1], 1.0 - 2.0**C)):
        np.testing.assert_allclose(part, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", LOG_P)
@pytest.mark.parametrize("axis", [-1, -2])
def test_log_derivatives_are_those_of_log_p(name, axis):
    likelihood = made(name, 32)
    F = tf.constant(3.0 * np.random.default_rng(1).normal(size=(len(SETS), likelihood.latent_dim)))
    with tf.GradientTape() as second:
        second.watch(F)
        with tf.GradientTape() as first:
            first.watch(F)
            log_p = likelihood.log_prob(None, F, Y)
        slope = first.gradient(log_p, F)
    hessian = second.batch_jacobian(slope, F).numpy()
    truth = [logsumexp(row[S]) for row, S in zip(LOG_P[name](F.numpy()), MEMBERS)]
    np.testing.assert_allclose(log_p, truth, atol=1e-12)
    members = likelihood.one_hot(Y, tf.float64)
    if axis == -2:
        F, members = tf.transpose(F), tf.transpose(members)
    found, gradient, curvature = likelihood.log_derivatives(F, members, axis)
    if axis == -2:
        gradient, curvature = tf.transpose(gradient), tf.transpose(curvature)
    np.testing.assert_allclose(found, log_p, atol=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    np.testing.assert_allclose(curvature, -np.einsum("ncc->nc", hessian), atol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "logistic_softmax"])
def test_log_p_of_a_set_is_monotone_in_every_latent_function(name):
    """On which the bound of nodes that are met together rests."""
    likelihood, rng = made(name, 32), np.random.default_rng(0)
    for members in MEMBERS:
        F = tf.constant(5.0 * rng.normal(size=(300, C)))
        gradient = likelihood.log_derivatives(F, tf.constant(members.astype(float)))[1].numpy()
        assert (gradient * np.where(members, 1, -1) >= -1e-14).all()


def test_nodes_of_an_uncertain_input_that_are_met_together_have_a_bound():
    """Below E_q log (1/S) Σ_s p(S | f_s), whatever the covariances of q, and above the separate."""
    likelihood, nodes, rng = made("softmax"), 3, np.random.default_rng(2)
    m, v = marginals(likelihood, nodes * len(SETS), 2)
    rows = tf.repeat(Y, nodes, axis=0)
    terms = coupled(likelihood, m, v, rows, nodes)[2].numpy()
    sites, met = meet(NaturalGradient(), likelihood, m, v, Y, nodes)
    np.testing.assert_allclose(met, terms)
    assert np.isfinite(sites.precision.numpy()).all()
    apart = tf.reshape(likelihood.variational_expectations(None, m, v, rows), [-1, nodes]).numpy()
    assert (terms > logsumexp(apart, axis=1) - np.log(nodes) - 1e-9).all()
    root = np.linalg.cholesky(np.full((nodes, nodes), 0.6) + 0.4 * np.eye(nodes))
    m, v = (part.numpy().reshape(-1, nodes, C) for part in (m, v))
    for i, members in enumerate(MEMBERS):
        f = m[i] + np.sqrt(v[i]) * np.einsum(
            "st,ktc->ksc", root, rng.normal(size=(200_000, nodes, C))
        )
        log_p = logsumexp(log_softmax(f, axis=-1)[..., members], axis=-1)
        truth = (logsumexp(log_p, axis=1) - np.log(nodes)).mean()
        assert terms[i] <= truth + 3e-3


def test_predictions_are_those_of_the_likelihood_itself():
    likelihood = made("softmax", 32)
    m, v = marginals(likelihood)
    p = likelihood.base.predict_proba(m, v)
    np.testing.assert_array_equal(likelihood.predict_proba(m, v), p)
    density = np.exp(likelihood.predict_log_density(None, m, v, Y))
    np.testing.assert_allclose(density, (p.numpy() * MEMBERS).sum(axis=1))
    assert for_labels(likelihood.base, np.array([0, 1])) is likelihood.base
    assert likelihood.to_data() == likelihood.base.to_data()
