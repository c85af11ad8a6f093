"""What a plain array has no place for: masks, units, and names of columns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpal.errors import InputError, shown

__all__ = [
    "first_other",
    "identifiers",
    "plain",
    "refuse_other_columns",
    "refuse_other_rows",
    "rows_of",
    "warn_of_other_rows",
    "words_as_list",
]


def plain(name: str, values: Any) -> Any:
    """Values as they are, NaN where they are masked; InputError for numbers with a unit, which an
    array would lose, and for a table of astropy's, which has units too."""
    if hasattr(values, "colnames"):
        raise InputError(
            f"{name} is an astropy {type(values).__name__}; give {name}.to_pandas(), all of a"
            " feature in one unit, or Measurements, which know their units"
        )
    unit = getattr(values, "unit", None)
    if unit is not None and str(unit):
        raise InputError(
            f"{name} has the unit '{unit}', which an array has no place for; give numbers, all of a"
            f" feature in one unit, as by {name}.to_value(...)"
        )
    return np.ma.filled(values.astype(float), np.nan) if np.ma.is_masked(values) else values


def words_as_list(values: Any) -> Any:
    """Text of NumPy's StringDType as a list, which NumPy makes no text of fixed width of by itself;
    anything else as it is."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    return values.tolist() if kind == "T" else values


def identifiers(values: Any, what: str = "identifier") -> np.ndarray:
    """Names of sources, or `what` they are, as text; InputError for one that is masked, None or
    NaN."""
    values = words_as_list(values)
    if np.ma.is_masked(values):
        missing, is_so = np.ma.getmaskarray(values), "masked"
    else:
        is_text = getattr(getattr(values, "dtype", None), "kind", "") in ("U", "S")
        missing = np.zeros(0, bool) if is_text else pd.isna(np.asarray(values, dtype=object))
        is_so = "missing"
    if np.any(missing):
        remedy = ", or leave ids out" if what == "identifier" else ""
        raise InputError(
            f"the {what} of row {int(np.argmax(missing))} is {is_so} ({int(np.sum(missing))} such"
            f" in all); give every source a name{remedy}"
        )
    return np.asarray(values, dtype=str)


def refuse_other_columns(
    name: str, values: Any, features: Sequence[str], of: str = "features"
) -> None:
    """InputError for a data frame whose columns have names, or a series whose entries have, but not
    those of the features, or what `of` says they are, in their order."""
    names = values.index if isinstance(values, pd.Series) else getattr(values, "columns", ())
    found = [feature for feature in names if isinstance(feature, str)]
    words = [str(feature) for feature in names]
    numbered = not found and set(words) == set(features) and words != list(features)
    if numbered or (found and found != list(features)):
        found = found or words
        raise InputError(
            f"{name} has the columns {shown(', '.join(found), 300)} and the {of} are"
            f" {shown(', '.join(features), 300)}: give {name}[[...]] in the order of the {of}, or"
            f" {name}.to_numpy() if that is what it has"
        )


def refuse_other_rows(X: Any, X_err: Any) -> None:
    """InputError where these are two data frames of one length with another index."""
    frames = isinstance(X, pd.DataFrame) and isinstance(X_err, pd.DataFrame)
    if frames and len(X) == len(X_err) and not X.index.equals(X_err.index):
        i = first_other(X.index, X_err.index)
        raise InputError(
            f"row {i} of X is '{shown(X.index[i])}' and of X_err '{shown(X_err.index[i])}': give"
            " X_err.loc[X.index], or X_err.to_numpy() if the rows are in the same order"
        )


def first_other(index: pd.Index, other: pd.Index) -> int:
    """The first place at which two indices differ."""
    return next((i for i, (a, b) in enumerate(zip(index, other)) if a != b), 0)


def rows_of(rows: Any, n: int) -> np.ndarray:
    """The numbers of the rows that a slice, indices or a mask choose of n; a masked cell of a
    comparison chooses none."""
    if getattr(rows, "dtype", None) == "boolean":  # of pandas, which may be missing
        rows = rows.to_numpy(dtype=bool, na_value=False)
    if np.ma.is_masked(rows):
        if rows.dtype.kind != "b":
            raise InputError("row numbers are masked: leave out those that are")
        rows = rows.filled(False)
    return np.atleast_1d(np.arange(n)[rows])


def warn_of_other_rows(X: Any, stacklevel: int = 5, **beside: Any) -> None:
    """Labels or weights of another index than X's are taken row by row, as scikit-learn does, which
    also shuffles them so on purpose; said, as it is often a mistake."""
    for name, values in beside.items():
        if (
            isinstance(X, pd.DataFrame)
            and isinstance(values, pd.Series | pd.DataFrame)
            and len(X) == len(values)
            and not X.index.equals(values.index)
        ):
            i = first_other(X.index, values.index)
            warnings.warn(
                f"row {i} of X is '{shown(X.index[i])}' and of {name} '{shown(values.index[i])}':"
                f" they are taken row by row; give {name}.loc[X.index] if they go by the index,"
                f" {name}.to_numpy() if they do not",
                stacklevel=stacklevel,
            )
