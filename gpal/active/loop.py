"""The loop: one immutable table of sources, and the labels given so far.

    loop = LearningLoop(GPClassifier(), sources, labels={0: "bll", 7: "psr"})
    rows = loop.ask(5)
    loop.tell(rows, ["bll", "bll", "psr", "bll", "psr"])

Sources never move between arrays: a row number means the same source from the first question to the
last, and with it its error bars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any, SupportsIndex

import numpy as np
import pandas as pd

from gpal.active.batch import check_number
from gpal.active.learner import Learner
from gpal.active.observing import Observing
from gpal.active.posterior import score_sources
from gpal.active.scores import masked
from gpal.active.strategies import Strategy, as_strategy
from gpal.array_messages import refuse_masked, refuse_mixed_labels
from gpal.errors import InputError, shown
from gpal.evaluation.any_classifier import Sources, as_sources
from gpal.measurements import Measurements
from gpal.names import LARGEST_SEED, check_seed

__all__ = ["LearningLoop"]


class LearningLoop:
    """Ask which sources to label, tell their labels, ask again.

    classifier     GPClassifier or any of scikit-learn's; it is cloned, not changed
    X              the table: Measurements, or values (n, d) with X_err or X_cov, neither where they
                   are exact
    labels         row number -> label, known at the start
    strategy       a name of strategies.STRATEGIES, a Strategy, or a query strategy of modAL
    observing      observing time and limits; modAL's strategies take none
    quantities     name -> (n,) what the limits are on
    relearn_every  as in Learner
    random_state   seed of random questions and of the diverse batch
    """

    def __init__(
        self,
        classifier: Any,
        X: Measurements | np.ndarray,
        X_err: Any = None,
        X_cov: np.ndarray | None = None,
        *,
        labels: Mapping[int, Any],
        strategy: str | Strategy | Callable = "entropy",
        observing: Observing | None = None,
        quantities: Mapping[str, np.ndarray] | None = None,
        relearn_every: int = 20,
        random_state: int = 0,
    ) -> None:
        ours = isinstance(strategy, str | Strategy | type)  # modAL's are functions
        self.strategy = as_strategy(strategy) if ours else strategy
        if not ours and (observing is not None or quantities is not None):
            raise InputError(
                "a query strategy of modAL knows no observing times and limits; name one of"
                " gpal's, or leave observing and quantities out"
            )
        check_seed(random_state)
        self.random_state = random_state
        self.sources = _read_only(as_sources(X, X_err, X_cov))
        self.observing, self.quantities = observing or Observing(), quantities
        self.labels = dict(zip(self._rows(list(labels)), labels.values(), strict=True))
        _check_labels(self.labels)
        self.learner = Learner(classifier, relearn_every=relearn_every)
        self.learner.fit(self.sources[self.labelled], self.y)

    @property
    def X(self) -> np.ndarray:
        """(n, d) values of the table; they cannot be written to."""
        return self.sources.X if isinstance(self.sources, Measurements) else self.sources

    @property
    def labelled(self) -> np.ndarray:
        """Row numbers of labelled sources in the order of their labels."""
        return np.array(list(self.labels), dtype=int)

    @property
    def pool(self) -> np.ndarray:
        """Row numbers of the other sources."""
        return np.setdiff1d(np.arange(len(self.sources)), self.labelled)

    @property
    def y(self) -> np.ndarray:
        """Labels in the order of `labelled`."""
        return np.array(list(self.labels.values()))

    @property
    def classifier(self) -> Any:
        """The classifier fitted to all labels so far."""
        return self.learner.estimator

    def scores(self, score: str | Strategy | None = None) -> np.ndarray:
        """(n,) score per unit of observing time; NaN for labelled and unobservable sources.

        score  a strategy; None: the loop's own
        """
        strategy = self.strategy if score is None else as_strategy(score)
        if not isinstance(strategy, Strategy):
            raise InputError("a query strategy of modAL gives no scores; name one of gpal's")
        values, pool = np.full(len(self.sources), np.nan), self.pool
        if len(pool):
            values[pool] = score_sources(self.classifier, self.sources[pool], score=strategy)
        return masked(self.observing.weigh(values, self.quantities), self.labelled)

    def ask(self, number: int = 1) -> np.ndarray:
        """Row numbers of the sources to label next, the best first."""
        if isinstance(self.strategy, Strategy):
            seed = (self.random_state + len(self.labels)) % (LARGEST_SEED + 1)
            return self.strategy.choose(self.scores(), self.X, number, seed)
        check_number(number, len(self.pool))
        self.learner.query_strategy = self.strategy
        rows, _ = self.learner.query(self.sources[self.pool], n_instances=number)
        return self.pool[rows]

    def tell(
        self, rows: Sequence[int] | np.ndarray, labels: Sequence[Any], fit: bool = True
    ) -> None:
        """Labels of the sources `rows`; with fit=False the model learns them at the next `learn`.

        An exception, from the fit too, leaves labels and model as they were.
        """
        rows = self._rows(rows)
        refuse_masked(labels=labels)
        labels = np.atleast_1d(np.asarray(labels, dtype=object)).tolist()
        if len(rows) != len(labels):
            raise InputError(f"{len(rows)} sources need {len(rows)} labels, got {len(labels)}")
        _check_labels(self.labels | dict(zip(rows, labels, strict=True)))
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
            self.learner.teach(self.sources[new], self.y[known:])

    def _rows(self, rows: Any) -> list[int]:
        """Row numbers; InputError for what is none, a mask included."""
        refuse_masked(rows=rows)
        numbers = []
        for row in np.atleast_1d(np.asarray(rows, dtype=object)).tolist():
            if isinstance(row, bool | np.bool_) or not isinstance(row, SupportsIndex):
                raise InputError(
                    f"{shown(repr(row))} is no row number of the table: give whole numbers from 0"
                    f" to {len(self.sources) - 1}, of a mask np.flatnonzero(mask)"
                )
            if not 0 <= (number := index(row)) < len(self.sources):
                raise InputError(f"row {row} is not in the table of {len(self.sources)} sources")
            numbers.append(number)
        return numbers


def _read_only(sources: Sources) -> Sources:
    """A copy that cannot be written to."""
    if not isinstance(sources, Measurements):
        sources = np.array(sources, dtype=float)
        sources.setflags(write=False)
        return sources
    sources = replace(sources)  # copies values, errors and covariance
    for values in (sources.X, sources.X_err, sources.covariance):
        if values is not None:
            values.setflags(write=False)
    return sources


def _check_labels(labels: Mapping[int, Any]) -> None:
    """InputError where there is none, for None or NaN, and for numbers among text."""
    if not labels:
        raise InputError("labels is empty: give the row numbers and labels of some sources")
    for row, label in labels.items():
        if label is None or label is pd.NA or label is np.ma.masked or label != label:
            raise InputError(f"the label of row {row} is missing; leave the row out")
    refuse_mixed_labels(labels.values(), list(labels))
