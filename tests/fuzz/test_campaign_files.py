"""A campaign's files, damaged: its database, its sources, its scores, and CSV files about sources.

SQLite has no checksums. What is asked of a damaged database is that it is refused in one line, or
read whole: events numbered without a gap, labels of classes that there are, sources that there are.
The other files of a campaign have checksums; only what was written will do.
"""

from __future__ import annotations

import csv
import io
import shutil

import numpy as np
import pytest
from harness import Subject
from mutations import damage_bytes, damage_text
from sklearn.base import BaseEstimator, ClassifierMixin

from gpal.active.campaign import OTHER, Campaign, Given
from gpal.active.campaign.export import export_history, export_labels
from gpal.active.campaign.model_scores import read_scores
from gpal.active.campaign.source_files import read_labels, read_times
from gpal.active.campaign.table import SourceTable


class Even(ClassifierMixin, BaseEstimator):
    """All classes are as probable."""

    def fit(self, X, y, X_err=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X, X_err=None):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def save(self, path):
        np.savez(path, classes=self.classes_)


@pytest.fixture(scope="module")
def folder(small_catalog, tmp_path_factory):
    """A campaign with two models and some labels, one of them taken back."""
    folder = tmp_path_factory.mktemp("campaign") / "campaign"
    with Campaign.start(small_catalog, folder, classifier=Even(), who="ann") as campaign:
        rows = np.flatnonzero(campaign.table.target)
        for k, row in enumerate(rows[:8]):
            campaign.ask(1)
            label = ("bll", "psr", OTHER)[k % 3]
            campaign.label([Given(int(campaign.table.ids[row]), label, "ann", f"night {k}")])
        campaign.undo()
    return folder


def test_database(folder, withstands, tmp_path):
    def read(path) -> bool:
        shutil.copytree(folder, copy := tmp_path / "campaign")
        try:
            shutil.copy(path, copy / "campaign.sqlite")
            with Campaign(copy, Even()) as campaign:
                events = campaign.store.history()
                assert [event.number for event in events] == list(range(1, len(events) + 1))
                known = {*campaign.table.classes, OTHER}
                assert {event.label for event in events if event.label} <= known
                assert set(campaign.labels().tolist()) <= {*known, ""}
                assert all(event.name for event in events if event.source is not None)
                campaign.advice()
                campaign.ranking(campaign.scores(), 3)
                export_history(campaign, tmp_path / "history.csv")
                export_labels(campaign, tmp_path / "labels.csv")
                source = int(campaign.table.ids[campaign.table.target][-1])
                campaign.label([Given(source, "bll", "ann")], replace=True)
                assert campaign.ask(2)
            return True
        finally:
            shutil.rmtree(copy)

    content = (folder / "campaign.sqlite").read_bytes()
    withstands(Subject("campaign.sqlite", content, read, damage_bytes))


def test_sources(folder, withstands):
    def read(path) -> list:
        table = SourceTable.load(path)
        arrays = [table.ids, table.label, table.target, table.ra, table.dec, table.names]
        return [*arrays, table.measurements.X, table.measurements.X_err, list(table.classes)]

    content = (folder / "release-1.npz").read_bytes()
    withstands(Subject("release-1.npz", content, read, damage_bytes))


def test_scores(folder, withstands):
    def read(path) -> list:
        scored = read_scores(path, 1)
        return [scored.ids, scored.probabilities, scored.score, scored.parts, list(scored.classes)]

    content = (folder / "models" / "0002-scores.npz").read_bytes()
    withstands(Subject("0002-scores.npz", content, read, damage_bytes))


def rows_of(content: bytes, needed: str) -> list[dict[str, str]]:
    """Rows of a CSV file by its own rules, blanks stripped; ValueError where they refuse it."""
    text = content.decode("utf-8-sig")
    if "\0" in text:
        raise ValueError("a NUL")
    lines = [line for line in io.StringIO(text, newline="") if line.strip()]
    lines = [line for line in lines if not line.startswith("#")]
    try:
        header, *rows = list(csv.reader(lines, strict=True)) or [[]]
    except csv.Error as error:
        raise ValueError(error) from error
    header = [name.strip().lower() for name in header]
    if len(set(header)) < len(header) or not {"name", needed} <= set(header):
        raise ValueError("other columns")
    if any(len(row) != len(header) for row in rows):
        raise ValueError("a row of another length")
    return [dict(zip(header, (c.strip() for c in row), strict=True)) for row in rows]


def find(table, row) -> int:
    """The source of a row, by its name as printed or without blanks and capitals."""
    plain = ["".join(name.split()).lower() for name in table.names.tolist()]
    return plain.index("".join(row["name"].split()).lower())


def test_labels(folder, withstands):
    table = SourceTable.load(folder / "release-1.npz")
    names = table.names[table.target].tolist()
    lines = [
        "name,label,note",
        *(f"{name},{'bll' if k % 2 else 'psr'},n{k}" for k, name in enumerate(names[:12])),
    ]

    def read(path) -> list:
        return [(given.source, given.label, given.note) for given in read_labels(path, table)]

    def truth(content) -> list:
        found = [
            (int(table.ids[find(table, row)]), row["label"], row.get("note", ""))
            for row in rows_of(content, "label")
        ]
        if not found or not all(label for _, label, _ in found):
            raise ValueError("a label is missing")
        return found

    content = ("# seeing\n" + "\n".join(lines) + "\n").encode()
    withstands(Subject("labels.csv", content, read, damage_text, truth))


def test_times(folder, withstands):
    table = SourceTable.load(folder / "release-1.npz")
    names = table.names[table.target].tolist()
    lines = ["name,time", *(f"{name},{k + 0.5}" for k, name in enumerate(names[:12]))]

    def truth(content) -> dict:
        return {find(table, row): float(row["time"]) for row in rows_of(content, "time")}

    content = ("\n".join(lines) + "\n").encode()
    withstands(
        Subject("times.csv", content, lambda path: read_times(path, table), damage_text, truth)
    )
