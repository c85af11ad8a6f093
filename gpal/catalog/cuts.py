"""Quality cuts: `Signif_Avg > 30 and Flags == 0`, comparisons of a column with a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.cells import LARGEST_WHOLE, number
from gpal.catalog.columns import as_stored, error_column, numbers, split
from gpal.catalog.crossmatch import Positions
from gpal.catalog.schema import Feature, Schema, close_matches
from gpal.catalog.sentinels import is_sentinel
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

    from gpal.catalog.catalog import Catalog

__all__ = ["cut", "passing", "read_beside", "sentinels_of"]

OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def cut(catalog: Catalog, cuts: str | Sequence[str] | None) -> Catalog:
    """The sources `passing`, and where the others were; InputError where none passes."""
    passed = passing(catalog.table, catalog.schema, cuts)
    if not passed.any():
        raise InputError(f"no source passes the cuts {cuts!r}; loosen them")
    if passed.all():
        return catalog
    every = Positions.uncut(catalog)
    absent = np.ones(len(every.names), dtype=bool)
    absent[: len(passed)] = ~passed
    return replace(catalog[passed], cut_away=every[absent])


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
            absent = sentinels_of(table, schema, column)
            values[is_sentinel(values, absent - {bound})] = np.nan
            bound = as_stored(table, column, bound)
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


def sentinels_of(table: Table, schema: Schema, column: str) -> set[float]:
    """The numbers that stand for no value in a column: those of the features made of it, which may
    have none, else of all that read it, as an error or a limit, else the schema's."""
    features = schema.features.values()
    stated = [f.sentinels for f in features if column in f.columns and f.sentinels is not None]
    if not stated:
        names = {column, split(table, column)[0]}  # F_err[0] of a pair is of the error F_err
        reading = [
            f.sentinels for f in features if names & {*f.columns, *read_beside(table, schema, f)}
        ]
        if not reading:
            return set(schema.sentinels or ())
        stated = [schema.sentinels or () if own is None else own for own in reading]
    return {number for of_one in stated for number in of_one}


def read_beside(table: Table, schema: Schema, feature: Feature) -> Iterator[str]:
    """The columns that a feature reads beside its values."""
    yield from (feature.requires, *feature.limit_columns)
    for band in (schema.bands[name] for name in feature.hardness):
        yield from (band.nuFnu, band.flux, *_as_tuple(band.error))
    if feature.error is not None:
        yield from _as_tuple(feature.error)
        return
    for column in feature.columns:
        with suppress(InputError):  # of a feature that nobody asks for, and is not in this table
            yield from _as_tuple(error_column(table, column) or ())


def _as_tuple(columns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else columns
