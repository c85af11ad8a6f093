"""The door of the estimators: arrays, frames and Measurements become checked Measurements.

Features are found by name and come in the order and the units of the fit; a model that was fitted
with error bars does not silently predict without them. Every refusal names column, row and remedy.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gpal.array_messages import as_numbers, refuse_masked, refuse_missing_labels, refuse_text
from gpal.arrays import (
    as_measurements,
    errors_beside,
    feature_names,
    with_text_names,
)
from gpal.errors import InputError, shown
from gpal.measurements import NO_ARRAY, Measurements, unpack
from gpal.model.known_features import by_name, check_packed, frame_by_name, in_units
from gpal.model.labels import labels_as_given
from gpal.plain_values import plain, warn_of_other_rows

__all__ = ["Door"]


class Door(BaseEstimator):
    """What comes in is X with errors in it (Measurements, packed) or beside it (X_err, X_cov)."""

    takes_measurements = True
    y_numeric = False
    # Seen by type checkers: of every subclass.
    packed: bool
    units_in_: tuple[str, ...]
    X_err_given_: bool
    exact_inputs_: bool

    def as_fitted(self, X: Any, X_err: Any = None, X_cov: Any = None) -> Measurements:
        """The sources with the features of the fit alone, in its order and units.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.

        Returns
        -------
        Measurements
        """
        check_is_fitted(self)
        return self._at_the_door(X, X_err, X_cov)

    def _at_the_door(self, X: Any, X_err: Any, X_cov: Any) -> Measurements:
        """Sources to predict, with the features of the fit in its order."""
        return self._received(X, None, X_err, X_cov, reset=False)[0]

    def _received(
        self, X: Any, y: Any, X_err: Any, X_cov: Any, reset: bool
    ) -> tuple[Measurements, Any]:
        """Sources and checked responses; `reset` when they are to be learned from."""
        from gpal.model.settings import check_values

        if reset:
            check_values(self)
        if isinstance(X, Measurements):
            sources, y = self._received_measurements(as_measurements(X, X_err, X_cov), y, reset)
            errors_given = True
        else:
            errors_given = self.packed or X_err is not None or X_cov is not None
            sources, y = self._received_arrays(X, y, X_err, X_cov, reset)
        if reset:
            self.X_err_given_ = errors_given
        elif self.X_err_given_ and not errors_given:
            raise InputError(
                "the model was fitted with error bars: pass X_err, or X_err=0 for exact inputs"
            )
        elif self.exact_inputs_ and (sources.measured & (sources.X_err > 0)).any():
            raise InputError(
                "the model was fitted to exact inputs: fit it with X_err to predict with error bars"
            )
        return sources, y

    def _received_measurements(
        self, sources: Measurements, y: Any, reset: bool
    ) -> tuple[Measurements, Any]:
        """Features are found by name, and converted to the units of the fit."""
        if self.packed:
            raise InputError("packed=True is for arrays [X | X_err]; Measurements need no packing")
        known = getattr(self, "feature_names_in_", None)
        if not reset and known is not None and sources.named:
            sources = in_units(by_name(sources, list(known)), self.units_in_)
        elif not reset and sources.named:
            warnings.warn(
                "the model was fitted without names of features:"
                f" {shown(', '.join(sources.names), 300)} are taken for its features in this order;"
                " fit it to Measurements or a data frame and they are found by name",
                stacklevel=5,
            )
        values: Any = sources.X
        if sources.named and (reset or known is not None):
            values = pd.DataFrame(values, columns=list(sources.names))
        _, y = self._checked(values, y, reset)
        if reset:
            self.units_in_ = sources.units
        return sources, y

    def _received_arrays(
        self, X: Any, y: Any, X_err: Any, X_cov: Any, reset: bool
    ) -> tuple[Measurements, Any]:
        if isinstance(X, list | tuple) and any(isinstance(row, Measurements) for row in X):
            raise InputError(NO_ARRAY)  # as scikit-learn's splitters leave them
        warn_of_other_rows(X, y=y)
        X = plain("X", X)
        if not reset and (known := self._known_names(X)):
            X, X_err, X_cov = frame_by_name(X, X_err, X_cov, known)
        elif not reset and hasattr(self, "feature_names_in_") and not feature_names(X):
            X_err = errors_beside(X, X_err, list(self.feature_names_in_))
        X_err = errors_beside(X, X_err)
        X = with_text_names(X, places=reset or not hasattr(self, "feature_names_in_"))
        if self.packed:
            if X_err is not None or X_cov is not None:
                raise InputError("packed=True takes the errors from X = [X | X_err]; drop X_err")
            packed, y = self._checked(X, y, reset)
            X, X_err = unpack(packed)
            if reset:
                check_packed(list(getattr(self, "feature_names_in_", ())))
        else:
            X, y = self._checked(X, y, reset)
        if reset:
            self.units_in_ = ("",) * X.shape[1]
        elif X.shape[1] != len(self.units_in_):
            raise InputError(
                f"the model was fitted with packed={not self.packed}, and has packed={self.packed}"
                " now: set it as it was, or fit again"
            )
        names = None if self.packed else getattr(self, "feature_names_in_", None)
        return as_measurements(X, X_err, X_cov, names=names), y

    def _known_names(self, X: Any) -> list[str]:
        """The names to find in a data frame; of a model without names, where the columns of the
        frame are numbered, the numbers."""
        if not hasattr(X, "columns"):
            return []
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        numbered = not any(isinstance(name, str) for name in X.columns)
        return [str(j) for j in range(self.n_features_in_)] if numbered else []

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[np.ndarray, Any]:
        """As scikit-learn has them; what is not finite in X is for Measurements to refuse."""
        options: dict[str, Any] = {"dtype": np.float64, "reset": reset, "ensure_all_finite": False}
        y = self._checked_response(y)
        try:
            if y is None and not reset:
                return validate_data(self, X, **options), None
            return validate_data(self, X, y, y_numeric=self.y_numeric, **options)
        except (TypeError, ValueError):
            refuse_text(X)
            refuse_missing_labels(y)
            raise

    def _checked_response(self, y: Any) -> Any:
        """Labels as they were given, or numbers."""
        if y is None:
            return None
        refuse_masked(y=y)
        kind = getattr(getattr(y, "dtype", None), "kind", "")
        if not self.y_numeric or kind == "c":
            return labels_as_given(y)
        y = plain("y", y)
        if kind or isinstance(y, list | tuple):  # else another kind of array, not yet one
            refuse_missing_labels(y)
        return as_numbers("y", y)
