"""Error-bar realism: recovered where it is known, and applied when asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.catalog.error_calibration import calibrate, write_calibration
from gpal.errors import InputError
from gpal.measurements import Measurements

MAPPING = {
    "id": "name",
    "ra": "ra",
    "dec": "dec",
    "features": {
        "index": {"column": "index", "error": "e_index"},
        "beta": {"column": "beta", "error": "e_beta"},
    },
}
TRUE_SCALE, CORRELATION = {"index": 1.3, "beta": 1.0}, -0.5


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """4000 sources; the new release averages the old one's data and as much again.

    Printed errors are too small by TRUE_SCALE and scatter by 10 %.
    """
    rng = np.random.default_rng(1)
    n, folder = 4000, tmp_path_factory.mktemp("releases")
    size = rng.lognormal(-2, 0.6, (n, 1))
    shape = np.linalg.cholesky([[1, CORRELATION], [CORRELATION, 1]])
    truth = rng.normal(2, 1, (n, 2))
    first, second = (size * (rng.normal(size=(n, 2)) @ shape.T) for _ in range(2))
    position = {"ra": rng.uniform(0, 360, n), "dec": rng.uniform(-80, 80, n)}
    found = []
    for name, noise, error in (
        ("old", first, size),
        ("new", (first + second) / 2, size / np.sqrt(2)),
    ):
        table = Table({"name": [f"S{i}" for i in range(n)], **position})
        for j, feature in enumerate(("index", "beta")):
            printed = error[:, 0] / TRUE_SCALE[feature] * rng.lognormal(0, 0.1, n)
            table[feature], table[f"e_{feature}"] = truth[:, j] + noise[:, j], printed
        table.write(folder / f"{name}.ecsv")
        found.append(load_catalog(folder / f"{name}.ecsv", mapping=MAPPING))
    return found


@pytest.fixture(scope="module")
def found(releases):
    return calibrate(*releases)


def test_scales_and_correlation_are_recovered(found):
    for name, true in TRUE_SCALE.items():
        scale = found.scale[name]
        assert scale.value == pytest.approx(true, rel=0.06)
        assert scale.lower < scale.value < scale.upper
        assert scale.upper - scale.lower < 0.15
        assert scale.by_size == pytest.approx([true] * 3, rel=0.12)
        assert scale.n == found.n_matched == 4000
    assert found.correlation["index", "beta"] == pytest.approx(CORRELATION, abs=0.04)


def test_a_few_variable_sources_do_not_matter(releases, found):
    old, new = releases
    X = new.X.copy()
    X[:200] += 50
    moved = new.measurements.__class__(X, new.X_err, new.feature_names, ids=new.names)
    again = calibrate(old, new.__class__(**{**new.__dict__, "measurements": moved}))
    assert again.scale["index"].value == pytest.approx(found.scale["index"].value, rel=0.1)


def test_units_are_those_of_the_old_catalog(releases, found):
    old, new = (
        replace(one, measurements=replace(one.measurements, units=("mJy", ""))) for one in releases
    )
    in_Jy = new.measurements.scale(np.zeros(2), np.array([1000.0, 1.0]))
    new = replace(new, measurements=replace(in_Jy, units=("Jy", "")))
    again = calibrate(old, new)
    assert again.scale["index"].value == pytest.approx(found.scale["index"].value, rel=1e-9)
    logged = replace(new, measurements=replace(new.measurements, units=("log10(Jy)", "")))
    with pytest.raises(InputError, match="in 'mJy' in the old catalog and in 'log10\\(Jy\\)'"):
        calibrate(old, logged)


def test_independent_data_have_the_sum_of_variances(releases):
    nested, independent = calibrate(*releases), calibrate(*releases, nested=False)
    # (σ² − σ²/2)/(σ² + σ²/2) = 1/3
    ratio = independent.scale["index"].value / nested.scale["index"].value
    assert ratio == pytest.approx(np.sqrt(1 / 3), rel=0.02)


def test_releases_that_share_all_data_are_refused(releases):
    old, _ = releases
    with pytest.raises(InputError, match="further apart"):
        calibrate(old, old)


def test_a_correlation_of_what_is_no_feature_is_refused(releases, tmp_path):
    releases[0].table.write(tmp_path / "old.ecsv")
    (tmp_path / "errors.toml").write_text(
        '[error_calibration]\nscale = { index = 1.5 }\ncorrelation = { "index,betta" = 0.5 }\n'
    )
    with pytest.raises(InputError, match=r"error_scale names 'betta'.*'beta'"):
        load_catalog(tmp_path / "old.ecsv", mapping=MAPPING, error_scale=tmp_path / "errors.toml")


def test_sizes_that_cannot_be_told_keep_their_place(releases, tmp_path):
    """A third whose errors did not shrink says nothing; the others are not called by its name."""
    old, new = releases
    σ = old.X_err
    small = σ[:, 0] < np.quantile(σ[:, 0], 0.34)
    errors = np.where(small[:, np.newaxis], σ, new.X_err)
    new = replace(new, measurements=replace(new.measurements, X_err=errors))
    found = calibrate(old, new)
    sizes = found.scale["index"].by_size
    assert np.isnan(sizes[0]) and sizes[1:] == pytest.approx([TRUE_SCALE["index"]] * 2, rel=0.2)
    write_calibration(tmp_path / "errors.toml", found, old, new)
    old.table.write(tmp_path / "old.ecsv")
    scaled = load_catalog(
        tmp_path / "old.ecsv", mapping=MAPPING, error_scale=tmp_path / "errors.toml"
    )
    assert scaled.X_err[0, 0] == pytest.approx(
        old.X_err[0, 0] * found.scale["index"].value, rel=1e-3
    )


def test_what_most_sources_have_the_same_of_has_no_scale(releases):
    old, new = releases
    X = new.X.copy()
    X[:3000, 1] = old.X[:3000, 1]
    new = replace(new, measurements=replace(new.measurements, X=X))
    with pytest.warns(UserWarning, match="'beta' is left out: it is the same in both"):
        found = calibrate(old, new)
    assert list(found.scale) == ["index"] and found.correlation == {}


def test_correlations_are_those_of_errors_that_can_be(releases):
    """Those of two magnitudes and their difference, each found by itself, need not be."""
    with_colour = []
    for one in releases:
        X, σ = one.X, one.X_err
        colour = X[:, :1] - X[:, 1:], np.hypot(σ[:, :1], σ[:, 1:])
        names = (*one.feature_names, "colour")
        parts = (np.hstack(pair) for pair in zip((X, σ), colour))
        with_colour.append(replace(one, measurements=Measurements(*parts, names, ids=one.names)))
    for part in (slice(2800, 2900), slice(None)):
        found = calibrate(*(one[part] for one in with_colour))
        ρ = np.eye(3)
        for (a, b), value in found.correlation.items():
            i, j = names.index(a), names.index(b)
            ρ[i, j] = ρ[j, i] = round(value, 3)
        assert np.linalg.eigvalsh(ρ)[0] > 0
    assert found.correlation["index", "beta"] == pytest.approx(CORRELATION, abs=0.04)


def test_a_comma_in_a_name_is_refused_before_it_is_written(releases):
    old, new = (
        replace(one, measurements=replace(one.measurements, names=("ratio(a,b)", "beta")))
        for one in releases
    )
    with pytest.raises(InputError, match=r"'ratio\(a,b\)' has a comma in its name"):
        calibrate(old, new)


def test_file_is_used_when_asked(releases, found, tmp_path):
    old, new = releases
    path = tmp_path / "errors.toml"
    write_calibration(path, found, old, new)
    folder_file = old.provenance["file"]
    table = tmp_path / folder_file
    old.table.write(table)
    plain = load_catalog(table, mapping=MAPPING)
    scaled = load_catalog(table, mapping=MAPPING, error_scale=path)
    np.testing.assert_array_equal(plain.X_err, old.X_err)
    factor = [round(found.scale[name].value, 3) for name in scaled.feature_names]
    np.testing.assert_allclose(scaled.X_err, plain.X_err * factor)
    np.testing.assert_array_equal(scaled.X, plain.X)
    covariance = scaled.measurements.covariance
    np.testing.assert_allclose(
        covariance[:, 0, 1] / (scaled.X_err[:, 0] * scaled.X_err[:, 1]),
        round(found.correlation["index", "beta"], 3),
    )
    np.testing.assert_allclose(np.diagonal(covariance, axis1=1, axis2=2), scaled.X_err**2)
    assert scaled.provenance["error_scale"]["index"] == factor[0]
    assert scaled.provenance["error_scale_measured"]["matched"] == "4000"

    # as a schema of its own: kept, and used when asked
    schema = {**MAPPING, "error_calibration": {"scale": {"index": 2.0}}}
    kept = load_catalog(table, mapping=schema)
    np.testing.assert_array_equal(kept.X_err, plain.X_err)
    with pytest.warns(UserWarning, match=r"no factor for 'beta': errors there stay as they are"):
        used = load_catalog(table, mapping=schema, error_scale=True)
    np.testing.assert_allclose(used.X_err, plain.X_err * [2.0, 1.0])


@pytest.mark.parametrize("name", ["4fgl", "4fgl-dr4"])
def test_values_not_measured_stay_so(name):
    plain, scaled = load_catalog(name), load_catalog(name, error_scale=True)
    np.testing.assert_array_equal(np.isinf(scaled.X_err), np.isinf(plain.X_err))
    assert scaled.provenance["error_scale_measured"]["old"] == plain.schema.title
    assert (scaled.X_err > plain.X_err).any()


@pytest.mark.parametrize(
    "asked, words",
    [
        (True, "no error calibration"),
        ({"beta": -1.0}, "positive"),
        ({"colour": 2.0}, "colour"),
        ("missing.toml", "check the path"),
    ],
)
def test_bad_scales(asked, words):
    with pytest.raises(InputError, match=words):
        load_catalog("fl16y", error_scale=asked)


def test_a_file_without_calibration(tmp_path):
    (tmp_path / "empty.toml").write_text('title = "nothing"\n')
    with pytest.raises(InputError, match="calibrate-errors"):
        load_catalog("4fgl", error_scale=tmp_path / "empty.toml")
