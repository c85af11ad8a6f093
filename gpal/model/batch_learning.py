"""How a classifier learns from more sources, or from more than it takes at once.

By what is learned anew: `fit_batches` everything, from batches that can be gone through again and
again; `refit_batches` q(f), from such; `refit` q(f), from arrays; `partial_fit` q(f), from batches
that are seen once.

Of many sources the hyper-parameters are learned from a sample of k, and q(f) from all. With p
hyper-parameters the bound per source is expected to lie p/(2k) below the best, as in Akaike's
criterion: .0003 nats for the seventeen of "rbf+linear" of eight features and k = 25,000.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from gpal.engines import as_engine
from gpal.errors import InputError, as_python
from gpal.measurements import Measurements, as_measurements, unpack
from gpal.model.drawn_sample import DrawnSample
from gpal.model.estimator import NoisyInputEstimator
from gpal.model.labels import (
    are_weights,
    as_labels,
    check_single,
    class_counts,
    classes_of,
    single_where_possible,
    unknown_in,
)
from gpal.model.training_sample import TrainingSample

if TYPE_CHECKING:
    from gpal.inference.batches import Meet
    from gpal.model.batches import Batch
    from gpal.model.checkpoint import Checkpoint
    from gpal.model.fit import FitModel

__all__ = ["BatchLearning"]

Given = Iterable[tuple] | Callable[[], Iterable[tuple]]
Classifier = TypeVar("Classifier", bound="BatchLearning")


class BatchLearning(NoisyInputEstimator):
    """Of a classifier, which has the labels' side of it: classes, and how often each occurs."""

    inference: str
    learn_from: int | None
    prior: Any
    _prior_ratio: Callable[[Any], np.ndarray]
    classes_: np.ndarray
    class_fractions_: np.ndarray
    streamed_: Any = None  # what `partial_fit` keeps of the sources seen
    batch_: Any = None  # (sources, labels, sample weights) of `fit` or `refit`, for `partial_fit`

    # ---- everything ------------------------------------------------------------------------------

    def fit_batches(
        self: Classifier,
        batches: Given,
        *,
        engine: Any = None,
        checkpoint: str | os.PathLike | None = None,
    ) -> Classifier:
        """As `fit`, of sources in batches with few in memory at a time.

        The classifier is that of `fit` with all batches as one, to the rounding of the sums: the
        sample that scaling, population, kernel and inducing points are learned from (`learn_from`)
        is the same whatever the batches are.

        Parameters
        ----------
        batches : iterable of tuples, or function
            Tuples (X, y), (X, y, X_err) or (X, y, X_err, X_cov), in a list or another iterable that
            begins anew, or a function that gives one: every sweep goes through all of them.
        engine : dask.distributed.Client or engine, optional
            Who goes through them, see `gpal.engines`; None: this process. With an engine there may
            be functions in place of the tuples, which give them where they are called, and all
            have the features in one order.
        checkpoint : str or path, optional
            A model file, written before every sweep. The same fit of the same batches goes on from
            it where an earlier one was interrupted.

        Returns
        -------
        GPClassifier
            Itself.

        Raises
        ------
        InputError
            Where `learn_from` is None, for an inference that cannot find q(f) alone, for batches
            that can be gone through once only, and for a checkpoint of another fit.
        """
        from gpal.model.checkpoint import Checkpoint
        from gpal.model.fit import fit_model
        from gpal.model.partitions import draw_from, meet_by
        from gpal.model.settings import check_learn_from

        check_learn_from(self)
        if not self._can_sample():
            raise InputError(
                f"inference '{self.inference}' learns from all sources at once: use fit, or"
                " inference='sites'"
            )
        if self.learn_from is None:
            raise InputError("learn_from=None learns from all sources at once: use fit, or give it")
        begin, by = _again_and_again(batches), as_engine(engine)
        drawn, received = draw_from(
            by, begin, type(self)(packed=self.packed), self.learn_from, self._seed()
        )
        self.__dict__.update({k: v for k, v in vars(received).items() if k.endswith("_")})
        sources, y, weight = drawn.sample.result()
        labels = self._set_classes(y)
        counts = np.array([drawn.counts[name] for name in self.classes_.tolist()], float)
        self.class_fractions_ = counts / counts.sum()
        self._prior_ratio(self.prior)

        def blocks() -> Iterator[Batch]:
            for X, y, *errors in begin():
                yield *self._labelled(X, y, *errors), None

        kept = None
        if checkpoint is not None:
            kept = Checkpoint.of(checkpoint, self, (sources, y, weight), drawn)
        elsewhere = None if engine is None else lambda: meet_by(by, list(begin()), self)
        sample = sources, labels, weight
        self._fit_sampled(fit_model, sample, blocks, counts, elsewhere, kept)
        self.training_ = TrainingSample(drawn.lower, drawn.upper, self.training_.values)
        return self

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _can_sample(self) -> bool:
        from gpal.inference.base import INFERENCES

        inference = INFERENCES.find(self.inference)
        return inference.can_refit and inference.takes_weights

    def _learns_from_sample(self, number: int) -> bool:
        from gpal.model.settings import check_learn_from

        check_learn_from(self)
        return self.learn_from is not None and number > self.learn_from and self._can_sample()

    def _fit_arrays(
        self,
        fit: FitModel,
        sources: Measurements,
        labels: np.ndarray,
        weight: np.ndarray | None,
    ) -> None:
        """The model of many sources that are in memory."""
        assert self.learn_from is not None
        from gpal.model.batches import BLOCK

        drawn = DrawnSample(self.learn_from, self._seed())
        drawn.add(sources, labels, weight)

        def blocks() -> Iterator[Batch]:
            for first in range(0, len(sources), BLOCK):
                part = slice(first, first + BLOCK)
                yield sources[part], labels[part], None if weight is None else weight[part]

        self._fit_sampled(fit, drawn.result(), blocks, self._counts(labels, weight))
        self.training_ = TrainingSample.of(sources)

    def _fit_sampled(
        self,
        fit: FitModel,
        sample: tuple[Measurements, np.ndarray, np.ndarray | None],
        blocks: Callable[[], Iterable[Batch]],
        counts: np.ndarray,
        elsewhere: Callable[[], Meet] | None = None,
        kept: Checkpoint | None = None,
    ) -> None:
        """Hyper-parameters of the sample, q(f) of the blocks, which are met here or elsewhere."""
        from gpal.model import batches as of_batches

        sources, labels, weight = sample
        if kept is None or not kept.restore(self):
            self._fit_model(fit, sources, labels, weight)
        watch = None if kept is None else kept.watch(self)

        def scaled() -> Iterator[Batch]:
            for part, of_part, times in blocks():
                yield self._scaled(part), of_part, times

        meet = None if elsewhere is None else elsewhere()
        partial_labels = are_weights(labels)
        self.model_, seen = of_batches.refit_batches(
            self.model_, scaled, meet, watch, partial_labels
        )
        self.streamed_, self.batch_ = (seen, counts), None
        self._describe()

    # ---- q(f) ------------------------------------------------------------------------------------

    def refit(self: Classifier, X: Any, y: Any, X_err: Any = None, X_cov: Any = None) -> Classifier:
        """A new classifier of these sources and labels with the hyper-parameters of this one.

        Kept from the last fit: scaling, population prior, kernel, inducing points, and temperature
        with what `settings_` says of its choice. Only q(f) is found anew, by the site engine
        started at the previous posterior: a small part of the cost of a fit. The sites have one
        fixed point for given hyper-parameters where the likelihood is log-concave and the input is
        not integrated over: there the result is that of a cold start, elsewhere near it.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Class of each source.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.

        Returns
        -------
        GPClassifier

        Raises
        ------
        InputError
            On labels that this classifier does not know, and where `can_refit` says no.
        """
        check_is_fitted(self)
        sources, labels = self._telling(*self._labelled(X, y, X_err, X_cov))[:2]
        self._check_partial(labels)
        scaled = self._scaled(sources)
        fitted = self._with_model(self.model_.refit(scaled, labels), self._counts(labels, None))
        fitted.batch_ = scaled, labels, None
        fitted.training_ = TrainingSample.of(sources)
        return fitted

    def refit_batches(self: Classifier, batches: Given) -> Classifier:
        """As `refit`, of sources in batches with one in memory at a time.

        The classifier is that of `refit` with all batches as one, to the rounding of the sums.

        Parameters
        ----------
        batches : iterable of tuples, or function
            Tuples (X, y), (X, y, X_err) or (X, y, X_err, X_cov), in a list or another iterable that
            begins anew, or a function that gives one: every sweep goes through all of them.

        Returns
        -------
        GPClassifier
        """
        from gpal.model import batches as of_batches

        check_is_fitted(self)
        begin = _again_and_again(batches)
        counts = np.zeros(len(self.classes_))
        training: list[TrainingSample] = []

        def scaled() -> Iterator[Batch]:
            counts[:] = 0.0
            training.clear()
            for X, y, *errors in begin():
                check_single(y)
                sources, labels = self._labelled(X, y, *errors)
                counts[:] += np.bincount(labels, minlength=len(counts))
                part = TrainingSample.of(sources)
                training[:] = [training[0].with_more(part) if training else part]
                yield self._scaled(sources), labels, None

        model, _ = of_batches.refit_batches(self.model_, scaled)
        fitted = self._with_model(model, counts)
        fitted.training_ = training[0]
        return fitted

    def partial_fit(
        self: Classifier,
        X: Any,
        y: Any,
        classes: Any = None,
        X_err: Any = None,
        X_cov: Any = None,
        sample_weight: Any = None,
    ) -> Classifier:
        """Learn from more sources, which are not kept. The first call is `fit`.

        What later calls learn, and calls after `fit` or `refit`, is q(f): scaling, population,
        kernel, inducing points and temperature stay. The sites of sources seen are held as they
        were met in their own call. With the Dirichlet likelihood they do not change, and the
        classifier is that of `refit` with all sources; with the others it is near it, see
        docs/composition.md. A loaded model has no memory of its sources and cannot go on.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Class of each source.
        classes : array (C,), optional
            As scikit-learn has it: those of the first call, where all of them must occur.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        sample_weight : array (n,), optional
            How many times each source counts.

        Returns
        -------
        GPClassifier
            Itself.
        """
        from gpal.model import batches as of_batches

        if first := not hasattr(self, "model_"):
            self.fit(X, y, X_err, X_cov, sample_weight)
            wanted = self.classes_ if classes is None else np.unique(classes)
            if not np.array_equal(wanted, self.classes_):
                missing = sorted(set(wanted.tolist()) ^ set(self.classes_.tolist()))
                del self.model_
                raise InputError(
                    f"class {as_python(missing[0])!r} must be in `classes` and among the labels of"
                    " the first batch, from which the kernel is learned"
                )
        sources, labels = self._labelled(X, y, X_err, X_cov)
        if self.streamed_ is None:
            if self.batch_ is None:
                raise InputError(
                    "partial_fit goes on from sources seen in this process, not after load or"
                    " refit_batches: begin with a new classifier, or use refit_batches"
                )
            partial_labels = are_weights(self.batch_[1])
            model, seen = of_batches.refit_batches(
                self.model_, lambda: [self.batch_], partial_labels=partial_labels
            )
            counts = self._counts(*self.batch_[1:])
        else:
            model, (seen, counts) = self.model_, self.streamed_
        if not first:
            sources, labels, weight = self._telling(*self._counted(sources, labels, sample_weight))
            self._check_partial(labels)
            batch = self._scaled(sources), labels, weight
            model, seen = of_batches.updated(model, seen, batch)
            counts = self._counts(labels, weight, counts)
            self.training_ = self.training_.with_more(TrainingSample.of(sources))
        self.model_, self.streamed_, self.batch_ = model, (seen, counts), None
        self.class_fractions_ = counts / counts.sum()
        self._describe()
        return self

    def can_refit(self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None) -> bool:
        """Whether `refit` can do it.

        It can where the fit was one of the site engine, of the same classes, and error bars are on
        no feature that had none.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Class of each source.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.

        Returns
        -------
        bool
        """
        if not hasattr(self, "classes_") or self._unknown(y):
            return False
        if self.packed and not isinstance(X, Measurements):
            X, X_err = unpack(X)
        sources = as_measurements(X, X_err, X_cov)
        known = list(getattr(self, "feature_names_in_", ()))
        if known and set(known) <= set(sources.names):
            sources = sources.select(known)
        return self._refits(_noisy(sources))

    # ---- labels ----------------------------------------------------------------------------------

    def _set_classes(self, y: np.ndarray) -> np.ndarray:
        """`classes_`, and the labels in them."""
        self.classes_ = classes_of(y)
        if len(self.classes_) < 2:
            raise InputError(
                f"y holds one class only, {as_python(self.classes_)[0]!r};"
                " a classifier needs two or more"
            )
        return as_labels(y, self.classes_)

    def _counts(
        self, labels: np.ndarray, weight: np.ndarray | None, before: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """How often each class occurs [C], here and before."""
        return class_counts(labels, weight, len(self.classes_), before)

    def _telling(
        self, sources: Measurements, labels: np.ndarray, weight: np.ndarray | None = None
    ) -> tuple[Measurements, np.ndarray, np.ndarray | None]:
        """Without labels that weigh all classes alike, which say nothing."""
        if not are_weights(labels) or (tells := (labels < 1).any(axis=1)).all():
            return sources, labels, weight
        if not tells.any():
            raise InputError(
                "every label is a set of all classes, or weighs them alike; give sources of a known"
                " class"
            )
        labels = single_where_possible(labels[tells])
        return sources[tells], labels, None if weight is None else weight[tells]

    def _check_partial(self, labels: np.ndarray) -> None:
        """InputError for sets and weights, where they cannot be learned from."""
        from gpal.inference.capabilities import check

        if are_weights(labels):
            noise, C = self.model_.input_noise, len(self.classes_)
            check(self.model_.likelihood, noise, self.inference, C, partial_labels=True)

    def _labelled(
        self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None
    ) -> tuple[Measurements, np.ndarray]:
        """(sources, labels) to learn from with the hyper-parameters there are."""
        sources = self._at_the_door(X, X_err, X_cov)
        y = np.asarray(y)
        if y.shape != (len(sources),):
            raise InputError(f"y has shape {y.shape}, one label for each of {len(sources)} sources")
        if unknown := self._unknown(y):
            raise InputError(
                f"class {as_python(unknown[0])!r} is not one of {as_python(self.classes_)};"
                " fit from the start"
            )
        if not self._refits(_noisy(sources)):
            raise InputError(
                f"a fit by '{self.inference}' with these error bars cannot be refitted; fit from"
                " the start"
            )
        return sources, as_labels(y, self.classes_)

    def _unknown(self, y: Any) -> list[Any]:
        """Labels that are no class of this classifier."""
        return unknown_in(y, self.classes_)

    def _with_model(self: Classifier, model: Any, counts: np.ndarray) -> Classifier:
        """A copy with another q(f), of so many sources of each class."""
        fitted = self._refitted(model)
        fitted.class_fractions_ = counts / counts.sum()
        fitted.streamed_ = fitted.batch_ = None
        return fitted


def _noisy(sources: Measurements) -> np.ndarray:
    """[d] whether a feature has an error or was not measured for some source."""
    return np.any(sources.X_err > 0, axis=0)


def _again_and_again(batches: Given) -> Callable[[], Iterable[tuple]]:
    """A function that begins the batches anew; InputError where they can be gone through once."""
    if isinstance(batches, Iterator):
        raise InputError(
            "an iterator can be gone through once only, and every sweep goes through all"
            " batches: give a list, or a function that makes the iterator"
        )
    return batches if callable(batches) else lambda: batches
