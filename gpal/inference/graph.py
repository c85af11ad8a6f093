"""TensorFlow graphs that are made once: without autograph, for any number of rows.

Autograph would convert every function that a traced method reaches, GPflow's and check_shapes' too,
which takes longer than the tracing itself; loops are written out instead. A graph that is traced
for n rows would be traced again for the next n (a subset, a mini-batch, the last block of a
prediction): here it is traced with the leading dimension of every tensor left open.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow_probability.python.bijectors import Bijector

__all__ = ["compiled", "fold", "graph"]


def graph(method: Callable) -> Callable:
    """Decorate a method whose arguments are nested tensors and plain objects.

    Inside another graph the method is simply part of it.
    """
    compiled = tf.function(method, autograph=False)
    traced: weakref.WeakKeyDictionary[Any, set] = weakref.WeakKeyDictionary()

    @functools.wraps(method)
    def call(self: Any, *args: Any) -> Any:
        if tf.inside_function():
            return method(self, *args)
        bound = compiled.__get__(self, type(self))
        described = map(_described, tf.nest.flatten(args))
        signature = tuple(each for each in described if each is not None)
        known = traced.setdefault(self, set())
        if signature not in known:
            # TensorFlow warns of functions that are traced often when called: every model has a
            # graph of its own. What is traced before the call it does not count.
            with _traced_tensors_forgotten():
                bound.get_concrete_function(*tf.nest.map_structure(_open, args))
            known.add(signature)
        return bound(*args)

    return call


def compiled(function: Callable[..., Any], *arguments: tf.TensorSpec) -> Callable[..., Any]:
    """The graph of a function of such arguments, made now: of one that is made anew every time."""
    with _traced_tensors_forgotten():
        return tf.function(function, autograph=False).get_concrete_function(*arguments)


@contextlib.contextmanager
def _traced_tensors_forgotten() -> Iterator[None]:
    """Take what a trace leaves there out of the cache that all bijectors of TensorFlow Probability
    share, those of other people's parameters too.

    It keeps what a bijector was given for as long as the output lives. Of a graph both live as long
    as the graph, and the graph as long as one of them: it would outlive its model.
    """
    storage = Bijector._cache.storage
    before = list(storage)  # held, so that their identities are not taken by others
    known = {id(reference) for reference in before}
    try:
        yield
    finally:
        for reference in list(storage):
            if id(reference) not in known:
                reference.cancel()  # else it would look for its entry when it dies
                del storage[reference]


def _described(leaf: Any) -> Hashable:
    """What a graph depends on: of a tensor all but its leading dimension, None of a scalar one, of
    anything else that it is that object."""
    if not tf.is_tensor(leaf):
        return id(leaf)
    return (leaf.dtype, leaf.shape[1:]) if leaf.shape.rank else None


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
