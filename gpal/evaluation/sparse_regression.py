"""Sparse GP regression on the labels −1 and +1 (Titsias 2009), a score for a calibrator.

    y = f(x) + mean + N(0, σ²),     f ~ GP(0, s² exp(−|x − x'|²/(2 ℓ²)))

on `num_inducing` k-means centres, which stay where they are; s², ℓ and σ² maximise GPflow's
collapsed bound. Costs n m².
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans

from gpal.tensorflow_start import start_tensorflow

__all__ = ["SparseLabelRegression"]

ITERATIONS = 100


class SparseLabelRegression(ClassifierMixin, BaseEstimator):
    """Labels of two classes by GPflow's SGPR; fewer distinct rows than centres are all centres."""

    def __init__(self, num_inducing: int = 100, random_state: int = 0) -> None:
        self.num_inducing = num_inducing
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> SparseLabelRegression:
        """Learn kernel and noise; y holds two classes."""
        start_tensorflow()
        import gpflow
        import tensorflow as tf

        self.classes_ = np.unique(y)
        target = np.where(y == self.classes_[-1], 1.0, -1.0)
        self.mean_ = target.mean()
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.sqrt(X.shape[1]))
        self.regressor_ = gpflow.models.SGPR(
            (X, (target - self.mean_)[:, None]),
            kernel,
            inducing_variable=self._centres(X),
            noise_variance=0.1,
        )
        gpflow.set_trainable(self.regressor_.inducing_variable, False)
        gpflow.optimizers.Scipy().minimize(
            tf.autograph.experimental.do_not_convert(self.regressor_.training_loss),
            self.regressor_.trainable_variables,
            options={"maxiter": ITERATIONS},
        )
        return self

    def _centres(self, X: np.ndarray) -> np.ndarray:
        distinct = np.unique(X, axis=0)
        if len(distinct) <= self.num_inducing:
            return distinct
        means = KMeans(self.num_inducing, n_init=1, random_state=self.random_state).fit(X)
        return means.cluster_centers_

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Predicted label, continuous."""
        return self.regressor_.predict_f(X)[0].numpy()[:, 0] + self.mean_

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The class whose label is nearer."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]
