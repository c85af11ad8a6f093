"""The database of a campaign: what opening it finds out, who else has it, who may only read it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import campaign_worker as worker
import numpy as np
import pytest

from gpal.active.campaign import Campaign, Given, database
from gpal.active.campaign.export import export_history, export_labels, export_targets
from gpal.errors import InputError
from gpal.report.campaign import render_campaign

OLD = Path(__file__).parent / "campaign-0.1.zip"


@pytest.fixture
def folder(small_catalog, tmp_path):
    """A campaign with a model, three labels, one of them taken back."""
    folder = tmp_path / "campaign"
    with Campaign.start(small_catalog, folder, classifier=worker.NearestMean()) as campaign:
        campaign.ask(2)
        for row in np.flatnonzero(campaign.table.target)[:3]:
            campaign.label([Given(int(campaign.table.ids[row]), "bll", "ann")])
        campaign.undo()
    return folder


@pytest.fixture
def old(tmp_path):
    """A campaign of gpal 0.1, with a write-ahead log."""
    shutil.unpack_archive(OLD, tmp_path)
    return tmp_path / "campaign"


def run(folder, script):
    """SQL by somebody else's hand."""
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection:
        connection.executescript(script)


def everything(folder):
    with Campaign(folder) as campaign:
        return [campaign.store.history(), campaign.store.labels(), campaign.store.models()]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE history SET label = 'psr'",
        "DELETE FROM history",
        "INSERT OR REPLACE INTO history (number, time, who, action) VALUES (2, '', '', 'ask')",
        "REPLACE INTO history (time, who, action, undoes)"
        " SELECT '', '', 'undo', undoes FROM history WHERE undoes IS NOT NULL",
        "INSERT INTO history SELECT * FROM history WHERE true"
        " ON CONFLICT (number) DO UPDATE SET label = 'psr'",
    ],
)
@pytest.mark.parametrize("which", ["folder", "old"])
def test_the_history_is_append_only(request, which, statement):
    folder = request.getfixturevalue(which)
    if which == "old":
        with Campaign(folder) as campaign:
            campaign.undo()
    before = everything(folder)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        run(folder, statement)
    assert everything(folder) == before


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE TABLE more (x)", "the table 'more' is not as gpal makes it"),
        ("DROP VIEW label_now; CREATE VIEW label_now AS SELECT 1", "the view 'label_now' is not"),
        (
            "CREATE TRIGGER mine AFTER INSERT ON history BEGIN SELECT 1; END",
            "the trigger 'mine' is not as gpal makes it",
        ),
        (
            "DROP TRIGGER history_is_not_edited; CREATE TRIGGER history_is_not_edited"
            " BEFORE UPDATE ON setting BEGIN SELECT 1; END",
            "the trigger 'history_is_not_edited' is not",
        ),
        ("DROP INDEX undone_once", "the index 'undone_once' is not"),
        ("UPDATE setting SET value = '2' WHERE key = 'format'", "by a later gpal; upgrade gpal"),
        ("UPDATE setting SET value = '{' WHERE key = 'groups'", "its setting 'groups'"),
        ("UPDATE setting SET value = '[]' WHERE key = 'groups'", "'groups' of .* not an object"),
        ("DELETE FROM setting WHERE key = 'strategy'", "lacks 'strategy'"),
        ("UPDATE setting SET value = '0' WHERE key = 'relearn_every'", "relearn_every"),
        ("UPDATE source SET name = 'S' WHERE id = 3", "are not those of its release"),
        (
            """UPDATE setting SET value = '{"bll": ["bll"], "fsrq": ["fsrq"]}'"""
            " WHERE key = 'groups'",
            "the classes of .* are not those of its release",
        ),
        ("UPDATE release SET provenance = '{}'", "the measurements of .* are not those of its"),
        ("UPDATE release SET provenance = '{'", "is damaged .where its sources are from"),
        ("UPDATE release SET file = '../release-1.npz'", "a release is missing"),
        ("UPDATE model SET history = 900", "a model is of labels that there are not"),
        ("UPDATE model SET history = 'x'", "a value of 'model' is of another type"),
        ("INSERT INTO history (time, who, action) VALUES ('', '', 'label')", "of no source"),
        (
            "INSERT INTO history (time, who, action, source, label, undoes)"
            " VALUES ('', '', 'undo', 1, 'bll', 1)",
            "an undo is not of a label",
        ),
        (
            "INSERT INTO history (time, who, action, source, label)"
            " VALUES ('', '', 'label', 1, 'snr')",
            "a label 'snr', which is no class of the campaign",
        ),
        (
            "INSERT INTO history (time, who, action, source, label)"
            " VALUES ('', '', 'label', 9999, 'bll')",
            "a row refers to one that is not there",
        ),
    ],
)
def test_a_database_that_is_not_as_gpal_makes_it_is_refused(folder, script, message):
    run(folder, script)
    with pytest.raises(InputError, match=message):
        Campaign(folder)


@pytest.mark.parametrize("which", ["MAX(number)", "2"])
def test_an_event_that_somebody_took_out_is_missed(folder, which):
    """The last one, or one in the middle, with the triggers back in place."""
    trigger = "CREATE TRIGGER history_is_not_erased BEFORE DELETE ON history\n    BEGIN SELECT"
    run(
        folder,
        "DROP TRIGGER history_is_not_erased;"
        f" DELETE FROM history WHERE number = (SELECT {which} FROM history);"
        f" {trigger} RAISE(ABORT, 'the history is append-only'); END",
    )
    with pytest.raises(InputError, match="events are missing from the history"):
        Campaign(folder)


