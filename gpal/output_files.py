"""The way every output file is written: it is either complete or absent.

`atomic_path` and `staged_folder` write beside the target, then rename, which the file system does
in one step. Files that go into an existing folder are renamed one by one, when all are complete.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpal.errors import InputError

__all__ = ["atomic_path", "staged_folder", "staging_folder"]


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path beside `path`; renamed to `path` on success, removed on failure.

        with atomic_path("table.csv") as temporary:
            table.to_csv(temporary)

    Raises InputError where the folder cannot be written to.
    """
    path = Path(path)
    staging = staging_folder(path)
    try:
        yield staging / path.name  # the same suffix: writers choose the format by it
        os.replace(staging / path.name, path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def staged_folder(folder: str | os.PathLike, outputs: Sequence[str] = ()) -> Iterator[Path]:
    """A temporary folder; on success it becomes `folder`, or its files are moved into `folder`.

    A folder that exists loses those of `outputs` that were not written now: what an earlier run
    left is no result of this one. Its other files stay. Entering raises InputError if `folder`
    cannot be written to, so a long computation inside the block starts only if its result can be
    kept.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(
            f"cannot write into '{folder}': not a writable folder; choose another output folder"
        )
    staging = staging_folder(folder)
    made = staging / "made"
    made.mkdir()
    try:
        yield made
        if not folder.exists():
            os.replace(made, folder)
            return
        written = sorted(file.name for file in made.iterdir())
        for name in written:
            os.replace(made / name, folder / name)
        for name in set(outputs).difference(written):
            (folder / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def staging_folder(target: Path) -> Path:
    """A new hidden folder beside `target`, on the same file system, so that a rename is atomic."""
    parent = target.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=parent))
    except OSError as error:
        raise InputError(
            f"cannot write '{target}': {error.strerror or error}; choose another output folder"
        ) from error
