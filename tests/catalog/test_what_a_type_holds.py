"""Numbers that a column's type does not hold, or holds as others, and limits that are none."""

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import MaskedColumn, Table

from gpal import InputError, load_catalog
from gpal.catalog import inspect_catalog
from gpal.catalog.readers.fits import fits_blocks

EXACT = {"column": "x", "error": "none"}


def values_of(path, feature=EXACT, **keys):
    return load_catalog(path, mapping={"features": {"x": feature}, **keys})


@pytest.mark.parametrize("kind", ["u2", "u4", "u8", "i2", "i4", "i8"])
def test_masked_integers_that_astropy_wrote_are_missing(tmp_path, kind):
    mask = np.arange(40) % 13 == 0
    numbers = np.arange(200, 240)
    path = tmp_path / "some.fits"
    Table({"x": MaskedColumn(numbers.astype(kind), mask=mask)}).write(path)
    catalog = values_of(path)
    np.testing.assert_array_equal(np.isinf(catalog.X_err[:, 0]), mask)
    np.testing.assert_array_equal(catalog.X[~mask, 0], numbers[~mask])


def votable(kind, size, cells):
    size = f' arraysize="{size}"' if size else ""
    rows = "".join(f"<TR><TD>{cell}</TD></TR>" for cell in cells)
    return (
        '<?xml version="1.0"?><VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">'
        f'<RESOURCE><TABLE><FIELD name="x" datatype="{kind}"{size} unit="mJy"/><DATA><TABLEDATA>'
        f"{rows}</TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>"
    )


@pytest.mark.filterwarnings("ignore::astropy.utils.exceptions.AstropyWarning")
@pytest.mark.parametrize(
    ("kind", "size", "cells", "wanted"),
    [
        ("float", "", ["2e44", "1.5", "3"], [2e44, 1.5, 3]),
        ("float", "", ["1e-50", "0", "3"], [1e-50, 0, 3]),
        ("float", "2", ["1e-50 1", "0 2", "3 4"], [1e-50, 0, 3]),
        ("double", "2x2", ["1 2 3 4", "5 6 7 8", "9 8 7 6"], [1, 5, 9]),
    ],
)
def test_floats_beyond_their_type_are_kept(tmp_path, kind, size, cells, wanted):
    path = tmp_path / "some.vot"
    path.write_text(votable(kind, size, cells))
    column = "x" + "[0]" * (1 + size.count("x") if size else 0)
    catalog = values_of(path, {"column": column, "error": "none", "sentinels": []})
    np.testing.assert_array_equal(catalog.X[:, 0], wanted)
    assert catalog.measurements.units == ("mJy",)


@pytest.mark.filterwarnings("ignore::astropy.utils.exceptions.AstropyWarning")
@pytest.mark.parametrize(
    ("kind", "cells"), [("short", ["1 70000", "1 2"]), ("unsignedByte", ["1 -5", "3 3"])]
)
def test_integers_beyond_their_type_are_refused(tmp_path, kind, cells):
    path = tmp_path / "some.vot"
    path.write_text(votable(kind, "2", cells))
    with pytest.raises(InputError, match=f"'{cells[0]}'"):
        values_of(path, {"column": "x[1]", "error": "none"})


def ecsv(kind, cells):
    rows = "".join(f'"{cell}",1\n' for cell in cells)
    return (
        "# %ECSV 1.0\n# ---\n# delimiter: ','\n# datatype:\n"
        f"# - {{name: x, datatype: string, subtype: '{kind}[2]'}}\n"
        f"# - {{name: y, datatype: float64}}\n# schema: astropy-2.0\nx,y\n{rows}"
    )


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_arrays_of_an_ecsv_hold_what_is_written(tmp_path):
    path = tmp_path / "some.ecsv"
    feature = {"column": "x[0]", "error": "none", "sentinels": []}
    path.write_text(ecsv("float32", ["[1e40,1]", "[2,3]"]))
    assert values_of(path, feature).X[:, 0].tolist() == [1e40, 2]
    path.write_text(ecsv("int64", ["[2.7,1]", "[2,3]"]))
    with pytest.raises(InputError, match=r"'\[2\.7,1\]'"):
        values_of(path, feature)


def test_several_tables_of_a_votable_are_named(tmp_path):
    path = tmp_path / "two.vot"
    one = votable("float", "", ["1"])
    table = one[one.index("<TABLE>") : one.index("</RESOURCE>")]
    path.write_text(
        one.replace("</RESOURCE>", table.replace("<TABLE>", '<TABLE name="b">', 1) + "</RESOURCE>")
    )
    with pytest.raises(InputError, match=r"2 tables \(without a name, b\); write the one"):
        values_of(path)


TENTHS = np.arange(1, 11) / 10


