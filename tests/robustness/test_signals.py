"""The program told to end during a fit: nothing is left, and the exit code says why."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

# The program, which tells its parent that the fit is running and waits there for a signal; what
# libraries write meanwhile stands for what TensorFlow generates.
FITTING = """
import signal, sys, tempfile
from gpal.cli import main
from gpal.evaluation import any_classifier
def fit(*_, **__):
    tempfile.NamedTemporaryFile(prefix="__autograph_generated_file", delete=False).close()
    print("fitting", flush=True)
    while True:
        signal.pause()
any_classifier.fit = fit
sys.argv[0] = "gpal"
main()
"""


@contextmanager
def signals_as_usual():
    """A process that is started inside ends by these signals, also where the tests themselves run
    under nohup or in the background of a script, where they are ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.fixture
def fitting(gpal, small_releases, tmp_path):
    """A function that starts `gpal classify` and returns the process when the fit is running."""

    def start(*prefix):
        source = (small_releases / "old.csv", "--schema", small_releases / "schema.toml")
        with signals_as_usual():
            process = gpal.start(
                "classify", *source, "--jobs", "1", program=("-c", FITTING), prefix=prefix
            )
        if "fitting\n" not in process.stdout:  # after what is said of the table
            pytest.fail(process.stderr.read())
        assert len(list(tmp_path.glob(".results-*"))) == 1
        return process

    return start


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGINT")]


@pytest.mark.parametrize("name", ["SIGHUP", *SLOW])
def test_it_cleans_up_and_leaves(fitting, tmp_path, name):
    process = fitting()
    process.send_signal(getattr(signal, name))
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (128 + getattr(signal, name), "", "")
    assert files(tmp_path) == ["tmp"]


EARLY = """
import os, runpy, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["gpal", "catalogs"]
runpy.run_module("gpal", run_name="__main__")
"""


def test_ctrl_c_while_the_program_is_imported():
    with signals_as_usual():
        done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.slow
def test_nohup_is_kept(fitting, tmp_path):
    process = fitting("nohup")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143 and files(tmp_path) == ["tmp"]


@pytest.mark.slow
def test_a_kill_is_tidied_up_by_the_next_start(fitting, gpal, tmp_path):
    process = fitting()
    process.kill()
    process.communicate(timeout=60)
    assert len(files(tmp_path)) > 3
    assert gpal("report", "results").returncode == 2  # there are none
    assert files(tmp_path) != ["tmp"]
    process = fitting()
    process.terminate()
    process.communicate(timeout=60)
    assert files(tmp_path) == ["tmp"]
