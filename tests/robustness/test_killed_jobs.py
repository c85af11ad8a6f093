"""kill -9 at random moments of classify and validate: all of the old results or all of the new."""

from __future__ import annotations

import csv
import json
import multiprocessing
import re
import signal
import time
import zipfile

import job_worker
import numpy as np
import pytest
from astropy.table import Table

from gpal.staging import sweep

COMMANDS = {
    "classify": ("classify", "old.csv", "--schema", "schema.toml", "--folds", "2"),
    "validate": (
        *("validate", "old.csv", "new.csv", "--seeds", "1"),
        *("--old-schema", "schema.toml", "--new-schema", "schema.toml"),
    ),
}


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(job_worker.PRELOAD)
    return context


@pytest.fixture
def job(processes, releases, temporary, tmp_path):
    """A function that runs a command with a seed, kills it after so many seconds, and returns
    whether it was killed."""

    def run(command, seed, kill_after=None):
        arguments = [*COMMANDS[command], "--out", str(tmp_path / "out"), "--seed", str(seed)]
        target = (arguments, str(releases), str(temporary))
        process = processes.Process(target=job_worker.run, args=target)
        process.start()
        process.join(kill_after or 300)
        if process.exitcode is None:
            process.kill()
            process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        return process.exitcode != 0

    return run


def seed_of(path):
    """The seed that a result file says it was made with; reads all of the file."""
    if path.suffix == ".json":
        origin = json.loads(path.read_text())["provenance"]
    elif path.suffix == ".fits":
        origin = json.loads(Table.read(path).meta["PROVENAN"])
    elif path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
        with np.load(path) as archive:
            origin = json.loads(str(archive["origin"]))
    elif path.suffix == ".png":
        from PIL import Image

        with Image.open(path) as image:
            image.load()
            origin = json.loads(image.text["Description"])
    elif path.suffix == ".csv":
        lines = path.read_text().splitlines()
        rows = list(csv.reader(line for line in lines if not line.startswith("#")))
        assert len(rows) > 20 and {len(row) for row in rows} == {len(rows[0])}
        return int(re.search(r'"random_state": ?(\d+)', lines[0])[1])
    else:
        text = path.read_text()
        assert text.rstrip().endswith("</html>")
        return int(re.search(r"\bseed (\d+)", text)[1])
    return origin["random_state"]


def seeds(folder):
    """Name -> seed of every file of results."""
    if not folder.exists():
        return {}
    return {p.name: seed_of(p) for p in folder.iterdir() if not p.name.startswith(".")}


def attack(job, command, folder, kills, rng):
    """Kill it so often, at moments spread over its time; how often new results were there."""
    began = time.monotonic()
    assert not job(command, 1)
    lasts, finished = time.monotonic() - began, 0
    names, present = set(seeds(folder)), 1
    assert len(names) > 5
    for seed in range(2, kills + 2):
        killed = job(command, seed, rng.uniform(0.1, 1) * lasts)
        left = set(seeds(folder).values())
        assert left <= {present} or left <= {seed}
        sweep(folder)
        after = seeds(folder)
        assert set(after) == names and len(set(after.values())) == 1
        present = after[next(iter(names))]
        assert present == seed or killed
        finished += present == seed
    assert not job(command, 0)
    assert seeds(folder) == dict.fromkeys(names, 0)
    return finished


@pytest.mark.parametrize("command", COMMANDS)
def test_results_are_the_old_or_the_new(job, command, tmp_path, temporary):
    assert attack(job, command, tmp_path / "out", 2, np.random.default_rng(0)) <= 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "tmp"]
    assert not list((tmp_path / "out").glob(".*")) and not list(temporary.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_twenty_kills(job, command, tmp_path, temporary):
    finished = attack(job, command, tmp_path / "out", 20, np.random.default_rng(1))
    assert finished < 20  # how many is up to the machine
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "tmp"]
    assert not list((tmp_path / "out").glob(".*")) and not list(temporary.iterdir())
