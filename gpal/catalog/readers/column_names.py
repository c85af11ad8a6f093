"""Names of columns: each is there once, or nobody knows which one is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpal.errors import InputError, shown

__all__ = ["check_names"]


def check_names(names: Sequence[str]) -> None:
    """Raises InputError where two columns have one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(
                f"{count} columns are called '{shown(name)}'; give every column a name of its own"
            )
