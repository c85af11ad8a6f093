"""Quality cuts: `Signif_Avg > 30 and Flags == 0`, comparisons of a column with a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.cells import number
from gpal.catalog.columns import numbers
from gpal.catalog.schema import Schema, close_matches
from gpal.errors import InputError

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

    A value that is missing passes no cut.
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
            with np.errstate(invalid="ignore"):
                passed &= OPERATORS[symbol](values, bound) & ~np.isnan(values)
    return passed
