"""kill -9 at random moments of classify, validate and predict: all of the old or of the new."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import re
import signal
import time
import zipfile

import job_worker
import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.classifier import GPClassifier
from gpal.files.staging import sweep

COMMANDS = {
    "classify": (
        *("classify", "old.csv", "--schema", "schema.toml"),
        *("--folds", "2", "--jobs", "2"),  # a process beside it that loses its parent
    ),
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
def job(processes, small_releases, temporary):
    """A function that runs a command, kills it after so many seconds, and returns whether it was
    killed."""

    def run(arguments, kill_after=None):
        target = ([*map(str, arguments)], str(small_releases), str(temporary))
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
    """Kill it so often, at moments spread over its time"""

    def arguments(seed):
        return *COMMANDS[command], "--out", folder, "--seed", seed

    began = time.monotonic()
    assert not job(arguments(1))
    lasts = time.monotonic() - began
    names, present = set(seeds(folder)), 1
    assert len(names) > 5
    for seed in range(2, kills + 2):
        killed = job(arguments(seed), rng.uniform(0.1, 1) * lasts)
        left = set(seeds(folder).values())
        assert left <= {present} or left <= {seed}
        sweep(folder)
        after = seeds(folder)
        assert set(after) == names and len(set(after.values())) == 1
        present = after[next(iter(names))]
        assert present == seed or killed
    assert not job(arguments(0))
    assert seeds(folder) == dict.fromkeys(names, 0)


KILLS = int(os.environ.get("GPAL_KILLS", "60")) // 12


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_results_are_the_old_or_the_new(job, command, tmp_path, temporary):
    attack(job, command, tmp_path / "out", KILLS, np.random.default_rng(KILLS))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "tmp"]
    assert not list((tmp_path / "out").glob(".*")) and not list(temporary.iterdir())


@pytest.fixture(scope="module")
def model(small_releases, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    catalog = load_catalog(small_releases / "old.csv", schema=small_releases / "schema.toml")
    known = catalog[catalog.y != ""]
    GPClassifier(n_inducing=5, max_rounds=1).fit(known.measurements, known.y).save(path)
    return path


@pytest.mark.slow
def test_predictions_are_the_old_or_the_new(job, model, tmp_path, temporary):
    """Told apart by the confidence that they were made with."""
    out, rng = tmp_path / "out.fits", np.random.default_rng(2)

    def arguments(number):
        source = ("predict", model, "old.csv", "--schema", "schema.toml")
        return *source, "--out", out, "--confidence", number / 100

    def made():
        with fits.open(out, checksum=True) as hdus:  # warns where one is wrong
            assert len(hdus[1].data) == 100
        origin = json.loads(Table.read(out).meta["PROVENAN"])
        return round(100 * origin["settings"]["confidence"])

    began = time.monotonic()
    assert not job(arguments(0))
    lasts, present = time.monotonic() - began, made()
    assert present == 0
    for number in range(1, KILLS + 1):
        killed = job(arguments(number), rng.uniform(0.1, 1) * lasts)
        assert made() in ({number, present} if killed else {number})
        present = made()
    assert not job(arguments(99)) and made() == 99
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.fits", "tmp"]
    assert not list(temporary.iterdir())