def test_triggers_that_somebody_dropped_are_put_back_and_it_is_said(folder):
    run(folder, "DROP TRIGGER history_is_not_erased; DROP TRIGGER history_is_not_edited")
    with pytest.warns(UserWarning, match="compare the history with a copy"):
        Campaign(folder).close()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        run(folder, "DELETE FROM history")


def test_a_campaign_of_before_leaves_the_write_ahead_log(old):
    before = sqlite3.connect(old / "campaign.sqlite")
    assert before.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    first = before.execute("SELECT * FROM history").fetchall()
    with Campaign(old) as campaign:  # in use: as it is, and it works
        assert len(campaign.store.history()) == len(first)
    before.close()
    with Campaign(old) as campaign:
        mode = campaign.store.connection.execute("PRAGMA journal_mode").fetchone()
        assert mode == ("delete",) and len(campaign.store.history()) == len(first)
    assert not list(old.glob("campaign.sqlite-*"))


def test_another_writer_that_does_not_end_is_one_line(folder, monkeypatch):
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.05)
    other = sqlite3.connect(folder / "campaign.sqlite", isolation_level=None)
    with Campaign(folder) as campaign:
        given = [Given(int(campaign.table.ids[campaign.table.target][5]), "bll", "ann")]
        for lock in ("IMMEDIATE", "EXCLUSIVE"):
            other.execute(f"BEGIN {lock}")
            with pytest.raises(InputError, match="locked by another process"):
                campaign.label(given)
            if lock == "EXCLUSIVE":
                with pytest.raises(InputError, match="locked by another process"):
                    campaign.store.history()
            other.execute("ROLLBACK")
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM history, source").fetchone()  # a reader, too
        with pytest.raises(InputError, match="locked by another process"):
            campaign.label(given)
        other.execute("ROLLBACK")
        assert campaign.label(given) == [True]
    other.close()


@pytest.mark.parametrize("field", ["who", "note"])
@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "\u202e", "x" * 3000])
def test_text_that_could_not_be_printed_again_is_refused(folder, field, text):
    with Campaign(folder) as campaign:
        source = int(campaign.table.ids[campaign.table.target][5])
        given = Given(source, "bll", **{"who": "ann", field: text})
        with pytest.raises(InputError, match=f"the {field} .* can be printed") as refusal:
            campaign.label([given])
        assert str(refusal.value).isprintable() and source not in campaign.store.labels()


def test_files_that_no_version_names_are_swept_at_the_next_opening(folder):
    before = sorted(path.name for path in folder.rglob("*"))
    (folder / "models" / ".model-abcdefgh.gpal").mkdir()
    (folder / ".release-2.npz-abcdefgh.gpal").mkdir()
    (folder.parent / ".campaign-abcdefgh.gpal").mkdir()
    (folder / "campaign.sqlite-journal").write_bytes(bytes(512))  # of a write that had not begun
    for name in ("models/0007.npz", "models/0007-scores.npz", "release-2.npz", "mine.npz"):
        (folder / name).touch()
    Campaign(folder).close()
    assert sorted(path.name for path in folder.rglob("*")) == sorted([*before, "mine.npz"])
    assert [path.name for path in folder.parent.iterdir()] == ["campaign"]


def test_files_that_the_database_does_not_name_are_set_aside(folder):
    """It may be an older copy, put in their place."""
    (folder / "unnamed").mkdir()
    (folder / "unnamed" / "release-2.npz").write_bytes(b"of before")
    (folder / "release-2.npz").write_bytes(b"release")
    (folder / "models" / "0007-scores.npz").write_bytes(b"scores")
    with pytest.warns(UserWarning, match="does not name") as told:
        Campaign(folder).close()
    assert len(told) == 2 and any("unnamed/release-2-1.npz" in str(w.message) for w in told)
    assert {file.name: file.read_bytes() for file in (folder / "unnamed").iterdir()} == {
        "release-2.npz": b"of before",
        "release-2-1.npz": b"release",
        "0007-scores.npz": b"scores",
    }
    assert not (folder / "release-2.npz").exists()


# ---- only to be read -----------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["folder", "old"])
def test_a_read_only_campaign_is_looked_at_exported_and_reported(
    request, which, monkeypatch, tmp_path
):
    """As far as the operating system says; tests/robustness has a user who really cannot."""
    folder = request.getfixturevalue(which)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with Campaign(folder) as campaign:
        assert campaign.store.history() and len(campaign.labels()) and str(campaign.advice())
        for export in (export_targets, export_labels, export_history):
            assert export(campaign, tmp_path / "out.csv")
        page = render_campaign(campaign, path=tmp_path / "page.html")
        assert page == tmp_path / "page.html" and "</html>" in page.read_text()
        source = int(campaign.table.ids[campaign.table.target][0])
        for write in (
            lambda: campaign.label([Given(source, "bll", "ann")], replace=True),
            lambda: campaign.undo(),
            lambda: campaign.refit(full=True),
            lambda: campaign.ask(2),
        ):
            with pytest.raises(InputError, match="can only be read here: look at it, export it"):
                write()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


DIE = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
for _ in range(500):
    connection.execute("INSERT INTO history (time, who, action, note) VALUES ('', '', 'ask', ?)",
                       ("x" * 300,))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_campaign_whose_process_died_in_the_middle_of_a_write(folder, monkeypatch):
    """Where it can only be read that is said; where it can be written it is as it was before."""
    before = everything(folder)
    died = subprocess.run([sys.executable, "-c", DIE, folder / "campaign.sqlite"])
    assert died.returncode == -signal.SIGKILL
    assert (folder / "campaign.sqlite-journal").stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(InputError, match="a process died while it wrote into the campaign"):
            Campaign(folder)
    assert everything(folder) == before
    assert not (folder / "campaign.sqlite-journal").exists()
