"""How a fitted classifier learns from more sources, with the hyper-parameters it has: q(f) alone.

`refit` from arrays; `refit_batches` from batches that can be gone through again and again;
`partial_fit` from batches that are seen once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpal.arrays import as_measurements
from gpal.errors import InputError, as_python
from gpal.measurements import Measurements, unpack
from gpal.model.labelled import LabelledEstimator
from gpal.model.labels import are_weights, check_single
from gpal.model.rollback import as_it_was_on_error
from gpal.model.training_sample import TrainingSample
from gpal.plain_values import warn_of_other_rows

if TYPE_CHECKING:
    from gpal.model.batches import Batch

__all__ = ["Given", "Refitting", "again_and_again"]

Given = Iterable[tuple] | Callable[[], Iterable[tuple]]
Classifier = TypeVar("Classifier", bound="Refitting")


class Refitting(LabelledEstimator):
    """A classifier whose q(f) is found anew, for other sources or for more of them."""

    def refit(
        self: Classifier,
        X: Any,
        y: Any,
        X_err: Any = None,
        X_cov: Any = None,
        sample_weight: Any = None,
    ) -> Classifier:
        """A new classifier of these sources and labels with the hyper-parameters of this one.

        Kept from the last fit: scaling, population prior, kernel, inducing points, and temperature
        with what `settings_` says of its choice. Only q(f) is found anew, by the site engine
        started at the previous posterior, `final_sweeps` and `tolerance` of `inference_options`
        being those of a fit: a small part of its cost. The sites have one
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
        sample_weight : array (n,), optional
            How many times each source counts, as in `fit`; those of a fit are not remembered.

        Returns
        -------
        GPClassifier

        Raises
        ------
        InputError
            On labels that this classifier does not know, on weights that `fit` refuses, and where
            `can_refit` says no.
        """
        check_is_fitted(self)
        warn_of_other_rows(X, stacklevel=3, sample_weight=sample_weight)
        known = self._labelled(X, y, X_err, X_cov)
        sources, labels, weight = self._telling(*self._counted(*known, sample_weight))
        self._check_partial(labels)
        scaled = self._scaled(sources)
        model = self.model_.refit(scaled, labels, self.inference_options, weight)
        fitted = self._with_model(model, self._counts(labels, weight))
        fitted.batch_ = scaled, labels, weight
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
        begin = again_and_again(batches)
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

        model, _ = of_batches.refit_batches(self.model_, scaled, options=self.inference_options)
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
        were met in their own call. With the Dirichlet likelihood and one node per input they do
        not change, and the classifier is that of `refit` with all sources; else it is near it, see
        docs/composition.md. A loaded model has no memory of its sources and cannot go on.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Class of each source.
        classes : array (C,), optional
            As scikit-learn has it: those of the first call, where all of them must occur. Later
            calls have the same.
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
        with as_it_was_on_error(self):
            if first := not hasattr(self, "model_"):
                self.fit(X, y, X_err, X_cov, sample_weight)
            self._check_classes(classes)
            if not first:
                warn_of_other_rows(X, stacklevel=3, sample_weight=sample_weight)
            self._go_on(None if first else (*self._labelled(X, y, X_err, X_cov), sample_weight))
        return self

    def _check_classes(self, classes: Any) -> None:
        wanted = self.classes_ if classes is None else np.unique(classes)
        if not np.array_equal(wanted, self.classes_):
            missing = sorted(set(wanted.tolist()) ^ set(self.classes_.tolist()))
            raise InputError(
                f"class {as_python(missing[0])!r} must be in `classes` and among the labels of"
                " the first batch, from which the kernel is learned"
            )

    def _go_on(self, batch: tuple[Measurements, Any, Any] | None) -> None:
        """From the sources of the last fit, or the batches since, to (sources, labels, weights) of
        another one; None: there is no other yet."""
        from gpal.model import batches as of_batches

        if batch is None and not self.model_.can_refit:
            return  # a fit of another kind, which no later call can go on from
        if self.streamed_ is None:
            if self.batch_ is None:
                raise InputError(
                    "partial_fit goes on from sources seen in this process, not after load or"
                    " refit_batches: begin with a new classifier, or use refit_batches"
                )
            partial_labels = are_weights(self.batch_[1])
            model, seen = of_batches.refit_batches(
                self.model_,
                lambda: [self.batch_],
                partial_labels=partial_labels,
                options=self.inference_options,
            )
            counts = self._counts(*self.batch_[1:])
        else:
            model, (seen, counts) = self.model_, self.streamed_
        if batch is not None:
            sources, labels, weight = self._telling(*self._counted(*batch))
            self._check_partial(labels)
            scaled = self._scaled(sources), labels, weight
            model, seen = of_batches.updated(model, seen, scaled, self.inference_options)
            counts = self._counts(labels, weight, counts)
            self.training_ = self.training_.with_more(TrainingSample.of(sources))
        self.model_, self.streamed_, self.batch_ = model, (seen, counts), None
        self.class_fractions_ = counts / counts.sum()
        self._describe()

    def can_refit(self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None) -> bool:
        """Whether `refit` can do it.

        It can where the fit was one of the site engine, of the same classes, error bars are on no
        feature that had none, and a full GP has a kernel without white noise, which would be that
        of inducing points then.

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
        return self._refits(sources.have_errors)


def again_and_again(batches: Given) -> Callable[[], Iterable[tuple]]:
    """A function that begins the batches anew; InputError where they can be gone through once."""
    if isinstance(batches, Iterator):
        raise InputError(
            "an iterator can be gone through once only, and every sweep goes through all"
            " batches: give a list, or a function that makes the iterator"
        )
    return batches if callable(batches) else lambda: batches
