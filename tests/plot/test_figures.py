"""What can be checked of a figure without eyes: what is drawn, and in whose axes."""

from __future__ import annotations

import itertools
import json
import re
import zlib
from datetime import datetime, timezone
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from PIL import Image
from sklearn.metrics import auc as area_under

from gpal import plot
from gpal.arrays import as_measurements
from gpal.catalog import Series
from gpal.errors import InputError
from gpal.evaluation.cross_validation import CrossValidation
from gpal.metrics import confusion_matrix, reliability_table
from gpal.plot import style
from gpal.plot.pairs import most_informative_pair

CLASSES = ["bll", "fsrq", "psr"]
STUDY = SimpleNamespace(
    labels={"entropy": np.array([2, 5]), "random": np.array([2, 5, 8])},
    curves={
        "entropy": {"error": np.array([[0.4, 0.2], [0.5, 0.1]]), "nll": np.ones((2, 2))},
        "random": {"error": np.full((2, 3), 0.4), "nll": np.ones((2, 3))},
    },
)
# The third is an upper limit, the fourth was not measured.
BANDS = np.array([[100, 300], [300, 1000], [1000, 3000], [3000, 10000.0]])
YEARS = 54682.7 + 365.25 * np.array([[0, 1], [1, 2], [2, 3], [3, 4.0]])
FLUXES = (
    np.array([3e-12, 2e-12, 1e-16, np.nan]),
    np.array([[1e-12, 1e-12], [5e-12, 1e-12], [np.nan, 4e-13], [np.nan, np.nan]]),
)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=120)
    y = (rng.random(120)[:, None] > P.cumsum(axis=1)).sum(axis=1)
    return y, P


@pytest.fixture(scope="module")
def sources():
    """Two features of four sources: one labelled, two candidates of which one lacks a value."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, 2.0], [3.0, 3.0]])
    X_err = np.array([[0.1, 0.1], [0.0, 0.2], [np.inf, 0.1], [0.1, 0.1]])
    return as_measurements(X, X_err, names=["flux", "index"]), {
        "label": np.array(["bll", "", "", ""]),
        "prediction": np.array(["bll", "psr", "psr", "bll"]),
        "candidate": np.array([False, True, True, False]),  # the last is of another class
        "classes": CLASSES,
    }


@pytest.fixture(scope="module")
def validation(sample):
    """What a validation's metrics.json holds of its figures."""
    y, P = sample
    nll = {"nll": {"mean": 0.4, "lower": 0.3, "upper": 0.6}}
    bins = {c: reliability_table(y == k, P[:, k]) for k, c in enumerate(CLASSES)}
    row = {"from": 0.0, "to": 1.0, "n": 9, "confidence": 0.8}
    row |= {"accuracy": 0.7, "accuracy_lower": 0.6, "accuracy_upper": 0.9}
    return {
        "kind": "validation",
        "variants": {
            "all features": {
                c: {"quadratic logistic regression": nll, "b": nll} for c in ("train", "by origin")
            }
        },
        "by_origin": {
            "unassociated": {"n_examined": 120, "reliability": bins},
            "unk": {"n_examined": 0, "reliability": {}},
        },
        "calibration": {"by origin": {"significance": [row, row], "error_size": [row]}},
        "settings": {"classes": CLASSES},
    }


def texts(axes) -> list[str]:
    figure = np.ravel(np.asarray(axes, object))[0].figure
    return [t.get_text() for t in figure.findobj(matplotlib.text.Text)]


