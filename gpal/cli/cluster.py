"""`--engine dask`: a cluster of this machine, or one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Engine", "EngineName", "Scheduler", "cluster", "refuse_cluster"]


class EngineName(str, Enum):
    """Who works."""

    here = "here"
    dask = "dask"


Engine = Annotated[
    EngineName,
    typer.Option(
        help="Who works on the partitions of a HATS catalog: this process, or a Dask cluster."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        show_default=False,
        help="Of the Dask cluster's scheduler, such as tcp://host:8786; left out: workers on this"
        " machine, one for each core.",
    ),
]


@contextmanager
def cluster(engine: EngineName, scheduler: str | None) -> Iterator[Client | None]:
    """A client of the cluster that was asked for, or None."""
    if engine is EngineName.here:
        if scheduler is not None:
            raise InputError("--scheduler is for --engine dask; give both")
        yield None
        return
    if scheduler is None:
        from gpal.engines import local_client

        with local_client() as client:
            yield client
        return
    with _client_of(scheduler) as client:
        yield client


def refuse_cluster(source: Any, engine: EngineName, scheduler: str | None) -> None:
    """InputError where one is asked for, for what is no catalog in HATS layout."""
    if engine is not EngineName.here or scheduler is not None:
        raise InputError(
            f"'{source}' is no catalog in HATS layout: leave out --engine and --scheduler"
        )


def _client_of(scheduler: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "Dask is not installed; type `pip install '.[dask]'` in gpal's folder, or leave"
            " out --engine"
        ) from None
    try:
        return Client(scheduler, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no scheduler of Dask's answers at '{shown(scheduler)}' ({shown(error)})"
        ) from None
