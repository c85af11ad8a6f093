"""All-or-nothing writing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from gpal.errors import InputError
from gpal.files.output import atomic_path, check_apart, staged_folder


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


def test_what_is_in_the_way_is_found_before_the_block(tmp_path):
    """A folder where a file is to go, a link to nothing, a device, names that are too long."""
    out, link, nul = tmp_path / "out", tmp_path / "link", "a\0b"
    (out / "report.html").mkdir(parents=True)
    (out / "metrics.json").write_text("old")
    link.symlink_to(tmp_path / "nothing")
    before = sorted(tmp_path.rglob("*"))
    outputs = ("metrics.json", "report.html")
    for target in (out, link, tmp_path / ("n" * 256), nul, "/dev/null", tmp_path / "link" / "x"):
        refused = pytest.raises(InputError, match="another output folder")
        with refused, staged_folder(target, outputs):
            pytest.fail("entered")
    for target in (out, link, tmp_path / ("n" * 256), nul, "/dev/null"):
        with pytest.raises(InputError, match="another output folder"), atomic_path(target):
            pytest.fail("entered")
    assert sorted(tmp_path.rglob("*")) == before and not os.path.isfile("/dev/null")


def test_a_folder_that_no_one_foresaw_is_not_removed(tmp_path):
    """It comes up when the files change places, and all stay where they were."""
    out = tmp_path / "out"
    (out / "extra" / "mine").mkdir(parents=True)
    (out / "a").write_text("old")
    with pytest.raises(IsADirectoryError), staged_folder(out, ("a",)) as made:
        for name in ("a", "extra"):
            (made / name).write_text("new")
    assert (out / "a").read_text() == "old" and (out / "extra" / "mine").is_dir()
    assert sorted(p.name for p in out.iterdir()) == ["a", "extra"]


def test_links_are_followed_and_names_may_be_long(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "data.txt").write_text("old")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file.txt").symlink_to(tmp_path / "real" / "data.txt")
    for target in ("folder/report.txt", "file.txt", "β" * 125 + ".txt"):
        with atomic_path(tmp_path / target) as file:
            assert file.suffix == ".txt"
            file.write_text("new")
    monkeypatch.chdir(tmp_path / "real")
    for target in (tmp_path / "folder", tmp_path / ("n" * 255), ".", "../real"):
        with staged_folder(target) as made:
            (made / "a").write_text(str(target))
        assert (Path(target) / "a").read_text() == str(target)
    assert (tmp_path / "file.txt").is_symlink() and (tmp_path / "folder").is_symlink()
    assert (tmp_path / "real" / "data.txt").read_text() == "new"
    assert sorted(p.name for p in (tmp_path / "real").iterdir()) == ["a", "data.txt", "report.txt"]
    assert list(tmp_path.rglob(".*")) == []


def test_a_folder_on_a_file_system_of_its_own(tmp_path):
    """Such as a volume of a container: nothing can be renamed into it from beside it."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system that can be written to")
    with tempfile.TemporaryDirectory(dir=shared) as volume:
        (tmp_path / "out").symlink_to(volume)
        with staged_folder(tmp_path / "out") as made:
            assert made.stat().st_dev == shared.stat().st_dev
            (made / "a").write_text("new")
        assert [p.read_text() for p in Path(volume).iterdir()] == ["new"]


def test_an_output_is_no_file_that_is_read(tmp_path):
    source, link = tmp_path / "table.csv", tmp_path / "link.csv"
    source.write_text("kept")
    link.symlink_to(source)
    check_apart([tmp_path / "new.csv"], [source, None, "4fgl", tmp_path / "no"])
    for out in (source, link, tmp_path / "." / "table.csv"):
        with pytest.raises(InputError, match="is read by this command and would be overwritten"):
            check_apart([tmp_path / "new.csv", out], ["4fgl", source])
