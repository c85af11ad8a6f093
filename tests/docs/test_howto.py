"""The how-to pages: every ```python block of a page runs, in order, in one namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from pages import blocks, run
from typer.testing import CliRunner

from gpal.catalog import registry
from gpal.cli.groups import with_option_groups

DOCS = Path(__file__).parents[2] / "docs"
REGISTERS = (
    "gpal.likelihoods:LIKELIHOODS",
    "gpal.input_noise:INPUT_NOISES",
    "gpal.active.strategies:STRATEGIES",
)
QUICK = ("input-noise", "catalog-and-command")
PAGES = (*QUICK, "likelihood", "strategy")
SLOW = [pytest.param(page, marks=pytest.mark.slow) for page in PAGES if page not in QUICK]


@pytest.fixture
def registers(monkeypatch):
    """What a page registers is known until the test is over: others walk the registers."""
    for place in REGISTERS:
        package, name = place.split(":")
        register = getattr(import_module(package), name)
        monkeypatch.setattr(register, "_classes", {key: register[key] for key in register})
    registry.known_names()
    monkeypatch.setattr(registry, "_KNOWN", {**registry._KNOWN})


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_a_page_runs(name, tmp_path, monkeypatch, registers):
    monkeypatch.chdir(tmp_path)
    run(DOCS / "howto" / f"{name}.md")


def test_every_page_is_run():
    assert {page.stem for page in (DOCS / "howto").glob("*.md")} == {"index", *PAGES}


@pytest.mark.slow
def test_installed_packages_are_found_by_their_entry_points(tmp_path):
    """The first block of a page as a module, the TOML as the metadata that installing it leaves."""
    modules = {"likelihood": "bernoulli_probit", "input-noise": "antithetic", "strategy": "gini"}
    program = ""
    for (page, module), place in zip(modules.items(), REGISTERS, strict=True):
        path = DOCS / "howto" / f"{page}.md"
        (tmp_path / f"{module}.py").write_text(blocks(path, "python")[0][1])
        header, entry = blocks(path, "toml")[0][1].strip().splitlines()
        group = header.split('"')[1]
        metadata = tmp_path / f"{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry.replace(chr(34), '')}\n")
        package, name = place.split(":")
        program += f"from {package} import {name}; print({name}[{module!r}].__module__)\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert found.stdout.split() == list(modules.values()), found.stderr


def test_a_command_stands_by_itself():
    """As a file of its own, where nothing of the blocks before it is known."""
    page = blocks(DOCS / "howto" / "catalog-and-command.md", "python")
    [command] = [text for _, text in page if "def run(" in text]
    known: dict = {}
    exec(command, known)
    app = typer.Typer()
    app.command()(with_option_groups(known["run"]))
    result = CliRunner().invoke(app, ["4fgl-dr4", "--class", "bll,fsrq,psr"])
    assert result.exit_code == 0 and result.stdout.split()[::2] == ["bll", "fsrq", "psr"]
