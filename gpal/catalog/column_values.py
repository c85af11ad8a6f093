"""One column as measurements: values and errors, and what of them was not measured.

error_kind   1 sigma is
sigma        e, and nothing was measured where it is infinite
variance     √e
inverse variance   1/√e, and nothing was measured where it is 0
90 %, 95 %   e / 1.645, e / 1.960 of half the width of a Gaussian's interval
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.bounds import are_bounds
from gpal.catalog.catalog import Decision
from gpal.catalog.columns import as_stored, conversion, error_column, numbers, text, unit_of
from gpal.catalog.error_names import is_called_an_error, similar_names
from gpal.catalog.remarks import Remarks
from gpal.catalog.schema import Feature, Schema
from gpal.catalog.sentinels import PERHAPS, is_sentinel, suspects
from gpal.errors import InputError, shown
from gpal.measurements import symmetric_error

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["NEAREST", "Reading", "limit_marks", "positive_error", "read_column", "refuse_suspects"]

# A value at the edge of what the fit allows has no error of its own. The fits that just missed the
# edge report errors far too small, so the typical error is taken over a wide neighbourhood.
NEAREST = 150
# error_kind -> power of the unit that it has, and sigma
KINDS: dict[str, tuple[int, Callable[[np.ndarray], np.ndarray]]] = {
    "sigma": (1, lambda e: e),
    "variance": (2, np.sqrt),
    "inverse variance": (-2, lambda e: 1.0 / np.sqrt(e)),
    "90 %": (1, lambda e: e / 1.6448536269514722),
    "95 %": (1, lambda e: e / 1.959963984540054),
}
# marks of a limit beside a value -> side of the value
MARKS = {"<": -1.0, ">": 1.0, "": 0.0}


@dataclass
class Reading:
    """A table while its features are made: what was done with values on the way, and what a user
    should be told of.

    worthless   (feature, column) -> rows whose value says nothing, not even a limit
    """

    table: Table
    schema: Schema
    ids: np.ndarray
    decisions: list[Decision] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    worthless: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def decide(self, rows: np.ndarray, column: str, rule: str) -> np.ndarray:
        """The rows, which were treated by a rule."""
        self.decisions.append(Decision(column, rule, rows))
        return rows

    def numbers(self, feature: Feature, column: str, pair: bool = False) -> np.ndarray:
        """A column as `gpal.catalog.columns.numbers`, NaN where a declared sentinel stands."""
        values = numbers(self.table, column, pair)
        return np.where(is_sentinel(values, self.sentinels(feature)), np.nan, values)

    def sentinels(self, feature: Feature) -> tuple[float, ...]:
        """The numbers that stand for no value in the feature's columns."""
        own = feature.sentinels
        return (self.schema.sentinels or ()) if own is None else own

    def has_only_values(self, feature: Feature) -> bool:
        """Whether the schema says that no number stands for no value: sentinels = []."""
        own = feature.sentinels
        return (self.schema.sentinels if own is None else own) == ()


