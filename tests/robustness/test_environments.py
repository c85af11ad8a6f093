"""Every command as another user, with a home that is read-only or missing, in the C locale and
without a terminal: it works, and stderr is empty."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SMALL = ("--n-inducing", "5")
CATALOG = ("old.csv", "--schema", "schema.toml")
RELEASES = ("old.csv", "new.csv", "--old-schema", "schema.toml", "--new-schema", "schema.toml")
COMMANDS = (
    ("catalogs",),
    ("catalogs", "calibrate-errors", *RELEASES, "--out", "errors.toml"),
    ("classify", *CATALOG, *SMALL, "--folds", "2"),
    ("predict", "results/model.npz", "new.csv", "--out", "predictions.csv"),
    ("report", "results"),
    ("validate", *RELEASES, *SMALL, "--seeds", "1"),
    ("learn", "start", *CATALOG, *SMALL),
    ("learn", "next", "-n", "2", "--gain"),
    ("learn", "label", "S095", "bll"),
    ("learn", "label", "S096", "psr", "--note", "by eye"),
    ("learn", "undo", "S096"),
    ("learn", "refit"),
    ("learn", "status"),
    *(("learn", "export", f"targets{ending}") for ending in (".csv", ".fits", ".vot", ".reg")),
    ("learn", "export", "--history", "history.csv"),
    ("learn", "merge", "new.csv", "--schema", "schema.toml"),
    ("learn", "report"),
    ("learn", "simulate", *CATALOG, *SMALL, "--repeats", "2", "--queries", "2", "--initial", "20"),
)
QUICK = [c for c in COMMANDS if c[0] == "catalogs" or c[:2] in {("learn", "start")}]
NOBODY = 65534
# As that user, who may read what only root may but write nothing that is not his: for where the
# interpreter itself is in a folder that nobody else can enter.
READS_ALL = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)


def other_user():
    """How to start a process as another user: a prefix and options of subprocess."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    for prefix, options in (((), as_user), (READS_ALL, {})):
        command = [*prefix, sys.executable, "-c", "import os, gpal; assert os.getuid()"]
        try:
            if subprocess.run(command, capture_output=True, cwd="/", **options).returncode == 0:
                return prefix, options
        except OSError:  # no such program, or not for that user
            continue
    pytest.skip("another user cannot read the interpreter, and there is no setpriv")


@pytest.fixture
def place(small_releases):
    """A folder that another user can be given: those of pytest are in one that only we enter."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        shutil.copytree(small_releases, work)
        for name in ("tmp", "home"):
            (Path(folder) / name).mkdir()
        (Path(folder) / "home").chmod(0o555)
        os.chmod(folder, 0o755)
        yield Path(folder)


def run_all(commands, place, environment, prefix=(), **options):
    for arguments in commands:
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "gpal", *arguments],
            cwd=place / "work",
            env=environment | {"TMPDIR": str(place / "tmp")},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
            **options,
        )
        assert done.returncode == 0 and not done.stderr, (arguments, done.stderr.decode())
        assert done.stdout
    assert list((place / "tmp").iterdir()) == []
    assert list((place / "home").iterdir()) == []
    assert not [path for path in (place / "work").rglob(".*")]


def without(*names):
    return {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "XDG_", *names))}


@pytest.mark.slow
def test_another_user_with_a_read_only_home(place):
    prefix, options = other_user()
    for folder in (place / "work", place / "tmp"):
        for path in (folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
    environment = without("LANG", "USER", "LOGNAME") | {"HOME": str(place / "home"), "LANG": "C"}
    run_all(COMMANDS, place, environment, prefix, **options)


@pytest.mark.slow
def test_no_home_and_an_ascii_locale(place):
    """Where nothing is UTF-8 unless gpal says so; a name in the tables has a character more."""
    for name in ("old.csv", "new.csv"):
        table = (place / "work" / name).read_text("utf-8").replace("S001", "β Cas")
        (place / "work" / name).write_text(table.replace("S099", "γ Cas"), "utf-8")
    environment = without("LANG", "HOME") | {"LC_ALL": "C", "PYTHONUTF8": "0"}
    run_all(COMMANDS, place, environment)


@pytest.mark.slow
def test_another_user_without_a_home(place):
    """Some of the commands."""
    prefix, options = other_user()
    for folder in (place / "work", place / "tmp"):
        os.chown(folder, NOBODY, NOBODY)
    run_all(QUICK, place, without("LANG", "HOME", "USER", "LOGNAME"), prefix, **options)


ERRORS = {"PYTHONWARNINGS": "error"}


CLOSED = [
    pytest.param((), ERRORS, marks=pytest.mark.slow),
    pytest.param((2,), {}, marks=pytest.mark.slow),
    ((0, 1, 2), ERRORS),
]


@pytest.mark.parametrize("closed, environment", CLOSED)
def test_closed_streams_and_warnings_that_are_errors(place, closed, environment):
    """What libraries print and remark ends neither in a file of ours nor the run."""
    command = (sys.executable, "-m", "gpal", "learn", "start", *CATALOG, *SMALL)
    closing = " ".join(f"{number}>&-" for number in closed)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *command],
        cwd=place / "work",
        env=os.environ | environment,
        timeout=300,
    )
    assert done.returncode == 0
    assert (place / "work" / "campaign" / "campaign.sqlite").is_file()
