"""Tasks in child processes, where a child that is killed takes its own task with it and no other.

`multiprocessing.Pool` loses the task of a process that the system kills, as it does when memory
runs out, and waits for its result for ever.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

__all__ = ["in_children"]

TASKS_EACH = 40  # TensorFlow keeps some memory of every model it has run


def in_children(
    do: Callable[[Any], Any], tasks: Iterable[Any], jobs: int
) -> Iterator[tuple[Any, Any, int | None]]:
    """(task, do(task), None) as they are finished, `jobs` at a time; of a child that ended without
    a result (task, None, its exit code), which is minus the signal that killed it."""
    waiting = deque(tasks)
    free: list[Child] = []
    busy: dict[Connection, Child] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                child = free.pop() if free else Child(do)
                busy[child.connection] = child.begin(waiting.popleft())
            for connection in wait(list(busy)):
                child = busy.pop(connection)
                found = child.result()
                if child.done == TASKS_EACH:
                    child.end()
                elif not connection.closed:
                    free.append(child)
                yield child.task, *found
    finally:
        for child in [*busy.values(), *free]:
            child.end()


class Child:
    """A process that does one task after another."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (do, theirs, os.getpid())
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()  # held by the child alone, its end is seen here
        self.task: Any = None
        self.done = 0

    def begin(self, task: Any) -> Child:
        self.task = task
        with suppress(BrokenPipeError):  # killed since its last task: `result` says so
            self.connection.send(task)
        return self

    def result(self) -> tuple[Any, int | None]:
        """What came of the task, and the exit code of a child that is no more."""
        try:
            found = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            self.connection.close()
            return None, self.process.exitcode
        self.done += 1
        return found, None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def serve(do: Callable[[Any], Any], connection: Connection, parent: int) -> None:
    """In the child: until its parent asks no more."""
    from gpal.parallel import end_with

    end_with(parent)
    with suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(do(connection.recv()))
