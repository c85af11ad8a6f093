"""Several processes use one campaign in every way at once, and are all killed, again and again.

After every kill the campaign is whole, nothing that was acknowledged is lost, and the next opening
leaves nothing behind that is not the campaign's. GPAL_KILLS=1000 makes the long one longer.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import campaign_worker as worker
import numpy as np
import pytest
from astropy.table import Table
from test_campaign_crash import processes, whole  # noqa: F401  (a fixture)

from gpal.active.campaign import Campaign
from gpal.catalog import load_catalog
from gpal.files.csv import read_csv

# A process killed between putting a file in place and naming it: the next opening says so.
pytestmark = pytest.mark.filterwarnings("ignore:the campaign's database does not name")
AT_ONCE = 3
KILLS = int(os.environ.get("GPAL_KILLS", "60"))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    table = Table({"Name": [f"S{i}" for i in range(40)], "Type": ["bll", "psr", "", ""] * 10})
    table["RA"], table["Dec"] = np.arange(40) * 9.0, np.linspace(-60, 60, 40)
    table["Index"], table["e_Index"] = rng.normal(2, 0.3, 40), 0.1
    table.write(tmp_path / "a.ecsv")
    table[rng.permutation(40)[:30]].write(tmp_path / "b.ecsv")
    old = load_catalog(tmp_path / "a.ecsv", mapping=worker.RELEASE)
    Campaign.start(old, tmp_path / "campaign", classifier=worker.NearestMean()).close()
    return tmp_path / "campaign"


@pytest.mark.parametrize("kills", [6, pytest.param(KILLS, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost(processes, folder, kills):  # noqa: F811
    rng, acknowledged = np.random.default_rng(1), set()
    for run in range(0, kills, AT_ONCE):
        acknowledged |= set(round_of_kills(processes, folder, run, rng))
        with Campaign(folder, worker.NearestMean()) as campaign:
            numbers = whole(campaign)
            events = campaign.store.history()
            release = campaign.release
            assert [len(table) in (30, 40) for table in campaign.releases()] == [True] * release
        found = {f"label {e.note}" for e in events if e.action == "label"}
        found |= {f"{e.action} {e.who}" for e in events if e.action in ("undo", "ask", "merge")}
        found |= {f"refit {number}" for number in numbers}
        exports = {line for line in acknowledged if line.startswith("export")}
        assert acknowledged - exports <= found
        notes = Counter(e.note for e in events if e.action == "label")
        assert max(notes.values(), default=1) == 1
        check_files(folder, numbers, release)
    done = Counter(line.split()[0] for line in acknowledged)
    print(f"{kills} kills: {dict(done)}")
    assert done["label"]  # how many of each is up to the machine


def round_of_kills(processes, folder, run, rng):  # noqa: F811
    """What processes had acknowledged when all were killed."""
    journals = [folder.parent / f"journal-{run + k}" for k in range(AT_ONCE)]
    working = [
        processes.Process(target=worker.anything, args=(str(folder), str(journal), run + k))
        for k, journal in enumerate(journals)
    ]
    for process in working:
        process.start()
    deadline = time.monotonic() + 300
    while not all(journal.exists() for journal in journals) and time.monotonic() < deadline:
        assert all(process.is_alive() for process in working)
        time.sleep(0.001)
    for process in working:
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
    for process in working:
        process.join()
        assert process.exitcode == -9, "the process ended by itself"
    lines = [line for journal in journals for line in journal.read_text().split("\n")[:-1]]
    for journal in journals:
        journal.unlink()
    return [line for line in lines if line != "ready"]


def check_files(folder, numbers, release):
    """The campaign's files and whole exports: nothing else is in the folder, or beside it."""
    models = {f"{number:04d}{part}.npz" for number in numbers for part in ("", "-scores")}
    assert {path.name for path in (folder / "models").iterdir()} == models
    releases = {f"release-{number}.npz" for number in range(1, release + 1)}
    there = {path.name for path in folder.iterdir()} - {"unnamed"}  # what was complete, not named
    assert there == {"campaign.sqlite", "models", *releases}
    for path in (folder / "unnamed").glob("*"):
        with np.load(path) as archive:
            assert [archive[name] for name in archive.files]
    beside = {path.name for path in folder.parent.iterdir()} - {"campaign", "a.ecsv", "b.ecsv"}
    assert all(name.startswith("history-") and name.endswith(".csv") for name in beside)
    for name in beside:
        numbers = read_csv(folder.parent / name, {"number": float})["number"].tolist()
        assert numbers == list(range(1, len(numbers) + 1))