def drawings(sample, sources, validation):
    """Function, arguments, number of axes, name of the argument that takes them."""
    sky = [0.0, 90.0], [0.0, 30.0], ["psr", "bll"]
    measured, said = sources
    return {
        "confusion_matrix": (plot.confusion_matrix, (*sample, CLASSES), {}, 1, "ax"),
        "reliability": (plot.reliability, (*sample, CLASSES), {}, 6, "axes"),
        "reliability without counts": (plot.reliability, (*sample, CLASSES), {}, 3, "axes"),
        "roc": (plot.roc, (*sample, CLASSES), {}, 1, "ax"),
        "purity_completeness": (plot.purity_completeness, (*sample, CLASSES), {}, 1, "ax"),
        "sky_map": (plot.sky_map, sky, {}, 1, "ax"),
        "features": (plot.features, (measured,), said, 2, "axes"),
        "scores": (plot.scores, (validation,), {}, 1, "axes"),
        "reliability_by_origin": (plot.reliability_by_origin, (validation,), {}, 3, "axes"),
        "calibration": (plot.calibration, (validation,), {}, 2, "axes"),
        "spectrum": (plot.spectrum, (BANDS, *FLUXES), {}, 1, "ax"),
        "spectra": (plot.spectra, ([Series("A", BANDS, *FLUXES)] * 2,), {}, 2, "axes"),
        "light_curve": (plot.light_curve, (YEARS, *FLUXES), {"unit": "mJy"}, 1, "ax"),
        "learning_curves": (plot.learning_curves, (STUDY,), {}, 2, "axes"),
    }


NAMES = [*drawings((0, 0), (0, {}), 0)]


def test_every_figure_function_is_tried():
    others = {"WIDTHS", "save"}
    assert {name.split()[0] for name in NAMES} == set(plot.__all__) - others


@pytest.mark.parametrize("name", NAMES)
def test_it_draws_into_the_axes_that_it_is_given(name, sample, sources, validation):
    function, arguments, options, number, keyword = drawings(sample, sources, validation)[name]
    figure = Figure(layout="constrained")
    projection = "mollweide" if name == "sky_map" else None
    mine = [figure.add_subplot(2, 4, k + 1, projection=projection) for k in range(number)]
    beside = figure.add_subplot(2, 4, 8)
    returned = function(*arguments, **options, **{keyword: mine if keyword == "axes" else mine[0]})
    assert np.ravel(np.asarray(returned, object)).tolist() == mine
    assert all(ax.has_data() for ax in mine) and not beside.has_data()
    assert not figure.legends  # a legend of the whole figure is its owner's business
    figure.draw_without_rendering()
    with pytest.raises(InputError, match="leave `width` out"):
        function(*arguments, **options, **{keyword: mine if number > 1 else mine[0]}, width=3)
    if number > 1:
        with pytest.raises(InputError, match=f"{number if number != 3 else '[36]'} axes"):
            function(*arguments, **options, axes=[beside] * 7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", ["column", "page", 5.0])
def test_it_is_as_wide_as_a_journals_column(name, width, sample, sources, validation):
    function, arguments, options, *_ = drawings(sample, sources, validation)[name]
    axes = np.ravel(np.asarray(function(*arguments, **options, width=width), object))
    figure = axes[0].figure
    inches = plot.WIDTHS.get(width, width)
    assert figure.get_figwidth() == pytest.approx(inches)
    assert axes[0].xaxis.label.get_size() == pytest.approx(13 * 2 / 3)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()  # nothing is cut off, but for a hair
    assert box.x0 > -0.05 and box.x1 < inches + 0.05
    for ax in axes:
        assert ax.get_window_extent().width > 0.6 * figure.dpi
    for kind in ("title", "xaxis", "yaxis"):
        labels = [getattr(ax, kind) if kind == "title" else getattr(ax, kind).label for ax in axes]
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:k]), kind


def test_journals_columns_are_as_wide_as_their_guides_say():
    millimetres = {"A&A column": 88, "A&A page": 180}
    for name, wide in millimetres.items():
        assert 25.4 * plot.WIDTHS[name] == pytest.approx(wide, abs=0.2)
    for part in ("column", "page"):
        assert plot.WIDTHS[part] == min(w for n, w in plot.WIDTHS.items() if n.endswith(part))
        for name, wide in plot.WIDTHS.items():
            laid_out, scale = style.canvas(name, 10.0)
            assert laid_out * scale == pytest.approx(wide) and scale * 12 == 8


def test_what_is_no_width_is_refused(sample):
    for width in ("colum", 0.1, 1e9, float("nan"), [3]):
        with pytest.raises(InputError, match="none of 'column', 'page'"):
            plot.reliability(*sample, width=width)


def test_text_and_marks_are_sized_by_the_labels_of_the_axes(sample):
    sizes = {}
    for size in (5, 10):
        with matplotlib.rc_context({"axes.labelsize": size}):
            ax = Figure().add_subplot()
        plot.confusion_matrix(*sample, CLASSES, ax=ax)
        sizes[size] = ax.texts[0].get_size()
    assert sizes[10] == 2 * sizes[5]


