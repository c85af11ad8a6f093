"""The main job on a small catalog: every output, its provenance, repeatability, all or nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.table import Table
from PIL import Image
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.evaluation import METRICS, logistic_regression
from gpal.jobs.classification import classify
from gpal.jobs.probability_catalogue import predicted_class, read_probabilities
from gpal.jobs.result_folder import TABLES
from gpal.limits import Limits

FILES = {  # the catalog has no bands
    *("report.html", *TABLES, "metrics.json", "model.npz", "confusion_matrix.png", "roc.png"),
    *("reliability.png", "purity_completeness.png", "sky_map.png", "features.png"),
}


@pytest.fixture(scope="module")
def result(small_catalog, noisy_logistic, tmp_path_factory):
    out = tmp_path_factory.mktemp("classify") / "results"
    return classify(
        small_catalog,
        out,
        classifier=noisy_logistic,
        classes=["bll", "psr"],
        n_splits=5,
        n_repeats=2,
        random_state=3,
        confidence=0.7,
    )


def test_every_file_is_there_and_nothing_else(result):
    assert {path.name for path in result.folder.iterdir()} == FILES
    assert [path.name for path in result.folder.parent.iterdir()] == ["results"]


def test_fits_has_units_and_one_row_per_source(result, small_catalog):
    table = Table.read(result.folder / "probabilities.fits")
    assert len(table) == len(small_catalog)
    assert list(np.char.decode(table["name"])) == list(small_catalog.names)
    for column in ("ra", "dec", "glon", "glat"):
        assert table[column].unit == u.deg
    assert "nats" in table["entropy"].description
    galactic = SkyCoord(table["ra"], table["dec"]).galactic
    np.testing.assert_allclose(table["glon"], galactic.l.deg)
    assert set(table["catalog_class"].filled("")) == {"bll", "PSR", "", "bcu", "snr"}
    assert set(table["label"].filled("")) == {"bll", "psr", ""}


@pytest.mark.parametrize("name", TABLES)
def test_sources_without_a_class_are_found_in_the_files(result, small_catalog, name):
    table = read_probabilities(result.folder / name)
    unassociated = table[table["catalog_class"] == ""]
    assert unassociated["name"].tolist() == small_catalog[small_catalog.labels == ""].names.tolist()
    assert (table["label"] == result.table["label"]).all()
    np.testing.assert_array_equal(table["p_psr"], result.table["p_psr"])


def test_probabilities(result, small_catalog):
    table = result.table
    P = np.column_stack([table["p_bll"], table["p_psr"]])
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(table["entropy"], entropy(P, axis=1))
    expected = np.where(P.max(axis=1) < 0.7, "MIXED", np.where(P[:, 0] > 0.5, "bll", "psr"))
    assert (table["prediction"] == expected).all() and "MIXED" in expected
    labelled = np.asarray(table["out_of_fold"])
    assert labelled.sum() == 60 and np.asarray(table["candidate"]).sum() == 28
    np.testing.assert_allclose(P[labelled], result.cross_validation.out_of_fold("GPClassifier"))
    full = result.classifier.predict_proba(small_catalog.X)
    np.testing.assert_allclose(P[~labelled], full[~labelled])
    assert np.abs(P[labelled] - full[labelled]).max() > 1e-3  # labelled ones are out of fold


def test_sources_unlike_all_labelled_ones_are_flagged(small_catalog, tmp_path):
    X = small_catalog.X.copy()
    far = np.flatnonzero(small_catalog.labels == "")[0]
    X[far] += 100
    measurements = replace(small_catalog.measurements, X=X)
    result = classify(
        replace(small_catalog, measurements=measurements),
        tmp_path / "out",
        classifier=logistic_regression(),
        n_splits=2,
    )
    outside = np.asarray(result.table["outside_support"])
    assert outside[far] and outside.sum() < 10
    assert not outside[np.asarray(result.table["label"]) != ""].any()


def test_csv_says_the_same_as_fits(result):
    csv = pd.read_csv(result.folder / "probabilities.csv", comment="#", keep_default_na=False)
    fits = Table.read(result.folder / "probabilities.fits")
    assert list(csv.columns) == fits.colnames and len(csv) == len(fits)
    for column in ("ra", "p_bll", "p_bll_std", "entropy"):
        np.testing.assert_allclose(csv[column], fits[column], rtol=1e-12)
    assert list(csv["name"]) == list(np.char.decode(fits["name"]))  # names hold a #


def test_csv_is_a_catalog_again(result):
    mapping = {
        "id": "name",
        "class": "label",
        "features": {"p_psr": {"column": "p_psr", "error": "none"}},
    }
    again = load_catalog(result.folder / "probabilities.csv", mapping=mapping)
    assert again.names.tolist() == result.table["name"].tolist()
    np.testing.assert_allclose(again.X[:, 0], result.table["p_psr"])
    np.testing.assert_allclose(again.X_err[:, 0], 0)


def test_letters_that_fits_does_not_know(small_catalog, noisy_logistic, tmp_path):
    names = small_catalog.names.copy()
    names[0] = "β Cas"
    catalog = replace(
        small_catalog,
        measurements=replace(small_catalog.measurements, ids=names),
        provenance={**small_catalog.provenance, "catalog": "köln"},
    )
    groups = {"blazár": ["bll"], "psr": ["psr"]}
    result = classify(
        catalog, tmp_path / "out", classifier=noisy_logistic, classes=groups, n_splits=2
    )
    assert result.table["name"][0] == "β Cas" and "p_blazár" in result.table.colnames
    csv = pd.read_csv(result.folder / "probabilities.csv", comment="#", keep_default_na=False)
    assert csv["name"][0] == "β Cas" and "p_blazár" in csv
    fits = Table.read(result.folder / "probabilities.fits")
    assert fits["name"][0].encode().decode("unicode_escape") == "β Cas"
    assert fits.meta["CATALOG"] == "k\\xf6ln"
    np.testing.assert_allclose(fits["p_blaz\\xe1r"], result.table["p_blazár"])
    assert fits["p_blaz\\xe1r"].description == "probability of blaz\\xe1r"


def test_metrics_file(result):
    metrics = json.loads((result.folder / "metrics.json").read_text())
    for model in ("GPClassifier", "logistic regression", "quadratic logistic regression"):
        for name in METRICS:
            assert metrics[model][name].keys() == {"mean", "se"}
    validation = result.cross_validation
    assert metrics["GPClassifier"]["nll"]["mean"] == pytest.approx(
        validation.per_fold("GPClassifier")["nll"].mean()
    )
    assert metrics["GPClassifier"]["nll"] == metrics["logistic regression"]["nll"]
    difference = metrics["differences"]["GPClassifier - logistic regression"]["nll"]
    assert difference == {"mean": 0, "se": 0}  # the stand-in is a logistic regression
    assert (metrics["n_labelled"], metrics["n_targets"], metrics["n_sources"]) == (60, 28, 90)
    assert metrics["n_labelled_per_class"] == {"bll": 30, "psr": 30}
    assert sum(metrics["n_targets_per_prediction"].values()) == 28
    assert {"column", "count", "rule"} == metrics["decisions"][0].keys()
    assert metrics["settings"]["n_repeats"] == 2


def test_every_file_carries_its_provenance(result, small_catalog):
    folder, checksum = result.folder, small_catalog.provenance["sha256"]
    metrics = json.loads((folder / "metrics.json").read_text())
    origin = metrics["provenance"]
    assert origin["catalog"]["sha256"] == checksum and origin["random_state"] == 3
    assert origin["settings"]["model"]["likelihood"] == "softmax"
    fits = Table.read(folder / "probabilities.fits").meta
    assert json.loads(fits["PROVENAN"]) == origin and fits["CATSHA"] == checksum
    first = (folder / "probabilities.csv").read_text().splitlines()[0]
    assert json.loads(first.removeprefix("# provenance: ")) == origin
    for png in folder.glob("*.png"):
        assert json.loads(Image.open(png).text["Description"]) == origin
    model = np.load(folder / "model.npz")
    assert json.loads(str(model["provenance.json"])) == origin and "coefficients" in model
    assert checksum[:12] in (folder / "report.html").read_text()


def test_same_seed_same_answer(result, small_catalog, noisy_logistic, tmp_path):
    again = classify(
        small_catalog,
        tmp_path / "again",
        classifier=noisy_logistic,
        classes=["bll", "psr"],
        n_splits=5,
        n_repeats=2,
        random_state=3,
    )
    np.testing.assert_allclose(again.table["p_psr"], result.table["p_psr"], atol=1e-8)


def test_a_failure_leaves_the_old_folder_as_it_was(
    small_catalog, noisy_logistic, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("old report")

    def fail(*arguments):
        raise RuntimeError("at the last step")

    monkeypatch.setattr("gpal.jobs.classification.render_report", fail)
    with pytest.raises(RuntimeError, match="at the last step"):
        classify(small_catalog, out, classifier=noisy_logistic, classes=["bll", "psr"], n_splits=2)
    assert (out / "report.html").read_text() == "old report"
    assert [p.name for p in out.iterdir()] == ["report.html"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_refusals_come_before_the_computation(small_catalog, noisy_logistic, tmp_path):
    failing = clone(noisy_logistic).set_params(fail=True)  # RuntimeError if it were fitted
    (tmp_path / "file").write_text("")
    classes = ["bll", "psr"]
    for out, arguments, message in (
        (tmp_path / "file", {"classes": classes}, "cannot write"),
        (tmp_path / "file" / "below", {"classes": classes}, "cannot write"),
        (tmp_path / "new", {"classes": ["bll"]}, "fewer than two classes"),
        (tmp_path / "new", {"classes": classes, "n_splits": 31}, "31 folds, but of class"),
        (tmp_path / "new", {"classes": classes, "confidence": 60}, "from 0 to 1"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            classify(small_catalog, out, classifier=failing, **arguments)
        assert "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_plain_classifier_without_errors_or_save_will_do(small_catalog, tmp_path):
    result = classify(
        small_catalog,
        tmp_path / "plain",
        classifier=logistic_regression(),
        classes={"blazar": ["bll"], "pulsar": ["psr"]},
        n_splits=3,
    )
    assert {path.name for path in result.folder.iterdir()} == FILES - {"model.npz"}
    assert "p_pulsar" in result.table.colnames and "p_pulsar_std" not in result.table.colnames


def test_an_earlier_run_leaves_nothing_behind(small_catalog, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("features.png", "model.npz", "comparison.csv", "calibration.png", "notes.txt"):
        (out / name).write_text("earlier")
    one = replace(small_catalog, measurements=small_catalog.measurements.select(["index"]))
    classify(one, out, classifier=logistic_regression(), classes=["bll", "psr"], n_splits=2)
    kept = FILES - {"features.png", "model.npz"} | {"notes.txt"}
    assert {path.name for path in out.iterdir()} == kept


class OwnFractions(HistGradientBoostingClassifier):
    """Its deviations tell which class fractions they refer to."""

    def predict_proba_std(self, X, X_err=None, prior=None):
        self.asked_ = [*getattr(self, "asked_", []), prior]
        return np.tile([0.3, 0.3] if prior is None else list(prior.values()), (len(X), 1))


def test_deviations_refer_to_the_fractions_that_the_probabilities_do(small_catalog, tmp_path):
    prior = {"bll": 0.2, "psr": 0.8}
    result = classify(
        small_catalog, tmp_path / "out", classifier=OwnFractions(), n_splits=2, prior=prior
    )
    deviation = np.column_stack([result.table["p_bll_std"], result.table["p_psr_std"]])
    candidate = np.asarray(result.table["candidate"])
    np.testing.assert_allclose(deviation[candidate], np.tile([0.2, 0.8], (28, 1)))
    np.testing.assert_allclose(deviation[~candidate & (result.table["label"] == "")], 0.3)
    assert result.classifier.asked_ == [None, prior]
    assert "prior" not in result.classifier.get_params()


def test_predicted_class():
    P = np.array([[0.7, 0.3], [0.55, 0.45], [0.2, 0.8]])
    assert predicted_class(P, ["a", "b"], 0.6).tolist() == ["a", "MIXED", "b"]
    assert predicted_class(P, ["a", "b"], 0.5).tolist() == ["a", "a", "b"]


def test_lists_of_a_stated_purity(result):
    """Every row of metrics.json against the table that was written."""
    metrics = json.loads((result.folder / "metrics.json").read_text())
    table = read_probabilities(result.folder / "probabilities.fits")
    known, asked = table[table["label"] != ""], table[table["candidate"]]
    assert metrics["purity"].keys() == set(metrics["models"])
    reached = 0
    for name in ("bll", "psr"):
        for row in metrics["purity"]["GPClassifier"][name]:
            if row["threshold"] is None:
                assert row["n_candidates"] == 0 and row["candidates_promised"] is None
                continue
            reached += 1
            listed = known[known[f"p_{name}"] >= row["threshold"]]
            right = (listed["label"] == name).sum()
            assert row["listed"] == len(listed)
            assert row["purity"] == pytest.approx(right / len(listed))
            assert row["purity"] >= row["asked"]
            assert row["completeness"] == pytest.approx(right / (known["label"] == name).sum())
            p = asked[f"p_{name}"][asked[f"p_{name}"] >= row["threshold"]]
            assert row["n_candidates"] == len(p)
            assert row["candidates_promised"] == pytest.approx(p.mean())
            assert f"{row['threshold']:.3f}" in (result.folder / "report.html").read_text()
    assert reached >= 4
    other = metrics["purity"]["logistic regression"]["psr"][0]
    assert "n_candidates" not in other  # it was not asked about the candidates


def test_who_has_a_value_of_each_feature(small_catalog, tmp_path):
    """Two sources lack beta; of one of them a limit is known."""
    sources = small_catalog.measurements
    confidence = np.zeros(sources.X.shape)
    row, column = np.argwhere(~sources.measured)[0]
    confidence[row, column] = -0.95
    limited = replace(sources, limits=Limits(np.where(confidence, 0.2, np.nan), confidence))
    catalog = replace(small_catalog, measurements=limited)
    found = classify(catalog, tmp_path / "out", classifier=logistic_regression(), n_splits=2)
    measured = found.metrics["measured"]
    assert set(measured) == set(catalog.feature_names)
    for of, rows in (("labelled", catalog.y != ""), ("candidates", catalog.is_target)):
        for j, name in enumerate(catalog.feature_names):
            assert measured[name][of]["measured"] == np.isfinite(sources.X[rows, j]).sum()
            assert measured[name][of]["limits"] == (rows[row] and j == column)
    assert sum(counts["limits"] for of in measured.values() for counts in of.values()) == 1


def test_areas_and_parts_of_the_sky(result):
    metrics = json.loads((result.folder / "metrics.json").read_text())
    validation = result.cross_validation
    known = result.table[np.asarray(result.table["label"]) != ""]
    b = SkyCoord(known["ra"], known["dec"], unit="deg").galactic.b.deg
    parts = metrics["by_latitude"]
    assert [part["n_labelled"] for part in parts.values()] == [
        (np.abs(b) < 10).sum(),
        (np.abs(b) >= 10).sum(),
    ]
    for model in metrics["models"]:
        whole = metrics[model]
        repeats = validation.probabilities[model]
        areas = [
            np.mean([roc_auc_score(validation.y == c, P[:, c]) for P in repeats]) for c in (0, 1)
        ]
        assert [whole["per_class"][c]["auc"]["mean"] for c in ("bll", "psr")] == (
            pytest.approx(areas)
        )
        assert whole["macro_auc"]["mean"] == pytest.approx(np.mean(areas))
        rows = np.abs(b) >= 10
        far = parts["|b| >= 10 deg"]["scores"][model]
        wrong = [(P[rows].argmax(1) != validation.y[rows]).mean() for P in repeats]
        assert far["error"]["mean"] == pytest.approx(np.mean(wrong))
        assert far["nll"]["se"] > whole["nll"]["se"] / 2 > 0
        area = np.mean([roc_auc_score(validation.y[rows] == 1, P[rows, 1]) for P in repeats])
        assert far["per_class"]["psr"]["auc"]["mean"] == pytest.approx(area)
    [row, *_] = parts["|b| >= 10 deg"]["purity"]["GPClassifier"]["psr"]
    targets = result.table[np.asarray(result.table["candidate"])]
    listed = (np.abs(targets["glat"]) >= 10) & (targets["p_psr"] >= row["threshold"])
    assert row["n_candidates"] == listed.sum()


def test_without_positions_the_sky_is_in_one_part(small_catalog, tmp_path):
    nowhere = np.full(len(small_catalog), np.nan)
    lost = replace(small_catalog, ra=nowhere, dec=nowhere)
    found = classify(lost, tmp_path / "out", classifier=logistic_regression(), n_splits=2)
    assert found.metrics["by_latitude"] == {}
    assert "|b| &lt; 10" not in (found.folder / "report.html").read_text()


def test_a_part_with_few_labelled_sources_has_no_scores(small_catalog, tmp_path):
    """All sources but one at the pole: no error can be told of one."""
    ra, dec = np.full(90, 192.9), np.full(90, 27.1)
    one = np.flatnonzero(small_catalog.y == "psr")[0]
    ra[one], dec[one] = 266.4, -29.0
    moved = replace(small_catalog, ra=ra, dec=dec)
    found = classify(moved, tmp_path / "out", classifier=logistic_regression(), n_splits=2)
    near = found.metrics["by_latitude"]["|b| < 10 deg"]
    assert near["n_labelled_per_class"] == {"bll": 0, "psr": 1} and near["scores"] == {}
    assert "too few labelled sources for scores" in (found.folder / "report.html").read_text()


def test_thresholds_are_on_the_class_fractions_of_the_labelled_sources(small_catalog, tmp_path):
    prior = {"bll": 0.95, "psr": 0.05}
    plain, referred = (
        classify(
            small_catalog,
            tmp_path / str(k),
            classifier=logistic_regression(),
            n_splits=2,
            **options,
        )
        for k, options in enumerate(({}, {"prior": prior}))
    )
    for before, after in zip(
        plain.metrics["purity"]["GPClassifier"]["psr"],
        referred.metrics["purity"]["GPClassifier"]["psr"],
        strict=True,
    ):
        assert before["n_candidates"] == after["n_candidates"] > 0
        assert before["threshold"] == pytest.approx(after["threshold"])
        assert after["candidates_promised"] < before["candidates_promised"] - 0.1
