"""What can be checked of a figure without eyes: what is drawn, and what the file says of itself."""

from __future__ import annotations

import json

import matplotlib
import numpy as np
import pytest
from PIL import Image

from gpal.errors import InputError
from gpal.evaluation import figure_style, figures
from gpal.evaluation.cross_validation import Estimate
from gpal.measurements import as_measurements

CLASSES = ["bll", "fsrq", "psr"]


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=120)
    y = (rng.random(120)[:, None] > P.cumsum(axis=1)).sum(axis=1)
    return y, P


def texts(figure) -> list[str]:
    return [t.get_text() for t in figure.findobj(matplotlib.text.Text)]


def test_confusion_matrix_shows_mean_and_error_of_every_cell():
    mean = np.array([[0.9, 0.1], [0.25, 0.75]])
    figure = figures.confusion_figure(Estimate(mean, mean / 10), ["a", "b"], [40, 20])
    shown = texts(figure)
    for cell in ("90.0\n± 9.0", "10.0\n± 1.0", "25.0\n± 2.5", "75.0\n± 7.5", "a\n(40)", "b\n(20)"):
        assert cell in shown


def test_reliability_has_a_panel_and_a_histogram_per_class(sample):
    y, P = sample
    figure = figures.reliability_figure(y, P, CLASSES)
    assert len(figure.axes) == 6
    assert [axes.get_title() for axes in figure.axes[::2]] == CLASSES
    for axes in figure.axes[1::2]:
        assert sum(bar.get_height() for bar in axes.patches) == len(y)


def test_sky_map_puts_sources_where_they_are():
    glon, glat = np.array([0.0, 90.0, 270.0, np.nan]), np.array([0.0, 30.0, -30.0, np.nan])
    prediction = np.array(["psr", "bll", figure_style.MIXED, "bll"])
    figure = figures.sky_figure(glon, glat, prediction, np.array([True] * 4), CLASSES)
    offsets = {c.get_label(): c.get_offsets() for c in figure.axes[0].collections}
    # longitude grows to the left, so l = 90° lies at x = −90°
    np.testing.assert_allclose(offsets["psr (1)"][0], [0, 0], atol=1e-12)
    np.testing.assert_allclose(offsets["bll (2)"][0], np.deg2rad([-90, 30]))
    np.testing.assert_allclose(offsets["MIXED (1)"][0], np.deg2rad([90, -30]))


def test_most_informative_pair_is_found_among_noise_and_copies():
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=600)
    a, b = rng.normal(size=600) + 4 * (y == 1), rng.normal(size=600) + 4 * (y == 2)
    X = np.column_stack([rng.normal(size=600), a, a + 0.01 * rng.normal(size=600), b])
    X[::7, 3] = np.nan
    pair = figures.most_informative_pair(as_measurements(X, np.where(np.isnan(X), np.inf, 0)), y)
    assert 3 in pair and set(pair) & {1, 2}


def test_feature_figure_shows_measured_sources_only():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, 2.0], [3.0, 3.0]])
    X_err = np.array([[0.1, 0.1], [0.0, 0.2], [np.inf, 0.1], [0.1, 0.1]])
    label, prediction = np.array(["bll", "", "", ""]), np.array(["bll", "psr", "psr", "bll"])
    candidate = np.array([False, True, True, False])  # the last is of another class
    figure = figures.feature_figure(
        as_measurements(X, X_err), ["flux [ph]", "index"], label, prediction, candidate, CLASSES
    )
    left, right = figure.axes
    assert left.get_title().startswith("1 labelled")
    assert right.get_title().startswith("1 candidates")
    assert left.get_xlabel() == "flux [ph]" and left.get_ylabel() == "index"


def test_png_carries_its_provenance(tmp_path, sample):
    provenance = {"gpal": "9.9", "catalog": {"sha256": "abc"}, "random_state": 3}
    figure = figures.reliability_figure(*sample, CLASSES)
    figure_style.save_figure(figure, tmp_path / "a.png", provenance)
    text = Image.open(tmp_path / "a.png").text
    assert text["Software"] == "gpal 9.9"
    assert json.loads(text["Description"]) == provenance


def test_colours_differ_and_global_state_is_left_alone(sample):
    before = dict(matplotlib.rcParams)
    figures.reliability_figure(*sample, CLASSES)
    assert dict(matplotlib.rcParams) == before
    assert len(set(figure_style.class_colours(list("abcdefgh")).values())) == 8


@pytest.mark.parametrize("name", ["$x$", "a$b", "_hidden", "$x_$", "\\$", "a_b^c"])
def test_names_are_drawn_as_text(name, tmp_path):
    mean = np.array([[0.9, 0.1], [0.25, 0.75]])
    figure = figures.confusion_figure(Estimate(mean, mean / 10), [name, "b"], [40, 20])
    ticks = [label for label in figure.axes[0].get_xticklabels()]
    text, is_math = ticks[0]._preprocess_math(ticks[0].get_text())
    assert text.strip() == name and not is_math
    prediction = np.array([name, "b"])
    sky = figures.sky_figure(
        np.zeros(2), np.zeros(2), prediction, np.array([True, True]), [name, "b"]
    )
    assert len(sky.legends[0].get_texts()) == 4  # others, MIXED, both classes
    figure_style.save_figure(sky, tmp_path / "sky.png", {})


def test_long_names_are_shortened_in_their_middle():
    first, second = "a" * 40 + "1", "a" * 40 + "2"
    assert len(figure_style.drawn(first)) == figure_style.DRAWN
    assert figure_style.drawn(first) != figure_style.drawn(second)
    assert figure_style.drawn("fsrq") == "fsrq"


def test_mathematics_of_a_schema_is_drawn_or_refused():
    figure_style.check_math(r"$\log_{10}$ flux")
    figure_style.check_math("100 $")
    with pytest.raises(InputError, match="cannot be drawn"):
        figure_style.check_math("$x_$")