def test_confusion_matrix_shows_mean_and_error_of_every_cell(sample):
    y, P = sample
    fold = (np.arange(120) % 4)[None]
    folds = CrossValidation(y, np.array(CLASSES), fold, {"a": P[None], "b": P[None]}, {})
    mean, se = folds.estimate(confusion_matrix, "a")
    shown = texts(plot.confusion_matrix(folds))
    for i, j in np.ndindex(3, 3):
        assert f"{100 * mean[i, j]:.1f}\n± {100 * se[i, j]:.1f}" in shown
    assert [f"{c}\n({(y == k).sum()})" in shown for k, c in enumerate(CLASSES)] == [True] * 3
    assert f"{100 * mean[0, 0]:.1f}" in texts(plot.confusion_matrix(y, P, CLASSES))
    with pytest.raises(InputError, match="no model 'c'; there are: a, b"):
        plot.confusion_matrix(folds, model="c")


@pytest.mark.parametrize("size", [2, 3, 5, 7])
@pytest.mark.parametrize("length", [3, 9])
def test_names_of_a_confusion_matrix_are_within_the_figure(size, length):
    names = [f"{k}".ljust(length, "x") for k in range(size)]
    y = np.arange(size * 300) % size
    ax = plot.confusion_matrix([names[k] for k in y], np.eye(size)[y], names)
    ax.figure.canvas.draw()
    box = ax.get_tightbbox()
    assert box.x0 > 0 and box.y0 > 0 and box.y1 < ax.figure.bbox.height


def test_reliability_has_a_panel_and_a_histogram_per_class(sample):
    y, P = sample
    upper, lower = plot.reliability(y, P, CLASSES)
    assert [axes.get_title() for axes in upper] == CLASSES
    for axes in lower:
        assert sum(bar.get_height() for bar in axes.patches) == len(y)
    names = np.array(CLASSES)[y]
    again, _ = plot.reliability(names, P, CLASSES)
    for one, other in zip(upper, again, strict=True):
        np.testing.assert_array_equal(one.lines[1].get_data(), other.lines[1].get_data())


def test_confusions_of_a_class_without_a_source():
    ax = plot.confusion_matrix(["a", "a"], [[0.9, 0.1], [0.2, 0.8]], ["a", "b"])
    assert [text.get_text() for text in ax.texts] == ["50.0", "50.0", "–", "–"]


def test_sky_map_puts_sources_where_they_are():
    glon, glat = np.array([0.0, 90.0, 270.0, np.nan]), np.array([0.0, 30.0, -30.0, np.nan])
    prediction = np.array(["psr", "bll", style.MIXED, "bll"])
    ax = plot.sky_map(glon, glat, prediction, np.array([True] * 4), CLASSES)
    offsets = {c.get_label(): c.get_offsets() for c in ax.collections}
    # longitude grows to the left, so l = 90° lies at x = −90°
    np.testing.assert_allclose(offsets["psr (1)"][0], [0, 0], atol=1e-12)
    np.testing.assert_allclose(offsets["bll (1)"][0], np.deg2rad([-90, 30]))
    np.testing.assert_allclose(offsets["MIXED (1)"][0], np.deg2rad([90, -30]))
    with pytest.raises(InputError, match="'rectilinear' show no sky"):
        plot.sky_map(glon, glat, prediction, ax=Figure().add_subplot())
    with pytest.raises(InputError, match="give one of each for every source"):
        plot.sky_map(glon, glat[:2], prediction)


def test_most_informative_pair_is_found_among_noise_and_copies():
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=600)
    a, b = rng.normal(size=600) + 4 * (y == 1), rng.normal(size=600) + 4 * (y == 2)
    X = np.column_stack([rng.normal(size=600), a, a + 0.01 * rng.normal(size=600), b])
    X[::7, 3] = np.nan
    measured = as_measurements(X, np.where(np.isnan(X), np.inf, 0), names=["no", "a", "copy", "b"])
    pair = most_informative_pair(measured, y)
    assert 3 in pair and set(pair) & {1, 2}
    label = np.array(CLASSES)[y]
    left, _ = plot.features(measured, label=label)
    assert {left.get_xlabel(), left.get_ylabel()} == {measured.names[j] for j in pair}
    left, _ = plot.features(measured, label=label, pair=["b", "no"])
    assert (left.get_xlabel(), left.get_ylabel()) == ("b", "no")


