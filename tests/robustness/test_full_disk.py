"""A disk that becomes full at any write: one line, and what was there before is there still."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from gpal.active.campaign import Campaign

HERE = Path(__file__).parent
SMALL = ("--n-inducing", "5")
CATALOG = ("old.csv", "--schema", "schema.toml")
START = ("learn", "start", *CATALOG, *SMALL)
COMMANDS = {
    "classify": ("classify", *CATALOG, "--folds", "2"),
    "label": ("learn", "label", "S095", "bll"),
    "undo": ("learn", "undo"),
    "export": ("learn", "export", "targets.csv"),
    "export-fits": ("learn", "export", "targets.fits"),
    "merge": ("learn", "merge", "new.csv", "--schema", "schema.toml"),
    "refit": ("learn", "refit", "--full"),
    "report": ("learn", "report"),
}
EVERY = {"classify": 10, "refit": 10, "merge": 10}


class Disk:
    """A folder whose disk is full from some write on, and the program in it."""

    def __init__(self, folder, library):
        self.folder, self.state = folder, folder.with_name("state")
        self.state.write_bytes(bytes(16))
        self.server = subprocess.Popen(
            [sys.executable, str(HERE / "fork_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ
            | {
                "LD_PRELOAD": str(library),
                "FULL_DISK_STATE": str(self.state),
                "FULL_DISK_UNDER": str(folder),
            },
        )

    def run(self, *arguments, full_from=0):
        """(exit code, stderr, number of writes) of the program."""
        self.state.write_bytes(struct.pack("qq", full_from, 0))
        job = [arguments, str(self.folder), str(self.folder / "tmp")]
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        code, stderr = json.loads(self.server.stdout.readline())
        return code, stderr, struct.unpack("qq", self.state.read_bytes())[1]


@pytest.fixture(scope="module")
def disk(small_releases, tmp_path_factory):
    """A disk with results and a campaign on it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("disk")
    library = folder / "full_disk.so"
    source = str(HERE / "full_disk.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    shutil.copytree(small_releases, folder / "disk")
    (folder / "disk" / "tmp").mkdir()
    disk = Disk(folder / "disk", library)
    try:
        for command in (START, ("learn", "refit"), COMMANDS["classify"]):
            code, stderr, _ = disk.run(*command)
            assert code == 0 and not stderr, stderr
        yield disk
    finally:
        disk.server.communicate()


def contents(folder):
    """Every file of `folder` with what it holds; of a campaign's database, what is in it."""
    with Campaign(folder / "campaign") as campaign:
        history = [tuple(map(str, vars(event).values())) for event in campaign.store.history()]
        labels, models = campaign.store.labels(), campaign.store.models()
        whole = campaign.store.connection.execute("PRAGMA integrity_check").fetchone()
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".sqlite" not in path.name
    }
    return {"history": history, "labels": labels, "models": models, "whole": whole, **files}


def unnamed(name, before):
    """Whether it is a file of a campaign that its database knows nothing of: the next model or
    release, which then replaces it."""
    number = max(model["number"] for model in before["models"]) + 1
    return name in {"campaign/release-2.npz", f"campaign/models/{number:04d}.npz"}


def withstands(disk, command):
    """Full at every write (every tenth where there are many): nothing changes; then it works. How
    often it failed."""
    arguments = COMMANDS[command]
    saved = disk.folder.with_name("saved")
    shutil.rmtree(saved, ignore_errors=True)
    shutil.copytree(disk.folder, saved)
    before = contents(disk.folder)
    step = EVERY.get(command, 1)
    full_from, failures = 1, 0
    while True:
        code, stderr, writes = disk.run(*arguments, full_from=full_from)
        if code == 0:
            break
        failures += 1
        assert code in (1, 2) and writes >= full_from
        assert stderr.startswith("gpal: ") and stderr.count("\n") == 1, stderr
        assert "space" in stderr or "disk" in stderr
        after = contents(disk.folder)
        more = {name for name in set(after).difference(before) if not unnamed(name, before)}
        assert before == {name: after[name] for name in before} and not more
        full_from += step
    assert contents(disk.folder) != before  # at most a write after the last that counts has failed
    assert not list(disk.folder.rglob(".*"))
    shutil.rmtree(disk.folder)
    shutil.copytree(saved, disk.folder)
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_full_at_any_write(disk, command):
    if command == "undo":
        assert disk.run(*COMMANDS["label"])[0] == 0
    assert withstands(disk, command) >= 1  # a small file is one write


def test_a_limit_on_the_size_of_files(gpal, small_releases, tmp_path):
    """The same without a compiler: no file may grow."""
    table = small_releases / "old.csv", small_releases / "new.csv"
    schema = small_releases / "schema.toml"
    schemas = ("--old-schema", schema, "--new-schema", schema)
    command = ("catalogs", "calibrate-errors", *table, *schemas)
    limited = gpal(*command, prefix=("bash", "-c", 'ulimit -f 0; exec "$@"', "bash"))
    assert limited.returncode == 1
    assert limited.stderr.startswith("gpal: File too large") and limited.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]
    assert gpal(*command).returncode == 0
