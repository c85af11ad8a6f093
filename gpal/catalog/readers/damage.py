"""Content of a file, and whatever a reader raises on a damaged one, as one InputError."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpal.errors import InputError

__all__ = ["TwoMeanings", "content", "damage_reported"]

GZIP = b"\x1f\x8b"  # how a compressed file starts
# A megabyte can unpack to a gigabyte of nothing. Tables become a third, sparse ones a fiftieth.
LARGEST_RATIO, LARGEST = 200, 10**7


def content(path: Path) -> bytes:
    """All bytes of a file; what is compressed is unpacked, its checksum verified."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the file ({error.strerror or error}); check it") from None
    if packed[:2] != GZIP:
        return packed
    limit = LARGEST_RATIO * len(packed) + LARGEST
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        found = stream.read(limit + 1)
    if len(found) > limit:
        raise InputError(
            f"it unpacks to more than {LARGEST_RATIO} times its size, which no table does; unpack"
            " it yourself if it is meant so"
        )
    return found


class TwoMeanings(UserWarning):
    """Of what a file says that may be meant in two ways."""


@contextmanager
def damage_reported(format: str) -> Iterator[None]:
    """Inside, every exception of a reader becomes one line, and remarks are not shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # units spelled in ways that astropy remarks upon
            warnings.filterwarnings("error", message=".*truncated.*")
            warnings.simplefilter("default", TwoMeanings)  # gpal's own
            yield
    except (InputError, MemoryError):
        raise
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"cannot read {format} ({reason}); install the version of pyarrow that gpal asks for"
        ) from None
    except Exception as error:  # every reader has exceptions of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"not a readable {format} file ({reason[:500]}); it may be truncated: fetch it again"
        ) from None
