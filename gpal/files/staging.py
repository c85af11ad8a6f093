"""Staging folders: where what is being written lies until it is complete.

A staging folder is hidden (`.results-k3j2h1aa.gpal`), on the file system of its target, and holds a
lock that ends with the process. Whoever writes into the same place next removes the staging folders
of processes that were killed. It knows gpal's own by the lock in them, which names the machine too:
of another one's processes nobody here can tell whether they live.

    gpal-HOST.lock   made first, removed last
    old, complete    while files of a folder change places, see `exchange`
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["exchange", "staging_folder", "sweep"]

ENDING = ".gpal"
LOCK = f"gpal-{platform.node()}.lock"
OLD, COMPLETE = "old", "complete"
LONGEST = 80  # bytes of the target's name in that of its staging folder: names end at 255


@contextmanager
def staging_folder(parent: Path, name: str) -> Iterator[Path]:
    """A new hidden folder in `parent`, made for `name`; removed at the end with all that is in it.

    Staging folders that killed processes left in `parent` go first. Raises OSError.
    """
    sweep(parent)
    folder, lock = _new(parent, name)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove the staging folders in `parent` whose process has ended; others stay as they are."""
    if _staging_folders(parent):
        with _alone(parent):
            _sweep(parent)


def exchange(made: Path, folder: Path, outputs: Collection[str]) -> None:
    """Put the files of `made` into `folder` in place of its `outputs`; its other files stay.

    First the earlier files are moved aside, then the new ones are moved in: `folder` never holds
    some of both. An error takes everything back. What a kill interrupts, the next sweep of `folder`
    takes back or, once all of the earlier files are aside, finishes. Raises OSError.
    """
    new = os.listdir(made)
    with staging_folder(folder, folder.name) as staging, _alone(folder):
        _sweep(folder)  # what was interrupted comes before, not over, these files
        names = sorted({*new, *outputs})
        for name in names:
            if (folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), folder / name)
        (staging / OLD).mkdir()
        try:
            for name in names:
                if os.path.lexists(folder / name):
                    os.rename(folder / name, staging / OLD / name)
            os.rename(made, staging / COMPLETE)
            _settle(staging)
        except BaseException:
            _take_back(staging, made, new)
            raise


def _new(parent: Path, name: str) -> tuple[Path, int]:
    """A folder with a lock that this process holds, and the lock's file descriptor."""
    short = os.fsencode(name)[:LONGEST].decode(errors="ignore")
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{short}-", suffix=ENDING, dir=parent))
        try:
            lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        except FileNotFoundError:  # another process swept it, which was empty, that very moment
            continue
        except OSError:
            os.rmdir(folder)
            raise
        if _lock(lock) is not False and (folder / LOCK).exists():
            return folder, lock
        os.close(lock)  # another process sweeps it


def _lock(descriptor: int) -> bool | None:
    """Take the lock, which ends with this process; False: another has it; None: no locks here."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _staging_folders(parent: Path) -> list[Path]:
    try:
        names = os.listdir(parent)
    except OSError:
        return []
    return [parent / name for name in names if name[:1] == "." and name.endswith(ENDING)]


def _sweep(parent: Path) -> None:
    for folder in _staging_folders(parent):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except FileNotFoundError:
            with suppress(OSError):  # not empty: another machine's, or not gpal's
                folder.rmdir()
        except OSError:  # another user's, or no folder
            continue
        else:
            with suppress(OSError):
                if _lock(lock):
                    _settle(folder)
                    _remove(folder)
            os.close(lock)


def _settle(staging: Path) -> None:
    """Finish an exchange whose new files are complete, take back one that had not come so far."""
    old, complete = staging / OLD, staging / COMPLETE
    if complete.is_dir():
        _move_all(complete, staging.parent)
        shutil.rmtree(old, ignore_errors=True)
        complete.rmdir()
    elif old.is_dir():
        _move_all(old, staging.parent)
        old.rmdir()


def _take_back(staging: Path, made: Path, new: Collection[str]) -> None:
    """After an error: the earlier files again, unless all of the new ones are in their places."""
    complete = staging / COMPLETE
    waiting = os.listdir(complete) if complete.is_dir() else []
    if waiting:
        for name in set(new).difference(waiting):
            os.rename(staging.parent / name, complete / name)
        os.rename(complete, made)
    _settle(staging)


def _move_all(source: Path, target: Path) -> None:
    for name in sorted(os.listdir(source)):
        os.replace(source / name, target / name)


def _remove(staging: Path) -> None:
    """The lock last: what cannot be removed now is swept later, and what is needed stays."""
    if (staging / OLD).is_dir() or (staging / COMPLETE).is_dir():
        return
    with suppress(OSError):
        for name in set(os.listdir(staging)) - {LOCK}:
            path = staging / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        if os.listdir(staging) == [LOCK]:
            (staging / LOCK).unlink()
            staging.rmdir()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time, where the file system has locks for folders."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
