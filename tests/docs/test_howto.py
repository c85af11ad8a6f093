"""The how-to pages: every ```python block of a page runs, in order, in one namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from pages import blocks, run

from gpal.catalog import registry

DOCS = Path(__file__).parents[2] / "docs"
REGISTERS = (
    "gpal.likelihoods:LIKELIHOODS",
    "gpal.input_noise:INPUT_NOISES",
    "gpal.active.strategies:STRATEGIES",
)
PAGES = ("likelihood", "input-noise", "strategy", "catalog-and-command")


@pytest.fixture
def registers(monkeypatch):
    """What a page registers is known until the test is over: others walk the registers."""
    for place in REGISTERS:
        package, name = place.split(":")
        register = getattr(import_module(package), name)
        monkeypatch.setattr(register, "_classes", {key: register[key] for key in register})
    registry.known_names()
    monkeypatch.setattr(registry, "_KNOWN", {**registry._KNOWN})


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs(name, tmp_path, monkeypatch, registers):
    monkeypatch.chdir(tmp_path)
    run(DOCS / "howto" / f"{name}.md")


def test_every_page_is_run():
    assert {page.stem for page in (DOCS / "howto").glob("*.md")} == {"index", *PAGES}


@pytest.mark.parametrize(
    ("page", "module", "register"),
    [
        ("likelihood", "bernoulli_probit", REGISTERS[0]),
        ("input-noise", "antithetic", REGISTERS[1]),
        ("strategy", "gini", REGISTERS[2]),
    ],
)
def test_an_installed_package_is_found_by_its_entry_point(page, module, register, tmp_path):
    """The first block as a module, the TOML as the metadata that installing it would leave."""
    path = DOCS / "howto" / f"{page}.md"
    (tmp_path / f"{module}.py").write_text(blocks(path, "python")[0][1])
    (_, toml), *_ = blocks(path, "toml")
    header, entry = toml.strip().splitlines()
    group = header.split('"')[1]
    metadata = tmp_path / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry.replace(chr(34), '')}\n")
    package, name = register.split(":")
    program = f"from {package} import {name}; print({name}[{module!r}].__module__)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert found.stdout.strip() == module, found.stderr
