"""The gallery: its cells run as they do when the pages are built, without a warning."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from pages import run

from gpal.likelihoods import LIKELIHOODS

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
CELL = "{code-cell} ipython3"
SLOW = ("campaign", "fermi", "likelihood", "paper", "photometry", "redshift")
PAGES = {"threshold": (), **dict.fromkeys(SLOW, pytest.mark.slow)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=m) for name, m in PAGES.items()])
def test_a_page_runs(name, tmp_path, monkeypatch, capsys):
    package = import_module("gpal.likelihoods")
    monkeypatch.setattr(package.LIKELIHOODS, "_classes", {k: LIKELIHOODS[k] for k in LIKELIHOODS})
    monkeypatch.chdir(tmp_path)
    run(GALLERY / f"{name}.md", CELL)


def test_every_page_is_run_and_listed():
    listed = (GALLERY / "index.md").read_text()
    assert {page.stem for page in GALLERY.glob("*.md")} == {"index", *PAGES}
    assert all(f"[]({name}.md)" in listed and f"\n{name}\n" in listed for name in PAGES)
