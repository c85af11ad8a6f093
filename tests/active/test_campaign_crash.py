"""kill -9 at random moments, and two processes at once."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter

import campaign_worker as worker
import numpy as np
import pytest
from astropy.table import Table

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.export import export_labels, export_targets
from gpal.catalog import load_catalog

# A process killed between putting a file in place and naming it: the next opening says so.
pytestmark = pytest.mark.filterwarnings("ignore:the campaign's database does not name")
KILLS = int(os.environ.get("GPAL_KILLS", "60")) // 4
FORMATS = {
    ".csv": {"format": "ascii.csv", "comment": "#"},
    ".fits": {},
    ".vot": {"format": "votable"},
}
# What a process of the campaign imports, also on its way; tests/active is not on the server's path.
PRELOAD = [
    *("gpal.active.campaign.export", "gpal.active.posterior", "gpal.active.batch", "gpal.catalog"),
    *("gpal.evaluation.any_classifier", "sklearn.cluster", "pandas", "astropy.table"),
    *("astropy.io.fits", "astropy.io.votable", "astropy.io.ascii"),
]


@pytest.fixture(scope="module")
def processes():
    """Processes forked from a clean one that has the campaign imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context


@pytest.fixture
def folder(small_catalog, tmp_path):
    Campaign.start(small_catalog, tmp_path / "campaign").close()
    with Campaign(tmp_path / "campaign", worker.NearestMean()) as campaign:
        campaign.refit()
    return tmp_path / "campaign"


def killed(processes, work, folder, run, rng, within=0.06):
    """What `work` had acknowledged when it was killed, up to `within` seconds after it began."""
    journal = folder.parent / f"journal-{run}"
    process = processes.Process(target=work, args=(str(folder), str(journal), run))
    process.start()
    deadline = time.monotonic() + 300
    while not (journal.exists() and journal.read_text()) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(rng.uniform(0, within))
    process.kill()
    process.join()
    assert process.exitcode == -9, "the process ended by itself"
    first, *lines = journal.read_text().split("\n")[:-1]
    assert first == "ready"
    return lines


def whole(campaign):
    """The database is sound and every model that it names can be read."""
    assert campaign.store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    models = campaign.store.models()
    for model in models[-3:]:
        campaign.scores(model["number"])
        with np.load(campaign.folder / "models" / f"{model['number']:04d}.npz") as archive:
            assert [archive[name] for name in archive.files]
    return [model["number"] for model in models]


@pytest.mark.slow
def test_no_acknowledged_label_is_lost(processes, folder):
    rng = np.random.default_rng(0)
    acknowledged: list[str] = []
    for run in range(KILLS):
        acknowledged += killed(processes, worker.labels, folder, run, rng)
        with Campaign(folder) as campaign:
            whole(campaign)
            notes = [e.note for e in campaign.store.history() if e.action == "label"]
            assert set(acknowledged) <= set(notes)
            assert max(Counter(notes).values(), default=1) == 1
    assert acknowledged  # how many is up to the machine
    with Campaign(folder, worker.NearestMean()) as campaign:
        assert campaign.refit().n_labels == 60 + len(campaign.store.labels())


@pytest.mark.slow
def test_no_model_is_half_made(processes, folder):
    rng = np.random.default_rng(1)
    acknowledged = []
    for run in range(KILLS):
        acknowledged += [int(n) for n in killed(processes, worker.refits, folder, run, rng, 0.15)]
        with Campaign(folder) as campaign:
            numbers = whole(campaign)
            assert set(acknowledged) <= set(numbers)
            assert numbers == list(range(1, len(numbers) + 1))
    assert acknowledged
    with Campaign(folder, worker.NearestMean()) as campaign:
        campaign.label([Given(int(campaign.table.ids[campaign.table.target][0]), "bll", "")])
        assert campaign.ask(3)


