"""Where errors end: whatever reaches the command line's edge is one line on stderr, with a remedy.

    exit code  0    done
               1    the machine refused: disk, memory, rights, a database that is busy or damaged;
                    also, without a line, where nobody reads the output any more (`| head`)
               2    input or options that gpal cannot use
               3    an error in gpal itself
             128+n  ended by signal n: 130 by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP

`gpal --debug COMMAND` shows the traceback as well. What can be said better nearer to its cause is
an InputError; the tables here are for all else.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from gpal.cli.process import told
from gpal.errors import InputError, shown

__all__ = ["OneLineErrors"]

MACHINE, INPUT, INTERNAL = 1, 2, 3
LONGEST, PATH = 1000, 300  # characters of a line, and of what it quotes

ROOM = "make room or write to another disk, and run it again"
RIGHTS = "choose a folder that you may write to, or ask its owner"
CHECK_PATH = "check the path"
BY_ERRNO = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: "your quota is used up; " + ROOM,
    errno.EFBIG: "larger than the file system or `ulimit -f` allows; write to another disk",
    errno.EROFS: "write to another folder",
    errno.EACCES: RIGHTS,
    errno.EPERM: RIGHTS,
    errno.ENOENT: CHECK_PATH,
    errno.ENOTDIR: CHECK_PATH,
    errno.EISDIR: "a folder has the name of a file; move it away or choose another name",
    errno.EEXIST: "choose another name",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "links that lead to each other; " + CHECK_PATH,
    errno.EMFILE: "raise `ulimit -n`, or run fewer jobs at a time",
    errno.ENFILE: "close other programs, or run fewer jobs at a time",
    errno.ENOMEM: "close other programs, or run it on a larger machine",
    errno.EAGAIN: "raise `ulimit -u`, or run fewer jobs at a time",
    errno.EIO: "the disk or the network failed; check them, and run it again",
    errno.ESTALE: "the network's file system changed meanwhile; run it again",
    errno.EXDEV: "choose a folder that is no mount point",
}
UNKNOWN_ERRNO = "check the path and the disk, and run it again"

# Class of the error or of one that it is derived from, words in its message, what to do. By name:
# the libraries that they are from are not imported for that.
MEMORY = "run it on a larger machine, on fewer sources, or with a smaller --n-inducing"
BY_CLASS = (
    ("MemoryError", "", MEMORY),
    ("BrokenProcessPool", "", MEMORY),
    ("ResourceExhaustedError", "", MEMORY),  # TensorFlow's
    ("ImportError", "failed to map segment", MEMORY),
    ("ImportError", "Cannot allocate memory", MEMORY),
    ("RecursionError", "", "the input is nested too deeply; simplify it"),
    ("OperationalError", "locked", "another process is writing; wait for it, and run it again"),
    ("OperationalError", "full", ROOM),
    ("OperationalError", "readonly", RIGHTS),
    ("OperationalError", "unable to open", RIGHTS),
    ("OperationalError", "disk I/O", "the disk failed or is full; check it, and run it again"),
    ("DatabaseError", "malformed", "the campaign's database is damaged; go on with a copy of it"),
    ("DatabaseError", "not a database", "the campaign's database is damaged; go on with a copy"),
)


class OneLineErrors(TyperGroup):
    """The program's commands, behind the boundary."""

    debug = False

    def main(self, *arguments: Any, **settings: Any) -> Any:
        try:
            _refuse_what_is_no_text(settings.get("args") or sys.argv[1:])
            return super().main(*arguments, **settings)
        except Exception as error:
            if told:  # TensorFlow makes an error of its own of the exit in the midst of its work
                _abandon_output()
                sys.exit(128 + told[0])
            line, code = _verdict(error)
            with suppress(OSError):  # not even that can be written
                if self.debug:
                    traceback.print_exc()
                typer.echo(f"gpal: {shown(line, LONGEST)}", err=True)
            _abandon_output()
            sys.exit(code)

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with _printable_usage_errors():
            return super().make_context(*arguments, **settings)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """A command that is one of a group's, like `gpal next`, is named with its group."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            for group, found in self.commands.items():
                if hasattr(error, "message") and args[0] in getattr(found, "commands", {}):
                    error.message += f" Did you mean '{ctx.command_path} {group} {args[0]}'?"
            raise

    def invoke(self, ctx: Any) -> Any:
        self.debug = bool(ctx.params.get("debug"))
        with _printable_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _printable_usage_errors() -> Iterator[None]:
    """Those of the parser quote the arguments as they are."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "message"):
            error.message = shown(error.message, LONGEST)
        raise


def _refuse_what_is_no_text(arguments: Sequence[str]) -> None:
    """An argument of bytes that are not in the locale's encoding could not be written anywhere."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"'{shown(argument, PATH)}' is no text in the encoding of this terminal; write it"
                " in UTF-8 with LC_ALL=C.UTF-8, or rename the file"
            ) from None


def _verdict(error: Exception) -> tuple[str, int]:
    """What to say, and the exit code: of the error or, where nothing is known of it, its cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, InputError):
            return str(cause), INPUT
        remedy = _remedy(cause)
        if remedy is not None:
            return f"{_what(cause)}; {remedy}", MACHINE
        cause = cause.__cause__
    return (
        f"an error in gpal itself, {type(error).__name__}: {_what(error)};"
        " run `gpal --debug` with the same command and report what it shows"
    ), INTERNAL


def _remedy(error: BaseException) -> str | None:
    classes = {kind.__name__ for kind in type(error).__mro__}
    for name, words, remedy in BY_CLASS:
        if name in classes and words in str(error):
            return remedy
    if isinstance(error, OSError):
        return BY_ERRNO.get(error.errno or 0, UNKNOWN_ERRNO)
    return None


def _what(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": '{shown(error.filename, PATH)}'" if error.filename else "")
    return shown(error, PATH) or type(error).__name__


def _abandon_output() -> None:
    """Output that could not be written stays in its buffer: the interpreter must not try again."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
