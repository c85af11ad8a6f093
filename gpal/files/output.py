"""The way every output file is written: it is either complete or absent.

`atomic_path` and `staged_folder` write into a staging folder (`staging.py`), then rename, which the
file system does in one step. What would keep the result from its place is found out before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gpal.errors import InputError, shown
from gpal.files.staging import exchange, staging_folder, sweep

__all__ = ["atomic_path", "check_apart", "staged_folder", "staged_path"]

ELSEWHERE = "choose another output folder"


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path for a file; renamed to `path` on success, removed on failure.

        with atomic_path("table.csv") as temporary:
            table.to_csv(temporary)

    Raises InputError where no file can be written there.
    """
    with _refusals(path):
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(f"cannot write '{_shown(path)}': it is no file; {ELSEWHERE}")
    with staged_path(path) as temporary:
        yield temporary
        os.replace(temporary, os.path.realpath(path))


@contextmanager
def staged_folder(folder: str | os.PathLike, outputs: Sequence[str] = ()) -> Iterator[Path]:
    """A temporary folder; on success it becomes `folder`, or its files are moved into `folder`.

    A folder that exists loses those of `outputs` that were not written now: what an earlier run
    left is no result of this one. Its other files stay. Entering raises InputError if `folder`
    cannot be written to or one of `outputs` is a folder there, so a long computation inside the
    block starts only if its result can be kept.
    """
    with _refusals(folder):
        if Path(folder).exists() and not Path(folder).is_dir():
            raise InputError(f"cannot write into '{_shown(folder)}': it is no folder; {ELSEWHERE}")
        for name in outputs:
            if (Path(folder) / name).is_dir():
                raise InputError(
                    f"cannot write '{name}' into '{_shown(folder)}': a folder there has that name;"
                    f" move it, or {ELSEWHERE}"
                )
    with staged_path(folder, inside=True) as made:
        made.mkdir()
        yield made
        place = Path(os.path.realpath(folder))
        if not place.is_dir():
            with suppress(OSError):  # another process may make it at this moment
                os.rename(made, place)  # all of it appears at once
                return
        exchange(made, place, outputs)


@contextmanager
def staged_path(target: str | os.PathLike, inside: bool = False) -> Iterator[Path]:
    """A path of the same name to make and then to rename to `target`; removed at the end.

    It is in a staging folder beside the target. With `inside`, where the target is a folder
    already, it is in that one, whose file system may be another than its parent's. Raises
    InputError where the target cannot be written.
    """
    with ExitStack() as stack:
        with _refusals(target):
            if os.path.islink(target) and not os.path.exists(target):
                raise InputError(f"cannot write '{_shown(target)}': a link to nothing; {ELSEWHERE}")
            Path(target).absolute().parent.mkdir(parents=True, exist_ok=True)
            place = Path(os.path.realpath(target))
            place.exists()  # raises where a name is too long
            if inside and place.is_dir():
                sweep(place.parent)  # what was left there before the folder was made
                parent = place
            else:
                parent = place.parent
            staging = stack.enter_context(staging_folder(parent, place.name))
        yield staging / os.path.basename(os.path.abspath(target))


def check_apart(
    outputs: Iterable[str | os.PathLike], inputs: Iterable[str | os.PathLike | None]
) -> None:
    """Raise InputError where an output would take the place of a file that it is made from."""
    outputs = list(outputs)
    for read in inputs:
        for path in outputs:
            if read is not None and _same_file(path, read):
                raise InputError(
                    f"'{_shown(path)}' is read by this command and would be overwritten; choose"
                    " another name for the output"
                )


def _same_file(one: str | os.PathLike, other: str | os.PathLike) -> bool:
    try:
        return os.path.samefile(one, Path(other).expanduser())
    except (OSError, ValueError, RuntimeError):  # one is not there, or no path
        return False


@contextmanager
def _refusals(target: str | os.PathLike) -> Iterator[None]:
    """What the operating system refuses, as one line."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot write '{_shown(target)}': {reason}; {ELSEWHERE}") from error


def _shown(path: str | os.PathLike) -> str:
    return shown(path, 300)
