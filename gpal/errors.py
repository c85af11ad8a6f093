"""The one exception that bad input raises: a single line naming what, where and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["InputError", "as_python", "shown"]

LONGEST = 1000  # characters of a whole message
CELL = 60  # characters of another's text in it


class InputError(ValueError):
    """Input that gpal cannot use.

    The message is one line: what is wrong, where (column and row, by name and number), and what to
    do about it. The command line prints it and leaves with exit code 2. Whatever it quotes, it can
    be printed on a terminal: control characters are escaped, and it ends somewhere.

    Parameters
    ----------
    message : object
        As text; shortened to 1,000 characters.

    Examples
    --------
    >>> import gpal
    >>> try:
    ...     gpal.load_catalog("4fgl-dr4", features=["colour"])
    ... except gpal.InputError as error:
    ...     print(str(error).split(";")[0])
    4fgl-dr4.fits.gz: no feature 'colour'
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shown(message, LONGEST))


def shown(value: object, length: int = CELL) -> str:
    """Text of someone else's for a message: on one line, control characters escaped, shortened."""
    text = str(value)
    printable = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: length + 1]
    )
    return printable if len(printable) <= length else f"{printable[: length - 1]}…"


def as_python(value: Any) -> Any:
    """The same in Python's own types, however nested: NumPy 2 shows its as np.float64(0.5)."""
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy's
        value = value.tolist()
    if isinstance(value, Mapping):
        return {as_python(key): as_python(item) for key, item in value.items()}
    return [as_python(item) for item in value] if isinstance(value, list | tuple) else value
