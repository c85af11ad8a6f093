"""A classification whose schema has a tree of classes: probabilities and scores at its levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpal.evaluation import logistic_regression
from gpal.files.json import read_json
from gpal.jobs.classification import classify
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.metrics import confusion_matrix, error, reliability_table


@pytest.fixture(scope="module")
def result(small_catalog, tmp_path_factory):
    labels = small_catalog.labels.astype("<U8")
    labels[np.flatnonzero(labels == "bll")[::2]] = "fsrq"
    classes = replace(
        small_catalog.schema.classes,
        tree={"agn": ("bll", "fsrq"), "galactic": ("snr", "pwn")},
        sets={"bcu": ("bll", "fsrq")},
    )
    schema = replace(small_catalog.schema, classes=classes)
    catalog = replace(small_catalog, labels=labels, schema=schema)
    return classify(
        catalog,
        tmp_path_factory.mktemp("levels") / "out",
        classifier=logistic_regression(),
        classes=["bll", "fsrq", "psr"],
        n_splits=2,
    )


def test_a_coarser_probability_is_the_sum_of_the_finer(result):
    for name in ("probabilities.fits", "probabilities.csv"):
        table = read_probabilities(result.folder / name)
        np.testing.assert_allclose(table["probability_agn"], table["p_bll"] + table["p_fsrq"])
        assert "probability_psr" not in table.colnames
    assert result.table["probability_agn"].description == "probability of agn: bll, fsrq"


def test_scores_at_a_level_are_those_of_merged_classes(result):
    metrics = read_json(result.folder / "metrics.json")
    [level] = metrics["levels"]
    assert level["classes"] == {"agn": ["bll", "fsrq"], "psr": ["psr"]}
    of = result.cross_validation
    P = of.out_of_fold("GPClassifier")
    y, P = (of.y == 2).astype(int), np.column_stack([P[:, 0] + P[:, 1], P[:, 2]])
    scores = level["scores"]["GPClassifier"]
    assert scores["error"]["mean"] == pytest.approx(error(y, P))
    assert scores["nll"]["mean"] < metrics["GPClassifier"]["nll"]["mean"]
    np.testing.assert_allclose(level["confusion_matrix"]["mean"], confusion_matrix(y, P))
    assert level["reliability"]["psr"] == reliability_table(y == 1, P[:, 1])
    assert level["scores"].keys() == set(metrics["models"])


def test_the_report_shows_levels_and_places(result):
    page = (result.folder / "report.html").read_text()
    assert "At the level of agn, psr" in page and "bll or fsrq" in page
    [line] = [line for line in result.metrics["not_given"] if line["class"] == "snr"]
    assert line["place"] == "galactic" and "<td>galactic</td>" in page


def test_without_a_tree_there_are_no_levels(small_catalog, tmp_path):
    plain = classify(small_catalog, tmp_path / "out", classifier=logistic_regression(), n_splits=2)
    assert plain.metrics["levels"] == []
    assert not [name for name in plain.table.colnames if name.startswith("probability_")]
    assert "At the level of" not in (plain.folder / "report.html").read_text()
