"""Graphs are made once for any number of rows, and loops run in order."""

import gc
import logging
import sys
import weakref

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.inference.graph import compiled, fold, graph
from gpal.inference.kernels import positive


class Counting:
    def __init__(self) -> None:
        self.traces = 0

    @graph
    def total(self, parts: list[tf.Tensor], scale: tf.Tensor, name: str) -> tf.Tensor:
        self.traces += 1
        return scale * tf.add_n([tf.reduce_sum(part) for part in parts])


def test_one_trace_serves_every_number_of_rows():
    counting = Counting()
    for n in (1, 5, 300):
        for scale in (1.0, 2.5):
            parts = [tf.ones([n, 3], tf.float64), tf.ones([n, 2], tf.float64)]
            value = counting.total(parts, tf.constant(scale, tf.float64), "a")
            assert float(value) == scale * 5 * n
    assert counting.traces == 1
    counting.total([tf.ones([4, 7], tf.float64)], tf.constant(1.0, tf.float64), "a")
    counting.total([tf.ones([4, 7], tf.float64)], tf.constant(1.0, tf.float64), "b")
    assert counting.traces == 3


def test_instances_do_not_share_graphs():
    first, second = Counting(), Counting()
    for counting in (first, second, first):
        counting.total([tf.ones([2, 2], tf.float64)], tf.constant(1.0, tf.float64), "a")
    assert first.traces == second.traces == 1


class Scaled:
    def __init__(self) -> None:
        self.scale = positive(2.0)

    @graph
    def total(self, x: tf.Tensor) -> tf.Tensor:
        self.traced_in = weakref.ref(x.graph)
        return self.scale * tf.reduce_sum(x)


def test_a_value_from_outside_a_graph_dies_in_peace(monkeypatch):
    """TensorFlow Probability keeps values of parameters and lets go of them when they die."""
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    model = Scaled()
    value = tf.convert_to_tensor(model.scale)
    model.total(tf.ones([3, 1], tf.float64))
    assert float(value) == 2.0
    del value
    gc.collect()
    assert not complaints


def test_bijector_values_of_other_people_stay_in_their_cache():
    bijector, x = tfp.bijectors.Exp(), tf.constant(0.7, tf.float64)
    y = bijector.forward(x)
    Scaled().total(tf.ones([3, 1], tf.float64))
    assert bijector.inverse(y) is x


@pytest.fixture
def retracings():
    """What TensorFlow says of functions that are traced too often."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    level = tf.get_logger().level
    tf.get_logger().setLevel(logging.WARNING)  # a command of gpal in this process has raised it
    tf.get_logger().addHandler(handler)
    yield messages
    tf.get_logger().removeHandler(handler)
    tf.get_logger().setLevel(level)


def test_many_models_are_no_accident(retracings):
    for _ in range(12):
        Counting().total([tf.ones([2, 2], tf.float64)], tf.constant(1.0, tf.float64), "a")
        compiled(lambda: tf.constant(1.0))()
    assert not retracings


def test_a_function_of_the_users_that_is_traced_too_often_is_still_told(retracings):
    Counting().total([tf.ones([2, 2], tf.float64)], tf.constant(1.0, tf.float64), "a")

    @tf.function
    def own(number):
        return tf.constant(number)

    for number in range(12):
        own(number)
    assert any("own" in message and "retracing" in message for message in retracings)


def test_the_graph_of_a_dead_model_is_freed():
    model = Scaled()
    assert float(model.total(tf.ones([3, 1], tf.float64))) == 6.0
    traced_in = model.traced_in
    assert traced_in() is not None
    del model
    gc.collect()
    assert traced_in() is None


def test_inside_a_graph_a_method_is_part_of_it():
    counting = Counting()

    @tf.function
    def outer(x):
        return counting.total([x], tf.constant(2.0, tf.float64), "a")

    assert float(outer(tf.ones([3, 1], tf.float64))) == 6.0
    assert counting.traces == 1


def test_fold_goes_through_the_steps_in_order():
    digits = fold(lambda i, s: (s[0] * 10 + i, [s[1][0] + 1.0]), (tf.constant(0), [tf.zeros(2)]), 4)
    assert int(digits[0]) == 123
    np.testing.assert_array_equal(digits[1][0], [4.0, 4.0])
