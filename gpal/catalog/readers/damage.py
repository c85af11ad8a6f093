"""Content of a file, and whatever a reader raises on a damaged one, as one InputError."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpal.errors import InputError

__all__ = ["content", "damage_reported"]

GZIP = b"\x1f\x8b"  # how a compressed file starts


def content(path: Path) -> bytes:
    """All bytes of a file; what is compressed is unpacked, its checksum verified."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the file ({error.strerror or error}); check it") from None
    return gzip.decompress(packed) if packed[:2] == GZIP else packed


@contextmanager
def damage_reported(format: str) -> Iterator[None]:
    """Inside, every exception of a reader becomes one line, and remarks are not shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # units spelled in ways that astropy remarks upon
            warnings.filterwarnings("error", message=".*truncated.*")
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
