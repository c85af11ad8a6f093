"""What GPClassifier's defaults are compared with: plain estimators of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["GPC_ROWS", "boosting", "gpc", "tuned_logistic_regression"]

GPC_ROWS = 500


def tuned_logistic_regression(seed: int) -> Any:
    """Multinomial, the penalty by the log loss of five folds, of ten from 1e-4 to 1e4."""
    model = LogisticRegressionCV(
        Cs=10,
        cv=5,
        scoring="neg_log_loss",
        max_iter=2000,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    return make_pipeline(StandardScaler(), model)


def boosting(seed: int) -> Any:
    """Histogram gradient boosting, stopped early by a tenth of the training rows."""
    return HistGradientBoostingClassifier(early_stopping=True, max_iter=1000, random_state=seed)


class SubsetGPC(ClassifierMixin, BaseEstimator):
    """scikit-learn's GPC on standardised features, of GPC_ROWS rows where there are more.

    From lengthscales of 1 alone it ends, where features or classes are many, at a kernel in which
    no feature counts; so it starts from √d as well, and the likelier of the two models is taken.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> SubsetGPC:
        """Rows of every class: a stratified draw."""
        self.classes_ = np.unique(y)
        if len(X) > GPC_ROWS:
            X, _, y, _ = train_test_split(
                X, y, train_size=GPC_ROWS, stratify=y, random_state=self.seed
            )
        self.scaler_ = StandardScaler().fit(X)
        d = X.shape[1]
        models = [
            GaussianProcessClassifier(
                ConstantKernel() * RBF(np.full(d, lengthscale)), random_state=self.seed
            ).fit(self.scaler_.transform(X), y)
            for lengthscale in (1.0, np.sqrt(d))
        ]
        self.model_ = max(models, key=lambda model: model.log_marginal_likelihood_value_)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities (n, C)."""
        return self.model_.predict_proba(self.scaler_.transform(X))


def gpc(seed: int) -> Any:
    """scikit-learn's Gaussian-process classifier."""
    return SubsetGPC(seed)