@pytest.mark.parametrize("ending", ["fits", "ecsv", "vot", "parquet"])
def test_single_precision_is_compared_as_such(tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"some.{ending}"
    options = {"format": "votable"} if ending == "vot" else {}
    Table({"x": TENTHS.astype("f4")}).write(path, **options)
    for cut in ("x >= 0.7", "x <= 0.6", "x > 0.3", "x == 0.9", "x < 1e300"):
        found = load_catalog(path, mapping={"features": {"x": EXACT}}, cuts=cut)
        assert found.X[:, 0].round(1).tolist() == [x for x in TENTHS if eval(cut, {"x": x})]
    edges = {"class": "x", "classes": {"edges": [0.1, 0.3, 0.7, 0.9, 1]}}
    names = ["0.1-0.3"] * 2 + ["0.3-0.7"] * 4 + ["0.7-0.9"] * 2 + ["0.9-1"] * 2
    assert values_of(path, **edges).labels.tolist() == names
    above = values_of(path, {**EXACT, "above": 0.1})
    assert np.flatnonzero(np.isinf(above.X_err[:, 0])).tolist() == [0]


def test_a_bound_that_a_type_does_not_hold_stays_as_it_is(tmp_path):
    path = tmp_path / "some.fits"
    Table({"x": np.array([0, 1e-40, 1, 16777216, 16777218], "f4")}).write(path)
    for cut, passed in (
        ("x >= 1e-60", [1, 2, 3, 4]),
        ("x < 1e-60", [0]),
        ("x < 16777217", [0, 1, 2, 3]),
        ("x >= 16777217", [4]),
    ):
        feature = EXACT | {"sentinels": []}
        found = load_catalog(path, mapping={"features": {"x": feature}}, cuts=cut)
        assert found.names.tolist() == [str(row) for row in passed]


def test_above_is_of_the_column_also_in_another_unit(tmp_path):
    table = Table({"x": np.array([0.1, 0.2, 0.3], "f4")})
    table["x"].unit = "mJy"
    path = tmp_path / "some.fits"
    table.write(path)
    catalog = values_of(path, EXACT | {"unit": "uJy", "above": 200})
    assert np.isinf(catalog.X_err[:, 0]).tolist() == [True, True, False]


def stored_integers(path, null, physical):
    """Unsigned 16-bit integers as by the FITS standard: TNULL is of what is stored."""
    column = fits.Column("x", "I", bzero=2**15, array=np.array(physical, "u2"))
    hdu = fits.BinTableHDU.from_columns([column])
    hdu.header["TNULL1"] = null
    hdu.writeto(path, overwrite=True)


def test_a_null_of_the_fits_standard_takes_no_value_with_it(tmp_path):
    path = tmp_path / "some.fits"
    stored_integers(path, 32767, [65535, 40000, 32768, 32773, 0])
    assert np.isinf(values_of(path).X_err[:, 0]).tolist() == [True, False, False, False, False]
    blocks = fits_blocks(path, 2, "", lambda: True)
    masked = [np.ma.getmaskarray(np.ma.asarray(block["x"])).tolist() for block in blocks]
    assert masked == [[True, False], [False, False], [False]]
    stored_integers(path, 32767, [65535, 32767, 32768, 32773, 0])
    with pytest.warns(UserWarning, match="'x': TNULL = 32767 stands for 65535 by the FITS"):
        both = values_of(path)
    assert np.isinf(both.X_err[:, 0]).tolist() == [True, True, False, False, False]


def limits_of(tmp_path, columns, feature):
    path = tmp_path / "own.fits"
    Table(columns).write(path, overwrite=True)
    return load_catalog(path, mapping={"features": {"x": {"column": "F", **feature}}}).measurements


@pytest.mark.parametrize("key", ["upper_limit", "lower_limit"])
def test_a_sentinel_among_limits_is_refused(tmp_path, key):
    rng = np.random.default_rng(0)
    flux = np.where(np.arange(40) % 2, np.nan, rng.normal(20, 1, 40))
    limit = np.where(np.arange(40) % 4 == 1, -9999.0, 22.5)
    columns = {"F": flux, "F_err": np.full(40, 0.1), "l": limit}
    with pytest.raises(InputError, match="column 'l' of feature 'x' holds -9999 in 10 rows"):
        limits_of(tmp_path, columns, {key: "l"})
    columns["l"] = np.where(np.isnan(flux), -9999.0, 22.5)  # wherever one is used
    with pytest.raises(InputError, match="column 'l' of feature 'x' holds -9999 in 20 rows"):
        limits_of(tmp_path, columns, {key: "l"})
    columns["l"] = np.where(np.isnan(flux), 22.5, -9999.0)  # where none is used
    assert limits_of(tmp_path, columns, {key: "l"}).limits.given.sum() == 20


def test_a_sentinel_among_energy_fluxes_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    columns = {name: rng.lognormal(0, 0.3, 40) for name in ("E1", "F1", "E2", "F2")}
    columns |= {"e1": 0.1 * columns["F1"], "e2": 0.1 * columns["F2"]}
    columns["E1"][:6] = 9999
    bands = {b: {"nuFnu": f"E{b}", "flux": f"F{b}", "error": f"e{b}"} for b in ("1", "2")}
    path = tmp_path / "own.fits"
    Table(columns).write(path)
    mapping = {"bands": bands, "features": {"x": {"hardness": ["1", "2"]}}}
    with pytest.raises(InputError, match="column 'E1' of feature 'x' holds 9999 in 6 rows"):
        load_catalog(path, mapping=mapping)


def test_a_unit_of_one_band_alone_is_told(tmp_path):
    columns = {name: np.array([1.0, 2.0, 3.0]) for name in ("E1", "F1", "e1", "E2", "F2", "e2")}
    table = Table(columns)
    table["E2"].unit = "erg / (s cm2)"
    path = tmp_path / "own.fits"
    table.write(path)
    bands = {b: {"nuFnu": f"E{b}", "flux": f"F{b}", "error": f"e{b}"} for b in ("1", "2")}
    mapping = {"bands": bands, "features": {"x": {"hardness": ["1", "2"]}}}
    with pytest.warns(UserWarning, match=r"one of two columns, 'E2' \(.*\) beside 'E1'"):
        load_catalog(path, mapping=mapping)


def test_what_was_thrown_out_is_no_limit(tmp_path):
    columns = {
        "F": [5.0, -3.0, 2.4, 3.58],
        "F_err": [0.1, 0.1, 0.1, np.nan],
        "needed": [1.0, 1.0, np.nan, 1.0],
        "l_F": ["", "", "<", "<"],
    }
    rules = {"above": 0, "requires": "needed"}
    for own in ({"upper_limit": "F"}, {"limit_flag": "l_F"}):
        limits = limits_of(tmp_path, columns, rules | own).limits
        np.testing.assert_array_equal(limits.value[:, 0], [np.nan, np.nan, np.nan, 3.58])
    columns["F_err"] = [1.0, 1.0, 1.0, 0.0]
    kept = limits_of(tmp_path, columns, {"error_kind": "inverse variance", "upper_limit": "F"})
    assert kept.limits is None and np.isinf(kept.X_err[3, 0])


def test_a_column_alone_in_place_of_a_feature_is_told():
    words = r"features.log_flux = 'Flux1000' leaves out what the schema says of it \(.*transform"
    with pytest.warns(UserWarning, match=words):
        load_catalog(
            "4fgl-dr4",
            features=["log_flux"],
            mapping={"features": {"log_flux": "Flux1000"}},
        )


def test_units_that_are_shown_are_those_of_the_columns(tmp_path):
    table = Table({"a": [1.0, 2.0], "b": [3.0, 4.0], "e": [0.1, 0.1]})
    table["a"].unit, table["b"].unit = "mJy", "s"
    path = tmp_path / "own.ecsv"
    table.write(path)
    features = {"r": {"ratio": ["a", "b"], "error": ["e", "e"]}}
    (facts,) = inspect_catalog(path, mapping={"features": features}).features
    assert facts.unit == "(mJy) / (s)"


def test_the_name_of_a_base_may_have_capitals(tmp_path):
    (tmp_path / "MyBase.toml").write_text("[features]\nx = {column = 'x', error = 'none'}\n")
    over = tmp_path / "over.toml"
    over.write_text("extends = 'MyBase'\n")
    Table({"x": [1.0, 2.0]}).write(tmp_path / "own.fits")
    assert load_catalog(tmp_path / "own.fits", schema=over).X[:, 0].tolist() == [1, 2]


def test_a_group_without_a_class_is_refused(tmp_path):
    path = tmp_path / "own.ecsv"
    Table({"x": [1.0, 2.0], "c": ["a", "b"]}).write(path)
    with pytest.raises(InputError, match="group 'z' has no class"):
        values_of(path, **{"class": "c"}).with_classes({"z": [], "a": ["a"]})
    with pytest.raises(InputError, match="no class below 'z'"):
        values_of(path, **{"class": "c", "classes": {"tree": {"z": []}}})


@pytest.mark.parametrize("given", [1.5, 2, [1.5]])
def test_a_number_is_no_error_scale(given):
    with pytest.raises(InputError, match="error_scale is True, a file, or"):
        load_catalog("4fgl-dr4", error_scale=given)


def test_only_factors_that_were_used_are_recorded():
    with pytest.warns(UserWarning, match="no factor for 'flux'"):
        catalog = load_catalog("4fgl-dr4", features="paper", error_scale=True)
    assert set(catalog.provenance["error_scale"]) <= set(catalog.feature_names)
