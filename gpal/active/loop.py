"""The loop: one immutable table of sources, and the labels given so far.

    loop = LearningLoop(GPClassifier(), X, X_err, labels={0: "bll", 7: "psr"})
    rows = loop.ask(5)
    loop.tell(rows, ["bll", "bll", "psr", "bll", "psr"])

Sources never move between arrays: a row number means the same source from the first question to the
last, and with it its error bars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpal.active.batch import diverse_batch, random_batch, top_batch
from gpal.active.learner import Learner
from gpal.active.observing import Observing
from gpal.active.posterior import score_sources
from gpal.active.scores import STRATEGIES, masked
from gpal.errors import InputError

__all__ = ["LearningLoop"]

Strategy = str | Callable


class LearningLoop:
    """Ask which sources to label, tell their labels, ask again.

    classifier     GPClassifier or any of scikit-learn's; it is cloned, not changed
    X, X_err       (n, d) the table; X_err None for exact values
    labels         row number -> label, known at the start
    strategy       one of scores.STRATEGIES, or a query strategy of modAL
    observing      observing time and limits, for the strategies by name
    quantities     name -> (n,) what the limits are on
    relearn_every  as in Learner
    random_state   seed of random questions and of the diverse batch
    """

    def __init__(
        self,
        classifier: Any,
        X: np.ndarray,
        X_err: np.ndarray | None = None,
        *,
        labels: Mapping[int, Any],
        strategy: Strategy = "entropy",
        observing: Observing | None = None,
        quantities: Mapping[str, np.ndarray] | None = None,
        relearn_every: int = 20,
        random_state: int = 0,
    ) -> None:
        if isinstance(strategy, str) and strategy not in STRATEGIES:
            raise InputError(f"no strategy '{strategy}'; there are: {', '.join(STRATEGIES)}")
        self.X = _read_only(X)
        self.X_err = None if X_err is None else _read_only(np.broadcast_to(X_err, self.X.shape))
        self.strategy, self.random_state = strategy, random_state
        self.observing, self.quantities = observing or Observing(), quantities
        self.labels = {int(row): label for row, label in labels.items()}
        self._check_rows(list(self.labels))
        self.learner = Learner(classifier, relearn_every=relearn_every)
        rows = self.labelled
        self.learner.fit(self.X[rows], self.y, X_err=self._errors(rows))

    @property
    def labelled(self) -> np.ndarray:
        """Row numbers of labelled sources in the order of their labels."""
        return np.array(list(self.labels), dtype=int)

    @property
    def pool(self) -> np.ndarray:
        """Row numbers of the other sources."""
        return np.setdiff1d(np.arange(len(self.X)), self.labelled)

    @property
    def y(self) -> np.ndarray:
        """Labels in the order of `labelled`."""
        return np.array(list(self.labels.values()))

    @property
    def classifier(self) -> Any:
        """The classifier fitted to all labels so far."""
        return self.learner.estimator

    def scores(self, score: str | None = None) -> np.ndarray:
        """(n,) score per unit of observing time; NaN for labelled and unobservable sources."""
        score = str(self.strategy) if score is None else score
        values, pool = np.full(len(self.X), np.nan), self.pool
        if score == "random":
            values[pool] = 1.0
        elif len(pool):
            values[pool] = score_sources(self.classifier, self.X[pool], self._errors(pool), score)
        return masked(self.observing.weigh(values, self.quantities), self.labelled)

    def ask(self, number: int = 1) -> np.ndarray:
        """Row numbers of the sources to label next, the best first."""
        if callable(self.strategy):
            self.learner.query_strategy = self.strategy
            pool = self.pool
            rows, _ = self.learner.query(self.X[pool], n_instances=number, X_err=self._errors(pool))
            return pool[rows]
        seed = self.random_state + len(self.labels)
        if self.strategy == "random":
            return random_batch(self.scores(), number, seed)
        if number == 1:
            return top_batch(self.scores(), 1)
        return diverse_batch(self.scores(), self.X, number, random_state=seed)

    def tell(
        self, rows: Sequence[int] | np.ndarray, labels: Sequence[Any], fit: bool = True
    ) -> None:
        """Labels of the sources `rows`; with fit=False the model learns them at the next `learn`.

        An exception, from the fit too, leaves labels and model as they were.
        """
        rows = [int(row) for row in np.atleast_1d(rows)]
        labels = np.atleast_1d(np.asarray(labels)).tolist()
        if len(rows) != len(labels):
            raise InputError(f"{len(rows)} sources need {len(rows)} labels, got {len(labels)}")
        self._check_rows(rows)
        for k, row in enumerate(rows):
            if row in self.labels or row in rows[:k]:
                raise InputError(f"row {row} is labelled already; leave it out")
        before, self.labels = self.labels, self.labels | dict(zip(rows, labels, strict=True))
        if fit:
            try:
                self.learn()
            except BaseException:
                self.labels = before
                raise

    def learn(self) -> None:
        """Fit to all labels told so far."""
        known = len(self.learner.y_training)
        new = self.labelled[known:]
        if len(new):
            self.learner.teach(self.X[new], self.y[known:], X_err=self._errors(new))

    def _errors(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.X_err is None else self.X_err[rows]

    def _check_rows(self, rows: Sequence[int]) -> None:
        for row in rows:
            if not 0 <= row < len(self.X):
                raise InputError(f"row {row} is not in the table of {len(self.X)} sources")


def _read_only(values: np.ndarray) -> np.ndarray:
    values = np.array(values, dtype=float)
    values.setflags(write=False)
    return values
