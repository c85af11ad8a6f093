"""Targets in the order in which to look at them, by what a model says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpal.active.batch import top_batch
from gpal.active.campaign.model_scores import ModelScores
from gpal.active.campaign.table import SourceTable
from gpal.active.observing import Observing
from gpal.active.strategies import Strategy
from gpal.errors import InputError

__all__ = ["NothingLeft", "Target", "ranked_targets"]


class NothingLeft(InputError):
    """No source is left to ask for, or the limits allow none."""


@dataclass(frozen=True)
class Target:
    """A source to look at.

    score    of the campaign's strategy, per unit of observing time: from `predict_proba`
    entropy  in nats, averaged over the error bars; the sum of its parts measurement, model and
             overlap. The score of the strategy "entropy" differs from it where the classifier
             treats error bars otherwise (`first_order`) or exposure times weigh.
    """

    row: int
    name: str
    ra: float
    dec: float
    score: float
    probabilities: dict[str, float]
    measurement: float
    model: float
    overlap: float

    @property
    def entropy(self) -> float:
        return self.measurement + self.model + self.overlap


def ranked_targets(
    table: SourceTable,
    scored: ModelScores,
    label: np.ndarray,
    number: int | None = None,
    *,
    observing: Observing | None = None,
    strategy: Strategy | None = None,
    per_time: bool = True,
) -> list[Target]:
    """The best `number` of the sources that have a score and no label, all of them for None.

    label     (n,) the present labels, '' for none: some may be newer than the model
    strategy  chooses several that differ; None: the highest scores
    per_time  whether scores count per unit of observing time; times else only say what can be
              observed, as for a control, which takes any source

    Raises InputError for scores of another release, NothingLeft where no source is left.
    """
    if not np.array_equal(scored.ids, table.ids):
        raise InputError(
            f"the scores of model {scored.number} are those of another release's sources; rank by"
            " those of a model of this one: run gpal learn refit"
        )
    score = np.where(label == "", scored.score, np.nan)
    if observing is not None:
        weighed = observing.weigh(score, table.quantities(observing.limits))
        score = weighed if per_time else np.where(np.isnan(weighed), np.nan, score)
    left = int((~np.isnan(score)).sum())
    if not left:
        raise NothingLeft("no source left to ask for; loosen the limits or merge a new release")
    count = left if number is None else min(number, left)
    if strategy is None:
        rows = top_batch(score, count)
    else:
        rows = strategy.choose(score, table.measurements.X, count)
    return [
        Target(
            int(row),
            str(table.names[row]),
            float(table.ra[row]),
            float(table.dec[row]),
            float(score[row]),
            dict(zip(scored.classes, scored.probabilities[row].tolist(), strict=True)),
            *(float(part) for part in scored.parts[row]),
        )
        for row in rows
    ]
