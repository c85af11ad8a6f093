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

PATIENCE = 5.0  # seconds that an idle child has to leave
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
                if child.begin(waiting[0]):  # else killed since its last task
                    waiting.popleft()
                    busy[child.connection] = child
            for connection in wait(list(busy)):
                child = busy[connection]
                found = child.result()
                del busy[connection]
                if child.done == TASKS_EACH:
                    child.end()
                elif not connection.closed:
                    free.append(child)
                yield child.task, *found
    finally:
        for child in busy.values():
            child.process.kill()
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

    def begin(self, task: Any) -> bool:
        """Whether it is there to begin."""
        self.task = task
        with suppress(BrokenPipeError):
            if self.process.is_alive():
                self.connection.send(task)
                return True
        self.end()
        return False

    def result(self) -> tuple[Any, int | None]:
        """What came of the task, and the exit code of a child that is no more."""
        try:
            found = self.connection.recv()
        except (EOFError, OSError):  # the latter where it was killed while it sent
            self.process.join()
            self.connection.close()
            return None, self.process.exitcode
        self.done += 1
        return found, None

    def end(self) -> None:
        """Idle ones leave by themselves when nobody asks any more."""
        self.connection.close()
        self.process.join(PATIENCE)
        self.process.kill()
        self.process.join()


def serve(do: Callable[[Any], Any], connection: Connection, parent: int) -> None:
    """In the child: until its parent asks no more."""
    from gpal.parallel import end_with

    end_with(parent)
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        found = do(task)
        try:
            connection.send(found)
        except BrokenPipeError:
            return
