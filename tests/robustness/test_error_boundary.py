"""Whatever reaches the command line's edge is one line with a remedy and an exit code."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from contextlib import closing

import numpy as np
import pytest
from typer.testing import CliRunner

from gpal.cli import app, process
from gpal.errors import InputError


def raised(provoke):
    try:
        provoke()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def busy(folder):
    one, two = (sqlite3.connect(folder / "a.sqlite", timeout=0) for _ in range(2))
    one.execute("BEGIN EXCLUSIVE")
    try:
        two.execute("CREATE TABLE t (x)")
    finally:
        one.close()
        two.close()


def full(folder):
    with_limit = sqlite3.connect(folder / "b.sqlite")
    with_limit.execute("CREATE TABLE t (x)")
    with_limit.execute("PRAGMA max_page_count = 2")
    try:
        with_limit.execute("INSERT INTO t VALUES (zeroblob(100000))")
    finally:
        with_limit.close()


def damaged(folder):
    (folder / "c.sqlite").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    connection = sqlite3.connect(folder / "c.sqlite")
    try:
        connection.execute("SELECT * FROM sqlite_master").fetchall()
    finally:
        connection.close()


def read_only(folder):
    with closing(sqlite3.connect(folder / "d.sqlite")) as connection:
        connection.executescript("CREATE TABLE t (x)")
    connection = sqlite3.connect(f"file:{folder / 'd.sqlite'}?mode=ro", uri=True)
    try:
        connection.execute("INSERT INTO t VALUES (1)")
    finally:
        connection.close()


def nested(_):
    def deeper():
        deeper()

    deeper()


def out_of_gpu(_):
    import tensorflow as tf

    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor\nof shape")


def caused(_):
    try:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise RuntimeError("a library could not write") from error


def refuse(code):
    def provoke(folder):
        raise OSError(code, os.strerror(code), str(folder / "name\nof a file"))

    return provoke


def test_an_exit_that_a_library_made_an_error_of(monkeypatch, tmp_path):
    """A signal that came while TensorFlow was at work: the model's file is not damaged by that."""

    def fail(_):
        raise InputError("damaged: RuntimeError: REPLACED BY SystemExit: 143")

    told: list[int] = []
    for module in ("process", "error_boundary"):
        monkeypatch.setattr(f"gpal.cli.{module}.told", told)
    monkeypatch.setattr("gpal.report.render_report", fail)
    assert CliRunner().invoke(app, ["report", str(tmp_path)]).exit_code == 2
    with pytest.raises(SystemExit):
        process._leave(15, None)  # what a signal calls
    ended = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert ended.exit_code == 143 and "damaged" not in ended.output


@pytest.mark.parametrize(
    "provoke, words",
    [
        (busy, "another process is writing"),
        (full, "make room"),
        (damaged, "damaged"),
        (read_only, "may write"),
        (nested, "nested too deeply"),
        (out_of_gpu, "--n-inducing"),
        (caused, "No space left on device; make room"),
        (lambda _: np.zeros(1 << 58), "--n-inducing"),
        (lambda folder: folder.read_text(), "folder has the name of a file"),
        (lambda folder: (folder / ("n" * 300)).write_text(""), "shorter name"),
        (lambda folder: os.listdir(folder / "nothing"), "check the path"),
        (refuse(errno.ENOSPC), "make room"),
        (refuse(errno.EDQUOT), "quota"),
        (refuse(errno.EROFS), "another folder"),
        (refuse(errno.EACCES), "may write"),
        (refuse(errno.EMFILE), "ulimit -n"),
        (refuse(errno.EFBIG), "ulimit -f"),
        (refuse(errno.EPROTO), "check the path and the disk"),
    ],
)
def test_what_the_machine_refuses(provoke, words, tmp_path, monkeypatch):
    error = raised(lambda: provoke(tmp_path))

    def fail(folder):
        raise error

    monkeypatch.setattr("gpal.report.render_report", fail)
    result = CliRunner().invoke(app, ["report"])
    line = result.stderr.removesuffix("\n")
    assert result.exit_code == 1 and result.stdout == ""
    assert line.startswith("gpal: ") and line.isprintable() and words in line
    shown = CliRunner().invoke(app, ["--debug", "report"])
    assert shown.exit_code == 1 and shown.stderr.endswith(f"\n{line}\n")
    assert "Traceback (most recent call last)" in shown.stderr


def test_an_error_of_gpal_itself_asks_for_a_report(monkeypatch):
    def fail(folder):
        raise KeyError("a\x1b[31m key\n" * 1000)

    monkeypatch.setattr("gpal.report.render_report", fail)
    result = CliRunner().invoke(app, ["report"])
    line = result.stderr.removesuffix("\n")
    assert result.exit_code == 3 and line.isprintable() and len(line) < 1000
    assert "error in gpal itself, KeyError" in line and "gpal --debug" in line


@pytest.mark.parametrize(
    "arguments", [["catalogs"], ["--help"], ["classify", "--help"], ["--version"], ["learn"]]
)
def test_output_that_nobody_takes(gpal, arguments):
    """On a full disk, a line; where it is closed or the reader went away, nothing."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as device:
        done = gpal(*arguments, stdout=device, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith("gpal: No space left") and done.stderr.count("\n") == 1
    with open("/dev/full", "w") as device:
        done = gpal(*arguments, stdout=device, stderr=device)
    assert done.returncode == 1
    for redirected in (">&-", "| true", "| head -1"):
        done = gpal(*arguments, prefix=("bash", "-c", f'"$@" {redirected}', "bash"))
        assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_character_that_the_output_lacks_is_escaped(gpal, encoding):
    done = gpal("classify", "β.csv", environment={"PYTHONIOENCODING": encoding})
    assert done.returncode == 2
    line = done.stderr.replace("β", r"\u03b2")  # for ASCII, UTF-8 is taken instead
    assert line.startswith(r"gpal: no file '\u03b2.csv'") and line.count("\n") == 1


def test_an_argument_that_is_no_text_is_refused(gpal, tmp_path):
    """Bytes that are not UTF-8 could be written neither into a history nor into a provenance."""
    done = gpal("report", os.fsdecode(b"results-\xff"), environment={"LC_ALL": "C.UTF-8"})
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert r"'results-\udcff' is no text" in done.stderr and "rename" in done.stderr
