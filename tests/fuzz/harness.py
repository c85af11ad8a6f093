"""Damaged input through gpal, thousands of times: refused or read correctly, else a fault.

A `Subject` is one kind of file with the way gpal opens it. Of every damaged copy the outcome is

    refused    one InputError of one printable line
    correct    the value that the file's own rules give it: the undamaged one where a checksum
               speaks, otherwise what `truth`, an independent reading of the same bytes, says
    fault      another exception, a hang, a warning, or any other value: a silent change
"""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mutations import Damage

from gpal.errors import InputError

__all__ = ["Fault", "Subject", "Tally", "attack", "same", "time_limit"]

SECONDS = 20  # that one damaged file may take, on a machine that is busy with other things
LONGEST = 1000  # characters of a message


@dataclass(frozen=True)
class Subject:
    """One kind of file under attack.

    name    of the file, whose ending tells the format
    whole   its undamaged content
    read    path -> what gpal makes of it, compared by `same`
    damage  content, random generator -> damaged content
    truth   content -> what its own rules say it holds, without gpal; raises ValueError where they
            say that it cannot be read. None: there is a checksum, and only the undamaged value will
            do
    """

    name: str
    whole: bytes
    read: Callable[[Path], Any]
    damage: Damage
    truth: Callable[[bytes], Any] | None = None


@dataclass(frozen=True)
class Fault:
    """What went wrong, and the seed that makes it again."""

    subject: str
    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.subject}, seed {self.seed}: {self.what}"


@dataclass
class Tally:
    """Outcomes of an attack."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))


def attack(subject: Subject, folder: Path, number: int, first_seed: int = 0) -> Tally:
    """`number` damaged copies of a subject, one for each seed from `first_seed` on."""
    tally = Tally()
    original = subject.read(_written(folder, subject.name, subject.whole))
    for seed in range(first_seed, first_seed + number):
        content = subject.damage(subject.whole, np.random.default_rng(seed))
        path = _written(folder, subject.name, content)
        outcome, what = _outcome(subject, path, content, original)
        tally.outcomes[outcome] += 1
        if outcome == "fault":
            tally.faults.append(Fault(subject.name, seed, what))
    return tally


def same(a: Any, b: Any) -> bool:
    """Equal values: arrays with NaN in the same places, containers item by item."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        numeric = a.dtype.kind in "fc" and b.dtype.kind in "fc"
        return a.shape == b.shape and np.array_equal(a, b, equal_nan=numeric)
    return bool(a == b) or (a != a and b != b)


def _written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _outcome(subject: Subject, path: Path, content: bytes, original: Any) -> tuple[str, str]:
    try:
        with time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            value = subject.read(path)
    except InputError as error:
        message = str(error)
        clear = message and message.isprintable() and len(message) <= LONGEST
        return ("refused", "") if clear else ("fault", f"an unclear message: {message[:200]!r}")
    except BaseException as error:  # also what is no Exception is a fault here
        if isinstance(error, KeyboardInterrupt):
            raise
        return "fault", f"{type(error).__name__}: {str(error)[:300]}"
    if same(value, original):
        return "correct", ""
    if subject.truth is None:
        return "fault", "a silent change: the value differs from the undamaged one"
    try:
        true = subject.truth(content)
    except ValueError as error:
        return "fault", f"a silent change: its rules refuse it ({str(error)[:200]})"
    if same(value, true):
        return "correct", ""
    return "fault", f"a silent change: {_difference(value, true)}"


def _difference(value: Any, true: Any) -> str:
    if isinstance(value, dict) and isinstance(true, dict):
        for key in [*value, *true]:
            if key not in value or key not in true:
                return f"{key!r} is in one of them only"
            if not same(value[key], true[key]):
                return f"{key!r}: {_difference(value[key], true[key])}"
    return f"{str(value)[:200]} is not {str(true)[:200]}"


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"a hang: more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
