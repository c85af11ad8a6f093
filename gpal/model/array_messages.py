"""What is wrong with plain arrays and frames, by column and row: scikit-learn's own messages say
neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gpal.errors import InputError, shown

__all__ = ["refuse_missing_labels", "refuse_text"]


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


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None or value is pd.NA
    return True


def refuse_text(X: Any) -> None:
    """InputError for the first value of a table that is no number."""
    if np.ndim(X) != 2:
        return
    frame = pd.DataFrame(X)
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(values):
            continue
        text = np.array([not _is_number(value) for value in values])
        if text.any():
            row = int(np.argmax(text))
            raise InputError(
                f"column '{shown(column)}', row {row} is '{shown(values.iloc[row])}', which is no"
                f" number ({int(text.sum())} such in all); leave the column out, or code it"
            )
