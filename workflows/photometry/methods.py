"""The methods of measure.py: training sample and test sample into class probabilities.

`own` and whatever is named after it are GPClassifier() as it is, but for what the name says. The
others have settings chosen on folds of their training sample by log loss. They are scikit-learn's,
but for the probabilistic random forest of Reis, Baron & Shahaf (2019), which is told the errors; no
registry has it:

    pip install git+https://github.com/ireis/PRF@7ed097c

Where a value was not measured scikit-learn's take its median, with a mark, but for boosting, which
knows NaN, as the probabilistic forest does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gpflow
import numpy as np
from samples import Sample
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpal import GPClassifier, NoisyInputGP
from gpal.evaluation import noise_controls
from gpal.evaluation.baselines import FlooredForest
from gpal.measurements import Measurements

__all__ = ["METHODS", "Predicted"]

Predicted = tuple[np.ndarray, dict[str, Any]]  # probabilities (n, C), settings
FOLDS = 3
TREES = 100
SMALLEST = 0.5 / 100  # probability by k neighbours, as that of a forest of 100 trees


def gaussian_process(
    train: Measurements, y: np.ndarray, test: Measurements, **options: Any
) -> Predicted:
    """GPClassifier with `options`."""
    model = GPClassifier(**options).fit(train, y)
    return model.predict_proba(test), {"options": options, "rounds": model.n_rounds_}


def own(train: Sample, test: Sample, seed: int, **options: Any) -> Predicted:
    """Every galaxy's own errors, their covariance left out."""
    return gaussian_process(train.told(), train.y, test.told(), random_state=seed, **options)


def control(name: str) -> Callable[..., Predicted]:
    """Told other errors: zero, constant or permuted."""

    def learn(train: Sample, test: Sample, seed: int) -> Predicted:
        told = noise_controls([train.told(), test.told()], random_state=seed)[name]
        return gaussian_process(told[0], train.y, told[1], random_state=seed)

    return learn


def constant_of_training(train: Sample, test: Sample, seed: int) -> Predicted:
    """Told one error per feature for all, the median of the training sample's."""
    told, same = noise_controls([train.told()])["constant"][0], test.told()
    error = np.min(told.X_err, axis=0)  # the same wherever it was measured
    same = replace(same, X_err=np.where(same.measured, error, np.inf))
    return gaussian_process(told, train.y, same, random_state=seed)


def treatment(**options: Any) -> Callable[..., Predicted]:
    """Own errors, treated otherwise."""
    return lambda train, test, seed: own(train, test, seed, **options)


def measured_as(
    covariance: bool = False, limits: bool = False, **options: Any
) -> Callable[..., Predicted]:
    """With covariance, limits, or both."""

    def learn(train: Sample, test: Sample, seed: int) -> Predicted:
        told = (each.told(covariance=covariance, limits=limits) for each in (train, test))
        X, new = told
        return gaussian_process(X, train.y, new, random_state=seed, **options)

    return learn


def ordinal(train: Sample, test: Sample, seed: int) -> Predicted:
    """Own errors; the bins are grades of one latent function, in the order of redshift. A standard
    normal variable has the training galaxies' fractions between the edges."""
    fractions = np.bincount(train.y) / len(train.y)
    likelihood = gpflow.likelihoods.Ordinal(norm.ppf(np.cumsum(fractions)[:-1]))
    model = NoisyInputGP(likelihood, random_state=seed).fit(train.told(), train.y)
    grades = [np.full(len(test.y), k) for k in range(train.y.max() + 1)]
    log_p = np.column_stack([model.predict_log_density(test.told(), grade) for grade in grades])
    P = np.exp(log_p)  # GPflow adds 1e-6 to each
    return P / P.sum(axis=1, keepdims=True), {"likelihood": "ordinal", "rounds": model.n_rounds_}


def only_detected(**options: Any) -> Callable[..., Predicted]:
    """A band below a signal to noise of 2 counts as not measured."""

    def learn(train: Sample, test: Sample, seed: int) -> Predicted:
        told = train.only_detected(), test.only_detected()
        return gaussian_process(told[0], train.y, told[1], random_state=seed, **options)

    return learn


def logistic(seed: int) -> tuple[Any, dict[str, list]]:
    """Multinomial logistic regression and its penalties."""
    return LogisticRegression(max_iter=5000), {"logisticregression__C": [0.01, 0.1, 1, 10, 100]}


def forest(seed: int) -> tuple[Any, dict[str, list]]:
    """A random forest of 100 trees, each probability at least half a vote."""
    model = FlooredForest(random_state=seed)
    return model, {"flooredforest__min_samples_leaf": [1, 3, 10]}


