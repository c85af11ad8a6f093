"""What a user is told of a table beside its numbers, in one warning of each kind.

A table may come in blocks of rows. What is remarked upon is then counted over all of them.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gpal.catalog.sentinels import PERHAPS, Suspect, unlikely
from gpal.errors import InputError, shown

__all__ = ["Remarks"]


@dataclass
class Remarks:
    """Features without an error, units that one column of two states, and numbers that look like
    "not measured" and are taken as values.

    no_error    features without an error column that were not said to have none, in words
    one_unit    columns that state a unit beside one that states none, in words
    suspicious  (feature, column, number) that may stand for "no value"
    counts      how often any number that is written like such stands there
    ranges      (feature, column) -> smallest and largest of all other values
    signs       (feature, column of errors that may be written as −σ) -> whether they are
    """

    no_error: list[str] = field(default_factory=list)
    one_unit: list[str] = field(default_factory=list)
    suspicious: list[tuple[str, str, float]] = field(default_factory=list)
    counts: Counter[tuple[str, str, float]] = field(default_factory=Counter)
    ranges: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    signs: dict[tuple[str, str], bool] = field(default_factory=dict)

    def signed(self, feature: str, column: str, errors: np.ndarray) -> bool:
        """Whether errors are written as −σ: in all rows, and those of earlier blocks, or in none.

        InputError where an earlier block had none above 0, and this one has.
        """
        below, above = bool((errors < 0).any()), bool((errors > 0).any())
        key = (feature, column)
        if key not in self.signs and (below or above):
            self.signs[key] = not above
        if above and self.signs[key]:
            raise InputError(
                f"errors of column '{shown(column)}' are below 0 in all rows so far, and above 0 in"
                " later ones: write them with one sign, or say what stands for no error, sentinels"
                " = [...]"
            )
        return self.signs.get(key, False)

    def without_error(self, words: str) -> None:
        """A feature of this block has none."""
        if words not in self.no_error:
            self.no_error.append(words)

    def stated_by_one(self, column: str, unit: str, beside: str) -> None:
        """A column of this block states a unit, and the one that it goes with states none."""
        words = f"'{shown(column)}' ({shown(unit)}) beside '{shown(beside)}'"
        if words not in self.one_unit:
            self.one_unit.append(words)

    def cells(self, feature: str, column: str, values: np.ndarray, suspects: list[Suspect]) -> None:
        """The values of a column in this block, and which numbers are suspected there."""
        counts, others = unlikely(values)
        for number, count in counts.items():
            self.counts[feature, column, number] += count
        if len(others):
            lowest, highest = self.ranges.get((feature, column), (np.inf, -np.inf))
            both = min(lowest, float(others.min())), max(highest, float(others.max()))
            self.ranges[feature, column] = both
        for suspect in suspects:
            self._suspect(feature, column, suspect.number)

    def errors(self, feature: str, column: str, values: np.ndarray, found: list[Suspect]) -> None:
        """The same of a column of errors, where a number at the edge of all is no suspect."""
        for number, count in unlikely(values)[0].items():
            self.counts[feature, column, number] += count
        for suspect in found:
            self._suspect(feature, column, suspect.number)

    def _suspect(self, feature: str, column: str, number: float) -> None:
        key = (feature, column, number)
        if key not in self.suspicious:
            self.suspicious.append(key)

    def _inside(self, feature: str, column: str, number: float) -> bool:
        """Whether it lies within the other values of all blocks."""
        lowest, highest = self.ranges.get((feature, column), (np.inf, -np.inf))
        return lowest <= number <= highest

    def warn_of_errors(self, stacklevel: int) -> None:
        """Of features without an error."""
        if self.no_error:
            warnings.warn(
                f"no error column found for {', '.join(self.no_error)}: taken as exact; name the"
                " column in the schema or mapping, error = '...', or say that there is none, error"
                " = 'none'",
                stacklevel=stacklevel + 1,
            )

    def warn_of_units(self, stacklevel: int) -> None:
        """Of columns of which one states its unit."""
        if self.one_unit:
            warnings.warn(
                f"a unit is stated by one of two columns, {', '.join(self.one_unit)}: both are"
                " taken to be in it; correct the file, or give the feature the unit of the column"
                " that states none, unit = '...'",
                stacklevel=stacklevel + 1,
            )

    def warn_of_numbers(self, stacklevel: int) -> None:
        """Of numbers that look like sentinels, those among them that are rare in each block."""
        for key, count in self.counts.items():
            feature, column, number = key
            known = (feature, column) in self.ranges
            if known and count > 1 and number not in PERHAPS and not self._inside(*key):
                self._suspect(*key)
        found = [
            f"{number:.10g} in {self.counts[feature, column, number]} rows of column"
            f" '{shown(column)}' of feature '{feature}'"
            for feature, column, number in self.suspicious
            if not self._inside(feature, column, number)
        ]
        if found:
            warnings.warn(
                f"{', '.join(found)}: taken as it stands, and looks like 'not measured'; say which"
                " in the schema or mapping: sentinels = [...] of numbers that are no values, or"
                " sentinels = [] for a feature that has none",
                stacklevel=stacklevel + 1,
            )
