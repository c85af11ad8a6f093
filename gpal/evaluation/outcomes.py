"""What became of the sources of an old release in a newer one.

    a class told apart   the newer release gives it
    other NAME           it gives another class, or one that says no more than several of them, and
                         all lie below NAME, at the top of the tree of classes
    another class        it gives another class, of no such place
    vanished             the source has no counterpart in it
    still open           it has one: of no class, or of an undecided one that says nothing new

`bcu`, a blazar of unknown type, is an undecided class. For a source without one it is an answer
(`other agn`); a source that was `bcu` before is still open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpal.catalog.catalog import Catalog
from gpal.catalog.class_tree import names_above
from gpal.catalog.crossmatch import Crossmatch
from gpal.errors import InputError

__all__ = ["OPEN", "VANISHED", "count_outcomes", "outcomes"]

ANOTHER, VANISHED, OPEN = "another class", "vanished", "still open"


def outcomes(old: Catalog, new: Catalog, pairs: Crossmatch) -> np.ndarray:
    """(n,) what became of each of the n sources of `old`, by the classes and the tree of `new`.

    Raises InputError for a class told apart that is called as another outcome.
    """
    classes = new.schema.classes
    taken = {ANOTHER, VANISHED, OPEN, *map(_other, classes.tree)} & set(new.classes)
    if taken:
        raise InputError(
            f"a class cannot be called '{taken.pop()}', which is what becomes of a source; give the"
            " group another name"
        )

    def outcome(before: str, after: str) -> str:
        above = names_above(classes.tree, classes.sets, after)
        if after in classes.open and (not above or after == before):
            return OPEN
        return _other(above[0]) if above else ANOTHER

    found = np.full(len(old), VANISHED, dtype=object)
    for i, j, group in zip(pairs.old, pairs.new, new.group[pairs.new].tolist(), strict=True):
        found[i] = group or outcome(str(old.labels[i]), str(new.labels[j]))
    return found.astype(str)


def count_outcomes(outcome: np.ndarray, classes: Sequence[str]) -> dict[str, int]:
    """Outcome -> how many: the classes told apart, others that occur, vanished, still open."""
    fixed = (*classes, VANISHED, OPEN)
    others = sorted(set(outcome.tolist()) - {*fixed, ANOTHER})
    others += [ANOTHER] if ANOTHER in outcome else []
    names = (*classes, *others, VANISHED, OPEN)
    return {name: int(np.sum(outcome == name)) for name in names}


def _other(name: str) -> str:
    return f"other {name}"
