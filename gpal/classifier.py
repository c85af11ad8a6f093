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
    input_noise : "none", "first_order" or "integrated"
        What error bars do, see `gpal.input_noise.treatments`.
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

    def fit(self, X, y, X_err=None):
        """Fit to values X (n, d), labels y (n,) and 1-sigma errors X_err."""
        from gpal.inference.fit import fit_model

        X, y, X_err = self._validated(X, y, X_err, reset=True)
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
        scaled = self._scaled(X, X_err)
        self.model_ = fit_model(self, *scaled, labels, seed)
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

    # ---- prediction ------------------------------------------------------------------------------

    def predict_proba(self, X, X_err=None):
        """Class probabilities (n, C), columns in the order of `classes_`."""
        check_is_fitted(self)
        X, _, X_err = self._validated(X, None, X_err, reset=False)
        return self._reweighted(self.model_.predict_proba(*self._scaled(X, X_err)))

    def predict_proba_std(self, X, X_err=None):
        """Standard deviation (n, C) of p(y = c | f, x) over q(f) and the error bars."""
        check_is_fitted(self)
        X, _, X_err = self._validated(X, None, X_err, reset=False)
        return self.model_.predict_proba_std(*self._scaled(X, X_err), self._prior_ratio())

    def predict(self, X, X_err=None):
        """The most probable class."""
        probabilities = self.predict_proba(X, X_err)
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
        plain = (str, int, float, bool, type(None), dict)
        return {
            name: value if isinstance(value, plain) else type(value).__name__
            for name, value in self.get_params(deep=False).items()
        }
