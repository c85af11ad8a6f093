"""Arrays in a file: .npz, a zip archive of .npy entries, without pickles and read without trust.

A file may come from anyone. Nothing is allocated before all entries have shown what they will hold:

    an entry's declared size   that of its header: shape times item size
    all of them together       at most RATIO times the file's size, or FLOOR where that is more

Deflate makes a thousand bytes of one, real measurements hardly two: whole columns of one value are
what compresses well in files of ours. `write_npz` writes a file that would break the rule
uncompressed, so that no file of ours is ever refused.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpal.errors import InputError, shown
from gpal.files.output import atomic_path

__all__ = ["json_text", "read_npz", "read_text", "write_npz"]

RATIO = 100
FLOOR = 1 << 26  # bytes
LONGEST_TEXT = 1 << 22  # characters of JSON, whose objects take up to twenty times its memory
ENDING = ".npy"
KINDS = "biufU"  # of dtypes: truth values, numbers, text


def write_npz(
    path: str | os.PathLike,
    arrays: Mapping[str, np.ndarray],
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write arrays to `path`, whole or not at all; `texts` become files of the archive as well."""
    with atomic_path(path) as temporary:
        for save in (np.savez_compressed, np.savez):
            with open(temporary, "wb") as stream:
                save(stream, **arrays)  # type: ignore[arg-type]  # none is called allow_pickle
            with zipfile.ZipFile(temporary, "a") as archive:
                for name, text in (texts or {}).items():
                    archive.writestr(zipfile.ZipInfo(name), text)
                total = sum(entry.file_size for entry in archive.infolist())
            if total <= _allowed(temporary.stat().st_size):
                break


def read_npz(
    path: str | os.PathLike, kind: str, remedy: str, texts: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """All arrays of a file that `write_npz` wrote.

    kind, remedy  what a message calls the file, and how it ends, where the file is missing, damaged
                  or larger than it may be
    texts         further entries that may be there: checked, not returned
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for
        raise InputError(f"cannot read '{path}': it is no file; {remedy}")
    try:
        with open(path, "rb") as stream, zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            _check(archive, entries, texts, os.fstat(stream.fileno()).st_size)
            arrays = {}
            for entry in entries:
                with archive.open(entry) as content:
                    if entry.filename.endswith(ENDING):
                        name = entry.filename.removesuffix(ENDING)
                        arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
                    content.read()  # to the end, where the checksum is compared
            return arrays
    except MemoryError:
        raise
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}; {remedy}") from error
    except Exception as error:  # zipfile, zlib, ast and NumPy raise what they like on damage
        what = f"it is not {kind} or is damaged ({shown(error) or type(error).__name__})"
        raise InputError(f"cannot read '{path}': {what}; {remedy}") from error


def read_text(path: str | os.PathLike, name: str) -> str:
    """One of the `texts` of a file that `read_npz` has checked, or ''."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode() if name in archive.namelist() else ""


def json_text(array: np.ndarray) -> Any:
    """What the JSON of an array of one text says; ValueError where it is none."""
    if array.shape != () or array.dtype.kind != "U" or array.itemsize > 4 * LONGEST_TEXT:
        raise ValueError("not a text of JSON")
    try:
        return json.loads(str(array))
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _check(
    archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], texts: Collection[str], size: int
) -> None:
    """ValueError unless the archive holds arrays alone, of sizes that a file of `size` may have."""
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise ValueError("two entries of one name")
    if sum(entry.file_size for entry in entries) > _allowed(size):
        raise ValueError(f"{size} bytes claim to hold more than {_allowed(size)}")
    for entry in entries:
        if entry.filename.endswith(ENDING):
            with archive.open(entry) as content:
                if _size(content) != entry.file_size:
                    raise ValueError(f"'{entry.filename}' is not of the size that its shape has")
        elif entry.filename not in texts:
            raise ValueError(f"'{entry.filename}' is no array")


def _size(content: IO[bytes]) -> int:
    """Bytes of an .npy file, by its header."""
    version = np.lib.format.read_magic(content)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = readers[version](content)
    if dtype.kind not in KINDS or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"an array of {dtype} and shape {shape}")
    return content.tell() + math.prod(shape) * dtype.itemsize


def _allowed(size: int) -> int:
    return max(FLOOR, RATIO * size)
