"""How a classifier is fitted to more sources than it takes at once: `fit_batches`, `fit` of many.

The hyper-parameters are learned from a sample of k sources, and q(f) from all. With p
hyper-parameters the bound per source is expected to lie p/(2k) below the best, as in Akaike's
criterion: .0003 nats for the seventeen of "rbf+linear" of eight features and k = 25,000.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_random_state

from gpal.engines import as_engine
from gpal.errors import InputError
from gpal.measurements import Measurements
from gpal.model.drawn_sample import DrawnSample
from gpal.model.labels import are_weights
from gpal.model.refitting import Given, Refitting, again_and_again
from gpal.model.rollback import as_it_was_on_error
from gpal.model.training_sample import TrainingSample
from gpal.tensorflow_start import import_tensorflow

if TYPE_CHECKING:
    from gpal.inference.batches import Meet
    from gpal.model.batches import Batch
    from gpal.model.checkpoint import Checkpoint
    from gpal.model.fit import FitModel

__all__ = ["BatchLearning"]

Classifier = TypeVar("Classifier", bound="BatchLearning")


class BatchLearning(Refitting):
    """A classifier that learns its hyper-parameters from a sample where there are many sources."""

    learn_from: int | None
    prior: Any
    _prior_ratio: Callable[[Any], np.ndarray]

    def fit_batches(
        self: Classifier,
        batches: Given,
        *,
        engine: Any = None,
        checkpoint: str | os.PathLike | None = None,
    ) -> Classifier:
        """As `fit`, of sources in batches with few in memory at a time.

        The classifier is that of `fit` with all batches as one, to the rounding of the sums, where
        there are more sources than `learn_from`: the sample of so many that scaling, population,
        kernel and inducing points are learned from is the same whatever the batches are. Of fewer
        sources `fit` has the sites that were learned with these, and this one others near them.

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
        import_tensorflow()
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
        begin, by = again_and_again(batches), as_engine(engine)
        with as_it_was_on_error(self):
            drawn, received = draw_from(
                by, begin, type(self)(packed=self.packed), self.learn_from, self._seed()
            )
            self.__dict__.pop("feature_names_in_", None)  # of another fit
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
            number = sum(drawn.counts.values())
            self.training_ = TrainingSample(
                drawn.lower, drawn.upper, self.training_.values, int(number)
            )
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
        begun = None if kept is None else kept.restore(self)
        if begun is None:
            self._fit_model(fit, sources, labels, weight)
        watch = None if kept is None else kept.watch(self)

        def scaled() -> Iterator[Batch]:
            for part, of_part, times in blocks():
                yield self._scaled(part), of_part, times

        meet = None if elsewhere is None else elsewhere()
        partial_labels = are_weights(labels)
        self.model_, seen = of_batches.refit_batches(
            self.model_, scaled, meet, watch, partial_labels, self.inference_options, begun
        )
        self.streamed_, self.batch_ = (seen, counts), None
        self._describe()
