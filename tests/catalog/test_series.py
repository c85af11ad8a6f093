"""Spectra and light curves of single sources, against the columns of the files themselves."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from astropy.time import Time
from full_releases import full_file

from gpal.catalog import Schema, light_curve, load_catalog, spectrum
from gpal.catalog.registry import catalogs_folder
from gpal.catalog.series import band_fluxes
from gpal.errors import InputError

SCHEMA = {
    "id": "Name",
    "features": {"index": {"column": "Index", "error": "none"}},
    "bands": {
        "low": {"nuFnu": "E1", "flux": "F1", "error": "e_F1", "energy": [100, 300]},
        "high": {"nuFnu": "E2", "flux": "F2", "error": ["lo_F2", "hi_F2"]},
    },
    "history": {"flux": "Fluxes", "error": "e_Fluxes", "edges": "Times"},
}


@pytest.fixture
def survey(tmp_path):
    """Three sources in two bands and two years; the second is not detected in the first of them."""
    table = Table({"Name": ["A 1", "B 2", "C 3"], "Index": [1.0, 2.0, 3.0]})
    table["F1"], table["e_F1"], table["E1"] = [4.0, 1.0, 2.0], [1.0, 2.0, np.nan], [8.0, 2.0, 4.0]
    table["F2"], table["lo_F2"], table["hi_F2"] = [5.0, 5.0, 5.0], [-1.0, np.nan, -2.0], [2, 2, 2.0]
    table["E2"] = [10.0, 10.0, 0.0]
    table["E1"].unit = "erg / (s cm2)"
    table["Fluxes"] = [[1.0, 2.0], [0.1, 2.0], [np.nan, 3.0]]
    table["e_Fluxes"] = np.array([[[-0.1, 0.2]] * 2, [[np.nan, 0.5], [-0.3, 0.3]], [[-1, 1]] * 2])
    table["Fluxes"].unit = "mJy"
    days = Table({"start": [0.0, 365.25 * 86400, 730.5 * 86400]})
    reference = {"MJDREFI": 51910, "MJDREFF": "7.428703703703703D-4", "TIMESYS": "TT"}
    days.meta = reference
    hdus = [fits.table_to_hdu(table), fits.table_to_hdu(days)]
    hdus[1].name = "Times"
    path = tmp_path / "survey.fits"
    fits.HDUList([fits.PrimaryHDU(), *hdus]).writeto(path)
    return path


def test_errors_of_energy_fluxes_have_the_ratio_of_the_photon_fluxes(survey):
    catalog = load_catalog(survey, schema=Schema.from_dict(SCHEMA))
    first, second, third = (spectrum(catalog, name) for name in ("A 1", "b2", "C 3"))
    np.testing.assert_allclose(first.flux, [8, 10])
    np.testing.assert_allclose(first.errors, [[2, 2], [2, 4]])
    assert not first.is_limit.any() and first.unit == "erg / (s cm2)"
    np.testing.assert_array_equal(first.edges, [[100, 300], [np.nan, np.nan]])
    assert second.name == "B 2" and second.is_limit.tolist() == [True, True]
    np.testing.assert_allclose(second.upper_limit, [2 + 2 * 4, 10 + 2 * 4])
    assert np.isnan(third.flux[0]) and not third.is_limit[0]  # without an error: not measured
    assert np.isnan(third.upper_limit).all()


def test_bands_are_in_one_unit_and_sentinels_are_no_fluxes(survey):
    table = Table.read(survey, hdu=1)
    table["E2"] *= 1e3
    table["E2"].unit = "1e-3 erg / (s cm2)"
    table["F1"].unit, table["e_F1"].unit = "1 / (s cm2)", "1 / (s m2)"
    table["e_F1"] *= 1e4
    table["F1"][1] = table["E1"][1] = table["e_F1"][1] = -99
    table.write(survey.with_name("other.fits"))
    rules = Schema.from_dict({**SCHEMA, "sentinels": [-99]})
    catalog = load_catalog(survey.with_name("other.fits"), schema=rules)
    first, second = spectrum(catalog, "A 1"), spectrum(catalog, "B 2")
    np.testing.assert_allclose(first.flux, [8, 10])
    np.testing.assert_allclose(first.errors, [[2, 2], [2, 4]])
    assert np.isnan(second.flux[0]) and not second.is_limit[0]
    table["E2"].unit = "mJy"
    table.write(survey.with_name("odd.fits"))
    odd = load_catalog(survey.with_name("odd.fits"), schema=rules)
    with pytest.raises(InputError, match="E2"):
        spectrum(odd, "A 1")


def test_light_curves_are_bound_by_the_times_of_their_extension(survey):
    schema = Schema.from_dict(SCHEMA)
    first = light_curve(survey, "A 1", schema=schema)
    start = Time("2001-01-01T00:00:00", scale="utc").tt.mjd  # where the mission's clock begins
    np.testing.assert_allclose(first.edges - start, 365.25 * np.array([[0, 1], [1, 2]]), atol=1e-6)
    np.testing.assert_allclose(first.flux, [1, 2])
    np.testing.assert_allclose(first.errors, [[0.1, 0.2]] * 2)
    second = light_curve(survey, "B 2", schema=schema)
    assert second.is_limit.tolist() == [True, False] and second.unit == "mJy"
    assert second.upper_limit[0] == pytest.approx(0.1 + 2 * 0.5)
    assert np.isnan(light_curve(survey, "C 3", schema=schema).flux[0])


def test_errors_and_times_of_light_curves_are_in_their_own_units(survey):
    schema = Schema.from_dict(SCHEMA)
    before = light_curve(survey, "B 2", schema=schema)
    with fits.open(survey) as hdus:
        hdus[1].columns["e_Fluxes"].unit = "Jy"
        hdus[1].data["e_Fluxes"] /= 1000
        hdus["Times"].columns["start"].unit = "d"
        hdus["Times"].data["start"] /= 86400
        hdus.writeto(survey.with_name("other.fits"))
        hdus[1].columns["e_Fluxes"].unit = "s"
        hdus.writeto(survey.with_name("odd.fits"))
    found = light_curve(survey.with_name("other.fits"), "B 2", schema=schema)
    for name in ("edges", "flux", "errors"):
        np.testing.assert_allclose(getattr(found, name), getattr(before, name))
    with pytest.raises(InputError, match="'e_Fluxes' has the unit 's', which does not convert"):
        light_curve(survey.with_name("odd.fits"), "B 2", schema=schema)


def test_times_count_from_what_the_header_says(survey):
    schema = Schema.from_dict(SCHEMA)
    before = light_curve(survey, "A 1", schema=schema)
    with fits.open(survey) as hdus:
        header = hdus["Times"].header
        header["MJDREF"] = 50000.0
        hdus.writeto(survey.with_name("both.fits"))
        del header["MJDREFI"], header["MJDREFF"]
        hdus.writeto(survey.with_name("one.fits"))
        header["MJDREF"] = "unknown"
        hdus.writeto(survey.with_name("odd.fits"))
        del header["MJDREF"]
        hdus.writeto(survey.with_name("none.fits"))
    edges = {
        name: light_curve(survey.with_name(f"{name}.fits"), "A 1", schema=schema).edges
        for name in ("both", "one")
    }
    np.testing.assert_array_equal(edges["both"], before.edges)
    np.testing.assert_allclose(edges["one"], before.edges - 1910 - 7.428703703703703e-4, rtol=1e-12)
    for name in ("odd", "none"):
        with pytest.raises(InputError, match="'Times' needs MJDREF, or MJDREFI and MJDREFF"):
            light_curve(survey.with_name(f"{name}.fits"), "A 1", schema=schema)


def test_what_is_not_there_is_refused(survey):
    catalog = load_catalog(survey, schema=Schema.from_dict(SCHEMA))
    with pytest.raises(InputError, match="no source 'D 4' in the catalog"):
        spectrum(catalog, "D 4")
    bare = {key: value for key, value in SCHEMA.items() if key != "bands"}
    with pytest.raises(InputError, match="has no bands"):
        spectrum(load_catalog(survey, schema=Schema.from_dict(bare)), "A 1")
    with pytest.raises(InputError, match=r"no history of fluxes; .*'gll_psc_v35.fit' from https:"):
        light_curve("4fgl-dr4", "4FGL J0534.5+2200")
    with fits.open(survey, mode="update") as hdus:
        hdus["Times"].data = hdus["Times"].data[:2]
    with pytest.raises(InputError, match="2 times in extension 'Times' do not bound the 2 fluxes"):
        light_curve(survey, "A 1", schema=Schema.from_dict(SCHEMA))


@pytest.mark.parametrize("name", ["4fgl", "4fgl-dr4", "fl16y"])
def test_spectra_of_the_releases(name):
    """Limits where the file has no lower error, and nothing beyond its columns."""
    catalog = load_catalog(name)
    with gzip.open(catalogs_folder() / f"{name}.fits.gz") as file, fits.open(file) as hdus:
        raw = hdus[1].data
        k = int(np.flatnonzero(np.isnan(raw["Unc_Flux_Band"][..., 0]).sum(axis=1) == 2)[0])
        found = spectrum(catalog, str(raw["Source_Name"][k]).strip())
        np.testing.assert_array_equal(found.flux, raw["nuFnu_Band"][k])
        lower = raw["Unc_Flux_Band"][k, :, 0]
        assert found.is_limit.tolist() == np.isnan(lower).tolist()
        ratio = np.abs(raw["Unc_Flux_Band"][k]) / raw["Flux_Band"][k][:, None]
        np.testing.assert_allclose(found.errors, raw["nuFnu_Band"][k][:, None] * ratio, rtol=1e-5)
    assert found.edges[0].tolist() == [50, 100] and found.unit == "erg / (s cm2)"


def test_light_curve_of_a_full_release():
    """3C 454.3, whose flares of 2009 and 2010 are the brightest of the sky in gamma rays."""
    curve = light_curve(full_file("4fgl-dr4"), "4FGL J2253.9+1609")
    assert len(curve.flux) == 14 and curve.unit == "ph / (s cm2)"
    brightest = Time(curve.edges[curve.flux.argmax()], format="mjd").to_value("decimalyear")
    assert brightest[0] == pytest.approx(2010.6, abs=0.1) and np.ptp(brightest) == pytest.approx(
        1, abs=0.01
    )


def test_an_energy_flux_and_a_photon_flux_of_other_signs_have_an_error_above_0():
    table = Table({"Name": ["A"], "Index": [1.0], "E1": [2.0], "F1": [-1.0], "e_F1": [0.1]})
    rules = {**SCHEMA, "bands": {"low": SCHEMA["bands"]["low"]}}
    _, errors, _ = band_fluxes(table, Schema.from_dict(rules))
    assert np.isnan(errors[0, 0, 0]) and errors[0, 0, 1] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("flux", "error", "words"),
    [
        ([1.0, 2.0], [[0.1, 0.1]] * 2, "'Fluxes' holds no list of numbers"),
        ([[1.0, 2.0]] * 2, [0.1, 0.1], "'e_Fluxes' holds no list of numbers"),
        (["a", "b"], [[0.1, 0.1]] * 2, "'Fluxes' holds no list of numbers"),
        ([[1.0, 2.0]] * 2, np.ones((2, 2, 3)), "'e_Fluxes' has the shape"),
    ],
)
def test_a_history_that_is_none_is_refused(tmp_path, flux, error, words):
    table = Table({"Name": ["A", "B"], "Index": [1.0, 2.0], "Fluxes": flux, "e_Fluxes": error})
    path = tmp_path / "some.fits"
    table.write(path)
    rules = {key: value for key, value in SCHEMA.items() if key != "bands"}
    with pytest.raises(InputError, match=words):
        light_curve(path, "A", schema=Schema.from_dict(rules))
    with pytest.raises(InputError, match="names no column of identifiers"):
        light_curve(path, "A", schema=Schema.from_dict({**rules, "id": ""}))
