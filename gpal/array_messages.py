"""What is wrong with plain arrays and frames, by column and row: other libraries' messages say
neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gpal.errors import InputError, as_python, shown

__all__ = [
    "as_numbers",
    "errors_of_all",
    "refuse_masked",
    "refuse_missing_labels",
    "refuse_mixed_labels",
    "refuse_text",
]

NOT_NUMBERS = "Mmc"  # NumPy's kinds: dates, spans of time and complex numbers


def refuse_masked(**arrays: Any) -> None:
    """InputError where a cell of one is masked: what lies under a mask is no value."""
    for name, array in arrays.items():
        if np.ma.is_masked(array):
            row = int(np.argwhere(np.ma.getmaskarray(array))[0][0])
            raise InputError(f"row {row} of {name} is masked: leave out what has no value")


def refuse_missing_labels(y: Any) -> None:
    """InputError for NaN or None among labels or responses, (n,) or a column (n, 1)."""
    if np.ndim(y) != 1 and np.shape(y)[1:] != (1,):
        return
    # Of a list of text NumPy would make text of NaN: 'nan'.
    labels = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    missing = np.ravel(pd.isna(labels))
    if missing.any():
        raise InputError(
            f"Input y contains NaN: row {int(np.argmax(missing))} ({int(missing.sum())} such in"
            " all); leave out such sources"
        )


def refuse_mixed_labels(labels: Any, rows: Any = None) -> None:
    """InputError for text and numbers among labels, of which NumPy would make text: 5 and '5' would
    be one class.

    rows   what to call the rows; None: their numbers
    """
    first: tuple[int, Any] | None = None
    for i, entry in enumerate(labels):
        for name in entry if isinstance(entry, set | frozenset | Mapping) else (entry,):
            if isinstance(name, list | tuple | np.ndarray):
                continue  # no class, which is refused elsewhere
            first = first or (i, name)
            if isinstance(name, str) != isinstance(first[1], str):
                row, other = (k if rows is None else rows[k] for k in (i, first[0]))
                raise InputError(
                    f"the label of row {row} is {shown(repr(as_python(name)))} and that of row"
                    f" {other} {shown(repr(as_python(first[1])))}: give all as text or all as"
                    " numbers"
                )


def as_numbers(what: str, values: Any) -> np.ndarray:
    """A float64 array, NaN for what is missing; InputError for what is no number, a date included,
    of which NumPy would make one."""
    try:
        if isinstance(values, pd.DataFrame | pd.Series):
            kinds = {getattr(kind, "kind", "O") for kind in np.ravel(values.dtypes)}
            if not kinds & set(NOT_NUMBERS):
                return values.to_numpy(dtype=float, na_value=np.nan)
        elif np.asarray(values).dtype.kind not in NOT_NUMBERS:
            return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        pass
    axes = _axes(values)
    if axes == 2:
        refuse_text(values, of="" if what == "X" else f" of {what}")
    flat = [] if axes != 1 else [i for i, value in enumerate(values) if not _is_number(value)]
    if flat:
        raise InputError(
            f"row {flat[0]} of {what} is '{shown(list(values)[flat[0]])}', which is no number"
            f" ({len(flat)} such in all); give numbers"
        )
    raise InputError(f"{what} is {shown(repr(values))}, of which no array of numbers can be made")


def errors_of_all(X_err: Any, shape: tuple[int, int]) -> np.ndarray:
    """(n, d) errors of values of that shape; InputError where they are neither that, nor (d,), nor
    one number: a column alone is of one feature."""
    X_err = as_numbers("X_err", X_err)
    if X_err.ndim and X_err.shape not in (shape, shape[1:]):
        raise InputError(
            f"X_err has shape {X_err.shape}, X has {shape}: give the same shape, one error"
            " per feature, or a scalar"
        )
    return np.array(np.broadcast_to(X_err, shape))


def _axes(values: Any) -> int | None:
    try:
        return np.ndim(values)
    except ValueError:  # rows of several lengths
        return None


def _is_number(value: Any) -> bool:
    if isinstance(value, complex | np.complexfloating | np.datetime64 | np.timedelta64):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def refuse_text(X: Any, of: str = "") -> None:
    """InputError for the first value of a table that is no number; `of` which table. Of a mapping
    the TypeError of scikit-learn stands, for which its own checks ask."""
    if np.ndim(X) != 2 or hasattr(X, "toarray"):  # sparse
        return
    frame = pd.DataFrame(X)
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(values):
            continue
        text = np.array([not _is_number(value) for value in values])
        if text.any():
            row = int(np.argmax(text))
            found = values.iloc[row]
            if isinstance(found, Mapping):
                return
            remedy = "leave the column out, or code it"
            if found is pd.NA:
                remedy = "give NaN, and X_err=inf there if not measured"
            raise InputError(
                f"column '{shown(column)}', row {row}{of} is '{shown(found)}', which is no"
                f" number ({int(text.sum())} such in all); {remedy}"
            )
