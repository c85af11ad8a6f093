"""Graphs that all modules of one structure share: made once per process, not once per model.

    @shared_graph
    def marginals(self, X): ...

Making a graph takes longer than running it a few times, and the models of ten folds, or of a
campaign's refits, differ in the values of their variables only. So a graph is made for a stand-in:
a copy of the module, and of the modules among the arguments, that takes over their values before
each call. Results are the same to the last bit.

What a graph depends on besides is the `structure`: classes, shapes, types, plain attributes. A
module with something that has no comparable structure (an object of an unknown class) gets a graph
of its own, as by `graph`. So does one of a class from elsewhere, a user's kernel say: its methods
may read more than attributes (a global, a closure), and with other values there the graph would be
another one. Attributes that a class lists in `unread_by_graphs` are no part of it.
"""

from __future__ import annotations

import copy
import enum
import functools
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpal.inference.graph import graph

__all__ = ["forget_graphs", "shared_graph"]

MOST = 64  # structures whose graphs are kept, the latest used
PLAIN = (bool, int, float, complex, str, bytes, type(None), type, tf.DType, tf.TensorShape)
STATELESS = (tfp.bijectors.Bijector, tfp.distributions.Distribution)
OF_TENSORFLOW = ("_self_", "_name", "_scope_name")  # how the attributes of its bookkeeping begin
NAMED = (enum.Enum, types.BuiltinFunctionType, np.dtype)
READ_ATTRIBUTES_ONLY = {"gpal", "gpflow", "tensorflow", "tensorflow_probability"}  # packages

_STAND_INS: OrderedDict[Hashable, tuple[list[tf.Module], list[tf.Variable]]] = OrderedDict()
_LOCK = threading.RLock()  # one call at a time has the stand-ins' variables


def shared_graph(method: Callable) -> Callable:
    """Decorate a method, or a function of a module, whose arguments are nested tensors, modules and
    plain objects, and which assigns to no variable."""
    own = graph(method)

    @functools.wraps(method)
    def call(*args: Any) -> Any:
        if tf.inside_function():
            return method(*args)
        modules = [part for part in args if isinstance(part, tf.Module)]
        seen = _Seen()
        try:
            key = _structure(modules, seen)
        except _NoStructure:
            return own(*args)
        with _LOCK:
            stand_ins = iter(_stand_ins(key, modules, seen.variables))
            return own(*(next(stand_ins) if isinstance(p, tf.Module) else p for p in args))

    return call


def forget_graphs() -> None:
    """Make all graphs anew from now on: after a change of the code that they were made from."""
    with _LOCK:
        _STAND_INS.clear()


def _stand_ins(
    key: Hashable, modules: Sequence[tf.Module], variables: Sequence[tf.Variable]
) -> list[tf.Module]:
    """The stand-ins of modules of that structure, with the present values of their variables."""
    if key not in _STAND_INS:
        copies, seen = _copies(modules), _Seen()
        _structure(copies, seen)
        _STAND_INS[key] = copies, seen.variables
        if len(_STAND_INS) > MOST:
            _STAND_INS.popitem(last=False)
    _STAND_INS.move_to_end(key)
    copies, theirs = _STAND_INS[key]
    for copied, variable in zip(theirs, variables, strict=True):
        # `copied.assign(variable)` without its checks, which take longer: shapes are equal here.
        value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
        tf.raw_ops.AssignVariableOp(resource=copied.handle, value=value)
    return copies


def _copies(modules: Sequence[tf.Module]) -> list[tf.Module]:
    """Deep copies, without what no graph reads; bijectors and priors have no state and stay."""
    memo: dict[int, Any] = {}
    for module in modules:
        for part in (module, *module.submodules):
            if isinstance(part, STATELESS):
                memo[id(part)] = part
            memo |= {id(getattr(part, name)): None for name in _unread(part)}
    return copy.deepcopy(list(modules), memo)


def _unread(module: tf.Module) -> Sequence[str]:
    return getattr(module, "unread_by_graphs", ())


class _NoStructure(Exception):
    """Of an object about which nothing is known."""


class _Seen:
    """The objects that were met before, numbered, since one may be in two places, and the variables
    among them: of equal structures in one order. (`tf.Module.variables` finds them too, in five
    times the time, as it takes every bijector to pieces.)"""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.variables: list[tf.Variable] = []


def _structure(value: Any, seen: _Seen) -> Hashable:
    """All that a graph can depend on but the values of variables: equal structures have equal
    graphs."""
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, NAMED):
        return value
    if isinstance(value, types.FunctionType) and not value.__closure__ and _known(value):
        return value
    if isinstance(value, slice):
        return slice, value.start, value.stop, value.step
    if isinstance(value, Mapping):
        return dict, tuple((key, _structure(item, seen)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(_structure(item, seen) for item in value)
    if isinstance(value, np.ndarray | np.generic):
        return np.ndarray, value.dtype.str, value.shape, value.tobytes()
    if id(value) in seen.numbers:
        return "again", seen.numbers[id(value)]
    seen.numbers[id(value)] = len(seen.numbers)
    if isinstance(value, tf.Variable):
        seen.variables.append(value)
        return tf.Variable, value.dtype, tuple(value.shape), value.trainable
    if isinstance(value, gpflow.Parameter):
        transform, prior = (_structure(part, seen) for part in (value.transform, value.prior))
        variable = _structure(value.unconstrained_variable, seen)
        return gpflow.Parameter, variable, transform, prior, value.prior_on
    if isinstance(value, STATELESS) and not value.variables and _known(type(value)):
        return type(value), _structure(value.parameters, seen)
    if isinstance(value, tf.Module) and _known(type(value)):
        unread = _unread(value)
        own = {
            name: part
            for name, part in vars(value).items()
            if not name.startswith(OF_TENSORFLOW) and name not in unread
        }
        return type(value), _structure(own, seen)
    if tf.is_tensor(value):  # last: of what is none it takes longest to say so
        return _structure(value.numpy(), seen)
    raise _NoStructure(type(value).__name__)


def _known(defined: type | types.FunctionType) -> bool:
    return defined.__module__.partition(".")[0] in READ_ATTRIBUTES_ONLY
