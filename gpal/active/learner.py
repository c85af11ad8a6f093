"""A modAL ActiveLearner that carries error bars with every query and teach.

    learner = Learner(GPClassifier(), entropy_sampling, X, y, X_err_training=X_err)
    indices, sources = learner.query(X_pool, n_instances=5, X_err=X_err_pool)
    learner.teach(X_pool[indices], labels, X_err=X_err_pool[indices])

Any query strategy of modAL works, as `strategy(learner, X_pool, n_instances=…)`; where it hands
keyword arguments on to `predict_proba`, as those of `modAL.uncertainty` do, X_err goes with them.

Three faults of modAL 0.4.2.1 are not inherited: `teach` and `fit` call scikit-learn with an
argument (`force_all_finite`) that 1.8 removed; a strategy that returns two indices alone is taken
for one that returns indices and scores; and a `teach` that fails leaves the learner with the new
data and the old model. Here a failed `teach` or `fit` changes nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from modAL.models import ActiveLearner
from modAL.uncertainty import entropy_sampling
from sklearn.base import clone

from gpal.active.warm_start import can_refit, refit
from gpal.errors import InputError

__all__ = ["Learner"]


class Learner(ActiveLearner):
    """ActiveLearner with error bars and warm starts.

    estimator        GPClassifier, or any classifier of scikit-learn (then X_err stays None)
    query_strategy   of modAL, or a function (learner, X_pool, **options) -> indices or
                     (indices, scores)
    X_training, y_training, X_err_training  sources labelled at the start; None: `fit` them later
    relearn_every    labels after which hyper-parameters are learned again; in between a refit
                     starts from the previous posterior. 1: always a full fit
    """

    def __init__(
        self,
        estimator: Any,
        query_strategy: Callable = entropy_sampling,
        X_training: np.ndarray | None = None,
        y_training: np.ndarray | None = None,
        X_err_training: np.ndarray | None = None,
        relearn_every: int = 20,
    ) -> None:
        if relearn_every < 1:
            raise InputError(f"relearn_every counts labels, got {relearn_every}; give 1 or more")
        super().__init__(estimator, query_strategy)
        self.relearn_every = relearn_every
        self.X_err_training: np.ndarray | None = None
        self.labels_at_learning = 0
        if X_training is not None:
            self.fit(X_training, y_training, X_err=X_err_training)

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, X_err: Any = None, bootstrap: bool = False, **fit_kwargs: Any
    ) -> Learner:
        """Forget all labels, learn from these; hyper-parameters too."""
        X, y, X_err = _aligned(X, y, X_err)
        return self._commit(X, y, X_err, self._learned(X, y, X_err, bootstrap, fit_kwargs), len(y))

    def teach(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        X_err: Any = None,
        bootstrap: bool = False,
        only_new: bool = False,
        **fit_kwargs: Any,
    ) -> Learner:
        """Add labelled sources and refit; on an exception the learner is as it was before.

        only_new   fit to these alone and do not add them, as modAL does
        bootstrap  fit to a resample of the sources
        """
        X, y, X_err = _aligned(X, y, X_err)
        if only_new:
            self.estimator = self._learned(X, y, X_err, bootstrap, fit_kwargs)
            return self
        if self.X_training is not None:
            if (X_err is None) != (self.X_err_training is None):
                given, missing = ("new", "first") if X_err is not None else ("first", "new")
                raise InputError(
                    f"the {given} sources have error bars and the {missing} ones have none; give"
                    " X_err for all, 0 where a value is exact"
                )
            if X.shape[1:] != self.X_training.shape[1:]:
                raise InputError(
                    f"the new sources have {X.shape[1]} columns, the first ones"
                    f" {self.X_training.shape[1]}; give the same features"
                )
            X = np.concatenate([self.X_training, X])
            y = np.concatenate([self.y_training, y])
            if X_err is not None:
                X_err = np.concatenate([self.X_err_training, X_err])
        warm = not bootstrap and not fit_kwargs and len(y) < self._next_learning()
        if warm and can_refit(self.estimator, y, X_err):
            return self._commit(X, y, X_err, refit(self.estimator, X, y, X_err), None)
        return self._commit(X, y, X_err, self._learned(X, y, X_err, bootstrap, fit_kwargs), len(y))

    def query(  # type: ignore[override]
        self, X_pool: Any, *query_args: Any, return_metrics: bool = False, **query_kwargs: Any
    ) -> tuple:
        """Row numbers of X_pool to label next and those rows; with `return_metrics` their scores
        too, None where the strategy gives none. `X_err` goes to the strategy if it takes it."""
        X_pool = np.asarray(X_pool)
        if query_kwargs.get("X_err") is None:
            query_kwargs.pop("X_err", None)
        elif not _accepts(self.query_strategy, "X_err"):
            raise InputError(
                f"the query strategy {getattr(self.query_strategy, '__name__', 'given')!r} takes no"
                " X_err; pack the errors into X with gpal.measurements.pack and packed=True"
            )
        else:
            query_kwargs["X_err"] = np.broadcast_to(query_kwargs["X_err"], X_pool.shape)
        answer = self.query_strategy(self, X_pool, *query_args, **query_kwargs)
        # Indices alone come as an array or a list, or as a tuple of numbers.
        pair = isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) > 0
        indices, scores = answer if pair else (answer, None)
        indices = np.atleast_1d(np.asarray(indices, dtype=int))
        rows = X_pool[indices]
        return (indices, rows, scores) if return_metrics else (indices, rows)

    def _next_learning(self) -> int:
        return self.labels_at_learning + self.relearn_every

    def _learned(self, X, y, X_err, bootstrap: bool, fit_kwargs: dict) -> Any:
        """A new estimator; ours stays untouched until this one is whole."""
        if bootstrap:
            rows = np.random.default_rng(len(y)).integers(len(y), size=len(y))
            X, y, X_err = X[rows], y[rows], None if X_err is None else X_err[rows]
        errors = {} if X_err is None else {"X_err": X_err}
        return clone(self.estimator).fit(X, y, **errors, **fit_kwargs)

    def _commit(self, X, y, X_err, estimator: Any, learned_at: int | None) -> Learner:
        self.X_training, self.y_training, self.X_err_training = X, y, X_err
        self.estimator = estimator
        if learned_at is not None:
            self.labels_at_learning = learned_at
        return self


def _aligned(X: Any, y: Any, X_err: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    X, y = np.atleast_2d(np.asarray(X)), np.atleast_1d(np.asarray(y))
    if len(X) != len(y):
        raise InputError(f"{len(X)} sources need {len(X)} labels, got {len(y)}")
    if X_err is None:
        return X, y, None
    try:
        return X, y, np.array(np.broadcast_to(np.asarray(X_err, float), X.shape))
    except ValueError:
        raise InputError(
            f"X_err has shape {np.shape(X_err)}, X has {X.shape}: give the same shape, one error"
            " per feature, or a scalar"
        ) from None


def _accepts(function: Callable, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
