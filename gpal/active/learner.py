"""A modAL ActiveLearner that carries error bars with every query and teach.

    learner = Learner(GPClassifier(), entropy_sampling, X, y, X_err_training=X_err)
    indices, sources = learner.query(X_pool, n_instances=5, X_err=X_err_pool)
    learner.teach(X_pool[indices], labels, X_err=X_err_pool[indices])

Sources are Measurements, or arrays with X_err or X_cov. Any query strategy of modAL works, as
`strategy(learner, X_pool, n_instances=…)`: it is given arrays, and where it hands keyword arguments
on to `predict_proba`, as those of `modAL.uncertainty` do, the errors go with them.

Three faults of modAL 0.4.2.1 are not inherited: `teach` and `fit` call scikit-learn with an
argument (`force_all_finite`) that 1.8 removed; a strategy that returns two indices alone is taken
for one that returns indices and scores; and a `teach` that fails leaves the learner with the new
data and the old model. Here a failed `teach` or `fit` changes nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from modAL.models import ActiveLearner
from modAL.uncertainty import entropy_sampling
from sklearn.base import clone
from sklearn.utils import check_random_state

from gpal.array_messages import refuse_mixed_labels
from gpal.arrays import feature_names
from gpal.errors import InputError
from gpal.evaluation import any_classifier
from gpal.evaluation.any_classifier import Sources, as_sources
from gpal.measurements import Measurements
from gpal.model.known_features import by_name, frame_by_name, in_units
from gpal.model.labels import labels_as_given

__all__ = ["Learner"]


class Learner(ActiveLearner):
    """ActiveLearner with error bars and warm starts.

    estimator        GPClassifier, or any classifier of scikit-learn
    query_strategy   of modAL, or a function (learner, X_pool, **options) -> indices or
                     (indices, scores)
    X_training, y_training, X_err_training  sources labelled at the start; None: `fit` them later
    relearn_every    labels after which hyper-parameters are learned again; in between a refit
                     starts from the previous posterior. 1: always a full fit
    random_state     seed of `bootstrap`, whose resamples are drawn one after another; None: NumPy's
                     global state, as in modAL

    sources          what it has learned from, Measurements or an array of exact values; as arrays
                     X_training and X_err_training
    """

    def __init__(
        self,
        estimator: Any,
        query_strategy: Callable = entropy_sampling,
        X_training: Any = None,
        y_training: Any = None,
        X_err_training: Any = None,
        relearn_every: int = 20,
        random_state: Any = None,
    ) -> None:
        if relearn_every < 1:
            raise InputError(f"relearn_every counts labels, got {relearn_every}; give 1 or more")
        super().__init__(estimator, query_strategy)
        self.relearn_every = relearn_every
        self.random_state, self._random = random_state, check_random_state(random_state)
        self.sources: Sources | None = None
        self.X_err_training: np.ndarray | None = None
        self.labels_at_learning = 0
        self.weighted = False  # whether labels were learned with weights
        self.features: list[str] = []  # of a data frame or Measurements, to find them by name
        if X_training is not None:
            self.fit(X_training, y_training, X_err=X_err_training)

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        X_err: Any = None,
        bootstrap: bool = False,
        X_cov: np.ndarray | None = None,
        **fit_kwargs: Any,
    ) -> Learner:
        """Forget all labels, learn from these; hyper-parameters too."""
        sources, y = _aligned(as_sources(X, X_err, X_cov), y)
        learned = self._learned(sources, y, bootstrap, fit_kwargs)
        self.features = _names(X)
        self.weighted = fit_kwargs.get("sample_weight") is not None
        return self._commit(sources, y, learned, len(y))

    def teach(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        X_err: Any = None,
        bootstrap: bool = False,
        only_new: bool = False,
        X_cov: np.ndarray | None = None,
        **fit_kwargs: Any,
    ) -> Learner:
        """Add labelled sources and refit; on an exception the learner is as it was before.

        Features with names are found by these, InputError where one of them is not there.
        only_new   fit to these alone and do not add them, as modAL does
        bootstrap  fit to a resample of the sources
        """
        sources, y = _aligned(self._like_ours(X, X_err, X_cov), y)
        if only_new:
            self.estimator = self._learned(sources, y, bootstrap, fit_kwargs)
            self.labels_at_learning = -self.relearn_every  # its hyper-parameters are of these alone
            return self
        if self.sources is not None:
            sources = _joined(self.sources, sources)
            if (y.dtype.kind in "US") != (self.y_training.dtype.kind in "US"):
                refuse_mixed_labels([*self.y_training.tolist(), *y.tolist()])
            y = np.concatenate([self.y_training, y])
        weight = fit_kwargs.get("sample_weight")
        self._check_weight(weight, len(y))
        warm = not bootstrap and not fit_kwargs and len(y) < self.next_learning
        if warm and hasattr(self.estimator, "can_refit") and self.estimator.can_refit(sources, y):
            return self._commit(sources, y, self.estimator.refit(sources, y), None)
        learned = self._learned(sources, y, bootstrap, fit_kwargs)
        self.features = self.features or _names(X)
        self.weighted = weight is not None
        return self._commit(sources, y, learned, len(y))

    def query(  # type: ignore[override]
        self,
        X_pool: Any,
        *query_args: Any,
        return_metrics: bool = False,
        X_err: Any = None,
        X_cov: np.ndarray | None = None,
        **query_kwargs: Any,
    ) -> tuple:
        """Row numbers of X_pool to label next and those rows, of a data frame with their names;
        with `return_metrics` their scores too, None where the strategy gives none. The errors go to
        the strategy; InputError where the estimator takes errors and the strategy does not, and
        for a strategy that gives no row numbers."""
        pool: Any = X_pool
        if not isinstance(X_pool, Measurements):
            pool = X_pool.iloc if hasattr(X_pool, "iloc") else np.asarray(X_pool)
        sources = as_sources(*self._found(X_pool, X_err, X_cov))
        values = sources.X if isinstance(sources, Measurements) else sources
        if isinstance(sources, Measurements):
            query_kwargs |= self._errors(sources)
        answer = self.query_strategy(self, values, *query_args, **query_kwargs)
        # Indices alone come as an array or a list, or as a tuple of numbers.
        pair = isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) > 0
        indices, scores = answer if pair else (answer, None)
        indices = np.atleast_1d(np.asarray(indices))
        if len(indices) and indices.dtype.kind not in "iu":
            raise InputError(
                f"the query strategy gave {indices.dtype} in place of row numbers; of a mask give"
                " np.flatnonzero(mask)"
            )
        indices = indices.astype(int)
        rows = pool[indices]
        return (indices, rows, scores) if return_metrics else (indices, rows)

    def _errors(self, pool: Measurements) -> dict[str, np.ndarray]:
        """The errors, as a query strategy hands them on to the estimator."""
        errors = any_classifier.error_arguments(self.estimator.predict_proba, pool)
        for name in errors:
            if not _accepts(self.query_strategy, name):
                raise InputError(
                    f"the query strategy {getattr(self.query_strategy, '__name__', 'given')!r}"
                    f" takes no {name}; pack the errors into X with gpal.measurements.pack and"
                    " packed=True"
                )
        return errors

    def _like_ours(self, X: Any, X_err: Any, X_cov: Any) -> Sources:
        """Arrays as sources with the names and units of those that were there before."""
        found = self._found(X, X_err, X_cov)
        new, ours = as_sources(*found), self.sources
        if new is found[0] or not (
            isinstance(new, Measurements) and isinstance(ours, Measurements)
        ):
            return new
        alike = len(new.names) == len(ours.names)
        return replace(new, names=ours.names, units=ours.units) if alike else new

    def _found(self, X: Any, X_err: Any, X_cov: Any) -> tuple[Any, Any, Any]:
        """Named features in our order and units; what has no names as it is."""
        if not self.features or not _names(X):
            return X, X_err, X_cov
        if not isinstance(X, Measurements):
            return frame_by_name(X, X_err, X_cov, self.features)
        units = self.sources.units if isinstance(self.sources, Measurements) else X.units
        return in_units(by_name(X, self.features), units), X_err, X_cov

    def _check_weight(self, weight: Any, n: int) -> None:
        """InputError where weights of before would be forgotten, or those of now are not of all."""
        if self.weighted if weight is None else np.shape(weight) != (n,):
            raise InputError(
                f"give sample_weight for all {n} labels, those of before first, or call fit"
            )

    @property
    def next_learning(self) -> int:
        """The number of labels from which on hyper-parameters are learned again."""
        return self.labels_at_learning + self.relearn_every

    def _learned(
        self, sources: Sources, y: np.ndarray, bootstrap: bool, fit_kwargs: dict[str, Any]
    ) -> Any:
        """A new estimator; ours stays untouched until this one is whole."""
        if bootstrap:
            rows = self._random.randint(len(y), size=len(y))
            sources, y = sources[rows], y[rows]
            fit_kwargs = {
                name: np.asarray(value)[rows] if np.shape(value)[:1] == (len(rows),) else value
                for name, value in fit_kwargs.items()
            }
        return any_classifier.fit(clone(self.estimator), sources, y, **fit_kwargs)

    def _commit(
        self, sources: Sources, y: np.ndarray, estimator: Any, learned_at: int | None
    ) -> Learner:
        self.sources, self.estimator, self.y_training = sources, estimator, y
        if isinstance(sources, Measurements):
            self.X_training, self.X_err_training = sources.X, sources.X_err
        else:
            self.X_training, self.X_err_training = sources, None
        if learned_at is not None:
            self.labels_at_learning = learned_at
        return self


def _names(X: Any) -> list[str]:
    if isinstance(X, Measurements):
        return list(X.names) if X.named else []
    return feature_names(X) if hasattr(X, "columns") else []


def _aligned(sources: Sources, y: Any) -> tuple[Sources, np.ndarray]:
    y = np.atleast_1d(np.asarray(labels_as_given(y)))
    if len(sources) != len(y):
        raise InputError(f"{len(sources)} sources need {len(sources)} labels, got {len(y)}")
    return sources, y


def _joined(first: Sources, new: Sources) -> Sources:
    """Both, one after another; InputError where they do not go together."""
    if isinstance(first, Measurements) and isinstance(new, Measurements):
        return Measurements.stack([first, new])
    if isinstance(first, Measurements) or isinstance(new, Measurements):
        given, missing = ("new", "first") if isinstance(new, Measurements) else ("first", "new")
        raise InputError(
            f"the {given} sources have error bars and the {missing} ones have none; give X_err for"
            " all, 0 where a value is exact"
        )
    if new.shape[1:] != first.shape[1:]:
        raise InputError(
            f"the new sources have {new.shape[1]} columns, the first ones {first.shape[1]}; give"
            " the same features"
        )
    return np.concatenate([first, new])


def _accepts(function: Callable, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
