"""A campaign whose answers may say no more than that a source is one of several classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from gpal import GPClassifier
from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.answers import as_labels
from gpal.active.campaign.export import export_labels
from gpal.active.campaign.source_files import read_labels
from gpal.cli.main import app
from gpal.errors import InputError
from gpal.report.campaign import render_campaign

MODEL = {"kernel": "rbf", "max_rounds": 0, "n_inducing": 15, "input_noise": "none"}


@pytest.fixture
def sky(small_catalog):
    """Half of the bll are fsrq, and both are agn."""
    labels = small_catalog.labels.astype("<U8")
    labels[np.flatnonzero(labels == "bll")[::2]] = "fsrq"
    tree = {"agn": ("blazar",), "blazar": ("bll", "fsrq"), "pulsar": ("psr", "msp")}
    classes = replace(small_catalog.schema.classes, tree=tree)
    schema = replace(small_catalog.schema, classes=classes)
    return replace(small_catalog, labels=labels, schema=schema).with_classes(["bll", "fsrq", "psr"])


@pytest.fixture
def campaign(sky, tmp_path):
    with Campaign.start(sky, tmp_path / "campaign", classifier=GPClassifier(**MODEL)) as campaign:
        yield campaign


def give(campaign, row, label, **options):
    return campaign.label([Given(int(campaign.table.ids[row]), label, "ann")], **options)


def test_agn_is_an_answer(campaign, tmp_path):
    assert campaign.table.coarser == {"agn": ("bll", "fsrq"), "blazar": ("bll", "fsrq")}
    before = campaign.refit().probabilities
    first, second, third = np.flatnonzero(campaign.table.target)[:3]
    assert give(campaign, first, "AGN") == [True]
    assert give(campaign, second, "agn") == [True]
    labels = campaign.labels()
    assert labels[first] == labels[second] == "agn"
    taught = as_labels(labels[[first, second]], campaign.table)
    assert taught.tolist() == [frozenset({"bll", "fsrq"})] * 2
    scored = campaign.refit()
    assert np.isnan(scored.score[[first, second]]).all() and np.isfinite(scored.score[third])
    assert scored.classes == ("bll", "fsrq", "psr")
    assert scored.probabilities[first, 2] < before[first, 2]
    assert not np.array_equal(scored.probabilities, before, equal_nan=True)
    with pytest.raises(InputError, match="is labelled 'agn' already"):
        give(campaign, first, "bll")
    give(campaign, first, "bll", replace=True)
    assert campaign.labels()[first] == "bll"
    render_campaign(campaign, path=tmp_path / "page.html")
    assert "1 agn" in (tmp_path / "page.html").read_text()
    with Campaign(campaign.folder, GPClassifier(**MODEL)) as again:
        assert again.labels()[second] == "agn" and again.table.coarser == campaign.table.coarser


def test_what_a_new_release_says_more_precisely_counts(campaign, sky):
    row = int(np.flatnonzero(campaign.table.target)[0])
    give(campaign, row, "agn")
    labels = sky.labels.copy()
    here = sky.names == campaign.table.names[row]
    labels[here] = "fsrq"
    found = campaign.merge(replace(sky, labels=labels))
    assert found["conflicts"] == []
    assert campaign.labels()[campaign.table.row(campaign.table.names[row])] == "fsrq"
    labels[here] = "psr"
    found = campaign.merge(replace(sky, labels=labels))
    assert [conflict[2] for conflict in found["conflicts"]] == ["agn"]


def test_weights_are_an_answer(campaign, tmp_path):
    """Two observers who disagree; the same again after closing, exporting and reading."""
    before = campaign.refit().probabilities
    first, second, third = np.flatnonzero(campaign.table.target)[:3]
    assert give(campaign, first, "FSRQ:0.04/bll:.19") == [True]
    assert give(campaign, second, "psr:1/agn:0.25") == [True]
    assert give(campaign, third, "bll:2/psr:0") == [True]
    labels = campaign.labels()[[first, second, third]]
    assert labels.tolist() == ["bll:0.19/fsrq:0.04", "agn:0.25/psr:1", "bll"]
    taught = as_labels(labels, campaign.table).tolist()
    assert taught == [{"bll": 0.19, "fsrq": 0.04}, {"bll": 0.25, "fsrq": 0.25, "psr": 1.0}, "bll"]
    assert give(campaign, first, "bll:0.190/fsrq:4e-2") == [False]
    with pytest.raises(InputError, match=r"is labelled 'bll:0.19/fsrq:0.04' already"):
        give(campaign, first, "bll")
    scored = campaign.refit()
    assert scored.classes == ("bll", "fsrq", "psr")
    assert scored.probabilities[first, 2] < before[first, 2]
    render_campaign(campaign, path=tmp_path / "page.html")
    assert "bll:0.19/fsrq:0.04" in (tmp_path / "page.html").read_text()
    export_labels(campaign, tmp_path / "labels.csv")
    again = {given.label for given in read_labels(tmp_path / "labels.csv", campaign.table)}
    assert again == set(labels.tolist())
    with Campaign(campaign.folder, GPClassifier(**MODEL)) as reopened:
        assert reopened.labels()[first] == "bll:0.19/fsrq:0.04"
    result = CliRunner().invoke(app, ["learn", "status", "--session", str(campaign.folder)])
    assert result.exit_code == 0 and "bll:0.19/fsrq:0.04" in result.output


def test_weights_whose_sum_is_beyond_a_float_can_be_opened_again(campaign):
    """The history is for ever: what is taken for an answer must be one when it is read."""
    row = int(np.flatnonzero(campaign.table.target)[0])
    give(campaign, row, "bll:1.5e308/fsrq:1e308")
    with Campaign(campaign.folder, GPClassifier(**MODEL)) as again:
        assert again.labels()[row] == "bll:1.5e+308/fsrq:1e+308"
        of_large = again.refit().probabilities
        give(again, row, "bll:1.5/fsrq:1", replace=True)
        np.testing.assert_allclose(again.refit().probabilities, of_large, atol=1e-6)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("bll:1/quasar:0.5", "unknown class 'quasar'; there are: agn, blazar, bll, fsrq, psr"),
        ("bll:1/other:0.5", "unknown class 'other'"),
        ("bll:-1/psr:2", "unknown class 'bll:-1/psr:2'"),
        ("bll:1/BLL:2", "has two weights of 'bll'; give one"),
        ("agn:1/bll:2", "has two weights of 'bll'; give one"),
        ("bll:0/psr:0", "weighs all classes alike"),
        ("agn:1/psr:1", "weighs all classes alike"),
        ("bll:1e999/psr:1", "weighs all classes alike, or one infinitely"),
        ("bll:/psr:1", "unknown class"),
    ],
)
def test_bad_weights_are_no_answer(campaign, answer, message):
    with pytest.raises(InputError, match=message):
        give(campaign, int(np.flatnonzero(campaign.table.target)[0]), answer)


def test_a_release_that_decides_between_weights(campaign, sky):
    row = int(np.flatnonzero(campaign.table.target)[0])
    give(campaign, row, "bll:0.9/fsrq:0.1")
    labels = sky.labels.copy()
    here = sky.names == campaign.table.names[row]
    labels[here] = "fsrq"
    assert campaign.merge(replace(sky, labels=labels))["conflicts"] == []
    assert campaign.labels()[campaign.table.row(campaign.table.names[row])] == "fsrq"
    labels[here] = "psr"
    found = campaign.merge(replace(sky, labels=labels))["conflicts"]
    assert [conflict[2] for conflict in found] == ["bll:0.9/fsrq:0.1"]


def test_a_classifier_that_takes_no_sets_says_so(campaign):
    from gpal.evaluation import logistic_regression

    give(campaign, int(np.flatnonzero(campaign.table.target)[0]), "agn")
    message = r"one of several classes, or weigh them, from which .* cannot learn"
    plain = Campaign(campaign.folder, logistic_regression())
    with plain, pytest.raises(InputError, match=message):
        plain.refit()
