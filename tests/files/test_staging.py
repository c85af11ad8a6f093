"""Staging folders: what a killed process leaves is swept, what lives or is not gpal's stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from gpal.errors import InputError
from gpal.files import staging
from gpal.files.output import atomic_path, staged_folder
from gpal.files.staging import LOCK, staging_folder, sweep
from gpal.report import render_report

OUTPUTS = ("a", "b", "c", "d")

# Writes generation N into a folder, and is killed at the K-th change of the file system.
WRITER = """
import os, signal, sys
from gpal.files.output import staged_folder
folder, generation, kill_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
changes = 0
def counted(change):
    def call(*arguments, **options):
        global changes
        changes += 1
        if changes == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return change(*arguments, **options)
    return call
for name in ("rename", "replace", "mkdir", "rmdir", "unlink", "open"):
    setattr(os, name, counted(getattr(os, name)))
with staged_folder(folder, ("a", "b", "c", "d")) as made:
    for name in ("a", "b", "d") if int(generation) % 2 else ("a", "b", "c"):
        (made / name).write_text(generation)
"""


def write(folder, generation, kill_at=0):
    process = [sys.executable, "-c", WRITER, str(folder), str(generation), str(kill_at)]
    return subprocess.run(process, capture_output=True, text=True, timeout=60)


def files(folder):
    return {p.name: p.read_text() for p in folder.iterdir() if not p.name.startswith(".")}


def generation(number):
    return dict.fromkeys(("a", "b", "d") if number % 2 else ("a", "b", "c"), str(number))


@pytest.mark.parametrize("exists", [False, True])
def test_killed_at_every_step_old_or_new_files_are_there(tmp_path, exists):
    """Never some of both; all of the one or the other when the next process has looked."""
    out, steps = tmp_path / "out", 0
    if exists:
        out.mkdir()
        (out / "mine.txt").write_text("mine")
        assert write(out, 1).returncode == 0
    mine = {"mine.txt": "mine"} if exists else {}
    number = 2
    while (done := write(out, number, kill_at=steps + 1)).returncode == -signal.SIGKILL:
        steps += 1
        left = files(out).items() if out.exists() else {}.items()
        old, new = (generation(n) | mine for n in (number - 1, number))
        assert left <= old.items() or left <= new.items()
        for place in (tmp_path, out):
            sweep(place)
        whole = files(out) if out.exists() else {}
        assert whole in (old, new) if exists else whole in ({}, new)
        assert not [p for place in (tmp_path, out) if place.exists() for p in place.glob(".*")]
        if not exists:
            assert steps < 60
            if whole:
                break
        elif whole == new:
            number += 1
    assert steps > 5
    if exists:
        assert (done.returncode, done.stderr) == (0, "")
        assert number > 3  # killed after the point of no return, too
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_next_writer_sweeps_what_a_kill_left(tmp_path):
    out = tmp_path / "out"
    for existing in (False, True):
        if existing:
            out.mkdir()
        program = f"""
import os, signal
from gpal.errors import InputError
from gpal.files.output import atomic_path, staged_folder
from gpal.report import render_report
with staged_folder({str(out)!r}, ("a",)) as made, atomic_path({str(out) + ".txt"!r}) as file:
    (made / "a").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
        done = subprocess.run([sys.executable, "-c", program], timeout=60)
        assert done.returncode == -signal.SIGKILL
    (tmp_path / ".other-abcdefgh.gpal").mkdir()  # killed before it had its lock
    left = sorted(p.parent.name[:-14] for p in tmp_path.rglob(LOCK))
    assert left == [".out", ".out.txt"]  # of the second one, which has swept those of the first
    with staged_folder(out) as made:
        (made / "a").write_text("whole")
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["out", "out/a"]