def read_column(reading: Reading, feature: Feature) -> tuple[np.ndarray, np.ndarray]:
    """Value and error of a feature's column in its unit, NaN and inf where not measured.

    Raises InputError, naming column and row, on a negative error, a forbidden missing value, a
    missing column, numbers that can only be undeclared sentinels, or a unit that does not convert.
    """
    column, decide = feature.column, reading.decide
    stored = numbers(reading.table, column)
    factor = conversion(reading.table, column, feature.unit)
    x = reading.numbers(feature, column) * factor
    invalid = ~np.isfinite(x)
    if feature.missing == "forbid":
        remedy = "give a number, or allow missing = 'not measured'"
        _forbid(invalid, column, reading.ids, stored, remedy)
    missing = decide(~np.isfinite(stored), column, "no value: not measured")
    for number in reading.sentinels(feature):
        rows = decide(is_sentinel(stored, [number]), column, f"{number:g}: not measured")
        missing = missing | rows
    worthless = np.zeros(len(x), dtype=bool)  # which is no limit either
    if feature.requires:
        unsupported = ~missing & ~np.isfinite(reading.numbers(feature, feature.requires))
        rule = f"{feature.requires} is missing: not measured"
        missing = missing | decide(unsupported, column, rule)
        worthless = unsupported
    limit = ~missing & (limit_marks(reading, feature) != 0)
    missing = missing | limit
    if feature.above is not None:
        of_column = feature.above / factor
        stored_bound = as_stored(reading.table, column, of_column)
        bound = feature.above if stored_bound == of_column else stored_bound * factor
        with np.errstate(invalid="ignore"):
            low = ~missing & (x <= bound)
        missing = missing | decide(low, column, f"not above {feature.above:g}: not measured")
        worthless = worthless | low
    refuse_suspects(reading, feature, column, stored[~missing])

    columns = _error_columns(reading, feature)
    error = _error(reading, feature, columns, ~missing)
    nothing = ~missing & np.isposinf(error)
    rule = "inverse variance 0" if feature.error_kind == "inverse variance" else "infinite error"
    missing = missing | decide(nothing, column, f"{rule}: not measured")
    if feature.error_kind == "inverse variance":
        worthless = worthless | nothing
    reading.worthless[feature.name, column] = worthless
    no_error = ~missing & ~np.isfinite(error)
    zero = ~missing & (error == 0)
    if feature.zero_error == "missing":
        no_error = no_error | zero
    elif columns:
        decide(zero, column, "an error of 0: taken as exact")
    if feature.missing_error == "forbid":
        remedy = "give its error, or another missing_error"
        _forbid(no_error, column, reading.ids, error, remedy, "error")
    elif feature.missing_error == "nearest":
        rule = f"no error: median error of the {NEAREST} sources nearest in value"
        decide(no_error, column, rule)
        error = _nearest_error(x, error, no_error, ~missing & ~no_error, column)
    elif feature.missing_error == "exact":
        error = np.where(decide(no_error, column, "no error: taken as exact"), 0.0, error)
    else:
        missing = missing | decide(no_error, column, "no error: not measured")
    return np.where(missing, np.nan, x), np.where(missing, np.inf, error)


def limit_marks(reading: Reading, feature: Feature) -> np.ndarray:
    """[n] −1 where the column marks the value as an upper limit, 1 as a lower one, else 0."""
    if not feature.limit_flag:
        return np.zeros(len(reading.table))
    marks = text(reading.table, feature.limit_flag)
    for i, mark in enumerate(marks.tolist()):
        if mark not in MARKS:
            raise InputError(
                f"column '{feature.limit_flag}', row {i} ({reading.ids[i]}): '{mark}' is no mark of"
                " a limit; marks are < and >, and nothing where the value is measured. Where limits"
                f" have no error give upper_limit = '{feature.column}' (of magnitudes lower_limit)"
                " in place of limit_flag"
            )
    return np.array([MARKS[mark] for mark in marks.tolist()])


def positive_error(
    reading: Reading,
    feature: Feature,
    columns: Sequence[str],
    value: str,
    needed: np.ndarray,
    *,
    unit: str = "",
) -> np.ndarray:
    """One sigma of the column `value` from its error column, or its lower and its upper one; these,
    and pairs (n, 2) of one column, are symmetrised.

    In `unit`, or without one in the value's. A column that states no unit has the value's. NaN
    where there is none, inf where it is infinite or an inverse variance 0. Negative errors are
    refused in the rows `needed`; but the lower of two columns, or one side of a pair, may be
    written as −σ, in every row then. Errors of 0 are none where the feature says so, on either
    side.
    """
    power, sigma = KINDS[feature.error_kind]
    sides = [_side(reading, feature, each, value, unit, pair=len(columns) == 1) for each in columns]
    stored, values = (np.column_stack(parts) for parts in zip(*sides))
    if values.shape[1] == 2 and power == 1:
        _refuse_bounds(reading, feature, columns, value, np.where(needed, values.T, np.nan), unit)
    signed = _signed(reading, feature, columns, np.where(needed[:, None], values, np.nan))
    # 4FGL-DR4 writes -inf for the Crab's; of an infinite inverse variance the error would be 0.
    nothing = np.isinf(values) if power < 0 else np.isneginf(values) & ~signed
    values[nothing] = np.nan
    k = values.shape[1]
    column_of = (*columns, *columns)[:k]
    negative = (values < 0) & ~signed & needed[:, None]
    _refuse_or_note(reading, feature, column_of, values, negative)
    values[negative.any(axis=1)] = np.nan
    for column in columns:
        here = [each == column for each in column_of]
        used = needed[:, None] & np.isfinite(values[:, here])
        _remark_on_errors(reading, feature, column, stored[:, here], used)
    with np.errstate(divide="ignore"):
        values = sigma(np.abs(values))
    if feature.zero_error == "missing":
        values[values == 0] = np.nan
    if k == 1:
        return values[:, 0]
    one = needed & (np.isnan(values).sum(axis=1) == 1)
    rule = "one side of the error is missing: the other stands for both"
    told = any((each.column, each.rule) == (value, rule) for each in reading.decisions)
    if one.any() and not told:  # of bands that several features share
        reading.decide(one, value, rule)
    return symmetric_error(values[:, 0], values[:, 1])


