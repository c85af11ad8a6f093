"""All-or-nothing writing."""

from __future__ import annotations

import os

import pytest

from gpal.errors import InputError
from gpal.output_files import atomic_path, staged_folder


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
