"""More sources for a fitted model, in batches, with the hyper-parameters that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from gpal.inference.base import INFERENCES, Problem
from gpal.inference.batches import BatchFit, Meet, fit_batches, held_expectation, in_threads
from gpal.inference.input_rows import InputRows
from gpal.inference.rows import Data, Statistics
from gpal.inference.single_latent import site_rule
from gpal.inference.sites import Schedule
from gpal.likelihoods.partial_labels import PartialLabels
from gpal.measurements import Measurements
from gpal.model.fitted import FittedModel
from gpal.model.labels import are_weights
from gpal.parallel import cores

__all__ = [
    "BLOCK",
    "Batch",
    "Streamed",
    "data_of",
    "problem_of",
    "refit_batches",
    "threads",
    "updated",
]

# Standardised sources, labels (`gpal.model.labels`), how often each counts [n] or None.
Batch = tuple[Measurements, np.ndarray, np.ndarray | None]
BLOCK = 1 << 14  # sources that are met at a time


@dataclass(frozen=True)
class Streamed:
    """What is kept of the sources seen: statistics of their sites, how often they count, and the
    constant of their sites in the bound."""

    statistics: Statistics
    size: float
    constant: float


def refit_batches(
    model: FittedModel,
    batches: Callable[[], Iterable[Batch]],
    meet: Meet | None = None,
    watch: Callable[[BatchFit], None] | None = None,
    partial_labels: bool = False,
    options: Mapping[str, Any] | None = None,
    begun: BatchFit | None = None,
) -> tuple[FittedModel, Streamed]:
    """The model of all these sources, which are gone through once a sweep.

    meet   where something else goes through them
    watch  called before every sweep with the fit so far
    partial_labels  whether labels are weights
    options  of the inference, which say how far sites are swept (`Schedule.of_posterior`)
    begun  a fit to go on with
    """
    return _fitted(model, batches, None, partial_labels, options, meet, watch, begun)


def updated(
    model: FittedModel, seen: Streamed, batch: Batch, options: Mapping[str, Any] | None = None
) -> tuple[FittedModel, Streamed]:
    """The model of the sources seen, their sites held, and of a batch."""
    return _fitted(model, lambda: [batch], seen, are_weights(batch[1]), options)


def problem_of(model: FittedModel, partial_labels: bool = False) -> Problem:
    """Of sweeps with the hyper-parameters that the model has, of labels that may be weights."""
    nothing: Any = None  # data come from the batches
    likelihood = PartialLabels(model.likelihood) if partial_labels else model.likelihood
    rule = site_rule(INFERENCES[model.inference].rule, likelihood)
    return Problem(model.gp.as_sparse(), likelihood, rule, nothing)


def data_of(model: FittedModel, batches: Callable[[], Iterable[Batch]]) -> Iterator[Data]:
    """What is met at a time."""
    inputs = InputRows(model.true_input, model.input_noise)
    for sources, labels, weight in batches():
        for first in range(0, len(sources), BLOCK):
            part = slice(first, first + BLOCK)
            times = None if weight is None else weight[part]
            yield inputs.data(sources[part], labels[part], times)


def _fitted(
    model: FittedModel,
    batches: Callable[[], Iterable[Batch]],
    seen: Streamed | None,
    partial_labels: bool,
    options: Mapping[str, Any] | None,
    meet: Meet | None = None,
    watch: Callable[[BatchFit], None] | None = None,
    begun: BatchFit | None = None,
) -> tuple[FittedModel, Streamed]:
    problem = problem_of(model, partial_labels)
    held = None if seen is None else seen.statistics
    schedule = Schedule.of_posterior(options)
    fit = fit_batches(
        problem,
        meet or in_threads(problem, partial(data_of, model, batches), threads()),
        begun or BatchFit(model.posterior),
        sweeps=schedule.final_sweeps,
        tolerance=schedule.tolerance,
        held=held,
        watch=watch,
    )
    assert fit.statistics is not None
    bound, size = fit.bounds[-1], fit.size
    if seen is not None:
        bound, size = bound + seen.constant, size + seen.size
    of_sites = held_expectation(fit.statistics, fit.posterior) - float(fit.posterior.kl)
    streamed = Streamed(fit.statistics, size, bound - of_sites)
    return replace(model, gp=problem.gp, posterior=fit.posterior, bound=bound / size), streamed


def threads() -> int:
    """That TensorFlow may use in this process."""
    return tf.config.threading.get_intra_op_parallelism_threads() or cores()
