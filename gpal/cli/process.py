"""What the program arranges for its own process: signals, output, a folder for temporary files."""

from __future__ import annotations

import atexit
import io
import logging
import os
import signal
import sys
import tempfile
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path

from gpal.errors import shown
from gpal.files.staging import staging_folder

__all__ = ["prepare_process", "told"]

LONGEST = 2000  # characters of a warning
told: list[int] = []  # signals to leave that have come


def prepare_process() -> None:
    """For the command line only: a program that imports gpal arranges its process itself."""
    _open_closed_streams()
    _let_warnings_warn()
    _warn_in_one_line()
    _leave_when_told()
    _print_anything()
    _own_temporary_folder()
    _do_without_home()
    _one_keras()


def _open_closed_streams() -> None:
    """Without a standard stream (`2>&-`, some daemons), the next file that is opened would take its
    number, and what a library prints would end in that file."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                found = os.open(os.devnull, os.O_RDWR)
                if found != number:
                    os.dup2(found, number)
                    os.close(found)
                setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _let_warnings_warn() -> None:
    """PYTHONWARNINGS=error would end every run at the first remark of a library about another, here
    or in another process of the job."""
    if any(action == "error" for action, *_ in warnings.filters):
        warnings.simplefilter("default")
        os.environ["PYTHONWARNINGS"] = "default"
        sys.warnoptions[:] = ["default"]  # which other processes are started with on Windows


def _warn_in_one_line() -> None:
    """What gpal warns of is for its user, to whom a line of its code says nothing."""
    usual = warnings.formatwarning

    def one_line(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        if category is UserWarning:
            return f"gpal: warning: {shown(message, LONGEST)}\n"
        return usual(message, category, filename, lineno, line)

    warnings.formatwarning = one_line


def _leave_when_told() -> None:
    """A batch queue ends a job by SIGTERM, a closed terminal by SIGHUP: leave through the clean-up
    of half-written results. A signal that `nohup` has set to be ignored stays so."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def _leave(number: int, _: object) -> None:
    told.append(number)
    sys.exit(128 + number)


def _print_anything() -> None:
    """A character that the terminal or the locale does not have is printed as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _do_without_home() -> None:
    """Libraries say so where the home cannot be written to; their caches are in our folder then, or
    there are none."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message="Remote data cache could not be accessed")  # astropy


def _one_keras() -> None:
    """TensorFlow imports a Keras when it starts: let it be that which GPflow imports in any case,
    not Keras 3 beside it. Other processes of a job take it from here."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


def _own_temporary_folder() -> None:
    """TensorFlow writes there what it generates, matplotlib its cache where there is no home.

    Removed after they have tidied up, or, if the process is killed, by the next one.
    """
    stack = ExitStack()
    atexit.register(stack.close)  # the first to be registered is the last to be called
    try:
        folder = stack.enter_context(staging_folder(Path(tempfile.gettempdir()), "gpal"))
    except OSError:  # none that can be written to: most commands need none
        return
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
