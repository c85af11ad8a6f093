"""What a table holds as its schema reads it, and how that is printed.

The long form is what `gpal schema check` prints, the short one what the other commands print before
they begin. What stands after an exclamation mark wants a person's decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gpal.errors import shown

__all__ = ["FeatureFacts", "Inspection"]

BINS = 40  # of a histogram: characters in the terminal
BLOCKS = " ▁▂▃▄▅▆▇█"
WORDS = 12  # classes listed before "and ... others"
NO_ERROR = (
    'NO ERROR COLUMN FOUND, taken as exact: name it, error = "...", or say that there is none,'
    ' error = "none"'
)
ZERO_ERROR = 'where 0 means that there is none, zero_error = "missing"'
NO_SIGMA = "no error: not measured"


@dataclass(frozen=True)
class FeatureFacts:
    """One feature as the schema makes it of its columns.

    value            what it is of the columns: `F`, `g - r`
    columns          the columns that hold its value
    errors           those that hold its error
    error_found      how: "declared", "by its name", "none declared" (exact), or "" for none found
    unit       of its columns, before the transform that the model's values have
    n_measured       sources that have a value with an error
    values           (n_measured,) those values, after the transform
    median_error     of the measured values that have an error above 0; NaN without any
    zero_errors      cells of the error columns that are 0
    negative_errors  cells of an error column that are below 0, where no sign is expected
    suspects         numbers that may stand for "no value" and were not declared, how often
    decisions        what was done with values that could not be taken as they stand, how often
    problem          why the feature cannot be used at all, '' where it can
    """

    name: str
    value: str
    columns: tuple[str, ...]
    errors: tuple[str, ...]
    error_found: str
    unit: str
    transform: str
    n_measured: int = 0
    values: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    median_error: float = np.nan
    zero_errors: int = 0
    negative_errors: int = 0
    suspects: tuple[tuple[float, int], ...] = ()
    decisions: tuple[tuple[str, int], ...] = ()
    problem: str = ""

    @property
    def histogram(self) -> np.ndarray:
        """Counts of the values in bins of equal width from the least to the largest."""
        return np.histogram(self.values[np.isfinite(self.values)], BINS)[0]


@dataclass(frozen=True)
class Inspection:
    """A table as its schema reads it; printed, it is the long form.

    groups     class to tell apart -> {catalog class: sources}
    undecided  word that stands for no class ('' for an empty cell) -> sources, to be classified
    others     any other class -> sources, neither learned nor classified
    """

    source: str
    n: int
    features: tuple[FeatureFacts, ...]
    class_column: str = ""
    groups: Mapping[str, Mapping[str, int]] | None = None
    undecided: Mapping[str, int] | None = None
    others: Mapping[str, int] | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the table cannot be used so."""
        return tuple(facts.problem for facts in self.features if facts.problem)

    @property
    def without_error(self) -> tuple[str, ...]:
        """Features that have no error column and were not said to have none."""
        return tuple(facts.name for facts in self.features if not facts.error_found)

    def __str__(self) -> str:
        return "\n".join(_long(self))

    def headline(self) -> str:
        """How many sources, and how many of them are of which class."""
        return _headline(self)

    def short(self) -> str:
        """A line about the classes and one per feature."""
        return "\n".join([_headline(self), *map(_line, self.features)])


def _long(found: Inspection) -> list[str]:
    lines = [_headline(found), ""]
    for facts in found.features:
        lines += [_name(facts), *(f"    {line}" for line in _details(facts)), ""]
    if found.class_column:
        lines += _classes(found)
    else:
        lines.append("no class column")
    return lines


def _headline(found: Inspection) -> str:
    """How many sources, and how many of them are of which class."""
    if found.groups is None:
        return f"{shown(found.source, 200)}: {found.n} sources"
    per_group = {group: sum(words.values()) for group, words in found.groups.items()}
    parts = [f"{sum(per_group.values())} of a class to tell apart ({_counted(per_group)})"]
    parts.append(f"{sum((found.undecided or {}).values())} to classify")
    if found.others:
        parts.append(f"{sum(found.others.values())} of other classes")
    return f"{shown(found.source, 200)}: {found.n} sources: {', '.join(parts)}"


