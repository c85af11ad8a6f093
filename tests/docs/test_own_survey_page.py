"""The page "Your own survey in ten minutes": its commands run, and print what it shows."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pages import blocks, run
from typer.testing import CliRunner

from gpal.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "own-survey.md"
INIT, CHECK, CLASSIFY, PREDICT = (text for _, text in blocks(PAGE, "bash"))
DRAFTED, DECIDED = (text for _, text in blocks(PAGE, "toml"))
((_, SHOWN),) = blocks(PAGE, "text")


def gpal(command: str, *more: str) -> str:
    """What a command of the page prints."""
    name, *arguments = command.split()
    assert name == "gpal"
    result = CliRunner().invoke(app, [*arguments, *more])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def decided(tmp_path, monkeypatch):
    """The survey and its schema, as far as the page's second section."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "workflows" / "own_survey.py"))["main"]()
    gpal(INIT)
    schema = tmp_path / "survey.toml"
    drafted = schema.read_text()
    for line in DRAFTED.splitlines():
        assert line in drafted.splitlines()
    heading = next(line for line in drafted.splitlines() if "[features.flux_20cm]" in line)
    schema.write_text(drafted.replace(heading, f"{heading}\n{DECIDED}"))
    return tmp_path


def test_the_look_is_as_shown(decided):
    printed = gpal(CHECK).splitlines()
    for line in SHOWN.splitlines():
        assert line in printed
    assert not any("!" in line for line in printed)
    run(PAGE)


@pytest.mark.slow
def test_from_the_file_to_the_report_and_to_tomorrow(decided):
    printed = gpal(CLASSIFY, "--jobs", "1")
    assert "900 labelled sources" in printed and (decided / "results" / "report.html").is_file()
    gpal(PREDICT)
    assert (decided / "tonight.fits").is_file()