def test_all_of_a_calibration_is_within_the_axes(validation):
    rows = validation["calibration"]["by origin"]["significance"]
    low = {**rows[0], "confidence": 0.38, "accuracy": 0.55, "accuracy_lower": 0.31}
    made = {**validation, "calibration": {"by origin": {"significance": [low, rows[1]]}}}
    (ax,) = np.ravel(plot.calibration(made))
    assert ax.get_ylim()[0] < 0.31


def test_features_that_no_source_or_one_of_a_class_has_together():
    X = np.random.default_rng(0).normal(size=(40, 3))
    label = np.repeat(["a", "b"], 20)
    apart = X[:, :2].copy()
    apart[::2, 0], apart[1::2, 1] = np.nan, np.nan
    left, _ = plot.features(
        as_measurements(apart, np.where(np.isnan(apart), np.inf, 0)), label=label
    )
    assert left.get_title().startswith("0 of 40")
    X[21:, 2] = np.nan  # of b one source has it
    measured = as_measurements(X, np.where(np.isnan(X), np.inf, 0), names=["u", "v", "w"])
    assert most_informative_pair(measured, (label == "b").astype(int)) == (0, 1)


def test_from_the_ninth_class_on_marks_and_lines_are_others():
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(20)]
    P = rng.dirichlet(np.ones(20), size=400)
    y = rng.integers(20, size=400)
    lines = plot.roc(y, P, names).lines[1:]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 20
    assert len({(style.OKABE_ITO[i % 8], style.class_marker(i)) for i in range(20)}) == 20


def test_of_many_sources_some_are_drawn_and_the_title_says_so():
    n = 12_000
    X = np.random.default_rng(0).normal(size=(n, 2))
    label = np.where(np.arange(n) < 2, "a", "")
    said = {"label": label, "prediction": np.where(label == "", "b", "")}
    left, right = plot.features(as_measurements(X, 0.1), **said)
    assert left.get_title() == "2 labelled, by catalogue class"
    title = re.fullmatch(
        r"10,000 of 11,998 candidates,\nby predicted class \((\d+) outside\)", right.get_title()
    )
    places = [c.get_offsets() for c in right.collections if isinstance(c, PathCollection)]
    points = np.vstack(places)
    assert len(points) == 10_000 and len(np.unique(points, axis=0)) == 10_000
    assert np.isin(points[:, 0], X[2:, 0]).all()
    (left_end, bottom), (right_end, top) = zip(right.get_xlim(), right.get_ylim())
    inside = (points >= [left_end, bottom]) & (points <= [right_end, top])
    assert title and int(title[1]) == np.sum(~inside.all(axis=1)) > 20


def test_of_few_sources_all_are_within_the_axes():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[7] = [30.0, -20.0]
    left, right = plot.features(as_measurements(X, 0.1), label=np.where(X[:, 0] > 0, "a", "b"))
    assert left.get_title() == "100 labelled, by catalogue class"
    for ax in (left, right):
        assert ax.get_xlim()[0] < X[:, 0].min() and ax.get_xlim()[1] > 30
        assert ax.get_ylim()[0] < -20 and ax.get_ylim()[1] > X[:, 1].max()


def test_features_of_measured_sources_only(sources):
    measured, said = sources
    left, right = plot.features(measured, axis_labels=["flux [ph]", "index"], **said)
    assert left.get_title().startswith("1 labelled")
    assert right.get_title().startswith("1 of 2 candidates")
    assert left.get_xlabel() == "flux [ph]" and left.get_ylabel() == "index"
    with pytest.raises(InputError, match="give a label, a prediction"):
        plot.features(measured, label=["bll"])


def test_a_curve_is_the_mean_of_its_repeats():
    left, right = plot.learning_curves(STUDY.labels, STUDY.curves)
    entropy, random, level = left.lines
    np.testing.assert_allclose(entropy.get_xydata(), [[2, 0.45], [5, 0.15]])
    assert level.get_ydata()[0] == pytest.approx(0.4) and random.get_label() == "random"
    assert [ax.get_ylabel() for ax in (left, right)] == ["test error", "test NLL (nats)"]


