"""Plain classifiers to stand beside: a model that does not beat them is not worth its cost.

All take the values only, without error bars, at scikit-learn's default settings: there is nothing
to choose and nothing to choose it on. For the regressions that is a penalty C = 1 on standardised
features, for the forest 100 trees, for boosting 100 rounds. A value that was not measured (NaN) is
replaced by the training median of its feature; boosting takes it as it is.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

__all__ = [
    "gradient_boosting",
    "logistic_regression",
    "quadratic_logistic_regression",
    "random_forest",
]


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

    def predict_proba(self, X):
        """Class probabilities (n, C), at least 1/(2 · trees) before they are normalised."""
        P = np.maximum(super().predict_proba(X), 0.5 / self.n_estimators)
        return P / P.sum(axis=1, keepdims=True)


def random_forest(random_state: int = 0) -> ClassifierMixin:
    """100 trees, each probability at least half a vote."""
    return make_pipeline(
        SimpleImputer(strategy="median"), FlooredForest(random_state=random_state)
    )


def gradient_boosting(random_state: int = 0) -> ClassifierMixin:
    """Histogram gradient boosting."""
    return HistGradientBoostingClassifier(random_state=random_state)
