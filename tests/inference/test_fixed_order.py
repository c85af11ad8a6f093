"""Products that are cut and filled up are the products, to the last bit with any threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from gpal.inference.fixed_order import inner_products, product, product_of_rows

rng = np.random.default_rng(0)
OUTER = (1, 2, 8, 13, 99, 100, 131)
INNER = (1, 7, 64, 65, 101, 240, 241, 500)


@pytest.mark.parametrize("inner", INNER)
def test_a_product_whatever_its_dimensions(inner):
    A = rng.normal(size=(2, 5, inner))
    for outer in OUTER:
        B = rng.normal(size=(2, inner, outer))
        np.testing.assert_allclose(product(A, tf.constant(B)), A @ B, rtol=0, atol=1e-12)
    single = product(tf.constant(A, tf.float32), tf.constant(B, tf.float32))
    np.testing.assert_allclose(single, A @ B, rtol=0, atol=1e-3)


@pytest.mark.parametrize("rows", INNER)
def test_a_sum_over_rows_whatever_its_dimensions(rows):
    for a in OUTER:
        A, B = rng.normal(size=(rows, a)), rng.normal(size=(rows, 13))
        for one, other in ((A, B), (B, A)):
            found = product_of_rows(tf.constant(one), tf.constant(other))
            np.testing.assert_allclose(found, one.T @ other, rtol=0, atol=1e-12)


def test_inner_products_and_their_derivative():
    X, Z = (tf.constant(rng.normal(size=size)) for size in ((30, 3), (12, 3)))
    weight = tf.constant(rng.normal(size=(30, 12)))
    with tf.GradientTape() as tape:
        tape.watch([X, Z])
        K = inner_products(X, Z)
        total = tf.reduce_sum(weight * K**2)
    np.testing.assert_allclose(K, X.numpy() @ Z.numpy().T)
    of_X, of_Z = tape.gradient(total, [X, Z])
    G = 2 * (weight * K).numpy()
    np.testing.assert_allclose(of_X, G @ Z.numpy())
    np.testing.assert_allclose(of_Z, G.T @ X.numpy())


THREADED = """
import sys
import numpy as np
import tensorflow as tf
from gpal.inference.fixed_order import product, product_of_rows
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
rng, made = np.random.default_rng(0), []
for a in (2, 7, 13, 60, 100, 130, 300):
    B = tf.constant(rng.normal(size=(240, a)))
    for b in (2, 7, 13, 60, 100, 130, 300):
        made.append(product_of_rows(B, tf.constant(rng.normal(size=(240, b)))))
    for k in (50, 90, 150, 240, 300, 700):
        A, B = rng.normal(size=(240, k)), rng.normal(size=(k, a))
        made.append(product(tf.constant(A), tf.constant(B)))
np.save(sys.argv[2], np.concatenate([np.ravel(part) for part in made]))
"""


@pytest.mark.slow
def test_sums_have_one_order_whatever_the_number_of_threads(tmp_path):
    """Of these, 22 of 91 differ where they are TensorFlow's own products."""
    for threads in ("1", "4"):
        subprocess.run(
            [sys.executable, "-c", THREADED, threads, str(tmp_path / threads)],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            check=True,
            stderr=subprocess.DEVNULL,
        )
    one, four = (np.load(tmp_path / f"{threads}.npy") for threads in "14")
    np.testing.assert_array_equal(four, one)
