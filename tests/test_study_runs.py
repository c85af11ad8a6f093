"""workflows/: studies whose processes are killed, whose options are wrong, whose files are
damaged; a trial leaves the published pages alone."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

STUDIES = [
    *(("paper_000", name) for name in ("likelihoods", "toy", "training")),
    *(("paper_001", name) for name in ("active", "injected")),
    *(("paper_003", name) for name in ("dirichlet", "inducing_points")),
    ("paper_002", "inferences"),
    ("paper_004", "convergence"),
]


def killed(cell):
    """A measurement; of the cell 1 none, as the system kills it for want of memory."""
    if cell[1] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"process": os.getpid()}


def ended_by_itself(cell):
    sys.exit(3)


def process_of(number):
    return os.getpid()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_is_killed_takes_its_own_cell_alone(script, tmp_path, capfd, jobs):
    studies = script(".", "studies")
    path = tmp_path / "cells.jsonl"
    cells = [("x", k) for k in range(5)]
    assert studies.run(path, ("name", "k"), cells, killed, jobs) == 1
    assert sorted(cell["k"] for cell in studies.read(path)) == [0, 2, 3, 4]
    told = capfd.readouterr().err
    assert "'k': 1" in told and f"exit code {-signal.SIGKILL}" in told
    assert studies.run(path, ("name", "k"), cells[:1], None) == 0


def test_a_measurement_that_leaves_its_process_has_failed(script, tmp_path, capfd):
    studies = script(".", "studies")
    path = tmp_path / "cells.jsonl"
    assert studies.run(path, ("name", "k"), [("x", 0), ("x", 1)], ended_by_itself) == 2
    assert "exit code 3" in capfd.readouterr().err and studies.read(path) == []


def test_children_are_renewed_and_end_with_who_asked(script, monkeypatch):
    children = script(".", "child_processes")
    monkeypatch.setattr(children, "TASKS_EACH", 2)
    found = [process for _, process, _ in children.in_children(process_of, range(4), 1)]
    assert found[0] == found[1] != found[2] == found[3]
    some = children.in_children(process_of, range(4), 1)
    _, process, _ = next(some)
    some.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_child_killed_between_two_tasks_takes_none_with_it(script):
    some = script(".", "child_processes").in_children(process_of, range(3), 1)
    _, process, _ = next(some)
    os.kill(process, 9)
    time.sleep(1.0)  # until it is gone
    rest = list(some)
    assert [task for task, _, _ in rest] == [1, 2]
    assert all(code is None and other != process for _, other, code in rest)


@pytest.mark.parametrize(
    "damaged, why",
    [('{"a": 1', "Expecting"), ("3", "not a record")],
)
def test_a_damaged_line_is_named(script, tmp_path, damaged, why):
    studies, cells = script(".", "studies"), script("benchmarks", "cells")
    path = tmp_path / "cells.jsonl"
    whole = '{"data_set": "a", "method": "m", "seed": 0}'
    path.write_text(f"{whole}\n\n{whole}\n   \n")  # empty lines are an editor's
    assert len(studies.read(path)) == 2 and list(cells.read(path)) == [("a", "m", 0)]
    path.write_text(f"{whole}\n{damaged}\n{whole}\n")
    for read in (studies.read, cells.read):
        with pytest.raises(ValueError, match=rf"cells.jsonl, line 2: {why}.*measured again"):
            read(path)
    path.write_text(f'{whole}\n{{"data_set": ')
    assert list(cells.read(path)) == [("a", "m", 0)]


def test_a_table_of_nothing_says_so(script, tmp_path):
    with pytest.raises(ValueError, match="has no cells: nothing was measured"):
        script(".", "studies").load(tmp_path / "cells.jsonl", ("a",))


@pytest.mark.parametrize("folder, name", STUDIES)
def test_a_trial_leaves_the_page_alone(script, monkeypatch, tmp_path, folder, name):
    study = script(folder, name)
    written = []
    monkeypatch.setattr(study, "run", lambda *_: 0)
    monkeypatch.setattr(study, "write_page", written.append)

    def main(*options):
        monkeypatch.setattr(sys, "argv", [name, *options])
        with pytest.raises(SystemExit) as left:
            study.main()
        return left.value.code

    other = ["--out", str(tmp_path / "cells.jsonl")]
    assert main("--quick") == 0 and main(*other) == 0 and written == []
    assert main("--quick", "--table") == 2 and main("--table", *other) == 2 and written == []
    assert main() == 0 and written == [study.RESULTS]


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_study_of_no_splits_is_none(script, monkeypatch, capsys, option, number):
    study = script("paper_000", "likelihoods")
    monkeypatch.setattr(sys, "argv", ["likelihoods", f"{option}={number}"])
    with pytest.raises(SystemExit) as left:
        study.main()
    assert left.value.code == 2 and f"{option}: 1 at least" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["toy", "fermi454", "synthetic"])
def test_a_model_that_is_unknown_is_refused(script, monkeypatch, capsys, name):
    study = script("paper_001", name)
    asked = []
    monkeypatch.setattr(study, "run", lambda path, key, cells, *_: asked.extend(cells) or 1)
    monkeypatch.setattr(sys, "argv", [name, "--models", "softmax none", "sofmax"])
    with pytest.raises(SystemExit) as left:
        study.main()
    assert left.value.code == 2 and "sofmax" in capsys.readouterr().err and not asked
    monkeypatch.setattr(sys, "argv", [name, "--models", "softmax none"])
    with pytest.raises(SystemExit) as left:
        study.main()
    assert left.value.code == 1  # what failed is told
    assert {cell[-1] for cell in asked} == {"softmax none"}
