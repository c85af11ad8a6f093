"""Correlated errors of a catalog reach the campaign's model, from release to release."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from astropy.table import Table
from typer.testing import CliRunner

from gpal import GPClassifier
from gpal.active.campaign import Campaign
from gpal.active.campaign.table import SourceTable
from gpal.active.posterior import split_sources
from gpal.catalog import load_catalog
from gpal.cli import app
from gpal.errors import InputError

MAPPING = {
    **{"id": "Name", "class": "Type", "ra": "RA", "dec": "Dec"},
    "classes": {"default": ["bll", "psr"], "candidates": [""]},
    "features": {
        "index": {"column": "Index", "error": "e_Index"},
        "beta": {"column": "Beta", "error": "e_Beta"},
    },
}
CALIBRATION = """
[error_calibration]
scale = { index = 1.5, beta = 1.5 }
correlation = { "index,beta" = 0.95 }
"""
MODEL = {"n_inducing": 8, "max_rounds": 1}


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """(without, with) an error calibration that says the errors are correlated."""
    folder, rng = tmp_path_factory.mktemp("releases"), np.random.default_rng(3)
    kind = np.repeat(["bll", "psr", ""], [20, 20, 10])
    pulsar = np.where(kind == "psr", 1, np.where(kind == "bll", 0, rng.integers(2, size=50)))
    table = Table({"Name": [f"S{i:02d}" for i in range(50)], "Type": kind})
    table["RA"], table["Dec"] = np.arange(50) * 7.0, np.linspace(-60, 60, 50)
    table["Index"], table["Beta"] = (rng.normal(pulsar, 0.5) for _ in range(2))
    table["e_Index"], table["e_Beta"] = 0.5, 0.5
    table.write(folder / "some.ecsv")
    (folder / "scale.toml").write_text(CALIBRATION)
    return [
        load_catalog(folder / "some.ecsv", mapping=MAPPING, error_scale=scale)
        for scale in (None, folder / "scale.toml")
    ]


@pytest.mark.slow
def test_the_model_is_fitted_with_the_covariance(releases, tmp_path):
    correlated = releases[1]
    with Campaign.start(correlated, tmp_path / "c", parameters=MODEL) as campaign:
        scored = campaign.refit()
        sources, target = campaign.table.measurements, campaign.table.target
        parameters = campaign.store.setting("parameters")
        gains = campaign.gains(campaign.ranking(scored, 3))
        with zipfile.ZipFile(campaign.models.file(1)) as archive:
            origin = json.loads(archive.read("provenance.json"))
    assert (sources.covariance == correlated.measurements.covariance).all()
    known = ~target
    cases = {}
    for name, errors in (
        ("correlated", {"X_cov": sources.covariance}),
        ("uncorrelated", {"X_err": sources.X_err}),
    ):
        of = [{key: value[rows] for key, value in errors.items()} for rows in (known, target)]
        model = GPClassifier(**parameters).fit(sources.X[known], correlated.y[known], **of[0])
        cases[name] = model.predict_proba(sources.X[target], **of[1])
        if name == "correlated":
            split = np.column_stack(split_sources(model, sources.X[target], **of[1]))
    said = scored.probabilities[target]
    assert np.abs(said - cases["correlated"]).max() < 1e-6  # kept in single precision
    assert np.abs(said - cases["uncorrelated"]).max() > 0.01
    assert np.allclose(scored.parts[target], split, atol=1e-6)
    assert len(gains) == 3 and min(gains) >= 0
    assert origin["catalog"]["error_scale"] == {"index": 1.5, "beta": 1.5}
    settings = {"release": 1, "n_labels": 40, "learned_at": 40, "learned_after_event": 0}
    assert origin["settings"] == settings


def test_a_table_keeps_covariances_where_there_are_any(releases, tmp_path):
    for number, catalog in enumerate(releases):
        file = tmp_path / f"{number}.npz"
        SourceTable.from_catalog(catalog).save(file)
        kept, given = SourceTable.load(file).measurements, catalog.measurements
        assert (kept.X_err == given.X_err).all() and kept.names == given.names
        if given.covariance is None:
            assert kept.covariance is None
        else:
            assert (kept.covariance == given.covariance).all()


def test_a_calibration_is_not_lost_with_the_next_release(releases, noisy_logistic, tmp_path):
    plain, correlated = releases
    with Campaign.start(correlated, tmp_path / "c", classifier=noisy_logistic) as campaign:
        with pytest.raises(InputError, match=r"error calibration.*--error-scale"):
            campaign.merge(plain)
        assert campaign.merge(correlated)["matched"] == 50
        assert campaign.table.measurements.covariance is not None
    with Campaign.start(plain, tmp_path / "d", classifier=noisy_logistic) as campaign:
        assert campaign.merge(correlated)["matched"] == 50


def test_the_command_line_hands_a_calibration_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, kind = np.random.default_rng(4), np.repeat(["bll", "psr", ""], 10)
    table = Table({"Name": [f"S{i}" for i in range(30)], "Type": kind, "e_Index": np.full(30, 0.1)})
    table["Index"], table["Beta"], table["e_Beta"] = (*rng.normal(size=(2, 30)), table["e_Index"])
    table.write("some.ecsv")
    (tmp_path / "scale.toml").write_text(CALIBRATION)
    (tmp_path / "some.toml").write_text(
        'id = "Name"\nclass = "Type"\nclasses = { default = ["bll", "psr"], candidates = [""] }\n'
        '[features]\nindex = { column = "Index", error = "e_Index" }\n'
        'beta = { column = "Beta", error = "e_Beta" }\n'
    )
    monkeypatch.setattr("gpal.cli.commands.learn.start.start_tensorflow", lambda: None)
    some = ("some.ecsv", "--schema", "some.toml")
    for command, code in (
        (("start", *some, "--error-scale", "scale.toml"), 0),
        (("merge", *some), 2),
        (("merge", *some, "--error-scale", "scale.toml"), 0),
    ):
        result = CliRunner().invoke(app, ["learn", *command, "-s", "c"])
        assert result.exit_code == code, result.stderr
    with Campaign("c") as campaign:
        assert len(campaign.releases()) == 2
        for release in campaign.releases():
            assert release.measurements.covariance[:, 0, 1] == pytest.approx(0.95 * 0.15**2)


def test_a_classifier_that_takes_no_covariance_says_so(releases, noisy_logistic, tmp_path):
    with (
        Campaign.start(releases[1], tmp_path / "c", classifier=noisy_logistic) as campaign,
        pytest.warns(UserWarning, match="NoisyLogistic takes error bars but no covariance"),
    ):
        campaign.refit()
