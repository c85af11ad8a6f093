"""Sources as a fitted model knows them: its features, by name, in its order and units."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpal.arrays import columns_at, feature_names
from gpal.errors import InputError, shown
from gpal.measurements import Measurements

__all__ = ["by_name", "check_packed", "frame_by_name", "in_units"]

NO_SIGMA = re.compile("var|low|up|high")  # an inverse variance, a bound
TRANSFORMED = re.compile(r"(log10|ln|sqrt|asinh)\((.*)\)")  # as Measurements.transform writes units


def by_name(sources: Measurements, known: Sequence[str]) -> Measurements:
    """The features `known`, in that order; InputError where one is not there."""
    _refuse_missing(known, sources.names)
    return sources if list(sources.names) == list(known) else sources.select(list(known))


def frame_by_name(X: Any, X_err: Any, X_cov: Any, known: Sequence[str]) -> tuple[Any, Any, Any]:
    """(X, X_err, X_cov) of a data frame X with the columns `known`, in that order.

    Errors that are no data frame follow the columns of X as they were given.
    """
    known = list(known)
    columns = feature_names(X)
    if columns == known:
        return X, X_err, X_cov
    _refuse_missing(known, columns)
    for name in known:
        if columns.count(name) > 1:
            raise InputError(f"X has {columns.count(name)} columns '{name}'; keep one")
    order = [columns.index(name) for name in known]
    found = feature_names(X_err)
    if hasattr(X_err, "columns") or set(found) & set(columns):
        _refuse_missing(known, found, "X_err")
        X_err = columns_at(X_err, [found.index(name) for name in known])
    elif np.ndim(X_err):
        X_err = np.asarray(X_err)
        _refuse_other_width("X_err", X_err.shape[-1], columns)
        X_err = X_err[..., order]
    if X_cov is not None:
        X_cov = np.asarray(X_cov)
        _refuse_other_width("X_cov", X_cov.shape[-1], columns)
        X_cov = X_cov[:, order][:, :, order]
    return columns_at(X, order), X_err, X_cov


def in_units(sources: Measurements, wanted: Sequence[str]) -> Measurements:
    """In the units `wanted`, one per feature; where either is not stated the numbers stay.

    Raises InputError for units that do not differ by a factor.
    """
    offset, width = np.zeros(len(wanted)), np.ones(len(wanted))
    for j, (name, unit, other) in enumerate(zip(sources.names, sources.units, wanted)):
        if unit and other and unit != other:
            offset[j], width[j] = _conversion(name, unit, other)
    if not offset.any() and (width == 1).all():
        return sources
    units = tuple(unit or other for unit, other in zip(wanted, sources.units))
    return replace(sources.scale(offset, width), units=units)


def check_packed(columns: Sequence[str]) -> None:
    """InputError where a column in the second half of a packed frame is by its name the error of
    another than its partner in the first, a warning where it is by its name nobody's."""
    from gpal.catalog.error_names import error_names, similar_names

    half = len(columns) // 2
    of = {error: value for value in columns for error in _flat(error_names(value, columns))}
    remedy = "give [X | X_err] whole and in one order, with no step before that chooses columns"
    unsaid = []
    for value, error in zip(columns[:half], columns[half:], strict=True):
        like_one = similar_names(value, [error]) and not NO_SIGMA.search(error.lower())
        if error == value or like_one or of.get(error) == value:
            continue
        taken = f"'{error}' for the error of '{value}'"
        if error in of:
            raise InputError(
                f"packed=True takes {taken}, and by its name it is that of '{of[error]}': {remedy}"
            )
        unsaid.append(taken)
    if unsaid:
        warnings.warn(
            f"packed=True takes {', '.join(unsaid)}, which the names do not say: {remedy}",
            stacklevel=6,
        )


def _flat(names: Sequence[str | tuple[str, str]]) -> list[str]:
    return [each for name in names for each in ((name,) if isinstance(name, str) else name)]


def _conversion(name: str, found: str, wanted: str) -> tuple[float, float]:
    """(offset, width) with which x in `found` is (x − offset)/width in `wanted`."""
    from gpal.catalog.units import factor_between

    (transform, inner), (other, target) = _split(found), _split(wanted)
    try:
        if transform != other or transform == "asinh":
            raise ValueError("another transform, or one whose unit cannot be changed after it")
        factor = factor_between(inner, target)
    except ValueError:
        raise InputError(
            f"feature '{name}' is in '{shown(found)}', the model was fitted to '{shown(wanted)}',"
            " and they do not convert; give it in that unit"
        ) from None
    if transform in ("log10", "ln"):
        return (-np.log10(factor) if transform == "log10" else -np.log(factor)), 1.0
    return 0.0, 1.0 / (np.sqrt(factor) if transform == "sqrt" else factor)


def _split(unit: str) -> tuple[str, str]:
    """'log10(mJy)' -> ('log10', 'mJy')."""
    found = TRANSFORMED.fullmatch(unit)
    return (found[1], found[2]) if found else ("", unit)


def _refuse_missing(known: Sequence[str], found: Sequence[str], where: str = "sources") -> None:
    missing = [name for name in known if name not in found]
    if missing:
        raise InputError(
            f"the model was fitted with the feature '{missing[0]}', which the {where} lack;"
            f" they have {shown(', '.join(found), 300)}"
        )


def _refuse_other_width(what: str, width: int, columns: Sequence[str]) -> None:
    if width != len(columns):
        raise InputError(
            f"{what} is for {width} features and X has {len(columns)} columns in another order"
            " than the model's: give it for all of them, in their order, or as a data frame"
        )
