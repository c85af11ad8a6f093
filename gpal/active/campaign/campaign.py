"""A labelling campaign that lives in a folder for months.

    campaign.sqlite       labels, questions, models: the durable history (`store`)
    release-1.npz         the sources, frozen; a merged release adds release-2.npz (`table`)
    models/0001.npz       every fitted model
    models/0001-scores.npz  its probabilities and scores for all sources

`label` and `undo` only write to the history, at once and durably; the model catches up in `refit`,
which `ask` calls. Whatever is interrupted, also by kill -9, either happened or did not: files are
written under another name and renamed, and count only once the database names them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.active.campaign.answers import canonical, check_classes, is_answer, possible
from gpal.active.campaign.leftovers import sweep_up
from gpal.active.campaign.model_scores import ModelScores
from gpal.active.campaign.models import Models
from gpal.active.campaign.ranking import Target, ranked_targets
from gpal.active.campaign.releases import merge, released
from gpal.active.campaign.source_files import Given
from gpal.active.campaign.stop import StopAdvice, stop_advice
from gpal.active.campaign.store import Store
from gpal.active.campaign.table import OTHER, SourceTable
from gpal.active.strategies import STRATEGIES, Strategy
from gpal.errors import InputError, shown
from gpal.files.output import staged_path
from gpal.names import check_run
from gpal.provenance import json_safe

if TYPE_CHECKING:
    from gpal.active.observing import Observing
    from gpal.catalog import Catalog

__all__ = ["OTHER", "Campaign", "Given"]

DATABASE = "campaign.sqlite"
LONGEST_TITLE = 200  # of a catalog, in the history
PLAIN = (str, int, float, type(None), Mapping, list, tuple, np.generic, np.ndarray)


class Campaign:
    """An existing campaign; `start` makes one.

    folder      of the campaign
    classifier  what to fit; None: GPClassifier with the settings the campaign was started with
    """

    def __init__(self, folder: str | os.PathLike, classifier: Any = None) -> None:
        self.folder = Path(folder)
        self.store = Store(self.folder / DATABASE)
        self.models = Models(self.folder / "models", self.store, classifier)
        try:
            if self.store.writable:
                sweep_up(self.folder, self.store)
            self._load_table()
            self._check()
        except BaseException:
            self.close()
            raise

    @property
    def files(self) -> list[Path]:
        """What the campaign is made of: no output may take its place."""
        found = (self.folder.glob(name) for name in (f"{DATABASE}*", "release-*", "models/*"))
        return [file for group in found for file in group]

    @classmethod
    def start(
        cls,
        catalog: Catalog,
        folder: str | os.PathLike,
        *,
        classifier: Any = None,
        parameters: Mapping[str, Any] | None = None,
        strategy: str = "entropy",
        relearn_every: int = 20,
        who: str = "",
    ) -> Campaign:
        """A new campaign in `folder`, which must not exist or be empty.

        parameters  of GPClassifier, on top of gpal.recommended's
        strategy    a name of gpal.active.strategies.STRATEGIES

        Raises InputError for a strategy or a setting that does not exist, before any fit.
        """
        from gpal.classifier import GPClassifier
        from gpal.evaluation import any_classifier
        from gpal.recommended import RECOMMENDED_MODEL

        strategy = STRATEGIES.find(strategy).name
        model = GPClassifier(**{**RECOMMENDED_MODEL, **dict(parameters or {})})
        settings = _as_text(model.get_params(deep=False))
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"'{folder}' exists already; choose another folder for the campaign")
        check_run(catalog.classes, catalog.feature_names, catalog.names, folder)
        table = SourceTable.from_catalog(catalog)
        if not table.target.any():
            raise InputError("the catalog has no source of unknown class to ask for")
        check_classes(table.label[table.label != ""], table, to_learn=False)
        fitted = model if classifier is None else classifier
        any_classifier.check_settings(fitted, len(table.classes), len(table.measurements.names))
        with staged_path(folder) as building:
            building.mkdir()
            table.save(building / "release-1.npz")
            (building / "models").mkdir()
            kept = {
                "strategy": strategy,
                "relearn_every": relearn_every,
                # All of them: a campaign outlives the defaults of the release it was started with.
                "parameters": settings,
                "groups": {name: list(labels) for name, labels in catalog.groups.items()},
                "cuts": catalog.provenance.get("cuts", []),
            }
            with Store.create(building / DATABASE, kept) as store, store.transaction():
                store.add_release(
                    "release-1.npz",
                    table.provenance,
                    list(zip(table.ids.tolist(), table.names.tolist(), strict=True)),
                )
                store.record(
                    "start", who, note=shown(table.provenance.get("title", ""), LONGEST_TITLE)
                )
            os.replace(building, os.path.realpath(folder))  # the whole campaign appears at once
        return cls(folder, classifier)

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- labels ----------------------------------------------------------------------------------

    def label(self, given: Sequence[Given], *, replace: bool = False) -> list[bool]:
        """Record labels, all or none; True for each that is new, False for a repetition.

        Classes are known whatever their capitals, as in a catalog. A name of `table.coarser`
        ("agn") says that the source is one of several classes, and not which; weights
        ("bll:0.8/fsrq:0.2") say how likely is what was seen, if it is of one class or another.

        replace  let a label take the place of another one; without it a conflict is an InputError
        """
        recorded = []
        with self.store.transaction():
            self._load_table()
            labels, row_of = self.store.labels(), self._row_of()
            for item in given:
                source, where = item.source, f"{item.where}: " if item.where else ""
                name = where + self.store.name(source)
                if source not in row_of:
                    raise InputError(
                        f"{name} is not in the present release; merge one that has it, then label"
                    )
                row = row_of[source]
                try:
                    label = canonical(item.label, self.table)
                except InputError as error:
                    raise InputError(f"{name}: {error}") from None
                present, origin = str(self.table.label[row]), "by the catalog"
                if source in labels:
                    present, _, when, who = labels[source]
                    origin = f"on {when[:10]}" + (f" by {who}" if who else "")
                if present == label:
                    recorded.append(False)
                    continue
                if not present and not self.table.target[row]:  # a class that is not told apart
                    present = str(self.table.catalog_class[row])
                if present and not replace:
                    back = f", or take it back with: gpal learn undo '{name}'"
                    undo = back if source in labels else ""
                    raise InputError(
                        f"{name} is labelled '{present}' already ({origin}), now '{label}';"
                        f" give --replace to change it{undo}"
                    )
                by_catalog = str(self.table.label[row])
                if by_catalog != label and by_catalog in possible(label, self.table):
                    raise InputError(
                        f"{name} is '{by_catalog}' by the catalog, and '{label}' leaves that"
                        " possible: models would go on learning the catalog's; give another class,"
                        " or leave its class empty in the table and merge that"
                    )
                score, strategy, model = self.store.last_question(source) or (None, None, None)
                number = self.store.record(
                    "label",
                    item.who,
                    source=source,
                    label=label,
                    score=score,
                    strategy=strategy,
                    model=model,
                    note=item.note,
                )
                labels[source] = (label, number, "just now", item.who)
                recorded.append(True)
        return recorded

    @property
    def behind(self) -> bool:
        """Whether labels or sources have come since the newest model."""
        models = self.store.models()
        return bool(models) and models[-1]["history"] != self.store.last_label_event()

    def undo(self, source: int | None = None, who: str = "") -> tuple[str, str]:
        """Take back the newest label, or the newest one of `source`; its (name, label)."""
        with self.store.transaction():
            labels = self.store.labels()
            if source is not None:
                if source not in labels:
                    raise InputError(
                        f"{self.store.name(source)} has no label of this campaign to take back"
                    )
            elif labels:
                source = max(labels, key=lambda s: labels[s][1])
            else:
                raise InputError("there is no label to take back")
            label, number, _, _ = labels[source]
            self.store.record("undo", who, source=source, label=label, undoes=number)
        return self.store.name(source), label

    def source(self, name: str) -> int:
        """The number of a source by its name, as `table.row` knows it; or of one that is in an
        earlier release only, by its name there."""
        if name not in self.table.names:
            here = self._row_of()
            for source, known in self.store.names().items():
                if known == name and source not in here:
                    return source
        return int(self.table.ids[self.table.row(name)])

    def labels(self) -> np.ndarray:
        """(n,) class of every source, '' for none: the catalog's unless the campaign gave one that
        is no coarser."""
        table = self.table
        given = {source: value for source, (value, *_) in self.store.labels().items()}
        label = table.label.astype(f"<U{max(map(len, (*table.classes, *given.values())))}")
        row_of = self._row_of()
        for source, value in given.items():
            row = row_of.get(source)
            if row is not None and str(label[row]) not in possible(value, table):
                label[row] = value
        return label

    # ---- the model -------------------------------------------------------------------------------

    def model_is_current(self, event: int | None = None) -> bool:
        """Whether the newest model knows all labels, or those up to an event, and is of the
        classifier that was given, if one was: then none is fitted for a question."""
        event = self.store.last_label_event() if event is None else event
        models, settings = self.store.models(), self.models.settings
        if not models or models[-1]["history"] != event:
            return False
        return not settings or self.models.scores(models[-1]["number"]).settings == settings

    def refit(self, full: bool = False) -> ModelScores:
        """The model of all labels so far: a new version unless there is one already.

        full  learn hyper-parameters again, as happens by itself every `relearn_every` labels
        """
        with self.store.transaction():  # labels, their event and release of one moment
            self._load_table()
            event, label = self.store.last_label_event(), self.labels()
        if not full and self.model_is_current(event):
            return self.scores()
        sweep_up(self.folder, self.store)
        number = self.models.fit(self.table, self.release, label, event, self.strategy, full)
        return self.scores(number)

    def scores(self, number: int | None = None) -> ModelScores:
        """What a model said, by default the newest, which must be of the present release."""
        models, newest = self.store.models(), number is None
        if number is None:
            if not models or models[-1]["release"] != self.release:
                raise InputError(
                    "no model of this release yet; run: gpal learn next, or gpal learn refit"
                )
            number = models[-1]["number"]
        scored = self.models.scores(number)
        labels = {model["number"]: model["n_labels"] for model in models}
        if labels.get(number, scored.n_labels) != scored.n_labels:
            raise InputError(
                f"model {number} is of {scored.n_labels} labels, and of {labels[number]} by the"
                " database: one of them is of another copy of the campaign; run: gpal learn refit"
                " --full"
            )
        if newest and not np.array_equal(scored.ids, self.table.ids):
            raise InputError(
                f"the scores of model {number} are not of the sources of this release; run:"
                " gpal learn refit --full"
            )
        return scored

    # ---- questions -------------------------------------------------------------------------------

    @property
    def strategy(self) -> Strategy:
        """By which it asks."""
        seed = self.store.setting("parameters").get("random_state", 0)
        return STRATEGIES.find(self.store.setting("strategy"))().seeded(seed)

    def ask(
        self,
        number: int = 10,
        *,
        observing: Observing | None = None,
        diverse: bool = True,
        who: str = "",
    ) -> list[Target]:
        """The next targets, the best first; fits a new model if labels have come since the last.

        The same question without new labels has the same answer. It is recorded in the history.
        """
        rows = self.table.ids
        scored = self.refit()
        by_row = observing and (observing.time is not None or observing.visible is not None)
        if by_row and not np.array_equal(rows, self.table.ids):
            raise InputError(
                "another release was merged meanwhile, and `observing` is of the sources of the one"
                " before: ask again"
            )
        targets = self.ranking(scored, number, observing=observing, diverse=diverse)
        with self.store.transaction():
            for target in targets:
                self.store.record(
                    "ask",
                    who,
                    source=int(self.table.ids[target.row]),
                    score=target.score,
                    strategy=self.strategy.name,
                    model=scored.number,
                )
        return targets

    def gains(self, targets: Sequence[Target], shrink: float = 0.5) -> list[float]:
        """What errors shrunk to `shrink` would tell of each target's class, nats (`gain`)."""
        from gpal.active.gain import expected_gain

        model = self.models.load(self.scores().number)
        sources = self.table.measurements[[target.row for target in targets]]
        return expected_gain(model, sources, shrink=shrink).measurement.tolist()

    def ranking(
        self,
        scored: ModelScores,
        number: int | None = None,
        *,
        observing: Observing | None = None,
        diverse: bool = False,
    ) -> list[Target]:
        """The pool by a model's score, all of it without `number`; not what got a label since."""
        return ranked_targets(
            self.table,
            scored,
            self.labels(),
            number,
            observing=observing,
            strategy=self.strategy if diverse else None,
            per_time=self.strategy.needs_model,
        )

    # ---- new releases, advice --------------------------------------------------------------------

    def merge(
        self,
        catalog: Catalog,
        cuts: Sequence[str] | None = None,
        who: str = "",
        fallback_radius: float = 0.1,
    ) -> dict[str, Any]:
        """Go on with a new release: the same sources keep their labels and history.

        See `gpal.active.campaign.releases.merge`.
        """
        found = merge(self.store, self.folder, catalog, cuts, who, fallback_radius)
        self._load_table()
        return found

    def releases(self) -> list[SourceTable]:
        """The tables of all releases, the newest first."""
        return released(self.store, self.folder)

    def advice(self) -> StopAdvice:
        """Whether predictions of the targets have stabilised, over the models of this release."""
        seen = []
        for model in self.store.models():
            if model["release"] == self.release:
                scored = self.scores(model["number"])
                predicted = scored.probabilities[self.table.target].argmax(axis=1)
                seen.append((model["n_labels"], np.asarray(scored.classes)[predicted]))
        return stop_advice(seen)

    def _check(self) -> None:
        """InputError where database and files are of two campaigns, or a label is of no class."""
        names, groups = self.store.names(), self.store.setting("groups")
        ours = dict(zip(self.table.ids.tolist(), self.table.names.tolist(), strict=True))
        other = "sources" if any(names.get(k) != name for k, name in ours.items()) else ""
        if set(self.table.classes) != set(groups):
            other = "classes"
        if not other and json_safe(self.table.provenance) != self.store.origin(self.release):
            other = "measurements"
        if other:
            raise InputError(
                f"the {other} of '{self.folder / DATABASE}' are not those of its release; copy a"
                " campaign's folder as a whole"
            )
        table = self.table
        known = {*table.classes, *groups, *table.coarser, OTHER}
        if wrong := [word for word in self.store.words() if not is_answer(word, known)]:
            raise InputError(
                f"'{self.folder / DATABASE}' is damaged (a label '{shown(wrong[0])}', which is no"
                " class of the campaign); take the folder from a copy"
            )

    def _row_of(self) -> dict[int, int]:
        return {int(number): row for row, number in enumerate(self.table.ids)}

    def _load_table(self) -> None:
        number, file = self.store.release()
        if getattr(self, "release", None) != number:
            self.table, self.release = SourceTable.load(self.folder / file), number


def _as_text(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the database keeps them; InputError for an object, of which only text is left."""
    for name, value in parameters.items():
        if not isinstance(value, PLAIN):
            raise InputError(
                f"a campaign keeps its settings as text: give {name} by name, not as a"
                f" {type(value).__name__}, or give a whole classifier"
            )
    return dict(parameters)
