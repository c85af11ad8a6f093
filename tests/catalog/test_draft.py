"""A drafted schema: it says what is in the table, it can be used as it stands, it hides nothing."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import SkyCoord
from astropy.table import QTable, Table
from astropy.time import Time
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gpal.catalog import Schema, draft_schema, inspect_catalog, load_catalog
from gpal.catalog.readers import sample
from gpal.cli import app
from gpal.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

N = 60


def columns(**more) -> Table:
    """60 sources with a name, a class, a position, a magnitude and its error; and more."""
    rng = np.random.default_rng(1)
    table = Table({"objID": [f"S{i}" for i in range(N)]})
    table["RA_ICRS"] = rng.uniform(0, 360, N)
    table["DE_ICRS"] = rng.uniform(-90, 90, N)
    table["otype"] = np.resize(["star", "QSO", "UNKNOWN"], N)
    table["mag"] = rng.uniform(15, 22, N)
    table["mag_err"] = rng.uniform(0.01, 0.1, N)
    for name, values in more.items():
        table[name] = values
    return table


@pytest.fixture
def draft(tmp_path):
    """Table -> the text of its draft, and what it says as TOML."""

    def make(table: Table, ending: str = "ecsv") -> tuple[str, dict]:
        path = tmp_path / f"some.{ending}"
        table.write(path, overwrite=True, **({"format": "votable"} if ending == "vot" else {}))
        text = draft_schema(path)
        content = tomllib.loads(text)
        Schema.from_dict(content)
        return text, content

    return make


def spread(low: float, high: float) -> np.ndarray:
    return np.random.default_rng(2).uniform(low, high, N)


@pytest.mark.parametrize("ending", ["ecsv", "csv", "fits", "vot"])
def test_the_columns_of_a_survey(draft, tmp_path, ending):
    flags = np.resize([0, 1, 2], N)
    text, content = draft(columns(MJD=spread(5e4, 6e4), flags=flags), ending)
    assert {key: content[key] for key in ("id", "ra", "dec", "class")} == {
        **{"id": "objID", "ra": "RA_ICRS", "dec": "DE_ICRS", "class": "otype"},
    }
    assert content["classes"] == {"default": ["star", "QSO"]}
    assert content["features"] == {"mag": {"column": "mag", "error": "mag_err"}}
    assert "to tell apart: star 20, qso 20" in text and "to be classified: unknown 20" in text
    for line in ("#   MJD: a time", "#   flags: a flag", "#   mag_err: the error of 'mag'"):
        assert line in text
    catalog = load_catalog(tmp_path / f"some.{ending}", mapping=content)
    assert catalog.is_target.sum() == 20 and np.isfinite(catalog.X).all()


@pytest.mark.parametrize("ending", ["csv", "fits", "vot", "parquet"])
def test_of_a_long_table_rows_evenly_spread_are_read(draft, monkeypatch, ending):
    monkeypatch.setattr(sample, "BLOCK", 7)
    monkeypatch.setattr(sample, "MOST", 20)
    table = columns(late=np.where(np.arange(N) < 50, "1.5", "faint"), count=np.arange(N) * 10)
    text, content = draft(table, ending)
    assert "(60 rows, 8 columns)" in text
    assert "# Ranges and counts are those of 15 rows, evenly spread over the table." in text
    assert content["id"] == "objID" and content["features"]["mag"]["error"] == "mag_err"
    assert "to tell apart" not in text and "star 5, qso 5" in text and "unknown 5" in text
    assert "#   late: words" in text
    monkeypatch.setattr(sample, "MOST", N)
    assert "rows, evenly" not in draft(table, ending)[0]


@pytest.mark.parametrize("with_ucds", [True, False])
def test_what_4fgl_measures_is_drafted_and_nothing_else(draft, with_ucds):
    """Neither where a source is, nor how well that is known, nor what it was associated with."""
    table = load_catalog("4fgl-dr4").table
    if not with_ucds:
        table.remove_columns([name for name in table.colnames if table[name].ndim > 1])
        table.meta = {}
    table = table[::20]
    _, content = draft(table, "fits")
    wanted = ["Signif_Avg", "Pivot_Energy", "Flux1000", "LP_Index", "LP_beta", "Variability_Index"]
    if with_ucds:  # which say that it is a significance, not a sigma
        wanted.insert(5, "LP_SigCurv")
    assert list(content["features"]) == wanted


def test_motions_and_parallaxes_are_no_positions(draft):
    table = columns(plx=spread(1, 2), moves=spread(0, 9), where=spread(0, 9))
    for name, ucd in (("plx", "pos.parallax"), ("moves", "pos.pm;pos.eq.ra"), ("where", "pos")):
        table[name].meta["ucd"] = ucd
    _, content = draft(table, "vot")
    assert list(content["features"]) == ["mag", "plx", "moves"]


PAIRS = [
    *(("coord_ra", "coord_dec"), ("TARGET_RA", "TARGET_DEC"), ("SC_RA", "SC_DEC")),
    *(("ALPHAWIN_J2000", "DELTAWIN_J2000"), ("X_WORLD", "Y_WORLD"), ("ra_gaia", "dec_gaia")),
    *(("_RA", "_DE"), ("RAdeg", "DE"), ("alpha", "delta"), ("RAd", "DEd")),
]


@pytest.mark.parametrize(("ra", "dec"), PAIRS)
@pytest.mark.parametrize("unit", ["deg", None])
def test_positions_by_their_pairs(draft, ra, dec, unit):
    table = columns()
    table.rename_columns(["RA_ICRS", "DE_ICRS"], [ra, dec])
    table[ra].unit = table[dec].unit = unit
    if (dec, unit) == ("DE", None):
        dec = None  # which may be a difference of energies
    _, content = draft(table)
    assert content["ra"] == ra and content.get("dec") == dec
    assert {*content["features"]} == {"mag"} | ({"DE"} if dec is None else set())


@pytest.mark.parametrize(
    ("lon", "lat"), [("l", "b"), ("gal_l", "gal_b"), ("LII", "BII"), ("ecl_lon", "ecl_lat")]
)
def test_other_positions_are_no_features(draft, lon, lat):
    _, content = draft(columns(**{lon: spread(0, 360), lat: spread(-90, 90)}))
    assert list(content["features"]) == ["mag"]
    assert (content["ra"], content["dec"]) == ("RA_ICRS", "DE_ICRS")


def test_what_may_be_called_as_a_position_is_none_with_an_error_or_alone(draft):
    """A spectral index, a radius, a luminosity, a magnitude of the Johnson system, motions."""
    given = ["alpha", "Rad", "L", "B", "pmRA", "pmDE"]
    table = columns(**{name: spread(0.1, 20) for name in given})
    for name in given:
        table[f"e_{name}"] = spread(0.1, 0.2)
    table["delta"] = spread(-1, 1)
    table.remove_columns(["RA_ICRS", "DE_ICRS"])
    _, content = draft(table)
    assert list(content["features"]) == ["mag", *given, "delta"]
    assert "ra" not in content and "dec" not in content


@pytest.mark.parametrize(
    ("one", "other"),
    [("e_RA", "e_DE"), ("dRA", "dDE"), ("RA_unc", "DEC_unc"), ("ra_sep", "dec_sep")],
)
def test_errors_and_offsets_of_a_position_are_none(draft, one, other):
    """Where positions are sexagesimal."""
    table = columns(**{one: spread(0.1, 2), other: spread(0.1, 2)})
    table["RA"], table["DE"] = ["12 00 01.5"] * N, ["-12 00 01"] * N
    table.remove_columns(["RA_ICRS", "DE_ICRS"])
    _, content = draft(table)
    assert "ra" not in content and "dec" not in content


@pytest.mark.parametrize(("one", "other"), [("flux_l", "flux_b"), ("L_L", "L_B")])
def test_bands_that_are_called_l_and_b_are_no_position(draft, one, other):
    _, content = draft(columns(**{one: spread(0.1, 2), other: spread(0.1, 2)}))
    assert list(content["features"]) == ["mag", one, other]


@pytest.mark.parametrize("ending", ["fits", "csv"])
def test_large_values_of_single_precision_are_features(draft, ending):
    """All of them are whole numbers from 2^24 on."""
    mass = (10 ** spread(9, 11.5)).astype(np.float32)
    _, content = draft(columns(mass=mass, e_mass=0.1 * mass), ending)
    assert content["features"]["mass"]["error"] == "e_mass"
    if ending == "fits":
        assert "mass" in draft(columns(mass=mass), ending)[1]["features"]


def test_large_values_are_features_and_large_identifiers_are_none(draft):
    rng = np.random.default_rng(2)
    large = 10 ** rng.uniform(40, 46, N)
    source_id = rng.integers(1 << 58, 1 << 62, N)
    _, schema = draft(
        columns(luminosity=large, luminosity_err=0.1 * large, survey_number=source_id)
    )
    assert list(schema["features"]) == ["mag", "luminosity"]


def test_numbers_that_are_no_values_are_declared(draft):
    table = columns()
    table["mag"][:7] = -99.0
    table["mag_err"][:7] = -99.0
    table["mag_err"][10:12] = -1.0
    table["mag_err"][20] = 0.0
    text, content = draft(table)
    assert content["features"]["mag"] == {
        "column": "mag",
        "error": "mag_err",
        "sentinels": [-99],
        "negative_error": "missing",
        "zero_error": "missing",
    }
    for words in ("7 cells", "negative errors: 2,", "errors of 0: 1;"):
        assert words in text
    assert "15" in text.split("[features.mag]")[1].splitlines()[0]  # the range is without them


def test_a_sentinel_of_errors_is_no_sentinel_of_values_that_are_it(draft, tmp_path):
    values = spread(50, 150)
    values[:4] = 99.0
    text, content = draft(columns(T=values, T_err=np.where(np.arange(N) < 54, 0.5, 99.0)))
    assert content["features"]["T"] == {"column": "T", "error": "T_err"}
    assert "# 6 errors are 99" in text and "# too; if 99 is neither: sentinels = [99]" in text


def test_a_sentinel_of_errors_alone_is_declared(draft):
    errors = np.where(np.arange(N) < 54, 0.5, 99.0)
    text, content = draft(columns(T=spread(200, 300), T_err=errors))
    assert content["features"]["T"]["sentinels"] == [99]
    assert "# no errors: 6 cells, far from all others" in text


@pytest.mark.parametrize("power", [1e3, 1e7])
def test_a_power_of_ten_is_a_value(draft, power):
    values = np.where(np.arange(N) < 52, spread(1, 40), power)
    text, content = draft(columns(period=values, period_err=spread(0.1, 0.2)))
    assert "sentinels" not in text and "period" in content["features"]


def test_a_word_for_no_class_that_is_in_no_sampled_row(draft, monkeypatch, tmp_path):
    table = columns()
    table["otype"][1] = "tbd"
    monkeypatch.setattr(sample, "BLOCK", 2)
    monkeypatch.setattr(sample, "MOST", 20)
    text, content = draft(table, "csv")
    assert "tbd" not in text and "unknown" in text
    assert load_catalog(tmp_path / "some.csv", mapping=content).is_target[1]


@pytest.mark.parametrize("beside", ["_RAJ2000 _DEJ2000", ""])
def test_a_position_of_b1950_is_not_taken(draft, beside):
    table = columns(RAB1950=spread(0, 360), DEB1950=spread(-90, 90), flux1950=spread(1, 2))
    table["RAB1950"].meta["ucd"] = "pos.eq.ra;meta.main"
    table["DEB1950"].meta["ucd"] = "pos.eq.dec;meta.main"
    table["RA1950"] = table["RAB1950"] + 0.0  # told by its name
    for old, new, ucd in zip(("RA_ICRS", "DE_ICRS"), beside.split(), ("pos.eq.ra", "pos.eq.dec")):
        table[new] = table[old] + 0.0
        table[new].meta["ucd"] = ucd
    table.remove_columns(["RA_ICRS", "DE_ICRS"])
    text, content = draft(table, "vot")
    assert [content.get("ra"), content.get("dec")] == (beside.split() or [None, None])
    assert set(content["features"]) == {"mag", "flux1950"}
    for column in ("RAB1950", "DEB1950", "RA1950"):
        assert f"#   {column}: a position of B1950" in text
    assert ("ICRS or J2000, but a position of B1950" in text) == (not beside)


def test_a_feature_without_an_error_column_is_said_to_have_none_found(draft, tmp_path):
    text, content = draft(columns(colour=spread(0, 1), colour_ivar=spread(100, 200)))
    assert content["features"]["colour"] == {"column": "colour"}
    assert text.count("NO ERROR COLUMN FOUND") >= 1
    assert '# perhaps error = "colour_ivar", error_kind = "inverse variance"' in text
    with pytest.warns(UserWarning, match="no error column found for 'colour'"):
        load_catalog(tmp_path / "some.ecsv", mapping=content, features=["colour"])


def test_two_possible_error_columns_are_left_to_a_person(draft):
    text, content = draft(columns(F=spread(1, 2), e_F=spread(0, 1), F_err=spread(0, 1)))
    assert content["features"]["F"] == {"column": "F"}
    assert "may both be the error of 'F'" in text


def test_asymmetric_errors(draft):
    _, content = draft(columns(plx=spread(1, 2), plx_loerr=spread(0, 1), plx_uperr=spread(0, 1)))
    assert content["features"]["plx"]["error"] == ["plx_loerr", "plx_uperr"]


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        ("teff", "teff_lower", "teff_upper"),
        ("teff", "teff_lo", "teff_hi"),
        ("flux_aper_b", "flux_aper_lolim_b", "flux_aper_hilim_b"),
    ],
)
def test_bounds_are_neither_features_nor_errors(draft, value, lower, upper):
    x = spread(-1, 1)
    table = columns(**{value: x, lower: (x - 0.2).astype("f4"), upper: x + spread(0, 1)})
    table[lower][:3] = np.nan
    table[upper][3:6] = x[3:6]
    text, content = draft(table)
    assert list(content["features"]) == ["mag", value]
    assert content["features"][value] == {"column": value}
    for bound in (lower, upper):
        assert f"#   {bound}: a bound of '{value}'" in text
    assert "perhaps error" not in text and "make\n# columns of value - lower and upper" in text
    table[upper][7] = x[7] - 0.1
    assert list(draft(table)[1]["features"]) == ["mag", value, lower, upper]


def test_correlations_and_errors_of_either_side_are_no_features(draft):
    """Of Gaia, and of eROSITA, where it is not clear which error is meant."""
    table = columns(pmra=spread(1, 2), plx=spread(1, 2), plx_pmra_corr=spread(-1, 1))
    for name in ("CTS_1", "CTS_ERR_1", "CTS_LOWERR_1", "CTS_UPERR_1", "flux_corr"):
        table[name] = spread(0.1, 1)
    table["other"] = spread(-1, 1)
    table["other"].meta["ucd"] = "stat.correlation"
    text, content = draft(table)
    assert list(content["features"]) == ["mag", "pmra", "plx", "CTS_1", "flux_corr"]
    assert text.count(": a correlation of errors") == 2


@pytest.mark.parametrize("ending", ["vot", "fits"])
def test_ucds_and_units(draft, ending):
    table = columns(b1=spread(1, 2), b2=spread(0, 0.1), sky=spread(-90, 90), code=spread(0, 9))
    ucds = {"b1": "phot.flux;em.radio", "b2": "stat.error;phot.flux;em.radio"}
    ucds |= {"sky": "pos.galactic.lat", "code": "meta.code"}
    for name, ucd in ucds.items():
        table[name].meta["ucd"] = ucd
        if ending == "fits":
            table.meta[f"TUCD{table.colnames.index(name) + 1}"] = ucd
    table["b1"].unit = "mJy"
    text, content = draft(table, ending)
    assert content["features"]["b1"] == {"column": "b1", "error": "b2"}
    assert set(content["features"]) == {"mag", "b1"}
    assert "sky: no property of a source (pos.galactic.lat)" in text
    assert " mJy" in text.split("[features.b1]")[1].splitlines()[0]


def test_a_logarithm_where_a_positive_value_spans_decades(draft):
    _, content = draft(columns(F=10 ** spread(-3, 2), net=spread(-100, 100)))
    assert content["features"]["F"]["transform"] == "log10"
    assert "transform" not in content["features"]["net"] | content["features"]["mag"]


def test_colours_are_proposed_and_can_be_uncommented(draft, tmp_path):
    table = columns(g_mag=spread(16, 20), g_magErr=spread(0.01, 0.1))
    table["g_mag"][:4], table["mag_err"][7] = -99, -0.1
    text, content = draft(table)
    assert set(content["features"]) == {"mag", "g_mag"}
    start = text.index("# [features")
    colour = text[start : text.index("\n\n", start)].replace("# ", "")
    more = tomllib.loads(colour)["features"]["mag - g_mag"]
    assert more == {
        "difference": ["mag", "g_mag"],
        "sentinels": [-99],
        "negative_error": "missing",
    }
    content["features"]["mag - g_mag"] = more
    catalog = load_catalog(tmp_path / "some.ecsv", mapping=content)
    used = np.flatnonzero(np.arange(N) != 7)[4:]
    np.testing.assert_allclose(catalog.X[used, 2], (table["mag"] - table["g_mag"])[used])
    assert (
        np.isnan(catalog.X[[*range(4), 7], 2]).all() and catalog.measurements.covariance is not None
    )


@pytest.mark.parametrize("ending", ["ecsv", "csv", "vot"])
def test_marks_of_limits(draft, tmp_path, ending):
    marks = np.resize(["<", "", ""], N)
    text, content = draft(columns(F=spread(1, 2), e_F=spread(0.1, 0.2), l_F=marks), ending)
    assert content["features"]["F"] == {"column": "F", "error": "e_F", "limit_flag": "l_F"}
    assert "#   l_F: marks of limits of 'F'" in text and content["class"] == "otype"
    found = inspect_catalog(tmp_path / f"some.{ending}", mapping=content, features=["F"])
    assert ("not measured: below a limit", 20) in found.features[0].decisions


def test_rare_classes_are_named_and_not_told_apart(draft):
    kinds = np.array(["star"] * 30 + ["qso"] * 25 + ["wd"] * 3 + ["", ""], dtype=str)
    text, content = draft(columns(otype=kinds))
    assert content["classes"] == {"default": ["star", "qso"]}
    assert "fewer than 10 sources each, neither learned nor classified: wd 3" in text
    assert "2 cells are empty" in text


def test_names_that_toml_and_gpal_do_not_take_as_they_are(draft, tmp_path):
    awkward = ['flux "x" [Jy]', "größe", "MAG", "a.b", "x" * 80, r"back\slash"]
    table = columns(**{name: spread(1, 2) for name in awkward})
    _, content = draft(table)
    made = {feature["column"] for feature in content["features"].values()}
    assert made == {"mag", *awkward}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        catalog = load_catalog(tmp_path / "some.ecsv", mapping=content)
    assert len(catalog.feature_names) == 7


@pytest.mark.parametrize(
    "name, values, why",
    [
        ("spectrum", np.ones((N, 3)), "spectrum[0]"),
        ("good", np.resize([True, False], N), "true or false"),
        ("comment", [f"see {i}" for i in range(N)], "words"),
        ("unit", np.ones(N), "the same in all rows"),
        ("nothing", np.full(N, np.nan), "empty"),
        ("row", np.arange(N), "a whole number of its own in every row"),
        ("nObs", np.resize(np.arange(30), N), "a count"),
        ("GLAT", np.linspace(-90, 90, N), "another position"),
    ],
)
def test_what_is_no_feature_is_listed_with_the_reason(draft, name, values, why):
    text, content = draft(columns(**{name: values}))
    assert set(content["features"]) == {"mag"}
    (line,) = [line for line in text.splitlines() if line.startswith(f"#   {name}: ")]
    assert why in line


def test_a_table_without_names_classes_or_position(draft):
    text, content = draft(columns()["mag", "mag_err"])
    assert set(content) == {"features"}
    assert "no column of classes was recognised" in text and "rows are counted" in text


@pytest.mark.parametrize("ending", ["ecsv", "fits"])
def test_times_and_positions_are_listed_and_no_features(tmp_path, ending):
    table = QTable(columns())
    table["seen"] = Time("2024-01-01") + np.arange(N) * units.day
    table["where"] = SkyCoord(table["RA_ICRS"], table["DE_ICRS"], unit="deg")
    table.write(tmp_path / f"some.{ending}")
    text = draft_schema(tmp_path / f"some.{ending}")
    assert "#   where: a time or a position" in text
    assert list(tomllib.loads(text)["features"]) == ["mag"]
    for of in ({"column": "where"}, {"column": "mag", "error": "where"}):
        with pytest.raises(InputError, match="column 'where' holds no numbers"):
            load_catalog(tmp_path / f"some.{ending}", mapping={"features": {"x": of}})


@pytest.mark.parametrize("card", [("RADESYS", "FK4"), ("EQUINOX", 1950.0)])
def test_a_position_whose_file_says_b1950_is_not_taken(draft, tmp_path, card):
    table = columns()
    table.meta[card[0]] = card[1]
    text, content = draft(table, "fits")
    assert not {"ra", "dec"} & set(content) and "but a position of B1950" in text
    mapping = {"ra": "RA_ICRS", "dec": "DE_ICRS", "features": {"mag": "mag"}}
    with pytest.raises(InputError, match=r"'RA_ICRS' is a position of (FK4|1950.0), up to 0.7 deg"):
        load_catalog(tmp_path / "some.fits", mapping=mapping)
    table.meta["EQUINOX"], table.meta["RADESYS"] = 1950.0, "ICRS"  # which has none
    assert draft(table, "fits")[1]["ra"] == "RA_ICRS"
    table.meta = {card[0]: "FK5" if card[0] == "RADESYS" else 2000.0}
    assert draft(table, "fits")[1]["ra"] == "RA_ICRS"


def test_a_position_of_a_votable_in_fk4_is_not_taken(draft, tmp_path):
    text, content = draft(columns(), "vot")
    assert content["ra"] == "RA_ICRS"
    path = tmp_path / "some.vot"
    xml = path.read_text().replace(
        "<TABLE", '<COOSYS ID="old" system="eq_FK4" equinox="B1950"/><TABLE', 1
    )
    path.write_text(xml.replace('name="RA_ICRS"', 'name="RA_ICRS" ref="old"'))
    text = draft_schema(path)
    assert "\nra =" not in text and "\ndec =" in text and "but a position of B1950" in text


def test_of_several_columns_that_may_be_of_classes_a_person_chooses(draft):
    table = columns(survey=np.resize(["wide", "deep"], N))
    table.rename_column("otype", "what")
    text, content = draft(table)
    assert "class" not in content
    assert "several columns may be of classes: 'what', 'survey'; gpal needs one" in text


def test_a_table_of_words_has_no_draft(draft):
    with pytest.raises(InputError, match=r"some\.ecsv: no column can be a feature"):
        draft(columns()["objID", "otype"])


def test_init_writes_once_and_check_reads(tmp_path):
    columns().write(tmp_path / "some.fits")
    schema, file = tmp_path / "some.toml", str(tmp_path / "some.fits")

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, ["schema", *arguments])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    assert "check" in run("init", file, "--out", str(schema))
    assert schema.read_text().splitlines()[4:] == draft_schema(file).splitlines()[4:]
    assert f"--schema {schema}" in schema.read_text()
    schema.write_text(schema.read_text() + "# mine\n")
    assert "is there already" in run("init", file, "--out", str(schema), code=2)
    assert schema.read_text().endswith("# mine\n")
    assert ".toml" in run("init", file, "--out", "some.txt", code=2)
    checked = run("check", file, "--schema", str(schema))
    assert checked.startswith("some.fits: 60 sources: 40 of a class to tell apart (star 20, ")
    remark = "no --schema given: read as `gpal schema init` drafts it"
    assert run("check", file) == f"{remark}\n\n{checked}"


names = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12)
cells = st.one_of(
    st.just(""), st.sampled_from(["-99", "99", "0", "-1", "nan", "UNKNOWN", "1", "1.5", "2", "x"])
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, st.lists(cells, min_size=6, max_size=6), min_size=1, max_size=6))
def test_whatever_the_table_the_draft_is_a_schema_or_refused(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("any") / "some.csv"
    rows = [list(table), *map(list, zip(*table.values()))]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path.write_text("\n".join(quoted) + "\n")
    try:
        text = draft_schema(path)
    except InputError:
        return
    schema = Schema.from_dict(tomllib.loads(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            load_catalog(path, schema=schema)
        except InputError as error:
            assert "may both be" in str(error)  # a person has to say which
