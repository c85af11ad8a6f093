"""The jitter rises only when it must, says so, and gives up in the end."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow as tf

from gpal.inference.cholesky import Jitter, jittered_cholesky


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_jitter_is_relative_to_the_mean_of_the_diagonal(scale):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    K = scale * (root @ root.T)
    L = jittered_cholesky(tf.constant(K), tf.constant(1e-3, tf.float64)).numpy()
    added = (L @ L.T - K) / np.mean(np.diag(K))
    np.testing.assert_allclose(added, 1e-3 * np.eye(5), atol=1e-12)


def test_no_jitter_is_added_where_none_is_needed(caplog):
    jitter = Jitter(1e-8)
    with caplog.at_level(logging.WARNING, logger="gpal"):
        K = tf.eye(3, dtype=tf.float64)
        jitter.run(lambda: jittered_cholesky(K, jitter.value), lambda L: L)
    assert float(jitter.value) == 1e-8 and not caplog.records


@pytest.mark.parametrize("as_graph", [False, True])
def test_jitter_escalates_until_a_singular_matrix_factors(caplog, as_graph):
    K = tf.constant(np.diag([1.0, 1.0, -3e-5]))
    jitter = Jitter(1e-8)
    factor = tf.function(jittered_cholesky) if as_graph else jittered_cholesky
    with caplog.at_level(logging.WARNING, logger="gpal"):
        L = jitter.run(lambda: factor(K, jitter.value), lambda L: L)
    assert np.isfinite(L.numpy()).all()
    # mean diagonal 2/3: 1e-5 is not enough, 1e-4 is
    np.testing.assert_allclose(float(jitter.value), 1e-4)
    assert len(caplog.records) == 4 and "jitter" in caplog.records[0].getMessage()


def test_nan_counts_as_a_failure():
    """On a GPU the factor of an indefinite matrix is NaN, without an exception."""
    jitter = Jitter(1e-8)
    out = jitter.run(
        lambda: tf.constant(1.0 if float(jitter.value) > 5e-5 else np.nan), lambda value: value
    )
    assert float(out) == 1.0
    np.testing.assert_allclose(float(jitter.value), 1e-4)


def test_jitter_gives_up_with_a_remedy():
    jitter = Jitter(1e-8)
    K = tf.constant(np.diag([1.0, -1.0, 1.0]))
    with pytest.raises(FloatingPointError, match="duplicate inducing points"):
        jitter.run(lambda: jittered_cholesky(K, jitter.value), lambda L: L)


def test_other_errors_are_not_swallowed():
    def broken():
        return tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))

    with pytest.raises(tf.errors.InvalidArgumentError):
        Jitter(1e-8).run(broken, lambda result: result)
