"""A campaign whose answers may say no more than that a source is one of several classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpal import GPClassifier
from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.models import _classes_of
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
    taught = _classes_of(labels[[first, second]], campaign.table)
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


def test_a_classifier_that_takes_no_sets_says_so(campaign):
    from gpal.evaluation import logistic_regression

    give(campaign, int(np.flatnonzero(campaign.table.target)[0]), "agn")
    message = r"one of several classes, from which .* cannot learn"
    plain = Campaign(campaign.folder, logistic_regression())
    with plain, pytest.raises(InputError, match=message):
        plain.refit()
