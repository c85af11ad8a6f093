"""Shared by the tests: small catalogs, and a cheap classifier that takes error bars."""

from __future__ import annotations

import importlib
import json
import re
import sys
from copy import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from astropy.table import Table
from sklearn.base import BaseEstimator, ClassifierMixin

from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.evaluation import logistic_regression


def pytest_addoption(parser):
    group = parser.getgroup("fuzz", "damaged files, tests/fuzz")
    group.addoption("--mutations", type=int, default=40, help="of every kind of file")
    group.addoption("--first-seed", type=int, default=0)


def pytest_terminal_summary(terminalreporter):
    """What the attacks of tests/fuzz came to, and how many there were."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    lines = [text for r in reports for name, text in r.user_properties if name == "attack"]
    if lines:
        terminalreporter.section("damaged files")
        terminalreporter.write_line("\n".join(sorted(lines)))


@pytest.fixture(autouse=True)
def messages_in_types_of_python(monkeypatch):
    """NumPy 2 shows a value of its own as np.str_('a'), which is no message for a person."""

    def init(self, message=""):
        assert not re.search(r"np\.(str_|bytes_|bool|u?int|float)", str(message)), message
        made(self, message)

    made = InputError.__init__
    monkeypatch.setattr(InputError, "__init__", init)


@pytest.fixture
def fresh_graphs():
    """For a test that replaces code of which graphs are made: a shared one holds what it was made
    from."""
    from gpal.inference.shared_graph import forget_graphs

    forget_graphs()
    yield
    forget_graphs()


@pytest.fixture
def script(monkeypatch):
    """(folder, name) -> a script of a folder under workflows, imported as it is when it is run."""
    workflows = Path(__file__).parents[1] / "workflows"
    before = set(sys.modules)

    def load(folder, name):
        monkeypatch.syspath_prepend(workflows)
        monkeypatch.syspath_prepend(workflows / folder)
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if str(workflows) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture
def brief_fits(monkeypatch):
    """One round of learning: for tests of what is done with a fit, not of how good it is."""
    from gpal.model import fit

    def run(options, problem, seed):
        few = copy(options)
        few.max_rounds = min(1, options.max_rounds)
        found = run_inference(few, problem, seed)
        found.converged = None  # nobody is warned: it was not asked for
        return found

    run_inference = fit.run_inference
    monkeypatch.setattr(fit, "run_inference", run)


MAPPING = {
    "title": "Small Catalog",
    "id": "Name",
    "class": "Type",
    "ra": "RA",
    "dec": "Dec",
    "classes": {"default": ["bll", "psr"], "candidates": ["", "bcu"], "names": {"psr": "pulsar"}},
    "features": {
        "index": {"column": "Index", "error": "e_Index", "label": "photon index"},
        "beta": {"column": "Beta", "error": "e_Beta"},
        "flux": {"column": "Flux", "error": "none", "transform": "log10"},
    },
}


class NoisyLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression with GPClassifier's interface; X_err widens the probabilities' std."""

    def __init__(self, fail: bool = False):
        self.fail = fail

    def fit(self, X, y, X_err=None):
        if self.fail:
            raise RuntimeError("the fit failed")
        self.model_ = logistic_regression().fit(X, y)
        self.classes_ = self.model_.classes_
        self.settings_ = {"likelihood": "softmax", "kernel": {"name": "none"}}
        return self

    def predict_proba(self, X, X_err=None):
        return self.model_.predict_proba(X)

    def predict_proba_std(self, X, X_err=None):
        spread = np.where(np.isfinite(X_err), X_err, 1).mean(axis=1)
        return np.tile(0.1 * spread[:, None], len(self.classes_))

    def save(self, path, provenance=None):
        origin = {"provenance.json": json.dumps(provenance)}
        np.savez(path, coefficients=self.model_[-1].coef_, **origin)


@pytest.fixture(scope="session")
def small_catalog(tmp_path_factory):
    """90 sources: 30 bll, 30 psr, 20 without class, 8 bcu, 2 of another class; two NaN values."""
    rng = np.random.default_rng(0)
    kinds = ["bll", "PSR", "", "bcu", "snr"]
    kind = np.repeat(kinds, [30, 30, 20, 8, 2])
    pulsar = np.where(kind == "PSR", 1, np.where(kind == "bll", 0, rng.integers(2, size=90)))
    table = Table(
        {
            "Name": [f"S J{i:04d} #{i}" for i in range(90)],
            "Type": kind,
            "RA": rng.uniform(0, 360, 90),
            "Dec": rng.uniform(-90, 90, 90),
            "Index": rng.normal(2 + 0.5 * pulsar, 0.3),
            "e_Index": rng.uniform(0.05, 0.2, 90),
            "Beta": rng.normal(0.1 + 0.3 * pulsar, 0.1),
            "e_Beta": rng.uniform(0.02, 0.1, 90),
            "Flux": rng.lognormal(-20, 1, 90),
        }
    )[rng.permutation(90)]
    table["Beta"][[4, 70]] = np.nan
    path = tmp_path_factory.mktemp("catalog") / "small.ecsv"
    table.write(path)
    return load_catalog(path, mapping=MAPPING)


