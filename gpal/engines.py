"""Where the partitions of a table are worked on: here, or by the workers of a Dask cluster.

A fit of many sources is `statistics` of each partition, `add`, `solve`; a prediction is one
partition after the other. What a partition is worth depends on it and on what all share alone, so
that it may be worked on anywhere, and again where it got lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpal.errors import InputError
from gpal.parallel import THREADS, cores

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Dask", "Engine", "Here", "as_engine", "local_client"]

Part = TypeVar("Part")
Result = TypeVar("Result")
RETRIES = 3  # of a partition that failed: files on a network do
# Each worker would note a hundred times a second where in the code it is, and keep that of every
# second: in TensorFlow's depths a megabyte for each.
NO_PROFILE = {"distributed.worker.profile.enabled": False}


class Engine(Protocol):
    """Something that has many partitions worked on."""

    def map(
        self, function: Callable[[Part, Any], Result], parts: Iterable[Part], shared: Any
    ) -> Iterator[Result]:
        """function(part, shared) of every part, in their order.

        function, parts and results may have to travel: they are such as can be pickled.
        """


class Here:
    """In this process, one after the other."""

    def map(
        self, function: Callable[[Part, Any], Result], parts: Iterable[Part], shared: Any
    ) -> Iterator[Result]:
        return (function(part, shared) for part in parts)


class Dask:
    """By the workers of a cluster, which Dask looks after: it gives the partitions of a worker that
    is lost to others.

    client  of the cluster, which may be one of processes on this machine
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def map(
        self, function: Callable[[Part, Any], Result], parts: Iterable[Part], shared: Any
    ) -> Iterator[Result]:
        # As the result of a task: what is scattered is gone with the workers that had it.
        of_all = self.client.submit(_same, shared, pure=False)
        parts = list(parts)
        waiting = self.client.map(
            function, parts, [of_all] * len(parts), pure=False, retries=RETRIES
        )
        waiting.reverse()
        while waiting:  # and nothing is kept of a part that has been taken
            yield waiting.pop().result()


def _same(value: Any) -> Any:
    return value


def as_engine(given: Any) -> Engine:
    """None is Here; a Client of Dask's is Dask; any other engine is itself."""
    if given is None:
        return Here()
    return given if hasattr(given, "map") and not hasattr(given, "scheduler") else Dask(given)


@contextmanager
def local_client(workers: int | None = None, memory: str = "auto") -> Iterator[Client]:
    """A Client of a cluster of processes on this machine.

    workers  one for each core; each has one thread
    memory   that each may use, such as "2GB": Dask ends one that uses more, and starts another
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "Dask is not installed; type `pip install '.[dask]'` in gpal's folder, or leave"
            " out --engine"
        ) from None
    with (
        LocalCluster(
            n_workers=workers or cores(),
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
            config=NO_PROFILE,
            env=dict.fromkeys((*THREADS, "TF_NUM_INTEROP_THREADS"), "1"),
        ) as here,
        Client(here) as client,
    ):
        yield client
