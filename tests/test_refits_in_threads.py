"""Refits of one model in several threads are those of one after another, to the last bit."""

from __future__ import annotations

import copy
import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpal import GPClassifier
from gpal.inference.streaming import Rows

N = 60


@pytest.fixture(scope="module")
def sources():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = rng.normal(size=(N, 2)) + y[:, None]
    return X, y, rng.uniform(0.05, 0.4, size=X.shape)


@pytest.fixture(scope="module")
def fitted(sources):
    return GPClassifier(max_rounds=1, n_inducing=10).fit(*sources)


@pytest.fixture
def turns(monkeypatch):
    """Others may have their turn after any assignment to the rows."""

    def assign(self, name, value):
        own(self, name, value)
        time.sleep(random.uniform(0.0, 0.05))

    own = Rows.__setattr__
    monkeypatch.setattr(Rows, "__setattr__", assign)


def drawn(sources, seed):
    """Some of the sources: of odd seeds as many, so that rows of others would fit."""
    rows = np.random.default_rng(seed).permutation(N)[: N // 2 if seed % 2 else N // 2 + seed]
    return [array[rows] for array in sources]


def refitted(model, sources, seed):
    return model.refit(*drawn(sources, seed)).predict_proba(sources[0], sources[2])


def updated(model, sources, seed):
    """By `partial_fit`, of a shallow copy: the GP is the same."""
    X, y, X_err = drawn(sources, seed)
    later = copy.copy(model).partial_fit(X, y, X_err=X_err)
    return later.predict_proba(sources[0], sources[2])


@pytest.mark.parametrize("full", [False, True])
def test_threads_change_nothing(fitted, sources, full, turns):
    model = GPClassifier(max_rounds=1, input_noise="none").fit(*sources[:2]) if full else fitted
    sources = (*sources[:2], 0.0 * sources[2]) if full else sources
    tasks = [(function, seed) for seed in range(8) for function in (refitted, updated)]

    def done(task):
        return task[0](model, sources, task[1])

    one_by_one = [done(task) for task in tasks]
    with ThreadPoolExecutor(4) as pool:
        for together, alone in zip(pool.map(done, tasks), one_by_one, strict=True):
            np.testing.assert_array_equal(together, alone)