@pytest.mark.slow
def test_no_real_model_is_half_made(small_catalog, tmp_path):
    """The same for what users fit, with few kills: every process starts TensorFlow."""
    folder = tmp_path / "campaign"
    Campaign.start(small_catalog, folder, parameters={"n_inducing": 5, "max_rounds": 1}).close()
    spawned, rng = multiprocessing.get_context("spawn"), np.random.default_rng(3)
    acknowledged = []
    for run in range(2):
        acknowledged += [int(n) for n in killed(spawned, worker.real_refits, folder, run, rng, 2)]
        with Campaign(folder) as campaign:
            numbers = whole(campaign)
            assert set(acknowledged) <= set(numbers)
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(campaign.store.labels()) >= run
            assert campaign.gains(campaign.ranking(campaign.scores(), 1))[0] >= 0
    with Campaign(folder) as campaign:
        assert campaign.refit().n_labels == 60 + len(campaign.store.labels())
        assert len(campaign.ask(3)) == 3


@pytest.mark.slow
def test_no_merge_is_half_done(processes, tmp_path):
    rng, folder = np.random.default_rng(4), tmp_path / "campaign"
    table = Table({"Name": [f"S{i}" for i in range(40)], "Type": ["bll", "psr", "", ""] * 10})
    table["RA"], table["Dec"] = np.arange(40) * 9.0, np.linspace(-60, 60, 40)
    table["Index"], table["e_Index"] = rng.normal(2, 0.3, 40), 0.1
    table.write(tmp_path / "a.ecsv")
    table[rng.permutation(40)[:30]].write(tmp_path / "b.ecsv")
    old = load_catalog(tmp_path / "a.ecsv", mapping=worker.RELEASE)
    given = {}
    with Campaign.start(old, folder, classifier=worker.NearestMean()) as campaign:
        for row in np.flatnonzero(campaign.table.target):
            source, label = int(campaign.table.ids[row]), campaign.table.classes[row % 2]
            campaign.label([Given(source, label, "")])
            given[str(campaign.table.names[row])] = label
    newest = 1
    for run in range(10):
        newest = max([newest, *map(int, killed(processes, worker.merges, folder, run, rng, 0.3))])
        with Campaign(folder) as campaign:
            whole(campaign)
            assert campaign.release >= newest
            for release in campaign.releases():
                assert len(release) in (30, 40) and len(set(release.ids.tolist())) == len(release)
            label = dict(zip(campaign.table.names.tolist(), campaign.labels(), strict=True))
            assert {name: label[name] for name in given if name in label}.items() <= given.items()
            assert export_labels(campaign, tmp_path / "labels.csv") == len(given) == 20
    assert newest > 1


@pytest.mark.slow
def test_no_export_is_half_written(processes, folder):
    rng = np.random.default_rng(2)
    written = []
    for run in range(KILLS):
        written += killed(processes, worker.exports, folder, run, rng, 0.2)
        for ending, options in FORMATS.items():
            path = folder.parent / f"targets{ending}"
            if path.exists():
                assert len(Table.read(path, **options)) == 28
        regions = folder.parent / "targets.reg"
        assert not regions.exists() or len(regions.read_text().splitlines()) == 4 + 28
    assert written  # how many, and which, is up to the machine
    with Campaign(folder) as campaign:
        assert export_targets(campaign, folder.parent / "targets.csv") == 28


def test_two_processes_label_at_once(processes, folder):
    """Of two labels for a source one is recorded, and the other process hears about it."""
    journals = [folder.parent / name for name in ("bll", "psr")]
    both = [
        processes.Process(target=worker.label_all, args=(str(folder), str(path), path.name))
        for path in journals
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
        assert process.exitcode == 0
    outcome = [dict(line.split() for line in j.read_text().splitlines()[1:]) for j in journals]
    with Campaign(folder) as campaign:
        whole(campaign)
        labels = campaign.store.labels()
        events = [e for e in campaign.store.history() if e.action == "label"]
    assert len(labels) == len(events) == 28
    for source, (label, *_) in labels.items():
        mine = [said[str(source)] for said in outcome]
        assert mine == (["mine", "late"] if label == "bll" else ["late", "mine"])
