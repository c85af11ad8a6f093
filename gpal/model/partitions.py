"""A fit whose sources lie in partitions, each of which may be worked on somewhere else.

A partition is a tuple (X, y), (X, y, X_err) or (X, y, X_err, X_cov), or a function that gives one
where it is called. It is asked three things, and what it answers is small:

    count       how many sources it has of each class       once
    draw        its part of the sample                      once
    met_in      what it says of q(f), at the present q(f)   in every sweep
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import tensorflow as tf

from gpal.engines import Engine
from gpal.errors import InputError
from gpal.inference.base import Problem
from gpal.inference.batches import Meet, Met, all_met, in_threads
from gpal.inference.chunks import SparsePosterior
from gpal.likelihoods.site_rules import SiteRule
from gpal.model.batches import data_of, problem_of, threads
from gpal.model.drawn_sample import DrawnSample
from gpal.model.labels import check_labels, check_single, labels_as_given

__all__ = ["Drawn", "Partition", "draw_from", "meet_by"]

Partition = tuple | Callable[[], tuple]


def opened(part: Partition) -> tuple[Any, Any, Any, Any]:
    """(X, y, X_err, X_cov); InputError for more or fewer."""
    content = part() if callable(part) else part
    if not 2 <= len(content) <= 4:
        raise InputError(
            f"a batch has {len(content)} parts; give (X, y), (X, y, X_err) or (X, y, None, X_cov),"
            " without weights"
        )
    X, y, *errors = content
    X_err, X_cov = [*errors, None, None][:2]
    return X, y, X_err, X_cov


# ---- the sample ----------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A sample, how often each class occurs, and the range of every feature [d]."""

    sample: DrawnSample
    counts: dict[Any, int]
    lower: np.ndarray
    upper: np.ndarray


def draw_from(
    engine: Engine,
    parts: Callable[[], Iterable[Partition]],
    classifier: Any,
    number: int,
    seed: int,
) -> tuple[Drawn, Any]:
    """What was drawn from all partitions, and the classifier that has received the first.

    parts        begins anew at every call
    classifier   not fitted; how it takes sources is all that is asked of it
    """
    counts = list(engine.map(_count, parts(), None))
    if not counts:
        raise InputError("there are no batches: give some sources")
    first = np.cumsum([0, *(sum(each.values()) for each in counts)]).tolist()
    (classifier,) = engine.map(_received, islice(parts(), 1), classifier)
    # What later partitions have errors in, the sample has too.
    classifier.exact_inputs_ = False
    sample, lower, upper = DrawnSample(number, seed), [], []
    for part, low, high in engine.map(_draw, zip(parts(), first), (classifier, number, seed)):
        sample.with_more(part)
        lower.append(low)
        upper.append(high)
    total: Counter = sum((Counter(each) for each in counts), Counter())
    return Drawn(sample, total, np.fmin.reduce(lower), np.fmax.reduce(upper)), classifier


def _count(part: Partition, shared: None) -> dict[Any, int]:
    y = opened(part)[1]
    check_single(y)
    y = np.asarray(labels_as_given(y))
    check_labels(y)
    names, occurs = np.unique(y, return_counts=True)
    return dict(zip(names.tolist(), occurs.tolist(), strict=True))


def _received(part: Partition, classifier: Any) -> Any:
    """The classifier that knows the features of this partition, and whether they have errors."""
    classifier = copy(classifier)
    classifier._received(*opened(part), reset=True)
    return classifier


def _draw(part_from: tuple[Partition, int], shared: tuple[Any, int, int]) -> tuple:
    (part, first), (classifier, number, seed) = part_from, shared
    X, y, X_err, X_cov = opened(part)
    exact = X_err is None and X_cov is None
    if not (exact or classifier.X_err_given_):
        raise InputError(
            "a batch has error bars and the first has none: give X_err=0 there for exact inputs"
        )
    sources, y = classifier._received(X, y, X_err, X_cov, reset=False)
    sample = DrawnSample(number, seed, first)
    sample.add(sources, y)
    lower, upper = np.fmin.reduce(sources.X, axis=0), np.fmax.reduce(sources.X, axis=0)
    return sample.thin_out(), lower, upper


# ---- sweeps --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Sent:
    """A fitted classifier on its way: the same one has the same name."""

    name: str
    kind: Any
    data: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sent) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class _Sweep(NamedTuple):
    classifier: _Sent
    posterior: tuple[np.ndarray, ...]
    signed: bool


class _Arrived(NamedTuple):
    classifier: Any
    problem: Problem
    rules: dict[bool, SiteRule]


def meet_by(engine: Engine, parts: Sequence[Partition], classifier: Any) -> Meet:
    """Sweeps through partitions, for a classifier that was fitted to a sample of them."""
    sent = _Sent(uuid4().hex, type(classifier), *classifier.to_data())

    def meet(rule: SiteRule, posterior: SparsePosterior) -> Iterable[Met]:
        of_all = _Sweep(sent, tuple(part.numpy() for part in posterior), rule.signed)
        return engine.map(_met_in, parts, of_all)

    return meet


@lru_cache(maxsize=2)
def _arrived(sent: _Sent) -> _Arrived:
    """Once in a process: graphs are made of it."""
    classifier = sent.kind.from_data(sent.data, sent.arrays)
    problem = problem_of(classifier.model_)
    signed = copy(problem.rule)
    signed.signed = True
    return _Arrived(classifier, problem, {False: problem.rule, True: signed})


def _met_in(part: Partition, shared: _Sweep) -> Met:
    classifier, problem, rules = _arrived(shared.classifier)
    X, y, X_err, X_cov = opened(part)
    sources, labels = classifier._labelled(X, y, X_err, X_cov)

    def batch() -> Iterator[tuple]:
        yield classifier._scaled(sources), labels, None

    rows = partial(data_of, classifier.model_, batch)
    posterior = SparsePosterior(*(tf.constant(part) for part in shared.posterior))
    met = all_met(rules[shared.signed], in_threads(problem, rows, threads()), posterior)
    return met._replace(statistics=tf.nest.map_structure(lambda t: t.numpy(), met.statistics))
