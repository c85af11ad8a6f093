"""Names through whole runs: refused before any fit, or right in every file that comes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from astropy.table import Table
from sklearn.base import clone

from gpal.active.campaign import Campaign
from gpal.active.simulate import catalog_problem, simulate
from gpal.errors import InputError
from gpal.evaluation import logistic_regression
from gpal.files.csv import read_csv
from gpal.jobs import classify, validate
from gpal.report.campaign import render_campaign

PAIRS = [("0", "1"), ("True", "False"), ("NA", "nan"), ("001", "1E5"), ("=1+1", "-1"), ("#a", "'b")]
BAD_CLASSES = [("a", "a_std"), ("A", "a"), ("MIXED", "a"), ("a", "b" * 500), ("a", "b\nc\x1b[31m")]


def called(catalog, first, second):
    """The same sources, the two classes called otherwise."""
    return catalog.with_classes({first: ["bll"], second: ["psr"]})


def feature_called(catalog, name):
    names = (*catalog.feature_names[:-1], name)
    return replace(catalog, measurements=replace(catalog.measurements, names=names))


def bad_runs(catalog):
    """(catalog, folder's name, seed) of runs that cannot be written."""
    usable = called(catalog, "a", "b")
    ids = catalog.names.astype(object)
    ids[5] = "S\x1b[2J"
    measurements = replace(usable.measurements, ids=ids.astype(str))
    return [
        *((called(catalog, *pair), "out", 0) for pair in BAD_CLASSES),
        *((feature_called(usable, name), "out", 0) for name in ("a\nb", "x" * 65, "INDEX", "")),
        (replace(usable, measurements=measurements), "out", 0),
        (usable, "o\nut", 0),
        (usable, "out", -1),
    ]


@pytest.fixture
def failing(noisy_logistic):
    return clone(noisy_logistic).set_params(fail=True)  # RuntimeError if it were fitted


def refused(run, *arguments, **options):
    with pytest.raises(InputError) as caught:
        run(*arguments, **options)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_classify_refuses_before_any_fit(small_catalog, failing, tmp_path):
    for catalog, name, seed in bad_runs(small_catalog):
        settings = {"classifier": failing, "random_state": seed, "n_splits": 2}
        refused(classify, catalog, tmp_path / name, **settings)
    assert not list(tmp_path.iterdir())


def test_a_label_that_cannot_be_drawn_is_refused_before_any_fit(small_catalog, failing, tmp_path):
    for label in (r"$\nothing$", r"$x_$"):
        schema = small_catalog.schema
        feature = replace(schema.features["index"], label=label)
        schema = replace(schema, features={**schema.features, "index": feature}, feature_sets={})
        catalog = replace(called(small_catalog, "a", "b"), schema=schema)
        with pytest.raises(InputError, match="cannot be drawn"):
            classify(catalog, tmp_path / "out", classifier=failing, n_splits=2)


def test_validate_refuses_before_any_fit(two_releases, failing, tmp_path):
    old, new = two_releases
    usable = called(new, "a", "b")
    for catalog, name, seed in bad_runs(old):
        newer = new.with_classes(catalog.groups)
        settings = {"classifier": failing, "random_state": seed}
        refused(validate, catalog, newer, tmp_path / name, **settings)
    ids = usable.names.astype(object)
    ids[:] = [f"{name}\n" for name in ids]
    strange = replace(usable, measurements=replace(usable.measurements, ids=ids.astype(str)))
    refused(validate, called(old, "a", "b"), strange, tmp_path / "out", classifier=failing)
    assert not list(tmp_path.iterdir())


def test_a_campaign_that_could_never_fit_is_not_started(small_catalog, tmp_path):
    for catalog, name, seed in bad_runs(small_catalog):
        refused(Campaign.start, catalog, tmp_path / name, parameters={"random_state": seed})
    assert not list(tmp_path.iterdir())


def test_simulate_refuses_before_any_fit(small_catalog, failing, tmp_path):
    runs = bad_runs(small_catalog)
    for catalog, name, seed in [*runs[:9], *runs[10:]]:  # no source is named in a study
        problem = partial(catalog_problem, catalog, initial=8)
        settings = {"repeats": 1, "queries": 2, "random_state": seed}
        refused(simulate, problem, failing, tmp_path / name, **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("pair", PAIRS)
def test_classes_are_words_whatever_they_look_like(small_catalog, noisy_logistic, tmp_path, pair):
    catalog = called(small_catalog, *pair)
    prior = dict(zip(pair, (0.4, 0.6)))
    result = classify(
        catalog, tmp_path / "out", classifier=noisy_logistic, n_splits=2, prior=prior, confidence=0
    )
    prediction = np.asarray(result.table["prediction"])
    html = (result.folder / "report.html").read_text()
    listed = len(re.findall(r'<tr data-class="', html))
    assert listed == np.sum(result.table["candidate"]) > 10
    csv = read_csv(result.folder / "probabilities.csv", {"prediction": str, "label": str})
    assert csv["prediction"].tolist() == prediction.tolist()
    assert set(csv["label"]) == {"", *pair}
    fits = Table.read(result.folder / "probabilities.fits")
    for name in pair:
        column = f"p_{name}"
        np.testing.assert_array_equal(fits[column], result.table[column])
        assert f"{column}_train" in fits.colnames


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("$x$", "a_b^c"), ("_a", "b$"), ("W" * 40, "中文")])
def test_names_are_drawn_as_text(small_catalog, noisy_logistic, tmp_path, pair):
    catalog = feature_called(called(small_catalog, *pair), "$f_$")
    features = {**catalog.schema.features, "$f_$": catalog.schema.features["flux"]}
    schema = replace(catalog.schema, features=features, feature_sets={})
    result = classify(
        replace(catalog, schema=schema), tmp_path / "out", classifier=noisy_logistic, n_splits=2
    )
    assert len(list(result.folder.glob("*.png"))) == 6
    with Campaign.start(catalog, tmp_path / "c", classifier=noisy_logistic) as campaign:
        campaign.ask(5)
        page = render_campaign(campaign).read_text()
    assert page.count('class="target"') == 10 and pair[0] in page


def test_a_file_name_that_is_no_utf8_is_shown_as_an_escape(small_catalog, noisy_logistic, tmp_path):
    origin = {**small_catalog.provenance, "title": "", "file": "caf\udce9", "catalog": "a\nb\udce9"}
    catalog = replace(called(small_catalog, "a", "b"), provenance=origin)
    result = classify(catalog, tmp_path / "out", classifier=noisy_logistic, n_splits=2)
    assert r"caf\udce9" in (result.folder / "report.html").read_text()
    assert Table.read(result.folder / "probabilities.fits").meta["CATALOG"] == r"a\nb\udce9"
    with Campaign.start(catalog, tmp_path / "c", classifier=noisy_logistic) as campaign:
        assert r"caf\udce9" in render_campaign(campaign).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("0", "1"), ("True", "False"), ("$x$", "_b")])
def test_validation_page_of_such_classes(two_releases, tmp_path, pair):
    old, new = (called(catalog, *pair) for catalog in two_releases)
    result = validate(old, new, tmp_path / "out", classifier=logistic_regression(), n_seeds=1)
    html = (result.folder / "report.html").read_text()
    for name in pair:
        assert f'<b class="name class-{result.metrics["settings"]["classes"].index(name)}">' in html
        assert result.metrics["n_examined_per_class"][name] > 0
    assert {f"p_{name}_prior" for name in pair} <= set(result.table.colnames)
