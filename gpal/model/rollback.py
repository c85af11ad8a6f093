"""An estimator whose fit is refused stays what it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["as_it_was_on_error"]


@contextmanager
def as_it_was_on_error(estimator: Any) -> Iterator[None]:
    """Else an old model would predict with the classes, the features and the scaling of data that
    were refused."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