def _side(
    reading: Reading, feature: Feature, column: str, value: str, unit: str, pair: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of a column as they stand there, and in the unit."""
    power = KINDS[feature.error_kind][0]
    stated, own = unit_of(reading.table, value), unit_of(reading.table, column)
    if own and not (unit or stated):
        reading.remarks.stated_by_one(column, own, value)
    stored = reading.numbers(feature, column, pair)
    wanted = unit or stated
    factor = conversion(reading.table, column, wanted, stated, power, of_errors=True)
    return stored, stored * factor


def _refuse_bounds(
    reading: Reading,
    feature: Feature,
    columns: Sequence[str],
    value: str,
    sides: np.ndarray,
    unit: str,
) -> None:
    """Refuse a pair (2, n) that encloses the value: as errors bounds would be far too large. Faint
    counts lie between their errors, too, which are called so."""
    if all(map(is_called_an_error, columns)):
        return
    x = reading.numbers(feature, value) * conversion(reading.table, value, unit)
    if are_bounds(x, *sides):
        listed = " and ".join(f"'{shown(column)}'" for column in columns)
        raise InputError(
            f"feature '{feature.name}': the errors in {listed} are bounds of '{shown(value)}',"
            " which lies between them; make columns of value - lower and upper -"
            " value, and name these two as its error"
        )


def _refuse_or_note(
    reading: Reading,
    feature: Feature,
    column_of: Sequence[str],
    values: np.ndarray,
    negative: np.ndarray,
) -> None:
    """Refuse errors (n, k) that are negative, or note them where they are none by the schema."""
    power = KINDS[feature.error_kind][0]
    what = "errors are 1-sigma, positive" if power == 1 else f"no {feature.error_kind}"
    remedy = (
        f"{what}; correct the file, or say that such a value has no error: negative_error ="
        " 'missing' in the schema or mapping, or sentinels = [...]"
    )
    for column in dict.fromkeys(column_of):
        here = [each == column for each in column_of]
        rows = np.asarray(negative[:, here].any(axis=1))
        if feature.negative_error == "forbid":
            smallest = np.nanmin(values[:, here], axis=1, initial=np.inf)
            _forbid(rows, column, reading.ids, smallest, remedy)
        else:
            reading.decide(rows, column, "negative: no error")


def _signed(
    reading: Reading, feature: Feature, columns: Sequence[str], errors: np.ndarray
) -> np.ndarray:
    """(k,) which side of errors (n, k) is written as −σ: the lower of two columns, or one of a
    pair."""
    if errors.shape[1] == 1:
        return np.array([False])

    def signed(column: str, side: int) -> bool:
        return reading.remarks.signed(feature.name, column, errors[:, side])

    if len(columns) == 2:
        return np.array([signed(columns[0], 0), False])
    first = signed(f"{columns[0]}[0]", 0)
    return np.array([first, not first and signed(f"{columns[0]}[1]", 1)])


def _error_columns(reading: Reading, feature: Feature) -> tuple[str, ...]:
    """The column of errors, or the lower and the upper; none of an exact value."""
    column: str | Sequence[str] | None = feature.error
    if column is None:
        column = error_column(reading.table, feature.column)
    if column is None:
        reading.remarks.without_error(_without_error(reading.table, feature))
    if column is None or column == "none":
        return ()
    if not isinstance(column, str) and len(column) != 2:
        raise InputError(f"feature '{feature.name}': error needs one column or [lower, upper]")
    return (column,) if isinstance(column, str) else tuple(column)


def _error(
    reading: Reading, feature: Feature, columns: Sequence[str], needed: np.ndarray
) -> np.ndarray:
    """1-sigma error in the feature's unit; 0 where the catalog gives none; NaN where missing."""
    if not columns:
        return np.zeros(len(reading.table))
    return positive_error(reading, feature, columns, feature.column, needed, unit=feature.unit)


def _without_error(table: Table, feature: Feature) -> str:
    similar = similar_names(feature.column, table.colnames)
    hint = f"; is it in {' or '.join(repr(shown(name)) for name in similar)}?" if similar else ""
    return f"'{feature.name}' (column '{shown(feature.column)}'{hint})"


def refuse_suspects(
    reading: Reading,
    feature: Feature,
    column: str,
    values: np.ndarray,
    used: np.ndarray | None = None,
) -> None:
    """Refuse numbers of a feature's column that can only stand for "no value"; remark upon those
    that may, and upon all of them where the feature declares its own: those may be of another
    table.

    used   those of the values that matter; None: all
    """
    if reading.has_only_values(feature):
        return
    # What the schema declares for others the feature has said to be a value.
    values = values[~is_sentinel(values, reading.schema.sentinels or ())]
    found = suspects(values)
    if used is not None:
        found = [suspect for suspect in found if is_sentinel(used, [suspect.number]).any()]
        values = used
    for suspect in found:
        if suspect.certain and feature.sentinels is None:
            known = [f"{one:.10g}" for one in (*reading.sentinels(feature), suspect.number)]
            raise InputError(
                f"column '{shown(column)}' of feature '{feature.name}' holds"
                f" {suspect.number:.10g} in {suspect.count} rows, far from all other values, which"
                " looks like 'not measured'; say so in the schema or mapping, sentinels ="
                f" [{', '.join(known)}], or, if it is a value, sentinels = [] for this feature"
            )
    reading.remarks.cells(feature.name, column, values, found)


def _remark_on_errors(
    reading: Reading, feature: Feature, column: str, stored: np.ndarray, used: np.ndarray
) -> None:
    """Remark upon 99.99 among errors, far from all others, which makes a value next to unknown."""
    if not reading.has_only_values(feature):
        values = stored.T[used.T]  # of a pair the lower, then the upper
        found = [one for one in suspects(values) if one.certain and one.number not in PERHAPS]
        reading.remarks.errors(feature.name, column, values, found)


def _nearest_error(
    x: np.ndarray, error: np.ndarray, rows: np.ndarray, known: np.ndarray, column: str
) -> np.ndarray:
    """`error` with `rows` filled: median known error of the NEAREST sources nearest in value."""
    if rows.any() and not known.any():
        raise InputError(f"no row of column '{column}' has an error; choose another missing_error")
    error = error.copy()
    known_x, known_error = x[known], error[known]
    for i in np.flatnonzero(rows):
        nearest = np.argsort(np.abs(known_x - x[i]), kind="stable")[:NEAREST]
        error[i] = np.median(known_error[nearest])
    return error


def _forbid(
    rows: np.ndarray, column: str, ids: np.ndarray, values: np.ndarray, remedy: str, what: str = ""
) -> None:
    if rows.any():
        i = int(np.flatnonzero(rows)[0])
        raise InputError(
            f"column '{column}', row {i} ({ids[i]}): {what + ' ' if what else ''}{values[i]:g}"
            f" ({int(rows.sum())} such in all); {remedy}"
        )
