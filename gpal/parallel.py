"""Independent tasks in processes of their own, each with its share of the cores.

Results are those of one process: a task knows nothing of the others, and what it computes does not
depend on the number of its threads (docs/sharp-bits.md).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any, TypeVar

from gpal.tensorflow_start import start_tensorflow

__all__ = ["cores", "in_parallel"]

Task = TypeVar("Task")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


def cores() -> int:
    """That this process may use."""
    import joblib

    return joblib.cpu_count()


def in_parallel(
    run: Callable[[Task], Any], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[int, Any]]:
    """(i, run(tasks[i])) as they are finished, at most `jobs` at a time; 1: here, in their order.

    run   a function that other processes can be sent, with all that it holds
    Warnings of a task are given here. What a task raises is raised here, and ends the others.
    """
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        yield from ((i, run(task)) for i, task in enumerate(tasks))
        return
    from joblib.externals.loky import ProcessPoolExecutor

    threads = dict.fromkeys(THREADS, str(max(1, cores() // jobs)))
    pool = ProcessPoolExecutor(
        max_workers=jobs,
        env={**threads, "TF_NUM_INTEROP_THREADS": "1"},
        initializer=start_tensorflow if "tensorflow" in sys.modules else None,
    )
    try:
        waiting = {pool.submit(_noted, run, task): i for i, task in enumerate(tasks)}
        for done in as_completed(waiting):
            result, notes = done.result()
            for message, category in notes:
                warnings.warn(message, category, stacklevel=2)
            yield waiting[done], result
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise
    pool.shutdown()


def _noted(run: Callable[[Task], Any], task: Task) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """The result, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as notes:
        result = run(task)
    return result, [(str(note.message), note.category) for note in notes]
