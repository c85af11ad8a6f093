"""Catalogs defined outside gpal: a folder that is added, and one that an entry point names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpal.catalog import add_catalogs, known_catalogs, load_catalog, registry
from gpal.cli import app
from gpal.errors import InputError

SCHEMA = """
title = "Survey of Stars"
release = "2031-05-01"
rows = 4
id = "name"
class = "kind"

[features.colour]
column = "C"
error = "e_C"
"""
TABLE = "name,kind,C,e_C\na,star,0.1,0.01\nb,galaxy,0.9,0.02\nc,,0.5,0.03\nd,star,0.2,0.04\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "surveys"
    made.mkdir()
    (made / "survey-1.toml").write_text(SCHEMA)
    (made / "survey-1.csv").write_text(TABLE)
    (made / "base.toml").write_text("abstract = true\n" + SCHEMA)
    (made / "survey-2.toml").write_text('extends = "base"\ntitle = "Survey 2"\n')
    return made


@pytest.fixture
def known():
    """What is known, and known again when the test is over."""
    before = {name: registry._known()[name] for name in registry.known_names()}
    yield tuple(before)
    registry._KNOWN.clear()
    registry._KNOWN.update(before)


def test_an_added_folder_is_known_everywhere(folder, known):
    with pytest.raises(InputError, match="no catalog named 'survey-1'"):
        load_catalog("survey-1")
    assert add_catalogs(folder) == ("survey-1", "survey-2")
    assert registry.known_names() == (*known, "survey-1", "survey-2")  # the newest release last
    info = {info.name: info for info in known_catalogs()}["survey-1"]
    assert (info.title, info.n_sources, info.embedded) == ("Survey of Stars", 4, True)
    catalog = load_catalog("Survey-1")
    np.testing.assert_array_equal(catalog.X[:, 0], [0.1, 0.9, 0.5, 0.2])
    np.testing.assert_array_equal(catalog.X_err[:, 0], [0.01, 0.02, 0.03, 0.04])
    assert catalog.labelled().y.tolist() == ["star", "galaxy", "star"]
    assert catalog.provenance["catalog"] == "survey-1"
    assert "survey-1" in CliRunner().invoke(app, ["catalogs"]).stdout
    add_catalogs(folder)  # a cell that is run again
    with pytest.raises(InputError, match=r"no table of Survey 2: put one named survey-2.fits"):
        load_catalog("survey-2")


def test_what_cannot_be_added_changes_nothing(folder, known, tmp_path):
    (folder / "4FGL.toml").write_text(SCHEMA)
    empty = tmp_path / "empty"
    empty.mkdir()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "good.toml").write_text(SCHEMA)
    (broken / "wrong.toml").write_text(SCHEMA + 'colum = "C"\n')
    for bad, words in (
        (folder, "'4fgl' of .* is known already, from .*catalogs; give the file another name"),
        (empty, "no catalog in"),
        (tmp_path / "nowhere", "no catalog in"),
        (broken, "wrong.toml: unknown key 'features.colour.colum'"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            add_catalogs(bad)
        assert "\n" not in str(caught.value)
        assert registry.known_names() == known


def python(path: Path, *arguments: str) -> subprocess.CompletedProcess:
    """In a process of its own, with the packages of `path` installed."""
    search = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": search, "COLUMNS": "200"},
    )


def install(path: Path, entry: str, name: str = "outside") -> None:
    """What a package's installer leaves: the distribution's name and its entry points."""
    metadata = path / f"{name}-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[gpal.catalogs]\nsurveys = {entry}\n")


@pytest.mark.parametrize("entry", ["surveys", "where:FOLDER"])
def test_an_entry_point_of_another_package(folder, tmp_path, entry):
    (folder / "__init__.py").write_text("raise SystemExit('listing catalogs imports nothing')")
    (tmp_path / "where.py").write_text(f"FOLDER = {os.fspath(folder)!r}")
    install(tmp_path, entry)
    listed = python(tmp_path, "-m", "gpal", "catalogs")
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0]: line.split()[1:] for line in listed.stdout.splitlines()[1:]}
    assert lines["survey-1"][:2] == ["4", "yes"] and "4fgl-dr4" in lines
    loaded = python(
        *(tmp_path, "-c"),
        "from gpal import load_catalog; print(*load_catalog('survey-1').X[:, 0].tolist())",
    )
    assert (loaded.stdout, loaded.stderr) == ("0.1 0.9 0.5 0.2\n", "")


@pytest.mark.parametrize(
    "entry, words", [("nowhere", "no module 'nowhere'"), ("surveys", "'4fgl' of .* known already")]
)
def test_an_entry_point_that_cannot_be_used_is_a_warning(folder, tmp_path, entry, words):
    (folder / "4fgl.toml").write_text(SCHEMA)
    install(tmp_path, entry)
    program = f"""
import re, warnings
from gpal import load_catalog
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert load_catalog("4fgl").schema.title == "4FGL"
assert any(re.search({words!r}, str(w.message)) for w in caught), caught
"""
    done = python(tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
