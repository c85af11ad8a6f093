"""Provenance of every output file, and the way every output file is written.

A result is only worth keeping if it says which code, which data and which settings made it, and if
it is either complete or absent. `provenance` collects the former; `atomic_path` and `staged_folder`
give the latter: write beside the target, then rename, which the file system does in one step. Files
that go into an existing folder are renamed one by one, when all of them are complete.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from gpal._version import __version__
from gpal.errors import InputError

__all__ = ["atomic_path", "json_safe", "provenance", "staged_folder", "staging_folder", "to_json"]


def provenance(
    catalog: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    random_state: int | None = None,
) -> dict[str, Any]:
    """What made a result: gpal, catalog release and checksum, settings, seed, date, versions.

    The date is UTC in ISO 8601; SOURCE_DATE_EPOCH (seconds since 1970), where set, stands for now,
    so that a build can be repeated byte for byte.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), timezone.utc) if epoch else datetime.now(timezone.utc)
    return json_safe(
        {
            "gpal": __version__,
            "date": now.isoformat(timespec="seconds"),
            "catalog": dict(catalog or {}),
            "settings": dict(settings or {}),
            "random_state": random_state,
            "python": platform.python_version(),
            "numpy": _version("numpy"),
            "scikit-learn": _version("scikit-learn"),
            "tensorflow": _version("tensorflow", "tensorflow-cpu"),
            "gpflow": _version("gpflow"),
            "platform": platform.platform(),
        }
    )


def _version(*distributions: str) -> str | None:
    """Version of the first installed one, read from its metadata: nothing heavy is imported."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def json_safe(value: Any) -> Any:
    """`value` in JSON's own types: arrays as lists, NaN and infinities as null, the rest by str."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return json_safe(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """`value` as standard JSON (no NaN literals)."""
    return json.dumps(json_safe(value), indent=indent, allow_nan=False)


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
