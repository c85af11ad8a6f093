"""`gpal send`: a table, or a source's position, to TOPCAT, DS9, Aladin and whoever listens.

Programs of astronomy talk through a hub on one's own machine, by the Simple Application Messaging
Protocol (SAMP, IVOA recommendation 1.3): TOPCAT and Aladin start one. A message names a file and
each program reads it itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal._version import __version__
from gpal.catalog.schema import close_matches
from gpal.errors import InputError, shown
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.jobs.result_folder import TABLES

if TYPE_CHECKING:
    from pyvo.samp import SAMPIntegratedClient

__all__ = ["send_source", "send_table"]

MESSAGES = {
    ".fits": "table.load.fits",
    ".vot": "table.load.votable",
    ".votable": "table.load.votable",
    ".xml": "table.load.votable",
}
POINT = "coord.pointAt.sky"
PATIENCE = 30  # seconds that a program has for its answer


def send_table(path: str | os.PathLike, to: str | None = None) -> list[str]:
    """Have programs load a table; the names of those that did.

    path  a FITS table or a VOTable, or the folder of a result
    to    the name of one program; None: all that take tables

    Raises InputError where no hub runs, where nobody there takes tables, and for a program's error.
    """
    file = _table_file(path).resolve()
    kind = MESSAGES[file.suffix.lower()]
    name = file.parent.name if file.name in TABLES else file.stem
    url = file.as_uri()
    with _hub() as client:
        return _tell(client, kind, {"url": url, "table-id": url, "name": f"{name} (gpal)"}, to)


def send_source(path: str | os.PathLike, source: str, to: str | None = None) -> list[str]:
    """Have programs point at a source of a result's table; arguments otherwise as `send_table`."""
    table = read_probabilities(_table_file(path))
    lacking = {"name", "ra", "dec"} - set(table.colnames)
    if lacking:
        raise InputError(f"the table has no column '{lacking.pop()}'; send one that gpal made")
    names = np.asarray(table["name"], dtype=str)
    rows = np.flatnonzero(names == source)
    if not len(rows):
        raise InputError(
            f"no source '{shown(source)}' in the table; {close_matches(source, names.tolist())}"
        )
    ra, dec = (float(table[column][rows[0]]) for column in ("ra", "dec"))
    if not (np.isfinite(ra) and np.isfinite(dec)):
        raise InputError(f"the table has no position of '{shown(source)}'")
    with _hub() as client:
        return _tell(client, POINT, {"ra": repr(ra), "dec": repr(dec)}, to)


def _table_file(path: str | os.PathLike) -> Path:
    path = Path(path)
    if path.is_dir():
        if (path / "campaign.sqlite").is_file():
            raise InputError(
                f"'{path}' is a campaign: write its targets with `gpal learn export targets.vot`,"
                " and send that"
            )
        path = path / TABLES[0]
    if path.suffix.lower() not in MESSAGES:
        raise InputError(
            f"'{path.name}' should end in {', '.join(MESSAGES)}, which the other programs read"
        )
    if not path.is_file():
        raise InputError(f"no file '{path}'; give a table, or a folder that `gpal classify` made")
    return path


@contextmanager
def _hub() -> Iterator[SAMPIntegratedClient]:
    """A client of the hub that runs on this machine, gone again at the end."""
    from pyvo import samp

    about = {
        "samp.name": "gpal",
        "samp.description.text": "class probabilities of catalog sources",
        "gpal.version": __version__,
    }
    with samp.conf.set_temp("use_internet", False):  # a hub is found without
        client = samp.SAMPIntegratedClient(metadata=about, addr="127.0.0.1")
        try:
            client.connect()
        except (samp.SAMPHubError, OSError) as error:
            raise InputError(
                "no SAMP hub runs on this machine; start TOPCAT or Aladin, which bring one, and"
                " send again"
            ) from error
        try:
            yield client
        except (samp.SAMPProxyError, OSError) as error:
            raise InputError(f"the SAMP hub does not answer ({error}); send again") from error
        finally:
            if client.is_connected:
                client.disconnect()


def _tell(
    client: SAMPIntegratedClient, kind: str, said: Mapping[str, str], to: str | None
) -> list[str]:
    """Send one message and wait for the answers; the names of the programs."""
    names = {key: _name(client, key) for key in client.get_subscribed_clients(kind)}
    if to is not None:
        wanted = {key: name for key, name in names.items() if name.lower() == to.lower()}
        if not wanted:
            raise InputError(
                f"no program '{shown(to)}' at the hub; {close_matches(to, names.values())}"
            )
        names = wanted
    if not names:
        raise InputError(f"no program at the SAMP hub takes '{kind}'; start TOPCAT, DS9 or Aladin")
    message: dict[str, Any] = {"samp.mtype": kind, "samp.params": dict(said)}
    answers: Queue[tuple[str, dict]] = Queue()
    # Not `call_and_wait`: pyvo's hub loses an answer that comes before it starts to wait.
    client.bind_receive_response(
        "gpal", lambda _, sender, tag, answer: answers.put((sender, answer))
    )
    for key in names:
        client.call(key, "gpal", message)
    waiting, deadline = dict(names), monotonic() + PATIENCE
    while waiting:
        try:
            key, answer = answers.get(timeout=max(deadline - monotonic(), 0.0))
        except Empty:
            silent = ", ".join(shown(name) for name in waiting.values())
            raise InputError(f"no answer from {silent} within {PATIENCE} s") from None
        name = shown(waiting.pop(key, key))
        if answer.get("samp.status") != "samp.ok":
            what = answer.get("samp.error", {}).get("samp.errortxt", "no reason given")
            raise InputError(f"{name} did not take it: {shown(what, 200)}")
    return [shown(name) for name in names.values()]


def _name(client: SAMPIntegratedClient, key: str) -> str:
    return str(client.get_metadata(key).get("samp.name") or key)
