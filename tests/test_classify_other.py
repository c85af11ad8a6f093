"""`gpal.classify` where one of the classes is `other`: a model taught by fainter copies for the
candidates, and numbers that hold what is not known of class fractions."""

import numpy as np
import pytest
from typer.testing import CliRunner

import gpal
from gpal.cli import app
from gpal.errors import InputError
from gpal.evaluation import logistic_regression

NAMES = ("bll", "fsrq", "other", "psr")
SMALL = {"n_inducing": 15, "kernel": "rbf", "input_noise": "first_order", "population": "flat"}


@pytest.fixture(scope="module")
def catalog():
    catalog = gpal.load_catalog("4fgl-dr4", features="open")[::15]
    return catalog.with_classes(["bll", "fsrq", "psr", "other"])


@pytest.fixture(scope="module")
def result(catalog, tmp_path_factory):
    out = tmp_path_factory.mktemp("other") / "results"
    classifier = gpal.GPClassifier(**SMALL, max_rounds=1)
    return gpal.classify(catalog, out, classifier=classifier, n_splits=2)


def test_candidates_are_predicted_by_the_taught_model_and_labelled_sources_by_folds(
    catalog, result
):
    assert result.metrics["settings"]["faint"] is True
    P = result.classifier.predict_proba(catalog.measurements)
    table = np.column_stack([result.table[f"p_{name}_train"] for name in NAMES])
    np.testing.assert_allclose(table[catalog.is_target], P[catalog.is_target], atol=1e-12)
    labelled = catalog.y != ""
    out_of_fold = result.cross_validation.out_of_fold("GPClassifier")
    np.testing.assert_allclose(table[labelled], out_of_fold, atol=1e-12)
    again = gpal.GPClassifier.load(result.folder / "model.npz")
    np.testing.assert_allclose(again.predict_proba(catalog.measurements), P, atol=1e-12)


def test_lists_have_the_threshold_that_the_candidates_promise(result, tmp_path):
    """That of labelled sources is of another model. In metrics, in the list, in the folder."""
    p = result.table["p_bll"][result.table["candidate"]]
    row = result.metrics["purity"]["GPClassifier"]["bll"][0]
    threshold = row["candidates_threshold"]
    assert row["asked"] == 0.8 and threshold != row["threshold"]
    assert p[p >= threshold].mean() >= 0.8 > p[p >= p[p < threshold].max()].mean()
    found = gpal.candidates(result.folder, "bll", 0.8)
    assert found.meta["list"] == {
        "class": "bll",
        "asked": 0.8,
        "threshold": threshold,
        "threshold_on": "p_bll",
        "n_candidates": row["n_candidates"],
        "candidates_promised": pytest.approx(row["candidates_promised"]),
    }
    assert len(found) == (p >= threshold).sum() and (found["p_bll"] >= threshold).all()
    with pytest.raises(InputError, match=r"no list of candidates promises a purity of 1 as bll"):
        gpal.candidates(result, "bll", 1.0)
    ran = CliRunner().invoke(
        app,
        [
            "candidates",
            "bll",
            str(result.folder),
            "--purity",
            "0.8",
            "--out",
            str(tmp_path / "bll.csv"),
        ],
    )
    assert "no threshold of labelled sources" in ran.stdout and ran.exit_code == 0


def test_numbers_hold_class_fractions_that_nobody_knows(result):
    counts = result.metrics["counts"]
    assert counts["holds"] == ["sampling", "model", "class fractions"]
    each = counts["sets"]["all candidates"]["classes"]
    assert set(each) == set(NAMES)
    assert all(of["shared_sd"] > 3 * of["sampling_sd"] for of in each.values())


def test_candidates_of_a_class_that_is_known_from_others_have_its_fractions(catalog, result):
    """p(c | x, bcu) is p(c | x) times the ratio of the fractions; nobody else's changes."""
    of = catalog.schema.classes.fractions["bcu"]
    n = {name: int((catalog.y == name).sum()) for name in NAMES}
    blazars = of["blazar"] / (n["bll"] + n["fsrq"])
    ratio = np.array([blazars * n["bll"], blazars * n["fsrq"], 0, of["pulsar"]])
    ratio[2] = 1 - ratio.sum()
    ratio /= np.array([n[name] for name in NAMES]) / sum(n.values())
    before, after = (
        np.column_stack([result.table[f"p_{name}{kind}"] for name in NAMES])
        for kind in ("_train", "")
    )
    bcu = catalog.is_target & (catalog.labels == "bcu")
    assert 50 < bcu.sum() < catalog.is_target.sum()
    expected = before * ratio
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(after[bcu], expected[bcu], atol=1e-12)
    np.testing.assert_array_equal(after[~bcu], before[~bcu])
    assert result.metrics["known_fractions"]["bcu"]["psr"] == of["pulsar"]


def test_the_report_says_so(result):
    page = (result.folder / "report.html").read_text()
    assert "also learned how the labelled sources would look" in page
    assert "may be e times more or less" in page
    assert "above a threshold of their own" in page
    assert "what others turned out to be" in page


def test_fractions_are_not_estimated(catalog, tmp_path):
    with pytest.raises(InputError, match="of which one is 'other' cannot be estimated"):
        gpal.classify(catalog, tmp_path / "out", prior="estimated")


def test_it_is_left_out_when_asked_and_where_it_cannot_be(catalog, tmp_path):
    options = {"classifier": logistic_regression(), "n_splits": 2}
    result = gpal.classify(catalog, tmp_path / "plain", **options)
    assert result.metrics["settings"]["faint"] is False
    with pytest.raises(InputError, match="takes no weights"):
        gpal.classify(catalog, tmp_path / "plain", faint=True, **options)
