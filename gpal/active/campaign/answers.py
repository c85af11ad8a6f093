"""What an answer says of a source: of which classes it may be, and with what weights.

    bll                  a class
    agn                  a name of several classes, `SourceTable.coarser`: one of them
    bll:0.8/fsrq:0.2     weights, p(what was seen | class) up to a factor; of `agn`, of each in it

Answers are kept as this text, classes spelt as in the table, the coarsest first.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Container
from typing import Any

import numpy as np

from gpal.active.campaign.table import OTHER, SourceTable
from gpal.errors import InputError, shown

__all__ = ["as_labels", "canonical", "check_classes", "is_answer", "possible"]

NUMBER = r"(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)"
PART = re.compile(rf"([^:]+):({NUMBER})(?:/|$)")
WEIGHTS = re.compile(rf"(?:[^:]+:{NUMBER}/)*[^:]+:{NUMBER}")


def canonical(text: str, table: SourceTable) -> str:
    """The answer as it is kept; capitals are of no account.

    Raises InputError for what is no class of the campaign, and for weights that say nothing.
    """
    words = (*table.coarser, *table.classes, OTHER)
    known = {word.casefold(): word for word in words}
    if text.casefold() in known:
        return known[text.casefold()]
    if not WEIGHTS.fullmatch(text):
        raise _unknown(text, words)
    given: list[tuple[str, float]] = []
    for name, number in PART.findall(text):
        word = known.get(name.strip().casefold(), OTHER)
        if word == OTHER:
            raise _unknown(name, words[:-1])
        given.append((word, float(number)))
    classes = [c for word, _ in given for c in table.coarser.get(word, (word,))]
    for name in classes:
        if classes.count(name) > 1:
            raise InputError(f"'{shown(text)}' has two weights of '{name}'; give one")
    weights = {c: w for word, w in given for c in table.coarser.get(word, (word,))}
    told_apart = len({weights.get(c, 0.0) for c in table.classes}) > 1
    if not told_apart or not max(weights.values()) < math.inf:
        raise InputError(
            f"'{shown(text)}' weighs all classes alike, or one infinitely; give each class a"
            " weight, how likely what was seen is under it"
        )
    if len(positive := [c for c, w in weights.items() if w > 0]) == 1:
        return positive[0]
    given.sort(key=lambda part: words.index(part[0]))
    return "/".join(f"{word}:{weight:.12g}" for word, weight in given)


def is_answer(text: str, known: Container[str]) -> bool:
    """Whether it is one of these words, or weights of them."""
    if text in known:
        return True
    if not WEIGHTS.fullmatch(text):
        return False
    parts = PART.findall(text)
    # The largest, as in `canonical`: the sum of finite weights may be infinite.
    return (
        all(name in known for name, _ in parts) and 0 < max(float(w) for _, w in parts) < math.inf
    )


def possible(answer: str, table: SourceTable) -> tuple[str, ...]:
    """The classes that a kept answer leaves possible."""
    return tuple(c for c, w in _weights(answer, table).items() if w > 0)


def as_labels(answers: np.ndarray, table: SourceTable) -> np.ndarray:
    """Answers (n,) as a classifier takes them: classes, sets and mappings."""
    meant: dict[str, Any] = {name: frozenset(of) for name, of in table.coarser.items()}
    for text in set(answers.tolist()) - {*meant, *table.classes}:
        if WEIGHTS.fullmatch(text):
            meant[text] = _weights(text, table)
    if not np.isin(answers, list(meant)).any():
        return answers
    return np.array([meant.get(word, word) for word in answers.tolist()], dtype=object)


def check_classes(labels: np.ndarray, table: SourceTable, *, to_learn: bool = True) -> None:
    """A warning for a class that no label is of; InputError where all are of one class, from which
    nothing is `to_learn`."""
    named = {name for label in np.unique(labels) for name in possible(str(label), table)}
    missing = [name for name in table.classes if name not in named]
    if to_learn and len(missing) > len(table.classes) - 2:
        raise InputError(
            f"labelled sources are of one class only; label one of {' or '.join(missing)} before a"
            " model can tell them apart: gpal learn label"
        )
    if missing:
        warnings.warn(
            f"no labelled source is of class {' or '.join(missing)}: until one is, the model tells"
            " the other classes apart, and probabilities are of these",
            stacklevel=3,
        )


def _weights(answer: str, table: SourceTable) -> dict[str, float]:
    """Class -> weight of a kept answer."""
    alone = answer in table.classes or not WEIGHTS.fullmatch(answer)
    parts = [(answer, "1")] if alone else PART.findall(answer)
    return {c: float(w) for name, w in parts for c in table.coarser.get(name, (name,))}


def _unknown(word: str, words: tuple[str, ...]) -> InputError:
    from gpal.catalog.schema import close_matches

    return InputError(f"unknown class '{shown(word)}'; {close_matches(word, words)}")
