"""The models of a campaign: fitted to its labels, kept with what they say, read again.

    0001.npz         a fitted model
    0001-scores.npz  its probabilities and scores for all sources

Both are written under another name and renamed; a version counts once the database names it.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gpal.active.campaign.answers import as_labels, check_classes
from gpal.active.campaign.model_scores import ModelScores, read_scores, score_table, write_scores
from gpal.active.campaign.store import Store
from gpal.active.campaign.table import OTHER, SourceTable
from gpal.active.strategies import Strategy
from gpal.errors import InputError, shown
from gpal.files.staging import staging_folder
from gpal.measurements import Measurements
from gpal.provenance import provenance

__all__ = ["Models"]

LEARNED_AFTER = "learned_after_event"  # of the history, in the provenance of a model


class Models:
    """The model versions in `folder`, listed in `store`.

    classifier  what to fit; None: GPClassifier with the settings of the campaign
    """

    def __init__(self, folder: Path, store: Store, classifier: Any = None) -> None:
        self.folder, self._store, self._classifier = folder, store, classifier

    @property
    def settings(self) -> str:
        """Of the classifier that was given; "" where none was."""
        from gpal.evaluation import any_classifier

        return "" if self._classifier is None else any_classifier.settings_text(self._classifier)

    def fit(
        self,
        table: SourceTable,
        release: int,
        label: np.ndarray,
        event: int,
        strategy: Strategy,
        full: bool,
    ) -> int:
        """Number of a new version.

        table, release  the sources, and which release they are
        label, event    (n,) labels as of the history's event of that number
        full            learn hyper-parameters again
        """
        from gpal.evaluation import any_classifier

        training = np.flatnonzero((label != "") & (label != OTHER))
        check_classes(label[training], table)
        sources, y = table.measurements[training], as_labels(label[training], table)
        fitted, learned = self._fitted(sources, y, release, event, full)
        scored = score_table(fitted, table, label, strategy)
        with staging_folder(self.folder, "model") as staging:
            building = staging / "made"
            building.mkdir()
            settings = {"release": release, "n_labels": len(y), **learned}
            origin = provenance(table.provenance, settings)
            any_classifier.save(fitted, building / "model.npz", origin)
            write_scores(building / "scores.npz", scored, len(y), self.settings)
            with self._store.transaction():
                number = self._store.next_model()
                for part in sorted(building.iterdir()):
                    os.replace(part, self.file(number, part.stem))
                self._store.add_model(number, release, event, len(y), learned["learned_at"])
                self._store.record("refit", "", model=number, note=f"{len(y)} labels")
        return number

    def _fitted(
        self, sources: Measurements, y: np.ndarray, release: int, event: int, full: bool
    ) -> tuple[Any, dict[str, int]]:
        """The fitted classifier; and when its hyper-parameters were learned: at how many labels,
        and after which event of the history."""
        from sklearn.base import clone

        from gpal.evaluation import any_classifier

        now = {"learned_at": len(y), LEARNED_AFTER: event}
        if self._classifier is not None:
            _check_partial(self._classifier, y)
            return any_classifier.fit(clone(self._classifier), sources, y), now
        from gpal.classifier import GPClassifier

        versions = self._store.models()
        if versions and not full and versions[-1]["release"] == release:
            last = versions[-1]
            previous = self._own(last["number"])
            if previous is not None and previous.can_refit(sources, y):
                # Older models do not say after which event; then what came since the last counts.
                told = previous.provenance_.get("settings", {})
                after = told.get(LEARNED_AFTER, last["history"])
                changed = max(len(y) - last["learned_at"], self._store.label_events_after(after))
                if changed < self._store.setting("relearn_every"):
                    before = {"learned_at": last["learned_at"], LEARNED_AFTER: after}
                    return previous.refit(sources, y), before
        parameters = self._store.setting("parameters")
        if unknown := sorted({*parameters} - {*GPClassifier().get_params()}):
            raise InputError(
                f"the campaign's settings are of another gpal, which knows {shown(unknown[0])}:"
                " open it with that one, or start a new campaign"
            )
        fresh = GPClassifier(**parameters)
        return fresh.fit(sources, y), now

    def _own(self, number: int) -> Any:
        """A version's GPClassifier; None where it is one that a caller gave, or, with a warning,
        where a file is damaged or too old."""
        try:
            return None if self.scores(number).settings else self.load(number)
        except InputError as error:
            warnings.warn(f"{error}: hyper-parameters are learned from the start", stacklevel=2)
            return None

    def load(self, number: int) -> Any:
        """The GPClassifier of a version."""
        from gpal.classifier import GPClassifier

        return GPClassifier.load(self.file(number))

    def scores(self, number: int) -> ModelScores:
        """What a version said of all sources."""
        return read_scores(self.file(number, "scores"), number)

    def file(self, number: int, part: str = "model") -> Path:
        """Where a version keeps its model or its scores."""
        ending = "" if part == "model" else f"-{part}"
        return self.folder / f"{number:04d}{ending}.npz"


def _check_partial(classifier: Any, y: np.ndarray) -> None:
    """InputError where labels are sets or weights and the classifier is none of gpal's."""
    from gpal.classifier import GPClassifier
    from gpal.model.labels import holds_weights

    if holds_weights(y) and not isinstance(classifier, GPClassifier):
        raise InputError(
            "some labels say one of several classes, or weigh them, from which"
            f" {type(classifier).__name__} cannot learn; give these sources a class, or take the"
            " labels back: gpal learn undo"
        )
