"""Classifiers of packages that gpal does not need, by stand-ins for them."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from gpal.cli import app
from gpal.errors import InputError
from gpal.evaluation import cross_validate, logistic_regression
from gpal.evaluation.baselines import PRETRAINED, pretrained
from gpal.jobs import validate
from gpal.jobs.models import compared


class StandIn(LogisticRegression):
    """With the one argument that gpal gives."""

    def __init__(self, random_state=None):
        super().__init__(random_state=random_state)


@pytest.fixture
def installed(monkeypatch):
    for package, kind in PRETRAINED.items():
        module = ModuleType(package)
        setattr(module, kind, StandIn)
        monkeypatch.setitem(sys.modules, package, module)


@pytest.fixture
def missing(monkeypatch):
    for package in PRETRAINED:
        monkeypatch.setitem(sys.modules, package, None)


def test_in_the_same_folds_as_the_others(installed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    X[0, 1] = np.nan
    models = compared(logistic_regression(), ["tabpfn", "tabicl"])
    assert list(models)[-2:] == ["tabpfn", "tabicl"] and len(models) == 5
    folds = cross_validate({"tabpfn": models["tabpfn"]}, X, y, n_splits=3)
    assert folds.probabilities["tabpfn"].shape == (1, 60, 2)
    assert pretrained("tabicl", 3)[-1].random_state == 3


def test_in_a_validation(installed, two_releases, noisy_logistic, tmp_path):
    result = validate(
        *two_releases,
        tmp_path / "out",
        classifier=noisy_logistic,
        n_seeds=1,
        beside=["tabpfn"],
        progress=False,
    )
    assert "tabpfn" in result.metrics["models"]
    assert "tabpfn" in (tmp_path / "out" / "report.html").read_text()
    of = next(iter(result.metrics["variants"].values()))["train"]
    assert of["tabpfn"]["nll"]["mean"] > 0


def test_without_them_nothing_is_imported_and_a_name_is_refused(missing, tmp_path):
    assert len(compared(logistic_regression())) == 3
    with pytest.raises(
        InputError, match=r"'tabpfn' cannot be imported .*: install the package and"
    ):
        pretrained("tabpfn")
    with pytest.raises(InputError, match="no pretrained classifier 'gpt'; there are: tabpfn, tab"):
        compared(logistic_regression(), ["gpt"])
    options = ["--out", str(tmp_path / "out"), "--beside", "tabicl"]
    result = CliRunner().invoke(app, ["validate", "4fgl", "4fgl-dr4", *options])
    assert result.exit_code != 0 and not (tmp_path / "out").exists()
    assert "'tabicl' cannot be imported" in result.output