def neighbours(seed: int) -> tuple[Any, dict[str, list]]:
    """k nearest neighbours in standardised features."""
    grid = {
        "kneighborsclassifier__n_neighbors": [5, 10, 20, 40],
        "kneighborsclassifier__weights": ["uniform", "distance"],
    }
    return KNeighborsClassifier(), grid


def boosting(seed: int) -> tuple[Any, dict[str, list]]:
    """Histogram gradient boosting, stopped early by a tenth of its rows."""
    model = HistGradientBoostingClassifier(early_stopping=True, max_iter=1000, random_state=seed)
    grid = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [8, 31]}
    return model, {f"histgradientboostingclassifier__{key}": each for key, each in grid.items()}


class ProbabilisticForest(ClassifierMixin, BaseEstimator):
    """100 trees that send a source down both sides of a split, with the probabilities that its
    error bar gives them; as `FlooredForest` each probability is at least half a vote.

    X is the values beside their errors, infinite where nothing was measured.
    """

    def __init__(self, min_py_sum_leaf: float = 1, random_state: int = 0) -> None:
        self.min_py_sum_leaf = min_py_sum_leaf
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> ProbabilisticForest:
        from PRF import prf

        np.random.seed(self.random_state)  # it has no seed of its own
        self.forest_ = prf(n_estimators=TREES, min_py_sum_leaf=self.min_py_sum_leaf)
        values, errors = np.hsplit(np.array(X), 2)  # it writes into what it is given
        self.forest_.fit(X=values, dX=errors, y=y)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        values, errors = np.hsplit(np.array(X), 2)
        P = np.maximum(self.forest_.predict_proba(X=values, dX=errors), 0.5 / TREES)
        return P / P.sum(axis=1, keepdims=True)


def probabilistic_forest(train: Sample, test: Sample, seed: int) -> Predicted:
    """Told the values and each galaxy's own errors."""
    told = [np.hstack([m.X, m.X_err]) for m in (train.told(), test.told())]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model, grid = ProbabilisticForest(random_state=seed), {"min_py_sum_leaf": [1, 3, 10]}
    search = GridSearchCV(model, grid, cv=folds, scoring="neg_log_loss").fit(told[0], train.y)
    return search.predict_proba(told[1]), search.best_params_


def plain(make: Callable, with_errors: bool = False) -> Callable[..., Predicted]:
    """A classifier of scikit-learn's, told the values or the values and log10 of their errors."""

    def table(sample: Sample) -> np.ndarray:
        m = sample.told()
        X = np.where(m.measured, m.X, np.nan)
        log_error = np.log10(np.where(m.measured, m.X_err, np.nan))
        return np.hstack([X, log_error]) if with_errors else X

    def learn(train: Sample, test: Sample, seed: int) -> Predicted:
        model, grid = make(seed)
        before: list[Any] = []
        if make is not boosting:
            before = [SimpleImputer(strategy="median", add_indicator=True), StandardScaler()]
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        search = GridSearchCV(make_pipeline(*before, model), grid, cv=folds, scoring="neg_log_loss")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(table(train), train.y)
        P = np.maximum(search.predict_proba(table(test)), SMALLEST if make is neighbours else 0)
        return P / P.sum(axis=1, keepdims=True), search.best_params_

    return learn


METHODS: dict[str, Callable[..., Predicted]] = {
    "own": own,
    "none": treatment(input_noise="none"),
    "constant": control("constant"),
    "constant of training": constant_of_training,
    "permuted": control("permuted"),
    "boosting": plain(boosting),
    "boosting, errors": plain(boosting, True),
    "forest": plain(forest),
    "forest, errors": plain(forest, True),
    "probabilistic forest": probabilistic_forest,
    "neighbours": plain(neighbours),
    "neighbours, errors": plain(neighbours, True),
    "logistic": plain(logistic),
    "logistic, errors": plain(logistic, True),
    "none, 40 points": treatment(input_noise="none", n_inducing=40),
    "own, 40 points": treatment(n_inducing=40),
    "none, detected": only_detected(input_noise="none"),
    "covariance": measured_as(covariance=True),
    "covariance, flat": measured_as(covariance=True, population="flat"),
    "limits": measured_as(limits=True),
    "covariance, limits": measured_as(covariance=True, limits=True),
    "own, detected": only_detected(),
    "first_order": treatment(input_noise="first_order"),
    "covariance, first_order": measured_as(covariance=True, input_noise="first_order"),
    "zero": control("zero"),
    "flat": treatment(population="flat"),
    "five": treatment(population=5),
    "covariance, five": measured_as(covariance=True, population=5),
    "ordinal": ordinal,
    "latent": treatment(input_noise="latent", inference="svgp"),
    "amortized": treatment(input_noise="amortized", inference="svgp"),
}