def test_files_carry_their_provenance(tmp_path, sample):
    provenance = {"gpal": "9.9", "catalog": {"sha256": "abc"}, "date": "2024-05-06T07:08:09+00:00"}
    axes = plot.reliability(*sample, CLASSES, width="column")
    plot.save(axes, tmp_path / "a.png", {"provenance": provenance})
    image = Image.open(tmp_path / "a.png")
    assert image.text["Software"] == "gpal 9.9"
    assert json.loads(image.text["Description"]) == provenance
    assert image.width == int(plot.WIDTHS["column"] * 300)
    plot.save(axes[0, 0], tmp_path / "a.pdf", provenance)
    written = (tmp_path / "a.pdf").read_bytes()
    assert b"/Creator (gpal 9.9)" in written and b"/CreationDate (D:20240506070809" in written
    subject = re.search(rb"/Subject \((.*?[^\\])\)", written, re.DOTALL)[1]
    assert json.loads(subject.replace(b"\\", b"")) == provenance
    streams = re.findall(rb"stream\r?\n(.*?)endstream", written, re.DOTALL)
    assert b"/FontType 42" in written or (b"/Subtype /CIDFontType2" in written and streams)
    assert zlib.decompress(streams[0])
    box = [float(x) for x in re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+)", written).groups()]
    assert box[0] == pytest.approx(72 * plot.WIDTHS["column"], abs=0.01)
    for name in ("b.pdf", "c.pdf"):
        plot.save(plot.reliability(*sample, CLASSES, width="column"), tmp_path / name, provenance)
    assert (tmp_path / "b.pdf").read_bytes() == (tmp_path / "c.pdf").read_bytes()


