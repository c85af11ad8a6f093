"""`--engine dask`: a cluster of this machine, or one that is there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from gpal.errors import InputError, shown
from gpal.parallel import cores

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Engine", "EngineName", "Scheduler", "cluster"]


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
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "Dask is not installed; type `pip install 'dask[distributed]'`, or leave out --engine"
        ) from None
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no scheduler of Dask's answers at '{shown(scheduler)}' ({shown(error)})"
            ) from None
        with client:
            yield client
        return
    with (
        LocalCluster(
            n_workers=cores(),
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as here,
        Client(here) as client,
    ):
        yield client
