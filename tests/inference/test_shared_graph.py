"""Modules of one structure share a graph, and nothing else."""

from __future__ import annotations

import threading

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal.inference import shared_graph as module
from gpal.inference.full import FullGP
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel, positive
from gpal.inference.rows import Data, Sites
from gpal.inference.shared_graph import shared_graph
from gpal.inference.sparse import SparseGP

TRACES: list[type] = []


@pytest.fixture(autouse=True)
def no_graphs_of_before(monkeypatch):
    module.forget_graphs()
    TRACES.clear()
    monkeypatch.setattr(module, "READ_ATTRIBUTES_ONLY", {*module.READ_ATTRIBUTES_ONLY, __name__})


class Line(tf.Module):
    unread_by_graphs = ("kept",)

    def __init__(self, slope: float, power: int = 1, size: int = 2, extra: object = None) -> None:
        super().__init__()
        self.slope = positive(np.full(size, slope))
        self.power, self.extra, self.kept = power, extra, object()

    @shared_graph
    def at(self, x: tf.Tensor) -> tf.Tensor:
        TRACES.append(type(self))
        return tf.reduce_sum(self.slope) * x**self.power

    @shared_graph
    def gradients(self, x: tf.Tensor) -> list[tf.Tensor]:
        TRACES.append(type(self))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.convert_to_tensor(self.slope)) * tf.reduce_sum(x)
        return tape.gradient(y, list(self.trainable_variables))


class OtherLine(Line):
    pass


X = tf.constant([[3.0]], tf.float64)


def value(line: Line) -> float:
    return line.at(X).numpy().item()


def test_values_are_the_modules_own_and_the_graph_is_common():
    first, second = Line(1.0), Line(2.0)
    for _ in range(2):
        assert value(first) == pytest.approx(6.0)
        assert value(second) == pytest.approx(12.0)
    second.slope.assign(np.array([0.5, 1.0]))
    assert value(second) == pytest.approx(4.5)
    assert value(first) == pytest.approx(6.0)
    assert len(TRACES) == 1


def test_what_a_graph_depends_on_tells_structures_apart():
    frozen = Line(1.0)
    gpflow.set_trainable(frozen.slope, False)
    plain = Line(1.0)
    plain.slope = gpflow.Parameter(np.full(2, 1.0), transform=gpflow.utilities.positive())
    shared = Line(1.0, extra=gpflow.Parameter(1.0))
    twice = Line(1.0)
    twice.extra = twice.slope
    own = Line(1.0)
    own.extra = positive(np.full(2, 1.0))
    others = [frozen, plain, shared, twice, own, Line(1.0, 2), Line(1.0, size=3), OtherLine(1.0)]
    others += [Line(1.0, extra=np.arange(2)), Line(1.0, extra=np.arange(1, 3)), Line(1.0)]
    for k, line in enumerate(others, 1):
        line.at(X)
        assert len(TRACES) == k
    for line in others:
        line.at(X)
    assert len(TRACES) == len(others)


def test_a_parameter_that_is_fixed_later_has_no_gradient():
    line = Line(1.0)
    line.extra = positive(1.0)
    assert len(line.gradients(X)) == 2
    gpflow.set_trainable(line.extra, False)
    assert len(line.gradients(X)) == 1


def test_a_module_without_comparable_structure_has_a_graph_of_its_own():
    first, second = Line(1.0, extra=object()), Line(2.0, extra=object())
    for _ in range(2):
        assert value(first) == pytest.approx(6.0)
        assert value(second) == pytest.approx(12.0)
    assert len(TRACES) == 2
    assert not module._STAND_INS


def test_graphs_are_kept_of_so_many_structures_only(monkeypatch):
    monkeypatch.setattr(module, "MOST", 3)
    lines = [Line(1.0, size=size) for size in range(1, 6)]
    for line in lines:
        assert value(line) == pytest.approx(3.0 * line.slope.shape[0])
    assert len(module._STAND_INS) == 3
    assert value(lines[0]) == pytest.approx(3.0)  # made again
    assert len(TRACES) == 6


def test_threads_do_not_get_each_others_values():
    lines = [Line(float(k)) for k in range(1, 5)]
    wrong = []

    def call(line: Line, expected: float) -> None:
        wrong.extend(v for v in (value(line) for _ in range(50)) if abs(v - expected) > 1e-9)

    threads = [
        threading.Thread(target=call, args=(line, 6.0 * k)) for k, line in enumerate(lines, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_bound_of_two_models_by_one_graph():
    """Bound, gradient and prediction of a GP do not depend on who made the graph."""

    def model(seed: int) -> SparseGP:
        Z = np.random.default_rng(seed).normal(size=(6, 2))
        kernel = make_kernel("rbf+linear", 2)
        kernel.kernels[0].lengthscales.assign(np.full(2, 1.0 + seed))
        return SparseGP(KernelRows([kernel], Z, 3))

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.integers(3, size=(40, 1)).astype(float)
    data = Data(tf.constant(X), tf.constant(Y), tf.zeros([40, 2, 0], tf.float64))
    sites = Sites(*(tf.constant(rng.uniform(0.1, 1, (40, 3))) for _ in range(2)))

    def results(gp: SparseGP) -> list[np.ndarray]:
        J, gradients = gp.bound_and_gradient(data, sites)
        posterior = gp.posterior(data, sites)
        return [np.asarray(part) for part in (J, *gradients, *gp.marginals(posterior, X))]

    together = [results(gp) for gp in (model(1), model(2), model(1))]
    for seed, expected in zip((1, 2), together):
        module.forget_graphs()
        for alone, shared in zip(results(model(seed)), expected, strict=True):
            np.testing.assert_array_equal(alone, shared)
    for first, third in zip(together[0], together[2], strict=True):
        np.testing.assert_array_equal(first, third)
    assert not np.allclose(together[0][0], together[1][0])


def test_a_users_kernel_may_read_what_is_no_attribute(monkeypatch):
    """A second model is not evaluated by the graph of what the kernel read for the first."""
    monkeypatch.undo()
    power = {"value": 1.0}

    class Powered(gpflow.kernels.SquaredExponential):
        def K_r2(self, r2):
            return super().K_r2(r2) ** power["value"]

    X = np.random.default_rng(0).normal(size=(5, 2))

    def matrix() -> np.ndarray:
        return FullGP(KernelRows([Powered()], X, 1))._matrices(tf.constant(X))[0].numpy()

    first = matrix()
    power["value"] = 2.0
    np.testing.assert_allclose(matrix(), first**2)


def test_a_function_with_a_closure_is_no_structure():
    def power(exponent: list[int]):
        return lambda x: x ** exponent[0]

    line = Line(1.0, extra=power([2]))
    line.at(X)
    assert not module._STAND_INS