def _line(facts: FeatureFacts) -> str:
    """A feature in one line: its columns, its range, what was not taken as it stands."""
    parts = [f"  {_name(facts)}"]
    if facts.problem:
        return f"{parts[0]}; ! {facts.problem}"
    parts.append(_range(facts).partition(", median")[0])
    parts += [f"{count}: {shown(rule, 200)}" for rule, count in facts.decisions]
    parts += [f"! {_suspect(*suspect)}" for suspect in facts.suspects]
    if not facts.error_found:
        parts.append("! " + NO_ERROR)
    return "; ".join(parts)


def _name(facts: FeatureFacts) -> str:
    """`log_flux: log10 F ± e_F (mJy)`"""
    value = facts.value
    if facts.transform != "none":
        value = (
            f"{facts.transform} {value}"
            if len(facts.columns) < 2
            else f"{facts.transform}({value})"
        )
    if facts.errors:
        value += f" ± {' / '.join(facts.errors)}"
    elif facts.error_found:
        value += ", exact"
    unit = f" [{facts.unit}]" if facts.unit else ""
    return shown(f"{facts.name}: {value}{unit}", 200)


def _details(facts: FeatureFacts) -> list[str]:
    if facts.problem:
        return [f"! {facts.problem}"]
    lines = [_error_line(facts), _range(facts)]
    limits = any(
        "measured: below" in rule or "measured: above" in rule for rule, _ in facts.decisions
    )
    for rule, count in facts.decisions:
        line = f"{count}: {shown(rule, 200)}"
        if rule.startswith("an error of 0"):
            line = f"! {line}; {ZERO_ERROR}"
        elif rule == NO_SIGMA and not limits:
            line = f"{line}; {_own_limit(facts)}"
        lines.append(line)
    lines += [f"! {_suspect(*suspect)}" for suspect in facts.suspects]
    if facts.n_measured:
        lines.append(f"|{_bars(facts.histogram)}|")
    return lines


def _own_limit(facts: FeatureFacts) -> str:
    """What to declare where a value without an error is a limit."""
    limit = f'"{facts.columns[0]}"' if len(facts.columns) == 1 else "[...]"
    return shown(f"where they are limits, upper_limit = {limit} (of magnitudes lower_limit)", 200)


def _error_line(facts: FeatureFacts) -> str:
    if not facts.error_found:
        return "! " + NO_ERROR
    if not facts.errors:
        return "exact, as the schema says"
    columns = " and ".join(facts.errors)
    median = "" if np.isnan(facts.median_error) else f"; median error {facts.median_error:.3g}"
    return f"error: {shown(columns, 200)}, {facts.error_found}{median}"


def _suspect(number: float, count: int) -> str:
    return (
        f"{count}: {number:.10g} is taken as a value; if it stands for none, sentinels ="
        f" [{number:.10g}], else sentinels = []"
    )


def _range(facts: FeatureFacts) -> str:
    if not facts.n_measured:
        return "! measured for no source"
    low, middle, high = np.quantile(facts.values, [0, 0.5, 1])
    measured = f"{facts.n_measured} measured"
    return f"{measured}, {low:.4g} to {high:.4g}, median {middle:.4g}"


def _bars(counts: np.ndarray) -> str:
    """A histogram of one line; whatever is not empty shows."""
    heights = np.ceil(counts / max(counts.max(), 1) * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[height] for height in heights)


def _classes(found: Inspection) -> list[str]:
    """The words of the class column, by what is made of them."""
    lines = [f"classes, in column '{shown(found.class_column)}'"]
    for group, words in (found.groups or {}).items():
        members = "" if list(words) in ([group], []) else f" = {_counted(words)}"
        lines.append(f"    {shown(group)}: {sum(words.values())}{members}")
    if found.undecided:
        lines.append(f"    undecided, to be classified: {_counted(found.undecided)}")
    if found.others:
        lines.append(f"    others, neither learned nor classified: {_counted(found.others)}")
    return lines


def _counted(words: Mapping[str, int]) -> str:
    """`star 512, galaxy 400`; an empty cell is `no class`."""
    listed = [f"{shown(word) or 'no class'} {count}" for word, count in words.items()]
    more = len(listed) - WORDS
    return ", ".join(listed[:WORDS]) + (f", and {more} others" if more > 0 else "")
