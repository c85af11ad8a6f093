"""TensorFlow started without the notices that it prints by itself, and GPflow asked for.

GPflow is no dependency of the package's: it declares numpy<2, though it runs on NumPy 2, and an
installer would keep NumPy, astropy and all that stand on them back.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec

from gpal.errors import InputError

__all__ = [
    "NOTICES",
    "check_start",
    "import_tensorflow",
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
    process of its own filters that, so the last words of a crash during the import get through. In
    a session of its own: Ctrl-C is for gpal, and the filter ends with its input.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    stderr = os.dup(2)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _FILTER, *NOTICES],
        stdin=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    ) as filtered:
        assert filtered.stdin is not None
        os.dup2(filtered.stdin.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


def check_start() -> None:
    """Raise InputError where TensorFlow or GPflow could not start; nothing is imported for it."""
    if sys.flags.optimize >= 2:
        raise InputError(
            "python -OO (PYTHONOPTIMIZE=2) leaves out docstrings, which TensorFlow reads when it"
            " starts; use -O, or leave it out"
        )
    if find_spec("gpflow") is None:
        raise InputError(
            "GPflow is not installed, which the models stand on; type"
            f" `{sys.executable} -m pip install --no-deps gpflow` (without --no-deps it takes NumPy"
            " back to version 1)"
        )


def import_tensorflow() -> None:
    """Import TensorFlow without its notices, where nobody has imported it yet: before anything of
    gpal's that stands on it. What it logs, and with how many threads it runs, is the caller's."""
    if "tensorflow" in sys.modules:
        return
    check_start()
    with ExitStack() as quiet:
        with suppress(OSError, ValueError, AttributeError):  # a program without a stderr
            quiet.enter_context(without_tensorflow_notices())
        import tensorflow

        tensorflow.config.list_physical_devices()


def start_tensorflow(verbose: bool = False, threads: int | None = None) -> None:
    """Import TensorFlow, without the notices that it prints by itself, and GPflow.

    threads   of an operation, None: one per core. Other processes of a job want cores as well, and
              threads that wait for one another take them all the same
    Raises InputError as `check_start`: without GPflow TensorFlow is of no use here.
    """
    check_start()
    with without_tensorflow_notices():
        import tensorflow

        with suppress(RuntimeError):  # it runs already, with as many as it was told then
            if threads is not None:
                tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
                tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        tensorflow.config.list_physical_devices()
        tensorflow.get_logger().setLevel(logging.INFO if verbose else logging.ERROR)
        _import_gpflow()


def _import_gpflow() -> None:
    """Import GPflow without parsing its docstrings, to which check_shapes would add the shapes:
    that takes as long as all the rest of the import, and a command shows none of them."""
    import check_shapes

    before = check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings(None)
    try:
        import gpflow  # noqa: F401
    finally:
        check_shapes.set_rewrite_docstrings(before)
