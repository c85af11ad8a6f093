"""What a caller has in place of Measurements: arrays or data frames, and errors beside them.

Features go by their names where there are any, and rows by their place: a frame of errors whose
index is another than that of its values is refused. Names are text; columns numbered 0 to d - 1 in
order, as pandas numbers them, are no names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpal.array_messages import as_numbers, errors_of_all
from gpal.errors import InputError, shown
from gpal.measurements import Measurements
from gpal.plain_values import plain, refuse_other_rows

__all__ = [
    "as_measurements",
    "columns_at",
    "errors_beside",
    "feature_names",
    "with_text_names",
]


def as_measurements(
    X: Any, X_err: Any = None, X_cov: Any = None, *, names: Sequence[str] | None = None
) -> Measurements:
    """What a caller has, as one object: Measurements as they are, or arrays with their errors.

    X      Measurements, or values (n, d), an array or a data frame whose columns give the names
    X_err  1-sigma errors, (n, d), (d,) or one number; None: exact values
    X_cov  (n, d, d) covariances of the errors instead, inf on the diagonal where not measured
    names  of the features; None: the columns of a data frame, or their numbers

    Raises InputError on errors beside Measurements, which have their own, on both kinds of errors,
    on shapes that do not fit, on what is no number, and on numbers with units.
    """
    if isinstance(X, Measurements):
        if X_err is not None or X_cov is not None:
            raise InputError("Measurements carry their errors: leave X_err and X_cov out")
        return X
    if X_err is not None and X_cov is not None:
        raise InputError("give X_err or X_cov, not both: the errors are X_cov's diagonal")
    columns = getattr(X, "columns", None)
    X_err = errors_beside(X, X_err)
    values = as_numbers("X", plain("X", X))
    if values.ndim != 2:
        raise InputError(f"X must be two-dimensional (sources, features), got shape {values.shape}")
    n, d = values.shape
    if names is None:
        names = [str(name) for name in (range(d) if columns is None else columns)]
    if X_cov is not None:
        X_cov = as_numbers("X_cov", plain("X_cov", X_cov))
        if X_cov.shape != (n, d, d):
            raise InputError(f"X_cov has shape {X_cov.shape}, X has {(n, d)}: give {(n, d, d)}")
        X_err = _errors_of(X_cov, names)
    X_err = errors_of_all(0.0 if X_err is None else X_err, (n, d))
    return Measurements(values, X_err, tuple(names), covariance=X_cov)


def _errors_of(X_cov: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """(n, d) standard deviations; InputError for a negative variance."""
    variance = np.einsum("ndd->nd", X_cov)
    negative = variance < 0
    if negative.any():
        i, j = np.argwhere(negative)[0]
        raise InputError(
            f"column '{names[j]}', row {i} has negative variance {variance[i, j]:g}"
            f" ({int(negative.sum())} such in all); the diagonal of X_cov holds squares of"
            " 1-sigma standard deviations"
        )
    return np.sqrt(variance)


def errors_beside(X: Any, X_err: Any, names: Sequence[str] | None = None) -> Any:
    """X_err as it goes with X: where both are data frames, with X's columns in their order; so too
    a Series of an error per feature. InputError where their names or rows are others.

    names   of the columns of X, where it has none of its own
    """
    if X_err is None:
        return None
    X_err = plain("X_err", X_err)
    names, found = list(names or feature_names(X)), feature_names(X_err)
    refuse_other_rows(X, X_err)
    if names == found or not set(names) & set(found):
        return X_err
    if sorted(names) != sorted(found):
        raise InputError(
            f"X_err has {'errors for' if isinstance(X_err, pd.Series) else 'the columns'}"
            f" {shown(', '.join(found), 300)} and X has {shown(', '.join(names), 300)}: give an"
            " error for each, under the same name"
        )
    return columns_at(X_err, [found.index(name) for name in names])


def feature_names(values: Any) -> list[str]:
    """As text: the columns of a data frame, or what a Series of a number per feature goes by."""
    names = values.index if isinstance(values, pd.Series) else getattr(values, "columns", ())
    return [str(name) for name in names]


def with_text_names(X: Any, places: bool = True) -> Any:
    """A data frame with its columns' names as text, as scikit-learn knows no others.

    places   leave a frame as it is whose columns are numbered 0 to d - 1: it has no names
    """
    if not isinstance(X, pd.DataFrame) or all(isinstance(name, str) for name in X.columns):
        return X
    if places and list(X.columns) == list(range(X.shape[1])):
        return X
    return X.set_axis([str(name) for name in X.columns], axis=1)


def columns_at(frame: Any, order: Sequence[int]) -> Any:
    """Columns of a data frame, or entries of a Series, by place, whatever their names are."""
    if isinstance(frame, pd.Series):
        return frame.iloc[list(order)]
    if hasattr(frame, "iloc"):
        return frame.iloc[:, list(order)]
    return frame[[frame.columns[j] for j in order]]
