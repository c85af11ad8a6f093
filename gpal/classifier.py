"""GPClassifier: the scikit-learn face of gpal.

    likelihood × input noise × inference

It owns what every user would otherwise get wrong: errors are scaled with their values, sources
with values that were not measured are kept, prediction uses the treatment of training, and a model
fitted with error bars does not silently predict without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from gpal.errors import InputError
from gpal.measurements import unpack

__all__ = ["GPClassifier"]


class GPClassifier(ClassifierMixin, BaseEstimator):
    """Gaussian-process classifier for inputs with error bars.

    Parameters
    ----------
    likelihood : name, see `gpal.likelihoods.LIKELIHOODS`, or a likelihood object
    input_noise : "none", "first_order", "integrated", ..., see `gpal.capabilities`
        What error bars do, see `gpal.input_noise.treatments`.
    population : number of Gaussians in the prior of the true inputs, or "flat"
        Fitted by extreme deconvolution; "flat" takes each measurement for the best guess.
    error_scale, error_floor : scalars or one per feature
        V = scale² X_err² + floor², the floor in the units of X.
    learn_errors : "none", "scale", "floor" or "both"
        What of that is learned from the labels, starting from the values given.
    inference : "sites", "svgp", ..., see `gpal.capabilities`
        How q(f) is found.
    kernel : name such as "rbf", "matern52", "rbf+linear", or a GPflow kernel
    shared_kernel : one kernel for all latent functions, or one each
    n_inducing : int or None
        Inducing points; None takes a full GP up to 400 sources and 100 points above.
    learn_inducing : optimise the inducing points (they start at k-means centres)
    prior : "train" or a mapping class -> fraction
        Class fractions that the probabilities should refer to.
    max_rounds : rounds of hyper-parameter learning; 0 keeps the kernel as given
    inference_options : mapping of further arguments of the function that runs the inference
    packed : X is [X | X_err], for tools that know only X (see `gpal.measurements.pack`)
    random_state : seed of k-means and of the population mixture
    dtype : "float64", or "float32" for the n × m products
    verbose : show a progress bar on a terminal

    Attributes
    ----------
    classes_, n_features_in_, settings_ (what was used, as plain data), bound_ (the evidence lower
    bound per source), X_err_given_

    Notes
    -----
    X_err holds 1-sigma errors in the units of X: an (n, d) array, a (d,) vector, a scalar or None.
    A value that was not measured has X_err = inf (X is ignored there and may be NaN).
    """

    def __init__(
        self,
        likelihood="softmax",
        *,
        input_noise="first_order",
        population=1,
        error_scale=1.0,
        error_floor=0.0,
        learn_errors="none",
        inference="sites",
        kernel="rbf",
        shared_kernel=True,
        n_inducing=None,
        learn_inducing=False,
        prior="train",
        max_rounds=5,
        inference_options=None,
        packed=False,
        random_state=0,
        dtype="float64",
        verbose=False,
    ):
        self.likelihood = likelihood
        self.input_noise = input_noise
        self.population = population
        self.error_scale = error_scale
        self.error_floor = error_floor
        self.learn_errors = learn_errors
        self.inference = inference
        self.kernel = kernel
        self.shared_kernel = shared_kernel
        self.n_inducing = n_inducing
        self.learn_inducing = learn_inducing
        self.prior = prior
        self.max_rounds = max_rounds
        self.inference_options = inference_options
        self.packed = packed
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    # ---- fitting ---------------------------------------------------------------------------------

    def fit(self, X, y, X_err=None, X_cov=None):
        """Fit to values X (n, d), labels y (n,) and 1-sigma errors X_err, or covariances X_cov
        (n, d, d) of the errors, one per source."""
        from gpal.inference.fit import fit_model

        X, y, X_err, X_cov = self._with_covariance(X, y, X_err, X_cov, reset=True)
        self._check_error_model(X.shape[1])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y holds one class only, {self.classes_[0]!r}; a classifier needs two or more"
            )
        self.class_fractions_ = np.bincount(labels) / len(labels)
        self._prior_ratio()
        self._set_scaling(X, X_err)
        self.exact_inputs_ = not (X_err > 0).any()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.model_ = fit_model(
            self,
            *self._scaled(X, X_err),
            labels,
            seed,
            X_cov=self._scaled_covariance(X_cov),
            floor=np.asarray(self.error_floor, float) / self.width_,
        )
        self.settings_ = {**self._plain_parameters(), **self.model_.settings}
        self.bound_ = self.model_.bound
        return self

    def _set_scaling(self, X, X_err) -> None:
        measured = np.where(np.isfinite(X_err), X, np.nan)
        empty = np.isnan(measured).all(axis=0)
        if empty.any():
            j = int(np.flatnonzero(empty)[0])
            raise InputError(
                f"column {self._column(j)} was not measured for any source; leave it out"
            )
        self.offset_ = np.nanmean(measured, axis=0)
        spread = np.nanstd(measured, axis=0)
        constant = spread <= 1e-12 * np.abs(self.offset_)
        self.width_ = np.where(constant, 1.0, spread)

    def _scaled(self, X, X_err) -> tuple[np.ndarray, np.ndarray]:
        return (X - self.offset_) / self.width_, X_err / self.width_

    def _scaled_covariance(self, X_cov) -> np.ndarray | None:
        return None if X_cov is None else X_cov / np.multiply.outer(self.width_, self.width_)

    # ---- prediction ------------------------------------------------------------------------------

    def predict_proba(self, X, X_err=None, X_cov=None):
        """Class probabilities (n, C), columns in the order of `classes_`."""
        check_is_fitted(self)
        X, _, X_err, X_cov = self._with_covariance(X, None, X_err, X_cov, reset=False)
        scaled = *self._scaled(X, X_err), self._scaled_covariance(X_cov)
        return self._reweighted(self.model_.predict_proba(*scaled))

    def predict_proba_std(self, X, X_err=None, X_cov=None):
        """Standard deviation (n, C) of p(y = c | f, x) over q(f) and the error bars."""
        check_is_fitted(self)
        X, _, X_err, X_cov = self._with_covariance(X, None, X_err, X_cov, reset=False)
        scaled = *self._scaled(X, X_err), self._scaled_covariance(X_cov)
        return self.model_.predict_proba_std(*scaled, ratio=self._prior_ratio())

    def predict(self, X, X_err=None, X_cov=None):
        """The most probable class."""
        probabilities = self.predict_proba(X, X_err, X_cov)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def _prior_ratio(self) -> np.ndarray:
        """π_target / π_train per class."""
        if isinstance(self.prior, str) and self.prior == "train":
            return np.ones(len(self.classes_))
        if not isinstance(self.prior, Mapping) or set(self.prior) != set(self.classes_.tolist()):
            raise InputError(
                f"prior must be 'train' or give a fraction for each of {self.classes_.tolist()},"
                f" got {self.prior!r}"
            )
        target = np.array([float(self.prior[c]) for c in self.classes_.tolist()])
        if (target < 0).any() or target.sum() <= 0:
            raise InputError(f"prior fractions must be positive, got {self.prior!r}")
        return target / target.sum() / self.class_fractions_

    def _reweighted(self, probabilities: np.ndarray) -> np.ndarray:
        weighted = probabilities * self._prior_ratio()
        return weighted / weighted.sum(axis=1, keepdims=True)

    # ---- model files -----------------------------------------------------------------------------

    def save(self, path) -> None:
        """Write the fitted model: arrays and JSON in one .npz, nothing pickled."""
        from gpal.model_file import save

        check_is_fitted(self)
        save(self, path)

    @classmethod
    def load(cls, path) -> GPClassifier:
        """Read a model written by `save`; it predicts the same probabilities."""
        from gpal.model_file import load

        return load(path)

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
        return validate_data(self, X, y, **options)

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
