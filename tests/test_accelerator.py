"""The programs for an accelerator still come out of the engine, and give what it gives."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "workflows" / "benchmarks" / "accelerator"
# Of float32 products, the bound's gradient in the inducing points is the least accurate: 3e-5.
ERRORS = {"float64": 1e-11, "float32": 1e-4}


def script(name: str, *arguments: object) -> str:
    command = [sys.executable, str(SCRIPTS / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    script("export.py", folder, "--quick")
    return folder


def test_each_program_is_written_with_what_it_reads(programs):
    names = {path.name.partition(".")[0] for path in programs.iterdir()}
    assert names == {f"{p}_2000_50_{t}" for p in ("sweep", "bound") for t in ERRORS}
    assert len(list(programs.iterdir())) == 2 * len(names)


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is for Python 3.11 and later")
@pytest.mark.parametrize(
    "cholesky",
    [
        pytest.param([], id="library"),
        pytest.param(["--raw-cholesky"], id="raw", marks=pytest.mark.slow),
    ],
)
def test_they_give_what_the_engine_gives(programs, cholesky):
    lines = script("run.py", programs, "--repeats", 1, *cholesky).splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 4
    for row in rows:
        assert "failed" not in row
        assert row["finite"] and row["seconds"] > 0
        assert {"device", "gpal", "version", "date"} <= set(row) and row["seed"] == 2050
        assert len(row["errors"]) == 5
        assert max(row["errors"]) < ERRORS[row["dtype"]], row
        if row["dtype"] == "float32":  # another computation than the one it is compared with
            assert max(row["errors"]) > 1e-9


@pytest.mark.slow
def test_the_engine_itself_is_timed_on_the_same_inputs():
    rows = [json.loads(line) for line in script("cpu.py", "--quick", "--repeats", 1).splitlines()]
    assert {(row["program"], row["dtype"], row["seed"]) for row in rows} == {
        (program, dtype, 2050) for program in ("sweep", "bound") for dtype in ERRORS
    }
    assert all(row["seconds"] > 0 and row["gpal"] and row["date"] for row in rows)
