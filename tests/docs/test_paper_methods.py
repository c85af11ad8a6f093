"""The page of the papers' methods names what there is, and leaves no method out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gpal
from gpal.active.strategies import STRATEGIES
from gpal.evaluation import baselines
from gpal.inference.base import INFERENCES
from gpal.inference.reference import REFERENCES
from gpal.input_noise.base import INPUT_NOISES
from gpal.likelihoods.base import LIKELIHOODS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers" / "methods.md").read_text()
PAPERS = ("Liu et al. 2019", "Villacampa-Calvo et al. 2021", "Izmailov", "Milios", "Galy-Fajou")
REGISTERS = (INFERENCES, INPUT_NOISES, LIKELIHOODS, REFERENCES, STRATEGIES)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and "`" in line
]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_files_tests_and_names_are_there(row):
    _, names, file, test = row
    assert [(ROOT / path).is_file() for path in quoted(file)] == [True]
    [test] = quoted(test)
    path, _, function = test.partition("::")
    assert f"def {function or 'test_'}" in (ROOT / path).read_text(), test
    assert quoted(names)
    for name in quoted(names):
        known = any(name in register for register in REGISTERS) or name == "METRICS"
        argument = name.endswith("=") and name[:-1] in gpal.GPClassifier().get_params()
        assert known or argument or hasattr(baselines, name) or hasattr(gpal, name), name


def test_no_method_of_a_paper_is_left_out():
    told = {name for row in ROWS for name in quoted(row[1])}
    for register in REGISTERS[:4]:
        own = {
            kind.name: getattr(kind, "source", "")
            for kind in register.classes()
            if kind.__module__.startswith("gpal.")
        }
        missing = {
            name
            for name, source in own.items()
            if any(paper in source for paper in PAPERS) and name not in told
        }
        assert not missing, f"say of {missing} where it is and what tests it"
