"""The campaign of somebody else, whose folder and files can only be read: looked at, exported and
reported by another user; what would write into it is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import campaign_of_others
import pytest
from test_environments import other_user, without

LOOK = (
    ("status",),
    ("export", "{out}/targets.csv"),
    ("export", "--labels", "{out}/labels.csv"),
    ("export", "--history", "{out}/history.csv"),
    ("report", "--out", "{out}/page.html"),
)
WRITE = (("label", "S095", "psr", "--replace"), ("undo",), ("refit", "--full"), ("next",))


@pytest.fixture
def place():
    """A folder that everyone may enter, with a campaign that nobody may change."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        place = Path(name)
        campaign_of_others.make(place / "campaign")
        for path in (place / "campaign").rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        (place / "campaign").chmod(0o555)
        (place / "out").mkdir()
        (place / "out").chmod(0o777)
        yield place


@pytest.mark.slow
def test_another_user_looks_and_cannot_write(place):
    prefix, options = other_user()
    environment = without("LANG", "HOME") | {"LC_ALL": "C", "TMPDIR": str(place / "out")}

    def gpal(*arguments):
        words = [word.format(out=place / "out") for word in arguments]
        return subprocess.run(
            [*prefix, sys.executable, "-m", "gpal", "learn", *words, "-s", place / "campaign"],
            **{"cwd": place, "env": environment, "stdin": subprocess.DEVNULL},
            **{"capture_output": True, "text": True, "timeout": 300},
            **options,
        )

    before = {path: path.stat().st_mtime_ns for path in (place / "campaign").rglob("*")}
    for arguments in LOOK:
        done = gpal(*arguments)
        assert done.returncode == 0 and not done.stderr, (arguments, done.stderr)
    made = {path.name for path in (place / "out").iterdir()}
    assert made == {"targets.csv", "labels.csv", "history.csv", "page.html"}
    for arguments in WRITE:
        done = gpal(*arguments)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (arguments, done.stderr)
        assert "can only be read here: look at it, export it, or copy the folder" in done.stderr
    assert gpal("report").returncode == 2  # into the campaign's folder
    assert {path: path.stat().st_mtime_ns for path in (place / "campaign").rglob("*")} == before
