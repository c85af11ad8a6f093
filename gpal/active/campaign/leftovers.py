"""What killed processes left in a campaign's folder, removed at the next opening for writing.

Files of models and releases count once the database names them. They are put in place inside the
transaction that does so: whoever holds the database's lock and finds one that is not named knows
that its process is dead.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

from gpal.active.campaign.store import Store
from gpal.files.staging import sweep

__all__ = ["sweep_up"]

MODEL = re.compile(r"(\d{4,})(-[a-z]+)?\.npz")
RELEASE = re.compile(r"release-\d+\.npz")
BUILDING = ".building-*"  # of gpal 0.2 and before, which had no lock
DAY = 86400.0


def sweep_up(folder: Path, store: Store) -> None:
    """Nothing that a live process is still making is touched."""
    for place in (folder.absolute().parent, folder, folder / "models"):
        sweep(place)
    for left in (folder / "models").glob(BUILDING):
        if time.time() - left.stat().st_mtime > DAY:
            shutil.rmtree(left, ignore_errors=True)
    journal = store.path.with_name(store.path.name + "-journal")
    if journal.exists() or _unnamed(folder, store):
        with store.transaction():
            for file in _unnamed(folder, store):
                file.unlink(missing_ok=True)
            if journal.exists():  # begun, and not yet of use: SQLite removes it after a write
                store.write_nothing()


def _unnamed(folder: Path, store: Store) -> list[Path]:
    """Files of models and releases that the database does not name."""
    models = {model["number"] for model in store.models()}
    releases = set(store.release_files())
    found = [
        file
        for file in (folder / "models").glob("*.npz")
        if (match := MODEL.fullmatch(file.name)) and int(match[1]) not in models
    ]
    return found + [
        file
        for file in folder.glob("release-*.npz")
        if RELEASE.fullmatch(file.name) and file.name not in releases
    ]
