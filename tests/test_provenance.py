"""Provenance and all-or-nothing writing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import gpal
from gpal.errors import InputError
from gpal.provenance import atomic_path, json_safe, provenance, staged_folder, to_json


def test_provenance_says_what_made_a_result(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    made = provenance({"catalog": "4fgl", "sha256": "abc"}, {"n": np.int64(3)}, 7)
    assert made["gpal"] == gpal.__version__
    assert made["date"] == "1970-01-02T00:00:00+00:00"
    assert made["catalog"]["sha256"] == "abc"
    assert made["settings"] == {"n": 3} and made["random_state"] == 7
    assert made["numpy"] == np.__version__
    assert {"python", "tensorflow", "platform"} <= made.keys()


def test_provenance_does_not_import_tensorflow():
    code = "import sys; from gpal.provenance import provenance as p; p(); "
    code += "sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_json_is_standard_and_complete():
    value = {"a": np.array([1.5, np.nan]), 2: (np.bool_(True), np.inf, None), "p": {"x": "é"}}
    expected = {"a": [1.5, None], "2": [True, None, None], "p": {"x": "é"}}
    assert json.loads(to_json(value)) == expected
    assert json_safe(json_safe(value)) == json_safe(value)


def test_atomic_path_writes_or_leaves_alone(tmp_path):
    target = tmp_path / "new" / "file.txt"
    with atomic_path(target) as temporary:
        assert temporary.suffix == ".txt"
        temporary.write_text("first")
        assert not target.exists()
    assert target.read_text() == "first"
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "first"
    assert [p.name for p in target.parent.iterdir()] == ["file.txt"]


def test_staged_folder_replaces_its_files_only(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    (out / "a").write_text("old")
    with pytest.raises(RuntimeError), staged_folder(out) as folder:
        (folder / "a").write_text("new")
        raise RuntimeError
    assert (out / "a").read_text() == "old"
    with staged_folder(out) as folder:
        (folder / "a").write_text("new")
    assert (out / "a").read_text() == "new" and (out / "mine.txt").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_staged_folder_appears_at_once_and_leaves_nothing_of_an_earlier_run(tmp_path):
    out = tmp_path / "out"
    outputs = ("a", "b", "c")
    with staged_folder(out, outputs) as folder:
        for name in ("a", "b"):
            (folder / name).write_text("first")
            assert not out.exists()
    assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()
    (out / "mine.txt").write_text("mine")
    with staged_folder(out, outputs) as folder:
        for name in ("a", "c"):
            (folder / name).write_text("second")
    assert {p.name: p.read_text() for p in out.iterdir()} == {
        **{"a": "second", "c": "second"},
        "mine.txt": "mine",
    }


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_unwritable_targets_are_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        refused = pytest.raises(InputError, match="another output folder")
        with refused as caught, staged_folder(target):
            pytest.fail("entered")
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError), atomic_path(tmp_path / "file" / "x.txt"):
        pytest.fail("entered")
