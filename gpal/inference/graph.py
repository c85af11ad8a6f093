"""TensorFlow graphs that are made once: without autograph, for any number of rows.

Autograph would convert every function that a traced method reaches, GPflow's and check_shapes' too,
which takes longer than the tracing itself; loops are written out instead. A graph that is traced
for n rows would be traced again for the next n (a subset, a mini-batch, the last block of a
prediction): here it is traced with the leading dimension of every tensor left open.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow_probability.python.bijectors import Bijector

# Every model is a graph of its own; TensorFlow takes the sixth one for an accident.
RETRACING = "triggered tf.function retracing"
tf.get_logger().addFilter(lambda record: RETRACING not in record.getMessage())

__all__ = ["fold", "graph"]


def graph(method: Callable) -> Callable:
    """Decorate a method whose arguments are nested tensors and plain objects.

    Inside another graph the method is simply part of it.
    """
    compiled = tf.function(method, autograph=False)
    traced: weakref.WeakKeyDictionary[Any, set] = weakref.WeakKeyDictionary()

    @functools.wraps(method)
    def call(self, *args):
        if tf.inside_function():
            return method(self, *args)
        bound = compiled.__get__(self, type(self))
        leaves = tf.nest.flatten(args)
        signature = tuple(
            (leaf.dtype, leaf.shape[1:]) if tf.is_tensor(leaf) and leaf.shape.rank else id(leaf)
            for leaf in leaves
            if not tf.is_tensor(leaf) or leaf.shape.rank
        )
        known = traced.setdefault(self, set())
        if signature not in known:
            bound.get_concrete_function(*tf.nest.map_structure(_open, args))
            known.add(signature)
            _forget_traced_tensors()
        return bound(*args)

    return call


def _forget_traced_tensors() -> None:
    """Empty the cache of TensorFlow Probability that the bijectors of all parameters share.

    It keeps what a bijector was given for as long as the output lives. Of a graph both live as long
    as the graph, and the graph as long as one of them: it would outlive its model.
    """
    storage = Bijector._cache.storage
    for reference in list(storage):
        reference.cancel()  # else what still lives would look for its entry when it dies
    storage.clear()


def _open(leaf: Any) -> Any:
    """A specification of `leaf` with an open leading dimension; anything but a tensor as it is."""
    if not tf.is_tensor(leaf):
        return leaf
    shape = [None, *leaf.shape[1:]] if leaf.shape.rank else []
    return tf.TensorSpec(shape, leaf.dtype)


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
