"""The labels' side of a classifier: its classes, how often each occurs, and sources with labels to
learn from with the hyper-parameters there are."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from gpal.errors import InputError, as_python
from gpal.measurements import Measurements
from gpal.model.estimator import NoisyInputEstimator
from gpal.model.labels import (
    are_weights,
    as_labels,
    class_counts,
    classes_of,
    single_where_possible,
    unknown_in,
)
from gpal.plain_values import warn_of_other_rows

__all__ = ["LabelledEstimator"]

Classifier = TypeVar("Classifier", bound="LabelledEstimator")


class LabelledEstimator(NoisyInputEstimator):
    """An estimator whose y is classes; `inference` is a parameter, what ends in _ is learned."""

    inference: str
    inference_options: Any
    classes_: np.ndarray
    class_fractions_: np.ndarray
    streamed_: Any = None  # what `partial_fit` keeps of the sources seen
    batch_: Any = None  # (sources, labels, sample weights) of `fit` or `refit`, for `partial_fit`

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

    def _refuse_untold(self, labels: np.ndarray) -> None:
        """InputError for a class that is named in no label that tells anything."""
        C = len(self.classes_)
        named = labels.sum(axis=0) if are_weights(labels) else np.bincount(labels, minlength=C)
        told = named > 0
        if not told.all():
            name = as_python(self.classes_[~told])[0]
            raise InputError(
                f"class {name!r} is named only in labels that leave every class open, from which"
                " nothing is learned; give a source of it, or leave it out"
            )

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
        warn_of_other_rows(X, y=y)
        sources = self._at_the_door(X, X_err, X_cov)
        y = np.asarray(self._checked_response(y))
        if y.shape != (len(sources),):
            raise InputError(f"y has shape {y.shape}, one label for each of {len(sources)} sources")
        if unknown := self._unknown(y):
            raise InputError(
                f"class {as_python(unknown[0])!r} is not one of {as_python(self.classes_)};"
                " fit from the start"
            )
        if not self._refits(sources.have_errors):
            raise InputError(
                f"a fit by '{self.inference}' with this kernel and these error bars cannot be"
                " refitted; fit from the start"
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
