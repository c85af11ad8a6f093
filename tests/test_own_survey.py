"""A survey of one's own from file to report: nothing of what it lacks is passed over in silence."""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from astropy.table import Table
from typer.testing import CliRunner

from gpal.catalog import draft_schema, load_catalog
from gpal.cli import app
from gpal.cli.options import ModelOptions

make = runpy.run_path(str(Path(__file__).parents[1] / "workflows" / "own_survey.py"))
PLAIN = """
id = "objid"
class = "class"

[features]
psfMag_u = "psfMag_u"
psfMag_g = "psfMag_g"
psfMag_r = "psfMag_r"
psfMag_i = "psfMag_i"
plx = "plx"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    make["main"](tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def quick(noisy_logistic, monkeypatch):
    """A cheap model in place of the Gaussian process."""
    monkeypatch.setattr(ModelOptions, "classifier", lambda *_, **__: noisy_logistic)


def run(*arguments):
    """stdout, stderr and warnings of `gpal ARGUMENTS`; stderr is empty where it went well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    warned = [str(one.message) for one in caught if one.category is UserWarning]
    return result.stdout, result.stderr, warned


@pytest.mark.parametrize("file", ["survey.csv", "survey.vot"])
def test_from_file_to_report(folder, quick, file):
    """As drafted, with nothing edited: what is not decided is warned of."""
    run("schema", "init", file, "--out", "mine.toml")
    arguments = ("classify", file, "--schema", "mine.toml", "--out", "results", "--folds", "2")
    printed, errors, warned = run(*arguments, "--jobs", "1")
    assert errors == "" and (folder / "results" / "report.html").is_file()
    assert "900 of a class to tell apart (star 438, galaxy 264, qso 198)" in printed
    assert "600 to classify" in printed
    for words in (
        *("75: -99: not measured", "2: negative: no error", "37: no value: not measured"),
        "190: not measured: below a limit",
    ):
        assert words in printed
    assert any("NoisyLogistic takes error bars but no limits" in one for one in warned)
    (warning,) = [one for one in warned if "error column" in one]
    assert warning.startswith("no error column found for 'flux_20cm'") and "psf" not in warning

    table = Table.read("results/probabilities.fits")
    assert len(table) == 1500 and table["candidate"].sum() == 600


def test_error_bars_are_found_in_what_was_drafted(folder):
    (folder / "mine.toml").write_text(draft_schema("survey.csv"))
    with pytest.warns(UserWarning, match="'flux_20cm'"):
        catalog = load_catalog("survey.csv", schema="mine.toml")
    table = make["survey"]()
    X_err = dict(zip(catalog.feature_names, catalog.X_err.T))
    np.testing.assert_array_equal(X_err["psfMag_i"], table["psfMagErr_i"])
    assert np.isinf(X_err["psfMag_u"][:75]).all() and np.isinf(X_err["psfMag_r"][[500, 501]]).all()
    low, high = np.array(table["plx_err_lo"]), np.array(table["plx_err_hi"])
    assert ((X_err["plx"] >= low) & (X_err["plx"] <= high)).all()
    assert set(catalog.classes) == {"star", "galaxy", "qso"}


@pytest.mark.parametrize(
    "more, words",
    [
        ("", ["psfMag_u", "-99", "75 rows", "sentinels"]),
        ("sentinels = [-99]", ["psfMagErr_r", "row 500", "-0.1", "negative_error"]),
    ],
)
def test_without_a_draft_what_can_only_be_wrong_is_refused(folder, quick, more, words):
    (folder / "plain.toml").write_text(more + PLAIN)
    _, errors, _ = run("classify", "survey.csv", "--schema", "plain.toml")
    assert errors.startswith("gpal: ") and errors.count("\n") == 1
    for word in words:
        assert word in errors


def test_five_words_for_no_class_are_no_classes(folder):
    mapping = {"id": "objid", "class": "class", "features": {"i": "psfMag_i"}}
    catalog = load_catalog("survey.csv", mapping=mapping)
    assert set(catalog.classes) == {"star", "galaxy", "qso"}
    assert catalog.is_target.sum() == 600


def test_an_error_column_of_another_name_is_missed_aloud(folder, quick):
    table = Table.read("survey.csv")
    table.rename_column("psfMagErr_i", "uncertain_thing_of_band_four")
    table.write("survey.csv", overwrite=True)
    text = draft_schema("survey.csv")
    (folder / "mine.toml").write_text(text)
    assert text.split("[features.psfMag_i]")[1].splitlines()[2].startswith("# NO ERROR COLUMN")
    for command in (
        ("classify", "survey.csv", "--folds", "2", "--out", "results", "--jobs", "1"),
        ("learn", "start", "survey.csv", "--session", "campaign"),
    ):
        printed, _, warned = run(*command, "--schema", "mine.toml")
        assert any("'psfMag_i'" in one and "no error column found" in one for one in warned)
        (line,) = [line for line in printed.splitlines() if line.startswith("  psfMag_i: ")]
        assert "! NO ERROR COLUMN FOUND" in line
    printed, _, _ = run("schema", "check", "survey.csv", "--schema", "mine.toml")
    assert "NO ERROR COLUMN FOUND" in printed.split("psfMag_i: ")[1].split("\n\n")[0]


@pytest.mark.slow
def test_the_program_warns_in_one_line(folder):
    (folder / "mine.toml").write_text(draft_schema("survey.csv"))
    command = [
        sys.executable,
        "-m",
        "gpal",
        "learn",
        "start",
        "survey.csv",
        "--schema",
        "mine.toml",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("gpal: warning: no error column found for 'flux_20cm'")
