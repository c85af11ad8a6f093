"""The one exception that bad input raises: a single line naming what, where and the remedy."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError):
    """Input that gpal cannot use.

    The message is one line: what is wrong, where (column and row, by name and number), and what to
    do about it. The command line prints it and leaves with exit code 2.
    """
