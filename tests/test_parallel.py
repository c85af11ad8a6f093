"""Tasks in other processes: the same results, warnings and errors, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from joblib.externals.loky import process_executor
from threadpoolctl import threadpool_info

from gpal import parallel
from gpal.errors import InputError
from gpal.parallel import cores, in_parallel, kept_processes, threads_each


@pytest.fixture
def light(monkeypatch):
    """The others do not start TensorFlow because this process has, for another test."""
    monkeypatch.setattr("gpal.parallel.sys", SimpleNamespace(modules={}))


def square(x):
    if x < 0:
        raise InputError(f"{x} is below 0")
    if x == 3:
        warnings.warn("three", UserWarning, stacklevel=1)
    return x**2, os.getpid(), os.environ.get("TF_NUM_INTRAOP_THREADS")


def test_results_come_with_their_task_and_warnings_come_along(light):
    with pytest.warns(UserWarning, match="three"):
        found = dict(in_parallel(square, range(6), 2))
    assert {i: result[0] for i, result in found.items()} == {i: i**2 for i in range(6)}
    elsewhere = {result[1:] for result in found.values() if result[1] != os.getpid()}
    assert len(elsewhere) == 1  # one process beside this one
    assert {threads for _, threads in elsewhere} == {str(max(1, cores() // 2))}


def threads_of_libraries(_):
    time.sleep(0.2)  # else this process does them all
    return os.getpid(), max(library["num_threads"] for library in threadpool_info())


def test_this_process_and_the_others_have_their_share_of_the_threads(light):
    before = max(library["num_threads"] for library in threadpool_info())
    found = dict(in_parallel(threads_of_libraries, range(4), 2))
    assert len({process for process, _ in found.values()}) == 2
    assert {threads for _, threads in found.values()} == {threads_each(2)}
    assert max(library["num_threads"] for library in threadpool_info()) == before


def pause(seconds):
    time.sleep(seconds)
    return os.getpid()


def test_whoever_has_none_takes_the_next_task(light):
    """The first one is handed out, and lasts; this process does the others meanwhile."""
    found = dict(in_parallel(pause, [1.0, 0.0, 0.0, 0.0], 2))
    assert found[0] != os.getpid() and {found[i] for i in (1, 2, 3)} == {os.getpid()}


def test_processes_that_are_kept_start_ahead_and_do_all_tasks(monkeypatch):
    pools = []

    def pool(jobs, with_tensorflow):
        assert with_tensorflow is wanted
        pools.append(own(jobs, False))
        return pools[-1]

    own = parallel._pool
    monkeypatch.setattr(parallel, "_pool", pool)
    wanted = True
    with kept_processes(2, with_tensorflow=True):
        processes = [*pools[0]._processes.values()]
        for _ in range(2):
            with kept_processes(2):
                found = dict(in_parallel(pause, [1.0, 0.0], 2))
            assert found == {0: processes[0].pid, 1: os.getpid()}
    wanted = "tensorflow" in sys.modules
    with pytest.raises(InputError), kept_processes(3):
        processes += pools[1]._processes.values()
        assert {*dict(in_parallel(pause, [1.0, 0.0], 3)).values()} < {
            os.getpid(),
            *(process.pid for process in processes[1:]),
        }
        with pytest.raises(InputError):
            list(in_parallel(square, [-1, 2, 4], 3))
        assert not parallel._KEPT  # they are no more
        raise InputError("anything")
    for process in processes:
        process.join(timeout=60)
    assert len(processes) == 3 and not any(process.is_alive() for process in processes)
    with kept_processes(1):
        assert len(pools) == 2


@pytest.mark.parametrize("jobs, where", [(1, 1), (2, 0), (2, 1), (3, 3)])
def test_what_a_task_raises_is_raised_here(light, jobs, where):
    tasks = [1, 2, 4, 5]
    tasks[where] = -1
    with pytest.raises(InputError, match="-1 is below 0"):
        list(in_parallel(square, tasks, jobs))


def test_a_task_that_waits_to_be_sent_when_another_fails(light, monkeypatch):
    """Pytest makes an error of an exception that ends loky's thread."""

    def late(owner, name, seconds):
        method = getattr(owner, name)

        def after(*args, **kwargs):
            time.sleep(seconds)
            return method(*args, **kwargs)

        monkeypatch.setattr(owner, name, after)

    late(process_executor.ProcessPoolExecutor, "submit", 0.2)
    late(process_executor._ExecutorManagerThread, "wait_result_broken_or_wakeup", 0.6)
    with pytest.raises(InputError, match="-1 is below 0"):
        list(in_parallel(square, [1, 2, -1, 4], 3))


