"""The program in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


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
