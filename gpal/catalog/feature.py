"""One feature of a schema: of which columns it is made, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpal.errors import InputError
from gpal.measurements import TRANSFORMS

__all__ = ["NO_LIMIT", "Feature"]

SOURCES = ("column", "difference", "ratio", "hardness")
MISSING_ERROR = ("not measured", "nearest", "exact", "forbid")
NO_LIMIT = ("", "none")  # in the place of the column of one
FAINTER = ("", "in proportion", "significance", "chi-square")
INVERSES: dict[str, Callable] = {
    "none": lambda x: x,
    "log10": lambda x: 10.0**x,
    "ln": np.exp,
    "sqrt": np.square,
    "asinh": np.sinh,
}
ERROR_KINDS = ("sigma", "variance", "inverse variance", "90 %", "95 %")


@dataclass(frozen=True)
class Feature:
    """One feature: a column, or what is made of two, its error, and its treatment.

    column         column expression, `nuFnu_Band[3]` for one element of an array column
    difference     instead of a column: two columns a, b, giving a − b
    ratio          instead of a column: two columns a, b, giving a/b
    hardness       instead of a column: two bands A, B, giving (E_B − E_A)/(E_B + E_A)
    error          error column, or [lower, upper]; None looks for the usual names; "none": exact;
                   of a difference or ratio: the error columns of both
    unit           unit the value is converted to before the transform
    transform      one of gpal.measurements.TRANSFORMS
    softening      values are divided by it before an asinh: linear below it, a logarithm above
    floor          smaller values are raised to it
    above          values at or below it are not measured
    requires       not measured where this column is not finite
    missing        a value that is not finite is "not measured", or is forbidden: "forbid"
    missing_error  a value without an error is "not measured", takes the error typical of the
                   sources "nearest" in value, is "exact", or is forbidden: "forbid"
    zero_error     an error of 0 is "exact" or "missing"
    negative_error an error below 0 is refused, "forbid", or "missing"
    error_kind     what the error column holds: one of ERROR_KINDS, intervals by their half widths
    sentinels      numbers that stand for "no value" or "no error" here, in place of the schema's
    upper_limit    column (or one number) that a value which was not measured lies below
    lower_limit    or above, as a magnitude does; of a difference or ratio: two columns with the
                   limits of both, "none" where there is none
    limit_flag     column that holds < or > where the value itself is such a limit
    limit_confidence  of the limits, above .5
    fainter        what becomes of the value where a source is seen fainter, see
                   gpal.catalog.fainter: it is "in proportion" to the source's flux, a
                   "significance" or a "chi-square" statistic; "": it scatters as its error says
    degrees_of_freedom  of a "chi-square" statistic: its mean without a signal
    label          for the axis of a figure
    """

    name: str
    column: str = ""
    difference: tuple[str, ...] = ()
    ratio: tuple[str, ...] = ()
    hardness: tuple[str, ...] = ()
    error: str | tuple[str, ...] | None = None
    unit: str = ""
    transform: str = "none"
    softening: float | None = None
    floor: float | None = None
    above: float | None = None
    requires: str = ""
    missing: str = "not measured"
    missing_error: str = "not measured"
    zero_error: str = "exact"
    negative_error: str = "forbid"
    error_kind: str = "sigma"
    sentinels: tuple[float, ...] | None = None
    upper_limit: str | float | tuple[str, ...] | None = None
    lower_limit: str | float | tuple[str, ...] | None = None
    limit_flag: str = ""
    limit_confidence: float = 0.95
    fainter: str = ""
    degrees_of_freedom: float = 0.0
    label: str = ""

    def __post_init__(self) -> None:
        for key, allowed in (
            ("transform", tuple(TRANSFORMS)),
            ("missing", ("not measured", "forbid")),
            ("missing_error", MISSING_ERROR),
            ("zero_error", ("exact", "missing")),
            ("negative_error", ("forbid", "missing")),
            ("error_kind", ERROR_KINDS),
            ("fainter", FAINTER),
        ):
            if getattr(self, key) not in allowed:
                raise InputError(
                    f"feature '{self.name}': {key} = {getattr(self, key)!r} is not one of"
                    f" {', '.join(map(repr, allowed))}"
                )
        sources = [key for key in SOURCES if getattr(self, key)]
        if len(sources) != 1:
            raise InputError(
                f"feature '{self.name}' needs either a 'column' or two columns in 'difference' or"
                " 'ratio', or two bands in 'hardness'"
            )
        if not self.column and len(getattr(self, sources[0])) != 2:
            what = "two bands, low then high" if self.hardness else "two columns"
            raise InputError(f"feature '{self.name}': {sources[0]} needs {what}")
        if len({*self.arithmetic, *self.hardness}) == 1:
            raise InputError(
                f"feature '{self.name}': the {sources[0]} of '{getattr(self, sources[0])[0]}' and"
                " itself is the same for every source; name two different ones"
            )
        errors = (self.error,) if isinstance(self.error, str) else self.error
        exact = self.error is None or self.error == "none"
        if self.arithmetic and not exact and len(errors or ()) != 2:
            raise InputError(
                f"feature '{self.name}': the error of a {sources[0]} is that of both columns,"
                ' error = ["...", "..."]'
            )
        if self.ratio and self.unit:
            raise InputError(f"feature '{self.name}': a ratio is taken in one unit; leave unit out")
        if self.transform in ("log10", "ln") and self.floor is not None and self.floor <= 0:
            raise InputError(f"feature '{self.name}': the floor of a logarithm must be above 0")
        if self.softening is not None and (self.transform != "asinh" or self.softening <= 0):
            raise InputError(
                f"feature '{self.name}': softening is a number above 0, for transform = 'asinh'"
            )

        limits = [self.upper_limit is not None, self.lower_limit is not None, bool(self.limit_flag)]
        if sum(limits) > 1:
            raise InputError(
                f"feature '{self.name}': give one of upper_limit, lower_limit and limit_flag"
            )
        pair = next((x for x in (self.upper_limit, self.lower_limit) if isinstance(x, tuple)), ())
        if any(limits) and (self.hardness or len(pair) != len(self.arithmetic)):
            raise InputError(
                f"feature '{self.name}': a column has one limit, a difference or ratio those of"
                ' both columns, lower_limit = ["...", "none"], a hardness none'
            )
        of_columns = (
            "error",
            "unit",
            "above",
            "requires",
            "missing",
            "missing_error",
            "zero_error",
        )
        for key in of_columns if self.hardness else ():
            if getattr(self, key) != getattr(type(self), key):
                raise InputError(
                    f"feature '{self.name}': a hardness takes no {key}; it is made of its bands,"
                    " and a band without flux or error is not measured"
                )
        ignored = {
            "limit_confidence": not any(limits) and "it has no limit",
            "error_kind": self.error == "none" and "it has no error",
        }
        for key, why in ignored.items():
            if why and getattr(self, key) != getattr(type(self), key):
                raise InputError(f"feature '{self.name}': {key} means nothing where {why}")
        if not 0.5 < self.limit_confidence <= 1:
            raise InputError(
                f"feature '{self.name}': limit_confidence = {self.limit_confidence:g} is no"
                " probability above .5"
            )

        if (self.fainter == "chi-square") != (self.degrees_of_freedom > 0):
            raise InputError(
                f"feature '{self.name}': degrees_of_freedom, above 0, belong to fainter ="
                " 'chi-square', and it needs them"
            )

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Values (n,) after the transform."""
        function, _ = TRANSFORMS[self.transform]
        return function(x / (self.softening or 1.0))

    def backward(self, x: np.ndarray) -> np.ndarray:
        """Those before it, of values after it."""
        return INVERSES[self.transform](x) * (self.softening or 1.0)

    @property
    def limit_columns(self) -> tuple[str, ...]:
        """The columns that its limits are in."""
        limits: list[object] = [self.limit_flag]
        for given in (self.upper_limit, self.lower_limit):
            limits += given if isinstance(given, tuple) else [given]
        return tuple(each for each in limits if isinstance(each, str) and each not in NO_LIMIT)

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """The two columns of a difference or ratio."""
        return self.difference or self.ratio

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made of; those of a hardness ratio are its bands'."""
        return (self.column,) if self.column else self.arithmetic
