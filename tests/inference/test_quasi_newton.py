"""Quasi-Newton steps against dense algebra, and against an optimiser that starts anew."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from gpal.inference.quasi_newton import MEMORY, Curvature, ascend


def quadratic(dimensions: int = 6):
    """−½ (x − b)ᵀ A (x − b), A of condition 100, its gradient, and x."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(dimensions, dimensions)))
    A = Q @ np.diag(np.logspace(-2, 0, dimensions)) @ Q.T
    x, b = tf.Variable(np.zeros(dimensions)), rng.normal(size=dimensions)
    calls = []

    def value_and_gradient():
        calls.append(x.numpy())
        d = x.numpy() - b
        return tf.constant(-0.5 * d @ A @ d), [tf.constant(-A @ d)]

    return x, b, A, value_and_gradient, calls


def test_direction_is_that_of_the_dense_update():
    rng = np.random.default_rng(1)
    curvature, dense = Curvature(), None
    A = np.diag([1.0, 4.0, 9.0])
    for step in rng.normal(size=(4, 3)):
        curvature.learn(step, A @ step)
    last = curvature.steps[-1], curvature.falls[-1]
    dense = np.eye(3) * (last[0] @ last[1]) / (last[1] @ last[1])
    for s, y in zip(curvature.steps, curvature.falls, strict=True):
        left = np.eye(3) - np.outer(s, y) / (y @ s)
        dense = left @ dense @ left.T + np.outer(s, s) / (y @ s)
    gradient = rng.normal(size=3)
    np.testing.assert_allclose(curvature.direction(gradient), dense @ gradient)


def test_of_many_pairs_the_latest_count():
    steps = np.random.default_rng(2).normal(size=(MEMORY + 5, 3))
    falls = steps * np.linspace(1.0, 9.0, len(steps))[:, None]  # another curvature every time
    several, latest = Curvature(), Curvature()
    for i, (step, fall) in enumerate(zip(steps, falls, strict=True)):
        several.learn(step, fall)
        if i >= 5:
            latest.learn(step, fall)
    gradient = np.array([1.0, -2.0, 0.5])
    np.testing.assert_array_equal(several.direction(gradient), latest.direction(gradient))


def test_a_pair_along_which_the_objective_is_convex_is_left_out():
    curvature = Curvature()
    curvature.learn(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    assert curvature.steps == []


def test_what_was_learned_is_kept_between_calls():
    """Two steps at a time end where twelve at once do; without the curvature they do not."""
    distance = {}
    for kept in (True, False):
        x, b, _, evaluate, _ = quadratic()
        curvature = Curvature()
        for _ in range(6):
            curvature = curvature if kept else Curvature()
            ascend([x], evaluate, curvature, iterations=2, longest=1.0, tolerance=0.0)
        distance[kept] = np.abs(x.numpy() - b).max()
    assert distance[True] < 0.1 * distance[False]


def test_it_ends_where_a_step_raises_the_value_by_less_than_the_tolerance():
    x, b, A, evaluate, calls = quadratic()
    ascend([x], evaluate, Curvature(), iterations=200, longest=1.0, tolerance=1e-4)
    d = x.numpy() - b
    assert len(calls) < 60 and 0.5 * d @ A @ d < 1e-3


def test_no_coordinate_moves_by_more_than_the_longest_step():
    x, _, _, evaluate, calls = quadratic()
    ascend([x], evaluate, Curvature(), iterations=5, longest=0.1, tolerance=0.0)
    assert np.abs(x.numpy()).max() <= 0.5 + 1e-12
    assert np.abs(np.diff(calls, axis=0)).max() <= 0.1 + 1e-12


@pytest.mark.parametrize("wall", ["nan", "error"])
def test_a_wall_shortens_the_step(wall):
    x = tf.Variable(np.zeros(1))

    def value_and_gradient():
        here = float(x.numpy()[0])
        if here > 0.6:
            if wall == "error":
                raise tf.errors.InvalidArgumentError(None, None, "Cholesky")
            here = np.nan
        return tf.constant(here), [tf.constant([1.0])]

    ascend([x], value_and_gradient, Curvature(), iterations=1, longest=1.0, tolerance=0.0)
    assert x.numpy()[0] == pytest.approx(0.5)


def test_where_no_step_raises_the_value_nothing_moves():
    x, curvature = tf.Variable(np.ones(2)), Curvature()
    curvature.learn(np.ones(2), np.ones(2))

    def value_and_gradient():  # a wrong gradient
        return tf.constant(-float(np.sum(x.numpy() ** 2))), [tf.constant([2.0, 2.0])]

    ascend([x], value_and_gradient, curvature, iterations=3, longest=1.0, tolerance=0.0)
    np.testing.assert_array_equal(x.numpy(), [1.0, 1.0])
    assert curvature.steps == []


@pytest.mark.parametrize("noise, moved", [(1e-4, True), (1e-2, False)])
def test_a_fall_within_the_tolerance_is_noise(noise, moved):
    x = tf.Variable(np.zeros(1))

    def value_and_gradient():
        return tf.constant(-noise * float(x.numpy()[0] != 0)), [tf.constant([1.0])]

    ascend([x], value_and_gradient, Curvature(), iterations=1, longest=1.0, tolerance=1e-3)
    assert (x.numpy()[0] == 1.0) == moved