@pytest.fixture(scope="session")
def noisy_logistic():
    return NoisyLogistic()


@pytest.fixture(scope="session")
def two_releases(tmp_path_factory):
    """An old release with 160 labelled sources, 20 others and 120 open ones; a new that knows more.

    Pulsars: 25 % of the labelled sources, 80 % of the unassociated ones, none of the bcu.
    """
    folder = tmp_path_factory.mktemp("two_releases")
    mapping = {
        **{"id": "Name", "class": "Type", "ra": "RA", "dec": "Dec"},
        "classes": {"default": ["bll", "psr"], "candidates": ["", "bcu"]},
        "features": {
            "index": {"column": "Index", "error": "e_Index"},
            "beta": {"column": "Beta", "error": "e_Beta"},
            "flux": {"column": "Flux", "error": "none", "transform": "log10"},
        },
    }
    rng = np.random.default_rng(7)
    old = np.repeat(["bll", "PSR", "snr", "", "bcu"], [120, 40, 20, 60, 60])
    true = np.where(old == "PSR", "psr", np.where(old == "snr", "snr", "bll"))
    unassociated = np.flatnonzero(old == "")
    true[unassociated[:48]] = "psr"
    open_sources = (old == "") | (old == "bcu")
    found = ~open_sources | (rng.random(300) < 0.6)
    pulsar = true == "psr"
    sky = {"RA": rng.uniform(0, 360, 300), "Dec": rng.uniform(-80, 80, 300)}
    paths = []
    for name, kind in (("old", old), ("new", np.where(found, true, old))):
        table = Table({"Name": [f"S{i:03d}" for i in range(300)], "Type": kind, **sky})
        table["Index"] = rng.normal(2 + 0.4 * pulsar, 0.4)
        table["e_Index"] = rng.uniform(0.05, 0.2, 300)
        table["Beta"] = rng.normal(0.1 + 0.15 * pulsar, 0.15)
        table["e_Beta"] = rng.uniform(0.02, 0.1, 300)
        table["Flux"] = rng.lognormal(-20, 1, 300)
        paths.append(folder / f"{name}.ecsv")
        table.write(paths[-1])
    return tuple(load_catalog(path, mapping=mapping) for path in paths)


RELEASES_SCHEMA = """
id = "name"
class = "kind"
ra = "ra"
dec = "dec"
[classes]
default = ["bll", "psr"]
candidates = ["", "bcu"]
[features.index]
column = "index"
error = "e_index"
[features.beta]
column = "beta"
error = "e_beta"
"""


@pytest.fixture(scope="session")
def small_releases(tmp_path_factory):
    """A folder with old.csv, new.csv and schema.toml: 60 labelled sources, 40 others."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(11)
    pulsar = rng.random(100) < 0.4
    kind = np.where(pulsar, "psr", "bll")
    rows = {
        "name": [f"S{i:03d}" for i in range(100)],
        "kind": np.where(np.arange(100) < 60, kind, ""),
        "ra": rng.uniform(0, 360, 100),
        "dec": rng.uniform(-80, 80, 100),
        "index": rng.normal(2 + 0.5 * pulsar, 0.3),
        "e_index": rng.uniform(0.05, 0.2, 100),
        "beta": rng.normal(0.1 + 0.2 * pulsar, 0.1),
        "e_beta": rng.uniform(0.02, 0.1, 100),
    }
    pd.DataFrame(rows).to_csv(folder / "old.csv", index=False)
    rows["kind"] = np.where(np.arange(100) < 90, kind, "")
    for name in ("index", "beta"):  # with twice the data
        rows[name] = rows[name] + rng.normal(0, 0.7 * rows[f"e_{name}"])
        rows[f"e_{name}"] = 0.7 * rows[f"e_{name}"]
    pd.DataFrame(rows).to_csv(folder / "new.csv", index=False)
    (folder / "schema.toml").write_text(RELEASES_SCHEMA)
    return folder
