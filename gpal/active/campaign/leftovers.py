"""What killed processes left in a campaign's folder, cleared away at the next opening for writing.

Files of models and releases count once the database names them. They are put in place inside the
transaction that does so: whoever holds the database's lock and finds one that is not named knows
that its process is dead, or that the database is an older one than the files. Nobody here can tell
which, so they are set aside, not removed.
"""

from __future__ import annotations

import itertools
import re
import shutil
import time
import warnings
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
                _set_aside(file, folder / "unnamed")
            if journal.exists():  # begun, and not yet of use: SQLite removes it after a write
                store.write_nothing()


def _set_aside(file: Path, place: Path) -> None:
    """Where nothing has its name yet; what is empty is removed."""
    if not file.stat().st_size:
        return file.unlink()
    place.mkdir(exist_ok=True)
    free = (place / f"{file.stem}{f'-{k}' if k else ''}{file.suffix}" for k in itertools.count())
    file.rename(target := next(path for path in free if not path.exists()))
    warnings.warn(
        f"the campaign's database does not name {file.name}: a killed process left it, or the"
        f" database is an older copy; it is {target.relative_to(place.parent)} now",
        stacklevel=2,
    )


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
