"""GPClassifier: the scikit-learn face of gpal.

    likelihood × input noise × inference

It owns what every user would otherwise get wrong: errors are scaled with their values, sources
with values that were not measured are kept, prediction uses the treatment of training, and a model
fitted with error bars does not silently predict without them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gpal.errors import InputError
from gpal.model.estimator import NoisyInputEstimator

__all__ = ["GPClassifier"]


class GPClassifier(ClassifierMixin, NoisyInputEstimator):
    """Gaussian-process classifier for inputs with error bars.

    Parameters
    ----------
    likelihood : name, see `gpal.likelihoods.LIKELIHOODS`, or a likelihood object
    input_noise : "none", "first_order", "integrated", ..., see `gpal.inference.capabilities`
        What error bars do, see `gpal.input_noise.treatments`.
    population : number of Gaussians in the prior of the true inputs, or "flat"
        Fitted by extreme deconvolution; "flat" takes each measurement for the best guess.
    error_scale, error_floor : scalars or one per feature
        V = scale² X_err² + floor², the floor in the units of X.
    learn_errors : "none", "scale", "floor" or "both"
        What of that is learned from the labels, starting from the values given.
    inference : "sites", "svgp", ..., see `gpal.inference.capabilities`
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
        With "float64" too, some products of the search for hyper-parameters are float32: see
        `mixed_precision` of `gpal.inference.sites.fit_sites`.
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
        input_noise="integrated",
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
        max_rounds=10,
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
        from gpal.model.fit import fit_model

        X, y, X_err, X_cov = self._with_covariance(X, y, X_err, X_cov, reset=True)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y holds one class only, {self.classes_[0]!r}; a classifier needs two or more"
            )
        self.class_fractions_ = np.bincount(labels) / len(labels)
        self._prior_ratio()
        self._fit_model(fit_model, X, labels, X_err, X_cov)
        return self

    # ---- prediction ------------------------------------------------------------------------------

    def predict_proba(self, X, X_err=None, X_cov=None):
        """Class probabilities (n, C), columns in the order of `classes_`."""
        scaled = self._to_predict(X, X_err, X_cov)
        return self._reweighted(self.model_.predict_proba(*scaled))

    def predict_proba_std(self, X, X_err=None, X_cov=None):
        """Standard deviation (n, C) of p(y = c | f, x) over q(f) and the error bars."""
        scaled = self._to_predict(X, X_err, X_cov)
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
        from gpal.model.file import save

        check_is_fitted(self)
        save(self, path)

    @classmethod
    def load(cls, path) -> GPClassifier:
        """Read a model written by `save`; it predicts the same probabilities."""
        from gpal.model.file import load

        return load(path)
