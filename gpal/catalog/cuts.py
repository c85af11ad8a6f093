"""Quality cuts: `Signif_Avg > 30 and Flags == 0`, comparisons of a column with a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.cells import LARGEST_WHOLE, number
from gpal.catalog.columns import numbers, split
from gpal.catalog.schema import Schema, close_matches
from gpal.catalog.sentinels import is_sentinel
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["apply_cuts", "passing"]

OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def apply_cuts(table: Table, schema: Schema, cuts: str | Sequence[str] | None) -> np.ndarray:
    """`passing`; InputError where no row does."""
    passed = passing(table, schema, cuts)
    if not passed.any():
        raise InputError(f"no source passes the cuts {cuts!r}; loosen them")
    return passed


def passing(table: Table, schema: Schema, cuts: str | Sequence[str] | None) -> np.ndarray:
    """(n,) mask of the rows that pass every cut; a cut is named in the schema or written out.

    A value that is missing passes no cut, and a number that stands for a missing one neither, but
    where the cut names that number itself: `Flags == 0`.
    """
    passed = np.ones(len(table), dtype=bool)
    for cut in [cuts] if isinstance(cuts, str) else cuts or ():
        for comparison in re.split(r"\s+and\s+|\s*&\s*", schema.cuts.get(cut, cut).strip()):
            match = re.fullmatch(r"(\S+?)\s*(>=|<=|==|!=|>|<)\s*(\S+)", comparison)
            try:
                column, symbol, limit = match.groups() if match else ("", "", "")
                bound = number(limit)
                if np.isnan(bound):
                    raise ValueError("no number to compare with")
            except ValueError:
                known = close_matches(cut, schema.cuts)
                raise InputError(
                    f"cannot read the cut '{comparison}'; write 'column > number', or name a cut"
                    f" of the schema ({known})"
                ) from None
            values = numbers(table, column)
            _refuse_long_integers(table, column, values, bound)
            values[is_sentinel(values, _sentinels(schema, column) - {bound})] = np.nan
            with np.errstate(invalid="ignore"):
                passed &= OPERATORS[symbol](values, bound) & ~np.isnan(values)
    return passed


def _refuse_long_integers(table: Table, column: str, values: np.ndarray, bound: float) -> None:
    """InputError where floats, which are compared, do not tell the numbers of a column from the
    bound."""
    name, _ = split(table, column)
    long = abs(bound) >= LARGEST_WHOLE and np.isfinite(bound) and table[name].dtype.kind != "f"
    if long and (values == bound).any():
        raise InputError(
            f"a cut of column '{shown(column)}' at {bound:.0f}: whole numbers beyond 2^53 are not"
            " told apart there; select such sources in Python, catalog[catalog.names == '...']"
        )


def _sentinels(schema: Schema, column: str) -> set[float]:
    """The numbers that stand for no value in a column: those of the features made of it, which may
    have none, else the schema's."""
    own = [f.sentinels for f in schema.features.values() if column in f.columns]
    stated = [sentinels for sentinels in own if sentinels is not None]
    return {number for of_one in stated or [schema.sentinels or ()] for number in of_one}
