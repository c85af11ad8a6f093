"""Tasks in other processes: the same results, warnings and errors, and nothing left running."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gpal import GPClassifier, InputError
from gpal.evaluation import cross_validate
from gpal.parallel import cores, in_parallel


def square(x):
    if x < 0:
        raise InputError(f"{x} is below 0")
    if x == 3:
        warnings.warn("three", UserWarning, stacklevel=1)
    return x**2, os.getpid(), os.environ.get("TF_NUM_INTRAOP_THREADS")


def test_results_come_with_their_task_and_warnings_come_along():
    with pytest.warns(UserWarning, match="three"):
        found = dict(in_parallel(square, range(6), 2))
    assert {i: result[0] for i, result in found.items()} == {i: i**2 for i in range(6)}
    processes = {result[1] for result in found.values()}
    assert 1 <= len(processes) <= 2 and os.getpid() not in processes
    assert {result[2] for result in found.values()} == {str(max(1, cores() // 2))}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_task_raises_is_raised_here(jobs):
    with pytest.raises(InputError, match="-1 is below 0"):
        list(in_parallel(square, [1, -1, 2], jobs))


def test_one_job_or_one_task_stays_in_this_process():
    for tasks, jobs in (([1, 2], 1), ([2], 8)):
        assert {r[1] for _, r in in_parallel(square, tasks, jobs)} == {os.getpid()}


def test_folds_in_other_processes_give_the_same_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.where(X.sum(axis=1) + 0.3 * rng.normal(size=90) > 0, "a", "b")
    models = {"gp": GPClassifier(max_rounds=1), "lr": LogisticRegression()}
    one, two = (
        cross_validate(models, X, y, X_err=0.1, n_splits=3, n_repeats=2, jobs=jobs)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.fold, two.fold)
    assert list(one.probabilities) == list(two.probabilities) and list(one.deviations) == ["gp"]
    for name in models:
        np.testing.assert_allclose(two.probabilities[name], one.probabilities[name], atol=1e-6)
    np.testing.assert_allclose(two.deviations["gp"], one.deviations["gp"], atol=1e-6)
