"""What the processes of test_campaign_crash do until they are killed.

Each writes a line to its own file only after the campaign has acknowledged the work.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.export import export_history, export_targets
from gpal.catalog import load_catalog
from gpal.errors import InputError

RELEASE = {
    **{"id": "Name", "class": "Type", "ra": "RA", "dec": "Dec"},
    "classes": {"default": ["bll", "psr"], "candidates": [""]},
    "features": {"index": {"column": "Index", "error": "e_Index"}},
}


LABELS = ("bll", "psr")
EXCUSES = (
    "no label to take back",
    "not in the present release",
    "of this release",
    "no source left",
)


class NearestMean(ClassifierMixin, BaseEstimator):
    """The simplest classifier that can save itself; slow enough to be killed while it does."""

    def fit(self, X, y, X_err=None):
        self.classes_ = np.unique(y)
        X = np.where(np.isfinite(X), X, 0.0)
        self.means_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict_proba(self, X, X_err=None):
        X = np.where(np.isfinite(X), X, 0.0)
        closeness = np.exp(-((X[:, None] - self.means_) ** 2).sum(axis=2))
        return closeness / closeness.sum(axis=1, keepdims=True)

    def save(self, path):
        np.savez(path, means=np.tile(self.means_, (2000, 1)))


def labels(folder: str, journal: str, run: int) -> None:
    """Label and relabel targets, one after another."""
    with Campaign(folder) as campaign, _Journal(journal) as done:
        ids = campaign.table.ids[campaign.table.target]
        for i, source in enumerate(itertools.cycle(ids.tolist())):
            note = f"{run}-{i}"
            label = campaign.table.classes[(run + i) % 2]
            if campaign.label([Given(source, label, "worker", note)], replace=True)[0]:
                done(note)


def refits(folder: str, journal: str, run: int) -> None:
    """Fit one model after another."""
    with Campaign(folder, NearestMean()) as campaign, _Journal(journal) as done:
        for _ in itertools.count():
            done(str(campaign.refit(full=True).number))


def real_refits(folder: str, journal: str, run: int) -> None:
    """Label a source, then fit the campaign's own GPClassifier to it, over and over."""
    with Campaign(folder) as campaign:
        campaign.refit()  # TensorFlow has started when the journal begins
        source = int(campaign.table.ids[campaign.table.target][run])
        with _Journal(journal) as done:
            for label in itertools.cycle(campaign.table.classes):
                campaign.label([Given(source, label, "worker")], replace=True)
                done(str(campaign.refit().number))


def merges(folder: str, journal: str, run: int) -> None:
    """Merge two releases in turn."""
    catalogs = [
        load_catalog(Path(folder).parent / f"{name}.ecsv", mapping=RELEASE) for name in "ba"
    ]
    with Campaign(folder) as campaign, _Journal(journal) as done:
        for catalog in itertools.cycle(catalogs):
            campaign.merge(catalog)
            done(str(campaign.release))


def exports(folder: str, journal: str, run: int) -> None:
    """Write the targets over and over, in every format."""
    with Campaign(folder) as campaign, _Journal(journal) as done:
        endings = (".csv", ".fits", ".vot", ".reg")
        for ending in itertools.cycle((*endings[run % 4 :], *endings[: run % 4])):
            export_targets(campaign, Path(folder).parent / f"targets{ending}")
            done(ending)


def anything(folder: str, journal: str, run: int) -> None:
    """Whatever a campaign is used for, in an order of its own, beside others who do the same."""
    place, rng = Path(folder).parent, np.random.default_rng(run)
    catalogs = [load_catalog(place / f"{name}.ecsv", mapping=RELEASE) for name in "ab"]
    actions = ["label"] * 5 + ["undo"] * 2 + ["ask", "refit", "export", "merge"]
    with Campaign(folder, NearestMean()) as campaign, _Journal(journal) as done:
        for i in itertools.count():
            action, word = str(rng.choice(actions)), f"{run}-{i}"
            try:
                if action == "label":
                    source, label = int(rng.choice(campaign.table.ids)), str(rng.choice(LABELS))
                    given = Given(source, label, "worker", word)
                    if not campaign.label([given], replace=True)[0]:
                        continue
                elif action == "undo":
                    campaign.undo(who=word)
                elif action == "ask":
                    campaign.ask(2, who=word)
                elif action == "refit":
                    word = str(campaign.refit(full=True).number)
                elif action == "export":
                    export_history(campaign, place / f"history-{run}.csv")
                else:
                    campaign.merge(catalogs[i % 2], who=word)
                done(f"{action} {word}")
            except InputError as error:
                # What another process did a moment ago is the only excuse.
                assert any(excuse in str(error) for excuse in EXCUSES), error


def label_all(folder: str, journal: str, label: str) -> None:
    """Label every target once, from the first to the last; says which it was too late for."""
    with Campaign(folder) as campaign, _Journal(journal) as done:
        for source in campaign.table.ids[campaign.table.target].tolist():
            try:
                campaign.label([Given(source, label, "worker")])
                done(f"{source} mine")
            except InputError:
                done(f"{source} late")


class _Journal:
    """Lines that survive the death of the process: each is one write to an open file."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self.file, b"ready\n")

    def __enter__(self):
        return lambda text: os.write(self.file, f"{text}\n".encode())

    def __exit__(self, *exception: object) -> None:
        os.close(self.file)
