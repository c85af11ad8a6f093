"""Independent tasks in this process and others, which share the cores.

Results are those of one process: a task knows nothing of the others, and what it computes does not
depend on the number of its threads (docs/sharp-bits.md).
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from queue import Queue
from threading import Lock, Thread
from typing import Any, TypeVar

from gpal.tensorflow_start import start_tensorflow

__all__ = ["cores", "end_with", "in_parallel", "kept_processes", "threads_each"]

Task = TypeVar("Task")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
PERIOD = 1.0  # seconds between two looks at whether the parent is there
_KEPT: dict[int, Any] = {}  # number of jobs -> the pool of `kept_processes`
_FAILED: list[Exception] = []  # why this process could not start, for who gives it a task


def cores() -> int:
    """That this process may use."""
    import joblib

    return joblib.cpu_count()


def threads_each(jobs: int) -> int:
    """Of so many processes, that they do not wait for one another's cores."""
    return max(1, cores() // jobs)


def in_parallel(
    run: Callable[[Task], Any], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[int, Any]]:
    """(i, run(tasks[i])) as they are finished, at most `jobs` at a time: here, and in jobs − 1
    other processes.

    run   a function that other processes can be sent, with all that it holds
    Warnings of a task are given here. What a task raises is raised here, and ends the others.
    """
    kept = _KEPT.get(jobs)
    jobs, waiting = min(jobs, len(tasks)), deque(range(len(tasks)))
    if jobs <= 1:
        yield from ((i, run(tasks[i])) for i in waiting)
        return
    from threadpoolctl import threadpool_limits

    pool = kept or _pool(jobs, "tensorflow" in sys.modules)
    finished: Queue[tuple[int, Future]] = Queue()
    handed: list[Future] = []
    handing = Lock()

    def next_task() -> int | None:
        try:
            return waiting.popleft()
        except IndexError:
            return None

    def hand_out() -> None:
        """The next task to a process that has none."""
        with handing:
            i = next_task()
            if i is None:
                return
            with _interrupts_held_back():
                future = pool.submit(_noted, run, tasks[i])
            handed.append(future)
        future.add_done_callback(partial(took, i))

    def took(i: int, done: Future) -> None:
        finished.put((i, done))
        if not done.cancelled() and done.exception() is None:
            hand_out()

    try:
        with threadpool_limits(threads_each(jobs)):
            for _ in range(jobs - 1):
                hand_out()
            for _ in tasks:
                here = next_task() if finished.empty() else None
                if here is not None:
                    yield here, run(tasks[here])
                    continue
                i, done = finished.get()
                result, notes = done.result()
                for message, category in notes:
                    warnings.warn(message, category, stacklevel=2)
                yield i, result
    except BaseException:
        with handing:
            waiting.clear()
        _kill(pool, handed)
        for number in [number for number, one in _KEPT.items() if one is pool]:
            del _KEPT[number]
        raise
    if kept is None:
        pool.shutdown()


@contextmanager
def kept_processes(jobs: int, with_tensorflow: bool | None = None) -> Iterator[None]:
    """Every `in_parallel` in here with so many jobs has the same processes, which start now.

    with_tensorflow   they import it, while this one may do the same; None: if this one has
    """
    if jobs <= 1 or jobs in _KEPT:
        yield
        return
    if with_tensorflow is None:
        with_tensorflow = "tensorflow" in sys.modules
    pool = _KEPT[jobs] = _pool(jobs, with_tensorflow)
    with _interrupts_held_back():
        something = [pool.submit(int) for _ in range(jobs - 1)]  # loky starts none for nothing
    try:
        yield
    except BaseException:
        if _KEPT.pop(jobs, None) is not None:
            _kill(pool, something)
        raise
    if _KEPT.pop(jobs, None) is not None:
        pool.shutdown()


def _pool(jobs: int, with_tensorflow: bool) -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    threads = dict.fromkeys(THREADS, str(threads_each(jobs)))
    return ProcessPoolExecutor(
        max_workers=jobs - 1,
        env={**threads, "TF_NUM_INTEROP_THREADS": "1"},
        initializer=_start,
        initargs=(os.getpid(), with_tensorflow),
    )


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process that starts in here never hears Ctrl-C, which would have it print where it is: who
    started it hears of it right after, and ends it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it lets them through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(pool: Any, handed: Sequence[Future]) -> None:
    """The processes of a pool that was handed some tasks, whatever they do."""
    # loky forgets a task that it has not sent yet when it is told to kill, and then looks for it:
    # its thread would die of that, and nobody would end the processes.
    while not all(future.running() or future.done() for future in handed):
        time.sleep(0.001)
    pool.shutdown(kill_workers=True)


def end_with(parent: int) -> None:
    """Of a process that `parent` started: to end with it from now on, however that ends.

    A killed job cannot tell its processes, which would go on with their task, and then wait for
    another one for ever. (Windows keeps the number of a parent that is gone: there they stay.)
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PERIOD)
        os._exit(1)

    if os.name == "posix":
        Thread(target=watch, daemon=True).start()


def _start(parent: int, with_tensorflow: bool) -> None:
    """In another process, once. What goes wrong is raised by its first task: of a process that ends
    here nobody would learn why."""
    from joblib.externals.loky import process_executor

    # Where psutil is installed, loky takes a process that has grown by 300 MB since its first task
    # for a leak, and starts another. So much are TensorFlow's graphs, which are to be kept.
    process_executor._USE_PSUTIL = False  # noqa: SLF001
    end_with(parent)
    if with_tensorflow:
        try:
            start_tensorflow()
        except Exception as error:
            _FAILED.append(error)


def _noted(run: Callable[[Task], Any], task: Task) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """The result, and the warnings on the way."""
    if _FAILED:
        raise _FAILED[0]
    with warnings.catch_warnings(record=True) as notes:
        result = run(task)
    return result, [(str(note.message), note.category) for note in notes]
