"""Figures of results: of the objects, of their folders, and of arrays they are the same."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import MaskedColumn, Table

from gpal import plot
from gpal.errors import InputError
from gpal.jobs import classify, validate
from gpal.jobs.models import MODEL
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.measurements import Measurements
from gpal.plot.learning import TITLES
from gpal.plot.pairs import sources_of
from gpal.plot.results import confusion_of, known_of, places_of, provenance_of


@pytest.fixture(scope="module")
def classified(small_catalog, noisy_logistic, tmp_path_factory):
    out = tmp_path_factory.mktemp("plots") / "results"
    return classify(small_catalog, out, classifier=noisy_logistic, n_splits=3, random_state=1)


@pytest.fixture(scope="module")
def validated(two_releases, noisy_logistic, tmp_path_factory):
    out = tmp_path_factory.mktemp("plots") / "validation"
    return validate(*two_releases, out, classifier=noisy_logistic, without=[], n_seeds=1)


def points(axes):
    """What was drawn as lines and marks."""
    found = []
    for ax in np.ravel(np.asarray(axes, object)):
        found += [np.asarray(line.get_xydata(), float) for line in ax.lines]
        found += [np.ma.filled(c.get_offsets(), np.nan) for c in ax.collections]
    return found


def assert_same(one, other):
    assert len(points(one)) == len(points(other)) > 0
    for a, b in zip(points(one), points(other), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_a_classification_its_folder_and_its_arrays_are_drawn_alike(classified):
    folder, validation, table = classified.folder, classified.cross_validation, classified.table
    y, P, classes = validation.y, validation.out_of_fold(MODEL), validation.classes.tolist()
    for data in (folder, str(folder), validation, (y, P, classes)):
        arguments = data if isinstance(data, tuple) else (data,)
        assert_same(plot.reliability(classified), plot.reliability(*arguments))
    for data in (folder, table):
        assert_same(plot.sky_map(classified), plot.sky_map(data, classes=classes))
    for arguments in ((classified.catalog, folder), (classified.catalog, table)):
        assert_same(plot.features(classified), plot.features(*arguments))
    with pytest.raises(InputError, match="drawn with its probabilities"):
        plot.features(classified.catalog)
    with pytest.raises(InputError, match="holds other sources"):
        plot.features(classified.catalog[1:], table)
    with pytest.raises(InputError, match="a Catalog is not what this is drawn from"):
        plot.sky_map(classified.catalog)
    texts = [t.get_text() for t in plot.confusion_matrix(classified).texts]
    assert texts == [t.get_text() for t in plot.confusion_matrix(folder).texts]
    assert all("±" in text for text in texts)


def test_labels_that_are_drawn_are_those_of_the_schema(classified):
    left, _ = plot.features(classified, pair=["index", "beta"])
    assert left.get_xlabel() == "photon index" and left.get_ylabel() == "beta"


def test_other_models_of_a_result(classified):
    other = classified.cross_validation.models[1]
    P = classified.cross_validation.out_of_fold(other)
    np.testing.assert_array_equal(known_of(classified, model=other).P, P)
    with pytest.raises(InputError, match=f"no model '{other}'; there are: {MODEL}"):
        known_of(classified.folder, model=other)
    assert confusion_of(classified.folder, model=other).mean.shape == (2, 2)


def test_a_validation_and_its_folder_are_drawn_alike(validated):
    folder = validated.folder
    for correction in ("train", "by origin"):
        assert_same(
            plot.reliability(validated, correction=correction),
            plot.reliability(folder, correction=correction),
        )
    for function in (plot.scores, plot.calibration, plot.reliability_by_origin):
        assert_same(function(validated), function(folder))
    confusion = confusion_of(validated)
    assert confusion.se is None and sum(confusion.counts) == validated.metrics["n_examined"]
    with pytest.raises(InputError, match="a folder holds 'train' and 'by origin'"):
        plot.reliability(folder, correction="all targets")
    with pytest.raises(InputError, match="there are: train, by origin"):
        plot.calibration(folder, correction="all targets")


def test_tables_of_predictions_have_candidates_only(classified):
    table = classified.table[
        "glon", "glat", "p_bll", "p_bll_std", "p_psr", "p_psr_std", "prediction"
    ]
    places = places_of(table)
    assert places.candidate.all() and places.classes == ["bll", "psr"]


def test_provenance_of_whatever_a_figure_was_drawn_from(classified, validated):
    for result in (classified, validated):
        expected = result.metrics["provenance"]
        assert provenance_of(result) == provenance_of(result.folder) == provenance_of(expected)
        table = read_probabilities(result.folder / "probabilities.fits")
        assert provenance_of(table) == provenance_of(result)
    with pytest.raises(InputError, match="does not say what made it"):
        provenance_of(classified.table)


@pytest.mark.parametrize(
    "function", [getattr(plot, name) for name in plot.__all__ if name.islower()]
)
def test_what_is_no_result_is_refused_in_one_line(function, classified, tmp_path):
    if function is plot.save:
        return
    empty, damaged, other = (tmp_path / part for part in ("empty", "damaged", "other"))
    for folder in (empty, other):
        folder.mkdir()
    for kind in ({}, {"kind": "validation"}, {"kind": "validation", "variants": 3, "by_origin": 4}):
        (other / "metrics.json").write_text(json.dumps(kind))
        with pytest.raises(InputError):
            function(other)
    shutil.copytree(classified.folder, damaged)
    for name in ("metrics.json", "probabilities.csv"):
        (damaged / name).write_text("{")
    for data in (
        empty,
        tmp_path / "none",
        damaged,
        3,
        Table({"a": [1]}),
        SimpleNamespace(),
    ):
        with pytest.raises(InputError) as caught:
            function(data)
        assert len(str(caught.value).splitlines()) == 1


def test_figures_count_what_they_draw():
    rng = np.random.default_rng(0)
    sources = Measurements(rng.normal(size=(20, 2)), np.full((20, 2), 0.1), ("a", "b"))
    label = np.array(["bll"] * 5 + ["psr"] * 5 + [""] * 10)
    prediction = np.array([""] * 10 + ["bll"] * 4 + ["psr"] * 6)
    axes = plot.features(sources, label=label, prediction=prediction, classes=["psr"])
    assert [ax.get_title().split(",")[0] for ax in axes] == [
        "5 of 10 labelled",
        "6 of 10 candidates",
    ]
    ax = plot.sky_map([10.0, 20.0, 30.0], [1.0, 2.0, 3.0], ["psr", "bll", "bll"], classes=["psr"])
    said = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert said == ["not candidates", "MIXED (0)", "psr (1)", "of other classes (2)"]


def test_fluxes_below_zero_are_drawn_or_said():
    errors = [[0.2, 0.2], [0.3, 0.3], [0.2, 0.2]]
    ax = plot.light_curve([[0, 1], [1, 2], [2, 3]], [2.0, -0.5, 1.0], errors, unit="mJy")
    assert ax.get_ylim()[0] < -0.8
    with pytest.warns(UserWarning, match="1 measured fluxes are below 0"):
        plot.spectrum([[1, 10], [10, 100], [100, 1000]], [2.0, -0.5, 1.0], errors)


def test_positions_have_units_and_may_be_missing():
    prediction = ["a", "b", "b"]
    of = {"glat": np.zeros(3), "prediction": prediction}
    for glon in (np.array([10.0, 120, 250]) * u.deg, np.deg2rad([10.0, 120, 250]) * u.rad):
        np.testing.assert_allclose(places_of(glon, **of).glon, [10, 120, 250])
    column = MaskedColumn(np.deg2rad([10.0, 120, 0]), mask=[0, 0, 1], unit="rad")
    np.testing.assert_allclose(places_of(column, **of).glon, [10, 120, np.nan])
    masked = np.ma.array([True, True, True], mask=[0, 1, 0])
    assert places_of(np.zeros(3), **of, candidate=masked).candidate.tolist() == [True, False, True]
    known = pd.array([True, None, False], dtype="boolean")
    assert places_of(np.zeros(3), **of, candidate=known).candidate.tolist() == [True, False, False]
    with pytest.raises(InputError, match=r"a position is an angle, .* unit 'mag'"):
        places_of(np.zeros(3) * u.mag, **of)
    for wrong in (["True", "False", "True"], [1.0, np.nan, 0.0]):
        with pytest.raises(InputError, match=r"row [01] of candidate is .*: give True or False"):
            places_of(np.zeros(3), **of, candidate=np.array(wrong))


def test_labels_that_are_missing_are_none():
    rng = np.random.default_rng(0)
    sources = Measurements(rng.normal(size=(6, 2)), 0.1, names=["a", "b"])
    label = np.array(["x", "y", None, np.nan, "x", "y"], dtype=object)
    found = sources_of(sources, label=label)
    assert found.label.tolist() == ["x", "y", "", "", "x", "y"] and found.classes == ["x", "y"]
    masked = np.ma.array(["x", "y"] * 3, mask=[0, 0, 0, 0, 0, 1])
    assert sources_of(sources, label=masked).label.tolist() == ["x", "y", "x", "y", "x", ""]


def test_options_that_mean_nothing_there_are_refused(classified):
    y, P = np.array([0, 1, 1]), np.full((3, 2), 0.5)
    for options in ({"correction": "by origin"}, {"model": "no"}):
        with pytest.raises(InputError, match="probabilities alone have no"):
            known_of(y, P, **options)
    validation = classified.cross_validation
    for data in (validation, classified.folder):
        with pytest.raises(InputError, match="has no correction"):
            known_of(data, correction="by origin")
        with pytest.raises(InputError, match="has its own classes"):
            known_of(data, classes=np.array(["a", "b"]))
    labels = {"entropy": np.array([10, 20]), "random": np.array([10, 20])}
    with pytest.raises(InputError, match="labels are of entropy, random and curves of entropy"):
        plot.learning_curves(labels, {"entropy": {"error": np.zeros((2, 2))}})


def test_a_score_that_is_missing_is_not_drawn(tmp_path):
    row = {name: [0.4, np.nan, 0.2] for name in TITLES}
    spread = {f"{name}_se": [0.1, np.nan, np.nan] for name in TITLES}
    table = pd.DataFrame({"strategy": "random", "labels": [10, 20, 30], **row, **spread})
    table.to_csv(tmp_path / "curves.csv", index=False)
    for ax in plot.learning_curves(tmp_path):
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.4, np.nan, 0.2])
