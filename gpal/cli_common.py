"""What the commands share: how TensorFlow is started quietly, and how lists are typed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpal.catalog import Catalog

__all__ = [
    "NOTICES",
    "comma_separated",
    "open_catalog",
    "start_tensorflow",
    "without_tensorflow_notices",
]

# Notices that TensorFlow prints by itself on a machine without a graphics card.
NOTICES = (
    "WARNING: All log messages before absl::InitializeLog()",
    "oneDNN custom operations are on",
    "Could not find cuda drivers",
    "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
)
_FILTER = """
import sys
for line in sys.stdin:
    if not any(notice in line for notice in sys.argv[1:]):
        sys.stderr.write(line)
"""


@contextmanager
def without_tensorflow_notices() -> Iterator[None]:
    """Drop NOTICES from stderr while TensorFlow starts; every other line passes.

    Before its log level counts, TensorFlow's native code writes to file descriptor 2. A small
    process of its own filters that, so the last words of a crash during the import get through.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    stderr = os.dup(2)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _FILTER, *NOTICES], stdin=subprocess.PIPE, stderr=stderr
    ) as filtered:
        assert filtered.stdin is not None
        os.dup2(filtered.stdin.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


def start_tensorflow(verbose: bool = False) -> None:
    """Import TensorFlow, without the notices that it prints by itself."""
    with without_tensorflow_notices():
        import tensorflow

        tensorflow.config.list_physical_devices()
        tensorflow.get_logger().setLevel(logging.INFO if verbose else logging.ERROR)


def comma_separated(values: list[str]) -> list[str]:
    """`--class bll,fsrq --class psr` as three names."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def open_catalog(
    source: str,
    schema: str | None,
    features: str,
    cuts: str | list[str] | None,
    classes: list[str] | None,
) -> Catalog:
    """The catalog that a command's options name."""
    from gpal.catalog import load_catalog

    catalog = load_catalog(
        source,
        schema=schema,
        features=comma_separated([features]) if "," in features else features,
        cuts=cuts,
    )
    return catalog.with_classes(comma_separated(classes)) if classes else catalog
