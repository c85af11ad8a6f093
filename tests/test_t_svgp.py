"""The benchmark's t-SVGP has the optimum of SVGP, and batches that are right on average."""

import sys
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

sys.path.append(str(Path(__file__).parents[1] / "workflows" / "benchmarks"))
from t_svgp import JITTER, TSVGP


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2))
    Y = (np.sin(2 * X[:, :1]) + 0.5 * generator.normal(size=(60, 1)) > 0).astype(float)
    return tf.constant(X), tf.constant(Y)


def models(rows):
    """The same kernel, points and likelihood, of both."""
    X, _ = rows
    kernel = gpflow.kernels.SquaredExponential(variance=2.0, lengthscales=[0.8, 1.3])
    likelihood = gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
    Z = X.numpy()[:12]
    return TSVGP(kernel, likelihood, Z, 1, len(X)), gpflow.models.SVGP(
        kernel, likelihood, Z, num_data=len(X)
    )


@pytest.mark.slow
def test_at_fixed_hyper_parameters_it_ends_at_the_optimum_of_svgp(rows):
    dual, svgp = models(rows)
    for _ in range(60):
        dual.natural_step(*rows, 0.7)
    gpflow.set_trainable(svgp.q_mu, False)
    gpflow.set_trainable(svgp.q_sqrt, False)
    steps = gpflow.optimizers.NaturalGradient(0.7)
    for _ in range(60):
        steps.minimize(lambda: -svgp.elbo(rows), [(svgp.q_mu, svgp.q_sqrt)])
    assert gpflow.config.default_jitter() == JITTER
    np.testing.assert_allclose(dual.elbo(*rows), svgp.elbo(rows), rtol=1e-8)
    new = tf.constant(np.random.default_rng(1).normal(size=(20, 2)))
    for ours, theirs in zip(dual.marginals(new), svgp.predict_f(new)):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_on_the_way_its_bound_is_that_of_svgp_with_the_same_q(rows):
    dual, svgp = models(rows)
    dual.natural_step(*rows, 0.3)
    _, factor, mean = dual.whitened()
    eye = tf.eye(mean.shape[1], dtype=tf.float64)
    svgp.q_mu.assign(mean[0])
    svgp.q_sqrt.assign(tf.linalg.cholesky(tf.linalg.cholesky_solve(factor, eye[None])))
    np.testing.assert_allclose(dual.elbo(*rows), svgp.elbo(rows), rtol=1e-9)
    np.testing.assert_allclose(dual.prior_kl(), svgp.prior_kl(), rtol=1e-8)


def test_steps_on_the_two_halves_average_to_that_on_all(rows):
    X, Y = rows
    found = []
    for part in (slice(None), slice(0, 30), slice(30, 60)):
        dual, _ = models(rows)
        dual.natural_step(*rows, 0.5)  # from elsewhere than zero
        dual.natural_step(X[part], Y[part], 0.2)
        found.append((dual.first.numpy(), dual.second.numpy()))
    for whole, first, second in zip(*found):
        np.testing.assert_allclose(whole, (first + second) / 2, rtol=1e-9, atol=1e-9)