LEFT_ALONE = """
import os, signal, time
from gpal.parallel import in_parallel

def pause(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)

results = in_parallel(pause, [600, 3], 2)  # kept: where it is closed it ends the others itself
next(results)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps the number of a parent that is gone")
def test_processes_end_with_a_parent_that_is_killed():
    """It is killed at the end of a task of its own, while another process works on a long one."""
    done = subprocess.run(  # returns when nobody can write to its output any more
        [sys.executable, "-c", LEFT_ALONE], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(set(done.stdout.split())) == 2


def interrupts(_):
    time.sleep(0.2)  # else this process does them all
    return os.getpid(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="of POSIX")
@pytest.mark.parametrize("kept", [False, True])
def test_ctrl_c_is_for_this_process_alone(light, kept):
    with kept_processes(2 if kept else 1):
        found = dict(dict(in_parallel(interrupts, range(3), 2)).values())
    assert found.pop(os.getpid()) is False and list(found.values()) == [True]


def test_a_process_that_cannot_start_says_why(monkeypatch):
    """Its first task does: an initializer that fails looks like a process that was killed."""

    def fails():
        raise InputError("a library is missing")

    monkeypatch.setattr(parallel, "start_tensorflow", fails)
    monkeypatch.setattr(parallel, "_FAILED", [])
    monkeypatch.setattr(parallel, "end_with", lambda parent: None)
    parallel._start(os.getpid(), with_tensorflow=True)
    with pytest.raises(InputError, match="a library is missing"):
        parallel._noted(square, 2)


KEPT = []


def grow(seconds):
    KEPT.append(np.ones(50_000_000))  # 400 MB
    time.sleep(seconds)
    return os.getpid()


def test_a_process_whose_tasks_leave_something_in_memory_goes_on(light):
    """loky ended one that had grown by 300 MB since the first task; its graphs were made again."""
    pytest.importorskip("psutil")
    with kept_processes(2):
        pool = parallel._KEPT[2]
        found = [pool.submit(grow, seconds).result(timeout=60) for seconds in (1.2, 0.0)]
    assert len(set(found)) == 1


def test_one_job_or_one_task_stays_in_this_process():
    for tasks, jobs in (([1, 2], 1), ([2], 8)):
        assert {r[1] for _, r in in_parallel(square, tasks, jobs)} == {os.getpid()}


def test_folds_in_other_processes_give_the_same_numbers():
    from sklearn.linear_model import LogisticRegression  # not in the others of the tests above

    from gpal import GPClassifier
    from gpal.evaluation import cross_validate

    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.where(X.sum(axis=1) + 0.3 * rng.normal(size=90) > 0, "a", "b")
    models = {"gp": GPClassifier(max_rounds=1), "lr": LogisticRegression()}
    one, two = (
        cross_validate(models, X, y, X_err=0.1, n_splits=3, n_repeats=2, refit="gp", jobs=jobs)
        for jobs in (1, 2)
    )
    np.testing.assert_allclose(
        two.refitted.predict_proba(X, X_err=0.1),
        one.refitted.predict_proba(X, X_err=0.1),
        atol=1e-6,
    )
    np.testing.assert_array_equal(one.fold, two.fold)
    assert list(one.probabilities) == list(two.probabilities) and list(one.deviations) == ["gp"]
    for name in models:
        np.testing.assert_allclose(two.probabilities[name], one.probabilities[name], atol=1e-6)
    np.testing.assert_allclose(two.deviations["gp"], one.deviations["gp"], atol=1e-6)
