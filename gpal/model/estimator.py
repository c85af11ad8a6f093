"""What estimators of inputs with error bars share: validation, scaling, and the way to a fit.

Errors are scaled with their values, sources with values that were not measured are kept, and a
model fitted with error bars does not silently predict without them. Every refusal names column,
row and remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from gpal.errors import InputError
from gpal.measurements import informative, unpack

__all__ = ["NoisyInputEstimator"]


class NoisyInputEstimator(BaseEstimator):
    """A subclass has the constructor's arguments, and says whether y is numeric."""

    y_numeric = False

    # ---- fitting ---------------------------------------------------------------------------------

    def _fit_model(self, fit: Callable, X, y, X_err, X_cov) -> None:
        """`model_`, `settings_` and `bound_` by a function of `gpal.model.fit`, in standardised
        units."""
        self._check_error_model(X.shape[1])
        self._set_scaling(X, X_err)
        self.exact_inputs_ = not (X_err > 0).any()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.model_ = fit(
            self,
            *self._scaled(X, X_err),
            y,
            seed,
            X_cov=self._scaled_covariance(X_cov),
            floor=np.asarray(self.error_floor, float) / self.width_,
        )
        self.settings_ = {**self._plain_parameters(), **self.model_.settings}
        self.bound_ = self.model_.bound

    def _to_predict(self, X, X_err, X_cov):
        """X, X_err, X_cov in standardised units, as `model_` takes them."""
        check_is_fitted(self)
        X, _, X_err, X_cov = self._with_covariance(X, None, X_err, X_cov, reset=False)
        return *self._scaled(X, X_err), self._scaled_covariance(X_cov)

    def _set_scaling(self, X, X_err) -> None:
        empty = ~np.isfinite(X_err).any(axis=0)
        if empty.any():
            j = int(np.flatnonzero(empty)[0])
            raise InputError(
                f"column {self._column(j)} was not measured for any source; leave it out"
            )
        values = np.where(informative(X, X_err), X, np.nan)
        self.offset_ = np.nanmean(values, axis=0)
        spread = np.nanstd(values, axis=0)
        constant = spread <= 1e-12 * np.abs(self.offset_)
        self.width_ = np.where(constant, 1.0, spread)

    def _scaled(self, X, X_err) -> tuple[np.ndarray, np.ndarray]:
        return (X - self.offset_) / self.width_, X_err / self.width_

    def _scaled_covariance(self, X_cov) -> np.ndarray | None:
        return None if X_cov is None else X_cov / np.multiply.outer(self.width_, self.width_)

    # ---- input -----------------------------------------------------------------------------------

    def _with_covariance(self, X, y, X_err, X_cov, reset: bool):
        """X, y, X_err and X_cov; the errors are those of the covariance where there is one."""
        if X_cov is None:
            return *self._validated(X, y, X_err, reset), None
        if X_err is not None:
            raise InputError("give X_err or X_cov, not both: the errors are X_cov's diagonal")
        X_cov = np.asarray(X_cov, dtype=float)
        n, d = np.shape(X)
        if X_cov.shape != (n, d, d):
            raise InputError(f"X_cov has shape {X_cov.shape}, X has {(n, d)}: give {(n, d, d)}")
        variance = np.einsum("ndd->nd", X_cov)
        with np.errstate(invalid="ignore"):
            X_err = np.sqrt(variance)
        X, y, X_err = self._validated(X, y, np.where(variance < 0, -1.0, X_err), reset)
        finite = np.isfinite(X_err)
        known = np.where(finite[:, :, None] & finite[:, None, :], X_cov, 0.0)
        skew = np.abs(known - np.swapaxes(known, 1, 2)).max(axis=(1, 2))
        lowest = np.linalg.eigvalsh(known)[:, 0]
        size = np.abs(known).max(axis=(1, 2))
        bad = (skew > 1e-8 * size) | (lowest < -1e-8 * size) | ~np.isfinite(lowest)
        if bad.any():
            raise InputError(
                f"X_cov of row {int(np.argmax(bad))} is no covariance: it must be symmetric and"
                " positive semi-definite, with inf on the diagonal for what was not measured"
            )
        return X, y, X_err, known

    def _check_error_model(self, d: int) -> None:
        """error_scale, error_floor, learn_errors and population make sense."""
        from gpal.input_noise.true_input import LEARN_ERRORS

        for name in ("error_scale", "error_floor"):
            value = np.asarray(getattr(self, name), float)
            if value.shape not in ((), (d,)) or not np.isfinite(value).all() or (value < 0).any():
                raise InputError(f"{name} must be one number ≥ 0 or {d} of them, got {value}")
        if self.learn_errors not in LEARN_ERRORS:
            raise InputError(
                f"learn_errors must be one of {', '.join(LEARN_ERRORS)}, got {self.learn_errors!r}"
            )
        if self.learn_errors in ("scale", "both") and not np.all(np.asarray(self.error_scale) > 0):
            raise InputError(
                f"learn_errors={self.learn_errors!r} starts from error_scale: give it more than 0"
            )
        number = isinstance(self.population, (int, np.integer)) and self.population > 0
        if not number and self.population != "flat":
            raise InputError(
                f"population must be 'flat' or a number of Gaussians, got {self.population!r}"
            )

    def _validated(self, X, y, X_err, reset: bool):
        """X, y, X_err as arrays of one shape; every refusal names column, row and remedy."""
        if self.packed:
            if X_err is not None:
                raise InputError("packed=True takes the errors from X = [X | X_err]; drop X_err")
            checked = self._checked(X, y, reset, finite=False)
            X, X_err = unpack(checked[0])
            y = checked[1]
        else:
            X, y = self._checked(X, y, reset, finite=X_err is None)
        if reset:
            self.X_err_given_ = X_err is not None
        elif X_err is None and self.X_err_given_:
            raise InputError(
                "the model was fitted with error bars: pass X_err, or X_err=0 for exact inputs"
            )
        X_err = np.asarray(0.0 if X_err is None else X_err, dtype=float)
        try:
            X_err = np.array(np.broadcast_to(X_err, X.shape))
        except ValueError:
            raise InputError(
                f"X_err has shape {X_err.shape}, X has {X.shape}: give the same shape, one error"
                " per feature, or a scalar"
            ) from None
        if not reset and self.exact_inputs_ and ((X_err > 0) & np.isfinite(X_err)).any():
            raise InputError(
                "the model was fitted to exact inputs: fit it with X_err to predict with error bars"
            )
        not_measured = X_err == np.inf
        for bad, problem, remedy in (
            (np.isnan(X_err), "has error NaN", "0 is exact, inf is not measured"),
            (X_err < 0, "has a negative error", "errors are 1-sigma standard deviations"),
            (~np.isfinite(X) & ~not_measured, "is NaN or infinity", "X_err=inf if not measured"),
        ):
            if bad.any():
                i, j = np.argwhere(bad)[0]
                raise InputError(f"column {self._column(j)}, row {i} {problem}; {remedy}")
        return np.where(not_measured, np.nan, X), y, X_err

    def _checked(self, X, y, reset: bool, finite: bool):
        options: dict[str, Any] = {"dtype": np.float64, "reset": reset, "ensure_all_finite": finite}
        if y is None and not reset:
            return validate_data(self, X, **options), None
        return validate_data(self, X, y, y_numeric=self.y_numeric, **options)

    def _column(self, j: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return str(j) if names is None else f"'{names[j]}'"

    def _plain_parameters(self) -> dict:
        """Constructor arguments as JSON-able data (objects by their class name)."""
        plain = (str, int, float, bool, type(None), dict, list)
        return {
            name: value if isinstance(value, plain) else type(value).__name__
            for name, value in self.get_params(deep=False).items()
        }
