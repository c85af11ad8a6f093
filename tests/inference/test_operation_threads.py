"""Gradients with several threads between operations, which is TensorFlow's default."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, tensorflow as tf
from gpal.inference.collapsed import bound_and_gradient
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.rows import Data, Sites

n = m = 1000
X = 3.0 * np.random.default_rng(0).normal(size=(n, 10))
rows = KernelRows([make_kernel("rbf", 10)], X[:m], 3, learn_Z=True)
rows.resident_elements = 0
data = Data(tf.constant(X), tf.zeros([n, 1], tf.float64), tf.zeros([n, 0, 0], tf.float64))
sites = Sites(tf.fill([n, 3], tf.constant(0.2, tf.float64)), tf.constant(X[:, :3] / 10))
for _ in range(4):
    J, gradients, _ = bound_and_gradient(rows, data, sites, tf.constant(1e-6, tf.float64))
assert np.isfinite(float(J)) and all(np.isfinite(g).all() for g in gradients)
"""


@pytest.mark.slow
def test_a_thousand_inducing_points():
    several = os.environ | {"TF_NUM_INTEROP_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=several, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
