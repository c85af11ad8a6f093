"""Plain classifiers to stand beside: a model that does not beat them is not worth its cost.

All but `one_vs_rest` take the values only, without error bars, and all but those that say so have
scikit-learn's default settings: there is nothing to choose and nothing to choose it on. For the
logistic regressions that is a penalty C = 1 on standardised features, for the forest 100 trees, for
boosting 100 rounds. A value that was not measured (NaN) is replaced by the training median of its
feature; boosting takes it as it is.

`pretrained` makes those of packages that gpal does not need. `augment` is a baseline for error
bars: more data instead of a model of the noise.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from gpal.errors import InputError

__all__ = [
    "PRETRAINED",
    "augment",
    "cross_validated_kernel_ridge",
    "gradient_boosting",
    "kernel_ridge",
    "laplace_gp",
    "least_squares_gp",
    "logistic_regression",
    "one_vs_rest",
    "pretrained",
    "quadratic_logistic_regression",
    "random_forest",
    "sparse_gp_regression",
]

# Package -> its classifier, of `pretrained`.
PRETRAINED = {"tabpfn": "TabPFNClassifier", "tabicl": "TabICLClassifier"}
# Candidates of `cross_validated_kernel_ridge`.
GAMMAS = tuple(10.0 ** np.arange(-4, 2))
ALPHAS = tuple(10.0 ** np.arange(-4, 3))


def augment(
    X: np.ndarray, X_err: np.ndarray, y: np.ndarray, copies: int = 2, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """X and y with `copies` of every source added, moved by N(0, X_err²), for any classifier.

    (Villacampa-Calvo et al. 2021, appendix B.1, who add two.) A value that was not measured
    (infinite error) is not moved.
    """
    sigma = np.where(np.isfinite(X_err), np.broadcast_to(X_err, X.shape), 0.0)
    normal = np.random.default_rng(random_state).normal(size=(copies, *X.shape))
    drawn = (X + sigma * normal).reshape(-1, X.shape[1])
    return np.vstack([X, drawn]), np.tile(y, copies + 1)


def logistic_regression() -> ClassifierMixin:
    """Multinomial logistic regression on standardised features."""
    return make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), LogisticRegression(max_iter=5000)
    )


def quadratic_logistic_regression() -> ClassifierMixin:
    """The same with all squares and products of the standardised features added."""
    return make_pipeline(
        SimpleImputer(strategy="median"),
        StandardScaler(),
        PolynomialFeatures(degree=2, include_bias=False),
        StandardScaler(),
        LogisticRegression(max_iter=5000),
    )


class FlooredForest(RandomForestClassifier):
    """A random forest whose probabilities are at least half a vote.

    Of 100 trees none voting for a class does not mean a probability of zero, and a single zero
    would make the log score infinite.
    """

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities (n, C), at least 1/(2 · trees) before they are normalised."""
        P = np.maximum(super().predict_proba(X), 0.5 / self.n_estimators)
        return P / P.sum(axis=1, keepdims=True)


def random_forest(random_state: int = 0) -> ClassifierMixin:
    """100 trees, each probability at least half a vote."""
    return make_pipeline(SimpleImputer(strategy="median"), FlooredForest(random_state=random_state))


def gradient_boosting(random_state: int = 0) -> ClassifierMixin:
    """Histogram gradient boosting."""
    return HistGradientBoostingClassifier(random_state=random_state)


def pretrained(package: str, random_state: int = 0) -> ClassifierMixin:
    """A transformer that was trained on simulated tables: `tabpfn` or `tabicl`, where you have it.

    gpal does not install them and knows nothing of their weights, which each finds, or fetches at
    its first fit, as its own documentation says. Default settings, values without errors.
    """
    if package not in PRETRAINED:
        raise InputError(
            f"no pretrained classifier '{package}'; there are: {', '.join(PRETRAINED)}"
        )
    try:
        kind = getattr(importlib.import_module(package), PRETRAINED[package])
    except ImportError as error:
        raise InputError(
            f"'{package}' cannot be imported ({error}): install the package and its weights beside"
            " gpal, or leave it out"
        ) from None
    return make_pipeline(SimpleImputer(strategy="median"), kind(random_state=random_state))


class LabelRegression(ClassifierMixin, BaseEstimator):
    """GP regression on the labels −1 and +1: a score for a calibrator, not a probability."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> LabelRegression:
        """Learn lengthscale and noise by the marginal likelihood; y holds two classes."""
        self.classes_ = np.unique(y)
        kernel = ConstantKernel(1.0) * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
        target = np.where(y == self.classes_[-1], 1.0, -1.0)
        self.regressor_ = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, target)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Predicted label, continuous."""
        return self.regressor_.predict(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The class whose label is nearer."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def least_squares_gp() -> ClassifierMixin:
    """GP regression on the labels with Platt scaling, one against the rest (paper 003)."""
    calibrated = CalibratedClassifierCV(LabelRegression(), method="sigmoid", cv=3)
    return make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), OneVsRestClassifier(calibrated)
    )


def kernel_ridge(num_components: int = 200, random_state: int = 0) -> ClassifierMixin:
    """Kernel ridge regression on a Nyström map with Platt scaling (paper 003's NKRR)."""
    return make_pipeline(
        SimpleImputer(strategy="median"),
        StandardScaler(),
        CalibratedClassifierCV(
            make_pipeline(
                Nystroem(n_components=num_components, random_state=random_state), RidgeClassifier()
            ),
            method="sigmoid",
            cv=3,
        ),
    )


def cross_validated_kernel_ridge(
    num_components: int = 200,
    random_state: int = 0,
    *,
    gammas: Sequence[float] = GAMMAS,
    alphas: Sequence[float] = ALPHAS,
) -> ClassifierMixin:
    """The same with hyper-parameters by cross-validation: γ of exp(−γ|x − x'|²), on standardised
    features, by the accuracy on three folds, and with each the penalty α by leaving one out."""
    ridge = make_pipeline(
        Nystroem(n_components=num_components, random_state=random_state),
        RidgeClassifierCV(alphas=alphas),
    )
    return make_pipeline(
        SimpleImputer(strategy="median"),
        StandardScaler(),
        CalibratedClassifierCV(
            GridSearchCV(ridge, {"nystroem__gamma": list(gammas)}, cv=3), method="sigmoid", cv=3
        ),
    )


def sparse_gp_regression(num_inducing: int = 100, random_state: int = 0) -> ClassifierMixin:
    """`least_squares_gp` for many sources, by a sparse GP (paper 003's GPR)."""
    from gpal.evaluation.sparse_regression import SparseLabelRegression

    regression = SparseLabelRegression(num_inducing, random_state)
    calibrated = CalibratedClassifierCV(regression, method="sigmoid", cv=3)
    return make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), OneVsRestClassifier(calibrated)
    )


def laplace_gp(random_state: int = 0) -> ClassifierMixin:
    """GP classification by Laplace's approximation, one against the rest; costs n³."""
    kernel = ConstantKernel(1.0) * RBF(1.0)
    return make_pipeline(
        SimpleImputer(strategy="median"),
        StandardScaler(),
        GaussianProcessClassifier(kernel, random_state=random_state),
    )


def one_vs_rest(classifier: Any = None) -> ClassifierMixin:
    """A binary GPClassifier per class against the rest; X is packed [X | X_err].

    For likelihoods that tell two classes apart, such as "bernoulli_logit" (the default here).
    """
    from gpal.classifier import GPClassifier

    if classifier is None:
        classifier = GPClassifier("bernoulli_logit")
    return OneVsRestClassifier(clone(classifier).set_params(packed=True))
