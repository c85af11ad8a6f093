"""Small probabilities of softmax and logistic-softmax against 10⁶ draws, and closed forms."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_expit, log_softmax, softmax

from gpal.likelihoods import make_likelihood
from gpal.likelihoods.shares import expected_shares

DRAWS = 1_000_000


def marginals(rows, C, deviation, seed):
    generator = np.random.default_rng(seed)
    mean = generator.normal(size=(rows, C)) * 1.5 * deviation
    mean[:, 0] -= 4.0  # a rare class
    return mean, (deviation * generator.uniform(0.3, 1.0, size=(rows, C))) ** 2


def drawn(mean, variance, log_g, seed):
    """(mean of p, its relative standard error) by brute force, a row at a time."""
    generator = np.random.default_rng(seed)
    p, error = np.empty(mean.shape), np.empty(mean.shape)
    for i, (m, v) in enumerate(zip(mean, variance, strict=True)):
        first, second = np.zeros(len(m)), np.zeros(len(m))
        for _ in range(10):
            f = m + np.sqrt(v) * generator.normal(size=(DRAWS // 10, len(m)))
            sample = np.exp(log_softmax(log_g(f), axis=1))
            first += sample.sum(axis=0)
            second += (sample**2).sum(axis=0)
        p[i] = first / DRAWS
        error[i] = np.sqrt(second / DRAWS - p[i] ** 2) / np.sqrt(DRAWS) / p[i]
    return p, error


@pytest.mark.parametrize(
    ("name", "log_g"), [("softmax", lambda f: f), ("logistic_softmax", log_expit)]
)
@pytest.mark.parametrize(
    ("C", "deviation"), [pytest.param(3, 1.0, marks=pytest.mark.slow), (10, 2.5), (6, 5.0)]
)
def test_tails_against_draws(name, log_g, C, deviation):
    mean, variance = marginals(12, C, deviation, seed=C)
    p = make_likelihood(name, C).predict_proba(tf.constant(mean), tf.constant(variance)).numpy()
    brute, error = drawn(mean, variance, log_g, seed=1)
    np.testing.assert_allclose(p, brute, atol=5e-3 if deviation > 4 else 1.5e-3)
    known = error < 0.1  # the draws themselves miss the others
    small = known & (brute < 0.01)
    off = np.abs(np.log(p / brute))
    if name == "softmax":
        assert small.sum() > C and off[small].mean() < 0.05
    assert (off < 0.1 + 6 * error)[known].all()


def test_no_variance_is_softmax():
    mean = np.random.default_rng(0).normal(size=(20, 5)) * 4
    np.testing.assert_allclose(
        expected_shares(tf.identity, mean, np.zeros_like(mean)), softmax(mean, axis=1), rtol=1e-4
    )


def test_far_below_all_others_the_mean_of_a_log_normal():
    """E[e^{f₀} / e^{f₁}] = exp(m₀ + v₀/2 − m₁ + v₁/2) where e^{f₀} adds nothing to the sum."""
    mean, variance = np.array([[-30.0, 0.0]]), np.array([[2.0, 1.0]])
    p = expected_shares(tf.identity, mean, variance).numpy()
    np.testing.assert_allclose(p[0, 0], np.exp(-30.0 + 1.0 + 0.5), rtol=1e-3)


def test_rows_are_alone_and_sum_to_one():
    """Whatever others are asked for in the same call, in batches, in single precision."""
    generator = np.random.default_rng(2)
    mean = generator.normal(size=(60, 4)) * 5
    variance = np.exp(generator.normal(size=(60, 4)) * 3)
    p = expected_shares(tf.identity, mean, variance).numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert (p > 0).all()
    for i in (0, 17, 59):
        alone = expected_shares(tf.identity, mean[i : i + 1], variance[i : i + 1]).numpy()
        np.testing.assert_allclose(alone[0], p[i], atol=1e-12)
    batched = expected_shares(
        tf.identity, mean.reshape(3, 20, 4), variance.reshape(3, 20, 4)
    ).numpy()
    np.testing.assert_array_equal(batched.reshape(60, 4), p)
    single = expected_shares(tf.identity, mean.astype("f4"), variance.astype("f4"))
    assert single.dtype == tf.float32
    np.testing.assert_allclose(single, p, atol=1e-5)


def test_what_no_float_can_hold_stays_in_its_row():
    mean = np.array([[0.0, np.nan, 1.0], [1e5, 0.0, -1e5], [0.0, 0.0, 0.0]])
    variance = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1e8, 1.0, 1e-8]])
    p = expected_shares(tf.identity, mean, variance).numpy()
    assert np.isnan(p[0]).all() and np.isfinite(p[1:]).all()
    np.testing.assert_allclose(p[1], [1.0, 0.0, 0.0], atol=1e-12)


def test_derivatives_in_a_graph():
    mean, variance = marginals(4, 3, 2.0, seed=3)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64)] * 2)
    def first(m, v):
        with tf.GradientTape() as tape:
            tape.watch([m, v])
            p = expected_shares(tf.identity, m, v)[:, 0]
        return p, *tape.gradient(p, [m, v])

    _, by_mean, by_variance = first(mean, variance)
    step = 1e-5
    for got, which in ((by_mean, 0), (by_variance, 1)):
        for c in range(3):
            up, down = [mean.copy(), variance.copy()], [mean.copy(), variance.copy()]
            up[which][:, c] += step
            down[which][:, c] -= step
            wanted = (first(*up)[0] - first(*down)[0]) / (2 * step)
            np.testing.assert_allclose(got[:, c], wanted, atol=1e-8)
