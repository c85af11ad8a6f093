"""What a cell of text says: a number, nothing, or a word.

One rule for every format and every place. A number is written with the digits 0 to 9, a point, a
sign and an exponent, or as `inf`. `1,5`, `1_000`, `0x10`, digits of other scripts, and `1e400`,
which no float holds, are words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = [
    "BLANKS",
    "LARGEST_WHOLE",
    "TRUTH",
    "ZONE",
    "number",
    "number_column",
    "truth_column",
    "typed_column",
    "word_column",
]

BLANKS = " \t\u00a0"  # around a cell these say nothing
# How tables of text write a number that is missing, in lower case.
MISSING = frozenset(
    ("", "na", "n/a", "nan", "-nan", "null", "none", "-", "--", "<na>", "#n/a", "#na", "#n/a n/a")
)
INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
DIGITS, INTEGER_DIGITS = b"0123456789+-.eE", b"0123456789+-"
LARGEST_WHOLE = 2**53  # from which on a float64 skips whole numbers
ZONE = "zone"  # in the meta of a column of times, which NumPy has without: Z of universal time
LONG = len(str(LARGEST_WHOLE))
TRUTH = {"true": True, "false": False}
LONGEST = 1000  # characters from which on words are not padded to the longest of them


def number(cell: str) -> float:
    """The number in a cell, NaN where it says that there is none; ValueError on a word."""
    stripped = cell.strip(BLANKS)
    lower = stripped.lower()
    if lower in MISSING:
        return math.nan
    if lower in INFINITE:
        return float(lower)
    if not _only(stripped, DIGITS):
        raise ValueError(f"{cell!r} is not a number")
    value = float(stripped)
    if math.isinf(value):
        raise ValueError(f"{cell!r} is larger than any float")
    return value


def number_column(cells: Sequence[str]) -> np.ndarray:
    """(n,) float64, NaN where a number is missing; ValueError where a cell is a word."""
    if _only("".join(cells), DIGITS):
        try:
            values = np.array([float(cell) if cell else math.nan for cell in cells], dtype=float)
            if not np.isinf(values).any():
                return values
        except ValueError:  # a word like `1-2`
            pass
    return np.array([number(cell) for cell in cells], dtype=float)


def typed_column(cells: Sequence[str]) -> np.ndarray:
    """Integers, numbers or truth values where every cell is one, else the words as they stand.

    Whole numbers that no float holds are integers, masked, also where some are missing.
    """
    for convert in (_integers, _long_integers, number_column, _truths):
        try:
            return convert(cells)
        except OverflowError:  # more digits than 64 bits hold: all of them are kept
            break
        except ValueError:
            continue
    return word_column(cells)


def word_column(cells: Sequence[str]) -> np.ndarray:
    """The words as they stand. NumPy's own strings have one length and drop NULs at their end."""
    long = max(map(len, cells), default=0) > LONGEST or any("\0" in cell for cell in cells)
    return np.array(cells, dtype=object if long else str)


def _integers(cells: Sequence[str]) -> np.ndarray:
    if not _only("".join(cells), INTEGER_DIGITS):
        raise ValueError("not all are integers")
    return np.array(list(map(int, cells)), dtype=np.int64)


def _long_integers(cells: Sequence[str]) -> np.ma.MaskedArray:
    stripped = [cell.strip(BLANKS) for cell in cells]
    long = "".join(cell for cell in stripped if len(cell) >= LONG)
    if not (long and _only(long, INTEGER_DIGITS)):
        raise ValueError("none is long, or not all of these are integers")
    missing = np.array([cell.lower() in MISSING for cell in stripped], dtype=bool)
    whole = _integers([cell if not gone else "0" for cell, gone in zip(stripped, missing)])
    if not len(whole) or max(-int(whole.min()), int(whole.max())) <= LARGEST_WHOLE:
        raise ValueError("all of them are floats as well")
    return np.ma.array(whole, mask=missing)


def _truths(cells: Sequence[str]) -> np.ndarray:
    try:
        return np.array([TRUTH[cell.strip(BLANKS).lower()] for cell in cells], dtype=bool)
    except KeyError:
        raise ValueError("not all are true or false") from None


def truth_column(cells: Sequence[str]) -> np.ndarray:
    """(n,) 1 for true, 0 for false, NaN where neither stands there; ValueError on other words."""
    words = [cell.strip(BLANKS).lower() for cell in cells]
    try:
        return np.array([math.nan if w in MISSING else float(TRUTH[w]) for w in words], dtype=float)
    except KeyError:
        raise ValueError("not all are true or false") from None


def _only(text: str, characters: bytes) -> bool:
    return not text.encode("utf-8", "replace").translate(None, characters)
