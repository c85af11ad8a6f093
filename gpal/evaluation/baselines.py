"""Plain classifiers to stand beside: a model that does not beat them is not worth its cost.

Both take the values only, without error bars. A value that was not measured (NaN) is replaced by
the training median of its feature. The penalty is fixed at scikit-learn's default C = 1 on
standardised features, so there is no setting to choose and nothing to choose it on.
"""

from __future__ import annotations

from sklearn.base import ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

__all__ = ["logistic_regression", "quadratic_logistic_regression"]


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
