"""Two small releases as CSV with a schema, and the program in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

SCHEMA = """
id = "name"
class = "kind"
ra = "ra"
dec = "dec"
[classes]
default = ["bll", "psr"]
candidates = ["", "bcu"]
[features.index]
column = "index"
error = "e_index"
[features.beta]
column = "beta"
error = "e_beta"
"""


@pytest.fixture(scope="session")
def releases(tmp_path_factory):
    """A folder with old.csv, new.csv and schema.toml: 60 labelled sources, 40 others."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(11)
    pulsar = rng.random(100) < 0.4
    kind = np.where(pulsar, "psr", "bll")
    rows = {
        "name": [f"S{i:03d}" for i in range(100)],
        "kind": np.where(np.arange(100) < 60, kind, ""),
        "ra": rng.uniform(0, 360, 100),
        "dec": rng.uniform(-80, 80, 100),
        "index": rng.normal(2 + 0.5 * pulsar, 0.3),
        "e_index": rng.uniform(0.05, 0.2, 100),
        "beta": rng.normal(0.1 + 0.2 * pulsar, 0.1),
        "e_beta": rng.uniform(0.02, 0.1, 100),
    }
    pd.DataFrame(rows).to_csv(folder / "old.csv", index=False)
    rows["kind"] = np.where(np.arange(100) < 90, kind, "")
    for name in ("index", "beta"):  # with twice the data
        rows[name] = rows[name] + rng.normal(0, 0.7 * rows[f"e_{name}"])
        rows[f"e_{name}"] = 0.7 * rows[f"e_{name}"]
    pd.DataFrame(rows).to_csv(folder / "new.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA)
    return folder


@pytest.fixture
def temporary(tmp_path):
    """A folder for TMPDIR, of which nothing may be left."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


class Program:
    """The program `gpal` in processes of its own: in that folder, with that TMPDIR."""

    def __init__(self, folder, temporary):
        self.folder, self.temporary = folder, temporary
        self.started = []

    def start(self, *arguments, program=("-m", "gpal"), prefix=(), environment=None, **options):
        pipes = {name: subprocess.PIPE for name in ("stdout", "stderr")}
        process = subprocess.Popen(
            [*prefix, sys.executable, *program, *map(str, arguments)],
            env=os.environ | {"TMPDIR": str(self.temporary)} | (environment or {}),
            **{"cwd": self.folder, "stdin": subprocess.DEVNULL, **pipes, **options},
            text=True,
        )
        self.started.append(process)
        return process

    def __call__(self, *arguments, **options):
        process = self.start(*arguments, **options)
        stdout, stderr = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def gpal(tmp_path, temporary):
    """A function that runs the program in `tmp_path`; `gpal.start` only starts it."""
    program = Program(tmp_path, temporary)
    yield program
    for process in program.started:
        if process.poll() is None:
            process.kill()
            process.communicate()