def test_without_a_result_a_file_says_version_and_date(tmp_path, sample, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    plot.save(plot.confusion_matrix(*sample), tmp_path / "a.png")
    said = json.loads(Image.open(tmp_path / "a.png").text["Description"])
    assert datetime.fromisoformat(said["date"]) == datetime.fromtimestamp(0, timezone.utc)
    with pytest.raises(InputError, match=r"'a.tif' should end in .png or .pdf"):
        plot.save(plot.confusion_matrix(*sample), tmp_path / "a.tif")


def test_a_notebook_shows_a_figure(sample):
    assert plot.confusion_matrix(*sample).figure._repr_png_().startswith(b"\x89PNG")


def test_colours_differ_and_global_state_is_left_alone(sample):
    before = dict(matplotlib.rcParams)
    plot.reliability(*sample, CLASSES)
    assert dict(matplotlib.rcParams) == before
    assert len(set(style.class_colours(list("abcdefgh")).values())) == 8


@pytest.mark.parametrize("name", ["$x$", "a$b", "_hidden", "$x_$", "\\$", "a_b^c"])
def test_names_are_drawn_as_text(name, tmp_path):
    P = np.array([[0.9, 0.1], [0.25, 0.75]])
    ax = plot.confusion_matrix([0, 1], P, [name, "b"])
    ticks = [label for label in ax.get_xticklabels()]
    text, is_math = ticks[0]._preprocess_math(ticks[0].get_text())
    assert text.strip() == name and not is_math
    sky = plot.sky_map(np.zeros(2), np.zeros(2), [name, "b"], classes=[name, "b"])
    assert len(sky.figure.legends[0].get_texts()) == 4  # others, MIXED, both classes
    plot.save(sky, tmp_path / "sky.png", {})


def test_long_names_are_shortened_in_their_middle():
    first, second = "a" * 40 + "1", "a" * 40 + "2"
    assert len(style.drawn(first)) == style.DRAWN
    assert style.drawn(first) != style.drawn(second)
    assert style.drawn("fsrq") == "fsrq"


def test_mathematics_of_a_schema_is_drawn_or_refused():
    style.check_math(r"$\log_{10}$ flux")
    style.check_math("100 $")
    with pytest.raises(InputError, match="cannot be drawn"):
        style.check_math("$x_$")


@pytest.mark.parametrize("draw", [plot.spectrum, plot.light_curve])
def test_a_source_has_points_and_upper_limits(draw):
    """Two points at their fluxes with their errors, within the axis; one arrow at 95 %."""
    ax = draw(BANDS, *FLUXES)
    points, limits = ax.containers
    np.testing.assert_allclose(points.lines[0].get_ydata(), [3e-12, 2e-12])
    np.testing.assert_allclose(limits.lines[0].get_ydata(), [1e-16 + 2 * 4e-13])
    segments = points.lines[2][1].get_segments()
    np.testing.assert_allclose(segments[0][:, 1], [2e-12, 4e-12])
    if draw is plot.spectrum:
        assert segments[1][0, 1] == pytest.approx(0.05 * 2e-12)  # no zero on this axis
        np.testing.assert_allclose(points.lines[0].get_xdata(), np.sqrt([3e4, 3e5]))
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert r"\nu F_\nu" in ax.get_ylabel() and "erg" in ax.get_ylabel()
    else:
        assert ax.get_ylim()[0] == 0
    with pytest.raises(InputError, match=r"4 fluxes need intervals and errors of shape \(4, 2\)"):
        draw(BANDS[:3], *FLUXES)
    with pytest.raises(InputError, match="is no series of fluxes"):
        draw("4FGL J0534.5+2200")


def test_a_spectrum_without_energies_has_its_bands_in_a_row():
    ax = plot.spectrum(np.full((4, 2), np.nan), *FLUXES)
    np.testing.assert_allclose(ax.containers[0].lines[0].get_xdata(), [0.5, 1.5])


def test_a_roc_curve_is_counted_threshold_by_threshold(sample):
    y, P = sample
    ax = plot.roc(y, P, CLASSES)
    for c, line in enumerate(ax.lines[1:]):
        p, member = P[:, c], y == c
        counted = {((p[~member] >= t).mean(), (p[member] >= t).mean()) for t in p} | {(0.0, 0.0)}
        points = [tuple(point) for point in line.get_xydata()]
        assert len(points) > 10 and set(points) <= counted
        assert area_under(*np.transpose(points)) == pytest.approx(
            float(line.get_label().split("AUC ")[1].rstrip(")")), abs=5e-4
        )
    only = plot.roc(y[y < 2], P[y < 2], CLASSES)
    assert only.lines[3].get_label() == "psr (no AUC)" and len(only.lines[3].get_xdata()) == 0


def test_purity_and_completeness_are_of_the_same_list(sample):
    y, P = sample
    ax = plot.purity_completeness(y, P, CLASSES, purity=0.7)
    for c, name in enumerate(CLASSES):
        p, member = P[:, c], y == c
        [line] = [line for line in ax.lines if str(line.get_label()).startswith(name)]
        for x, purity in line.get_xydata()[::10]:
            t = np.sort(p[member])[-round(x * member.sum())]  # so many members, or as many by ties
            assert any(
                np.isclose(member[p >= s].mean(), purity)
                and np.isclose(member[p >= s].sum() / member.sum(), x)
                for s in p[p <= t]
            )
        t = float(line.get_label().split("≥ ")[1].rstrip(")"))
        assert member[p >= t - 0.005].mean() == pytest.approx(0.7, abs=0.05)
    never = plot.purity_completeness([0, 1], [[0.2, 0.8], [0.8, 0.2]], ["a", "b"], purity=1.0)
    assert [text.get_text() for text in never.figure.legends[0].get_texts()] == [
        *("promised", "a (never 1)", "b (never 1)"),
    ]


@pytest.mark.parametrize("decades", [0.6, 1.0, 1.4, 1.8, 2.6])
def test_the_fluxes_beside_a_spectrum_do_not_run_into_each_other(decades):
    F = 1.7e-13 * 10.0 ** np.linspace(0.0, decades, 4)
    ax = plot.spectra([Series("A", BANDS, F, np.stack([0.1 * F, 0.1 * F], axis=1))] * 6)[5]
    ax.figure.canvas.draw()
    labels = [*ax.get_yticklabels(), *ax.get_yticklabels(minor=True)]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    inside = sorted(
        (box for box in boxes if ax.bbox.y0 <= box.y0 + box.height / 2 <= ax.bbox.y1),
        key=lambda box: box.y0,
    )
    assert len(inside) >= 2
    assert all(below.y1 <= above.y0 for below, above in itertools.pairwise(inside))