def test_what_lives_or_is_not_ours_stays(tmp_path):
    """Another process's, a user's own folder of such a name, and another machine's."""
    theirs = tmp_path / ".user-abcdefgh.gpal"
    elsewhere = tmp_path / ".out-hgfedcba.gpal"
    for folder, name in ((theirs, "work.txt"), (elsewhere, "gpal-another-machine.lock")):
        folder.mkdir()
        (folder / name).write_text("")
    (tmp_path / ".file.gpal").write_text("")
    (tmp_path / ".link-12345678.gpal").symlink_to(theirs)
    before = sorted(tmp_path.rglob("*"))
    program = f"""
from pathlib import Path
from gpal.files.staging import staging_folder
with staging_folder(Path({str(tmp_path)!r}), "out") as folder:
    (folder / "work").mkdir()
    print(folder, flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        live = process.stdout.readline().strip()
        for _ in range(2):
            with atomic_path(tmp_path / "out") as file:
                file.write_text("ours")
            assert os.path.isdir(os.path.join(live, "work"))
        process.communicate("\n", timeout=60)
    assert process.returncode == 0
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "out"])


def test_two_processes_write_the_same_folder(tmp_path):
    """Again and again: whoever comes last, all of one's files are there."""
    out = tmp_path / "out"
    for number in range(2, 12, 2):
        both = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(out), str(n), "0"])
            for n in (number, number + 1)
        ]
        assert [process.wait(60) for process in both] == [0, 0]
        assert files(out) in (generation(number), generation(number + 1))
    assert [p.name for p in tmp_path.rglob(".*")] == []


def test_a_swept_folder_is_not_used(tmp_path, monkeypatch):
    """Another process may take a folder without its lock for a leftover: then comes a new one."""
    opened, removed = os.open, []

    def swept(path, *arguments):
        if not removed and str(path).endswith(LOCK):
            removed.append(os.path.dirname(path))
            os.rmdir(removed[0])
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", swept)
    with staging_folder(tmp_path, "out") as folder:
        assert str(folder) not in removed and (folder / LOCK).exists()
    assert removed and list(tmp_path.iterdir()) == []


def test_a_new_folder_takes_the_place_of_one_whose_process_has_ended(tmp_path):
    left = tmp_path / ".earlier-abcdefgh.gpal"
    left.mkdir()
    (left / LOCK).touch()
    with staging_folder(tmp_path, "out") as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_a_name_as_long_as_a_file_system_takes(tmp_path):
    path = tmp_path / ("é" * 125)
    with atomic_path(path) as file:
        file.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_where_no_lock_can_be_made_nothing_stays(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="no space left"), staging_folder(tmp_path, "out"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails_at", range(1, 8))
def test_an_error_while_files_change_places_takes_all_back(tmp_path, monkeypatch, fails_at):
    out = tmp_path / "out"
    with staged_folder(out, OUTPUTS) as made:
        for name in ("a", "b", "c"):
            (made / name).write_text("old")
    calls = 0

    def failing(rename):
        def call(source, target):
            nonlocal calls
            calls += 1
            if calls == fails_at:
                raise OSError(5, "Input/output error")
            rename(source, target)

        return call

    failure = pytest.raises(OSError, match="Input/output")
    with monkeypatch.context() as patch, failure, staged_folder(out, OUTPUTS) as made:
        for name in ("a", "b", "d"):
            (made / name).write_text("new")
        for name in ("rename", "replace"):
            patch.setattr(staging.os, name, failing(getattr(os, name)))
    assert files(out) == dict.fromkeys(("a", "b", "c"), "old")
    assert list(tmp_path.rglob(".*")) == []


def test_killed_writers_of_one_folder_leave_one_whole_result(tmp_path):
    """Several at once, killed at any moment; then one that is not."""
    out = tmp_path / "out"
    assert write(out, 1).returncode == 0
    for round_ in range(4):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(out), str(n), "0"])
            for n in range(2, 6)
        ]
        time.sleep(0.05 * (round_ + 1))  # they need about as long to start
        for process in writers:
            process.kill()
            process.wait(60)
        left = files(out)
        assert len(set(left.values())) <= 1
        sweep(out)
        assert files(out) == generation(int(next(iter(files(out).values()))))
    assert write(out, 7).returncode == 0
    assert files(out) == generation(7) and list(tmp_path.rglob(".*")) == []


def test_a_report_sees_the_files_of_a_run_that_was_killed(tmp_path):
    """Killed when its first file was in its place: the others follow."""
    out = tmp_path / "out"
    assert write(out, 1).returncode == 0
    kill_at = 1
    while not (write(out, 2, kill_at).returncode == 0 or files(out) in ({"a": "2"}, generation(2))):
        sweep(out)
        kill_at += 1
    assert files(out) == {"a": "2"}
    with pytest.raises(InputError, match=r"metrics\.json"):
        render_report(out)
    assert files(out) == generation(2)
