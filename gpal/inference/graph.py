"""TensorFlow graphs without autograph: loops are written out, nothing of GPflow is rewritten.

Autograph would convert every function that a traced method reaches, GPflow's and check_shapes' too,
which takes longer than the tracing itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Every model is a graph of its own; TensorFlow takes the sixth one for an accident.
tf.get_logger().addFilter(
    lambda record: "triggered tf.function retracing" not in record.getMessage()
)

__all__ = ["fold", "graph"]

graph = functools.partial(tf.function, autograph=False, reduce_retracing=True)


def fold(body: Callable[[tf.Tensor, Any], Any], state: Any, count: tf.Tensor | int) -> Any:
    """state <- body(i, state) for i = 0 … count − 1, one step at a time, so that memory stays that
    of one step."""
    start = tf.constant(0)
    return tf.while_loop(
        lambda i, _: i < count,
        lambda i, s: (i + 1, body(i, s)),
        (start, state),
        parallel_iterations=1,
    )[1]
