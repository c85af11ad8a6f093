"""Prospective validation: who trains, who is examined, and scores computed again by hand."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.evaluation import logistic_regression, random_forest
from gpal.evaluation.prior_shift import estimate_prior, reweight
from gpal.evaluation.prospective import (
    ProspectiveValidation,
    prospective_split,
    prospective_validation,
)
from gpal.metrics import expected_calibration_error, negative_log_predictive_density

MODELS = {
    "logistic": (logistic_regression(), ["index", "beta", "flux"]),
    "forest": (random_forest(), ["index", "beta", "flux"]),
    "index only": (logistic_regression(), ["index"]),
}


@pytest.fixture(scope="module")
def split(two_releases):
    return prospective_split(*two_releases)


@pytest.fixture(scope="module")
def validation(split):
    return prospective_validation(split, MODELS, n_seeds=3)


def test_targets_are_what_the_old_release_left_open(two_releases, split):
    _, new = two_releases
    truth = dict(zip(new.names, new.labels, strict=True))
    assert set(split.labelled.labels) == {"bll", "psr"}
    assert len(split.labelled) == 160
    assert set(split.targets.labels) == {"", "bcu"}
    assert len(split.targets) == 120
    assert set(split.origin) == {"unassociated", "bcu"}
    now = [truth[name] for name in split.targets.names]
    expected = [kind if kind in ("bll", "psr") else "" for kind in now]
    np.testing.assert_array_equal(split.truth, expected)
    assert split.classes[split.y].tolist() == [kind for kind in expected if kind]
    assert 30 < split.examined.sum() < 120
    np.testing.assert_allclose(split.train_fractions, [0.75, 0.25])


def test_nothing_of_the_new_release_but_classes_is_used(two_releases, split):
    old, _ = two_releases
    rows = np.isin(old.labels, ["", "bcu"])
    np.testing.assert_array_equal(split.targets.X, old.X[rows])
    np.testing.assert_array_equal(split.targets.X_err, old.X_err[rows])


def test_a_cut_gives_no_target_the_truth_of_another_source(tmp_path):
    """`lost` is not in the new release; its neighbour is, and is cut from the old one."""
    columns = {
        "name": ["b", "p", "lost", "near", "open"],
        "class": ["bll", "psr", "", "", ""],
        "ra": [10.0, 20.0, 30.0, 30.05, 40.0],
        "dec": np.zeros(5),
        "flux": [9.0, 9.0, 9.0, 1.0, 9.0],
    }
    table, mapping = Table(columns), {key: key for key in ("class", "ra", "dec")}
    mapping |= {"id": "name", "features": {"flux": {"column": "flux", "error": "none"}}}
    table.write(tmp_path / "old.csv")
    table["class"] = ["bll", "psr", "", "psr", "bll"]
    table[[0, 1, 3, 4]].write(tmp_path / "new.csv")
    new = load_catalog(tmp_path / "new.csv", mapping=mapping)
    for cuts, n in ((None, 2), ("flux > 5", 1)):
        split = prospective_split(
            load_catalog(tmp_path / "old.csv", mapping=mapping, cuts=cuts), new
        )
        assert split.outcome[split.targets.names == "lost"].tolist() == ["vanished"]
        assert split.examined.sum() == n and split.matched == n + 2
        assert split.truth[split.targets.names == "open"].tolist() == ["bll"]


def test_groups_of_classes(two_releases):
    groups = {"blazar": ["bll", "bcu"], "pulsar": ["psr"]}
    split = prospective_split(*two_releases, groups)
    assert set(split.targets.labels) == {""}
    assert split.classes.tolist() == ["blazar", "pulsar"]


def test_probabilities_are_those_of_the_fit(split, validation):
    model, features = MODELS["index only"]
    known = split.labelled.measurements.select(features)
    fitted = model.fit(known.X, split.labelled.y)
    expected = fitted.predict_proba(split.targets.measurements.select(features).X)
    for P in validation.probabilities["index only"]:
        np.testing.assert_allclose(P, expected)
    forest = validation.probabilities["forest"]
    assert forest.shape == (3, 120, 2)
    assert np.abs(forest[0] - forest[1]).max() > 0
    assert forest.min() >= 0.5 / 100 / 1.01


def test_scores_by_hand(split, validation):
    scores = validation.scores("forest")
    by_seed = [
        negative_log_predictive_density(split.y, P[split.examined])
        for P in validation.probabilities["forest"]
    ]
    assert scores["nll"]["mean"] == pytest.approx(np.mean(by_seed))
    assert scores["nll"]["seed_sd"] == pytest.approx(np.std(by_seed, ddof=1))
    one_seed = ProspectiveValidation(split, {"forest": validation.probabilities["forest"][:1]})
    assert np.isnan(one_seed.scores("forest")["nll"]["seed_sd"])
    assert scores["ece"]["mean"] == pytest.approx(
        np.mean(
            [
                expected_calibration_error(split.y, P[split.examined])
                for P in validation.probabilities["forest"]
            ]
        )
    )
    loss = validation.per_source("forest")["nll"]
    assert scores["nll"]["se"] == pytest.approx(loss.std() / np.sqrt(len(loss)), rel=0.1)
    assert scores["nll"]["lower"] < scores["nll"]["mean"] < scores["nll"]["upper"]


def test_one_source_has_no_standard_error(split, validation):
    one = np.arange(len(split.y)) == 0
    found = validation.scores("logistic", rows=one)
    for score in ("nll", "error", "brier", "ece"):
        assert found[score]["mean"] >= 0 and np.isnan(found[score]["se"])
        assert np.isnan([found[score]["lower"], found[score]["upper"]]).all()


def test_differences_are_paired(validation):
    difference = validation.scores("logistic", minus=("index only", "train"))["nll"]
    one, other = (validation.per_source(m)["nll"] for m in ("logistic", "index only"))
    assert difference["mean"] == pytest.approx((one - other).mean())
    assert difference["se"] == pytest.approx((one - other).std() / np.sqrt(len(one)), rel=0.1)
    assert validation.scores("logistic", minus=("logistic", "train"))["nll"]["se"] == 0


def test_origins_add_up(split, validation):
    origin = split.origin[split.examined]
    parts = [
        ((origin == name).sum(), validation.scores("logistic", rows=origin == name)["nll"]["mean"])
        for name in np.unique(origin)
    ]
    total = sum(n * nll for n, nll in parts) / len(origin)
    assert total == pytest.approx(validation.scores("logistic")["nll"]["mean"])


def test_corrections_use_the_targets_they_say(split, validation):
    P, train = validation.probabilities["logistic"][0], split.train_fractions
    for correction, sample in (("all targets", P), ("examined only", P[split.examined])):
        mix = estimate_prior(sample, train).fractions
        expected = reweight(P, train, mix)
        np.testing.assert_allclose(validation.corrected("logistic", correction)[0], expected)
    by_origin = validation.corrected("logistic", "by origin")[0]
    ratio = by_origin[:, 1] / by_origin[:, 0] / (P[:, 1] / P[:, 0])
    for name in np.unique(split.origin):
        assert np.ptp(ratio[split.origin == name]) < 1e-9  # one factor per origin
    assert np.ptp(ratio) > 0.1
    with pytest.raises(InputError, match="no correction"):
        validation.corrected("logistic", "wishful")


def test_correction_helps_where_the_mix_shifted(validation):
    difference = validation.scores("logistic", "by origin", minus=("logistic", "train"))["nll"]
    assert difference["upper"] < 0


def test_same_seed_same_scores(split, validation):
    again = prospective_validation(split, {"forest": MODELS["forest"]}, n_seeds=3)
    assert again.scores("forest") == validation.scores("forest")


def test_nothing_to_examine(two_releases):
    old, _ = two_releases
    with pytest.raises(InputError, match="newer release"):
        prospective_split(old, old)
    with pytest.raises(InputError, match="different classes"):
        prospective_split(old, old.with_classes({"all": ["bll", "psr"]}))
    with pytest.raises(InputError, match="two or more"):
        prospective_split(old, two_releases[1], {"all": ["bll", "psr"]})


def test_undecided_candidates_need_no_name(tmp_path):
    """A catalog of another kind: stars and galaxies, matched by position, no ellipses."""
    rng = np.random.default_rng(0)
    n = 60
    kind = np.where(rng.random(n) < 0.5, "star", "galaxy")
    known = np.arange(n) < 40
    sky = {"ra": rng.uniform(0, 360, n), "dec": rng.uniform(-60, 60, n)}
    colour = rng.normal(kind == "star", 0.5)
    paths = []
    for name, labels in (("old", np.where(known, kind, "")), ("new", kind)):
        table = Table({"name": [f"{name}{i}" for i in range(n)], "kind": labels, **sky})
        table["colour"] = colour
        paths.append(tmp_path / f"{name}.csv")
        table.write(paths[-1], format="ascii.csv")
    mapping = {
        **{"id": "name", "class": "kind", "ra": "ra", "dec": "dec"},
        "classes": {"default": ["star", "galaxy"]},
        "features": {"colour": {"column": "colour", "error": "none"}},
    }
    split = prospective_split(*(load_catalog(path, mapping=mapping) for path in paths))
    np.testing.assert_array_equal(split.truth, kind[~known])


def test_scores_of_no_source_are_refused(validation):
    none = np.zeros(len(validation.split.y), dtype=bool)
    with pytest.raises(InputError, match="no examined source is selected"):
        validation.scores("logistic", rows=none)
