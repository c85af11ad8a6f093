"""Loading tables of a user's own, errors propagated, and the Catalog's slicing and classes."""

import gzip

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import QTable, Table

from gpal.catalog import load_catalog
from gpal.errors import InputError

MAPPING = {
    "id": "Name",
    "class": "Type",
    "ra": "RA",
    "dec": "Dec",
    "features": {"flux": {"column": "F", "unit": "W / m2", "transform": "log10"}, "colour": "C"},
}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 12
    return Table(
        {
            "Name": [f"S{i}" for i in range(n)],
            "RA": np.linspace(0, 6, n) * u.rad,
            "Dec": np.linspace(-80, 80, n) * u.deg,
            "Type": ["QSO", "star", "star", ""] * 3,
            "F": rng.uniform(1, 9, n) * u.Unit("erg / (s cm2)"),
            "e_F": rng.uniform(0.01, 0.1, n) * u.Unit("W / m2"),
            "C": rng.normal(size=n),
            "C_err": rng.uniform(0.1, 0.2, n),
        }
    )


# Written with the unit that the catalogs have; that VOTable prefers another is no matter here.
@pytest.mark.filterwarnings("ignore:The unit .erg.:astropy.units.UnitsWarning")
@pytest.mark.parametrize("ending", ["fits", "fits.gz", "vot", "ecsv", "csv", "parquet"])
def test_every_format_gives_the_same_catalog(tmp_path, table, ending):
    path = tmp_path / f"mine.{ending}"
    if ending == "vot":
        table.write(path, format="votable")
    elif ending == "parquet":
        table.to_pandas().to_parquet(path)
    else:
        table.write(path)
    has_units = ending not in ("csv", "parquet")
    catalog = load_catalog(path, mapping=MAPPING)
    scale, error_scale = (1e-3, 1.0) if has_units else (1.0, 1.0)
    F = np.asarray(table["F"]) * scale
    np.testing.assert_allclose(catalog.X[:, 0], np.log10(F), rtol=1e-12)
    expected = np.asarray(table["e_F"]) * error_scale / (F * np.log(10))
    np.testing.assert_allclose(catalog.X_err[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(catalog.X_err[:, 1], np.asarray(table["C_err"]), rtol=1e-14)
    assert catalog.names.tolist() == table["Name"].tolist()
    assert catalog.labels.tolist() == ["qso", "star", "star", ""] * 3
    assert catalog.original_labels.tolist() == table["Type"].tolist()
    assert catalog.classes == ("qso", "star")
    assert not catalog.identified.any()
    if has_units:
        np.testing.assert_allclose(catalog.ra, np.degrees(np.linspace(0, 6, 12)))
    assert len(catalog.unlabelled()) == 3


@pytest.mark.parametrize(
    ("value_unit", "error_unit", "wanted", "expected"),
    [
        ("Jy", "mJy", "", (2.0, 0.1)),  # an error is converted to its value's unit
        ("mJy", None, "Jy", (0.002, 0.1)),  # an error without a unit has its value's
        ("mJy", None, "", (2.0, 100.0)),
        (None, "mJy", "Jy", (2.0, 0.1)),  # a value without a unit has that of the schema
        ("Jy", "Jy", "mJy", (2000.0, 100_000.0)),
    ],
)
def test_value_and_error_share_a_unit(tmp_path, value_unit, error_unit, wanted, expected):
    table = Table({"F": [2.0], "e_F": [100.0]})
    table["F"].unit, table["e_F"].unit = value_unit, error_unit
    table.write(tmp_path / "mine.ecsv")
    mapping = {"features": {"flux": {"column": "F", "unit": wanted}}}
    catalog = load_catalog(tmp_path / "mine.ecsv", mapping=mapping)
    assert (catalog.X[0, 0], catalog.X_err[0, 0]) == pytest.approx(expected)


def test_bands_of_a_hardness_ratio_share_a_unit(tmp_path):
    columns = {"E1": [1.0], "F1": [1.0], "e1": [0.1], "E2": [3e-3], "F2": [1.0], "e2": [100.0]}
    units = {"E1": "erg", "F1": "Jy", "e1": "Jy", "E2": "kerg", "F2": "Jy", "e2": "mJy"}
    Table(columns, units=units).write(tmp_path / "mine.ecsv")
    bands = {k: {"nuFnu": f"E{k}", "flux": f"F{k}", "error": f"e{k}"} for k in "12"}
    mapping = {"features": {"ratio": {"hardness": ["1", "2"]}}, "bands": bands}
    catalog = load_catalog(tmp_path / "mine.ecsv", mapping=mapping)
    assert catalog.X[0, 0] == pytest.approx(0.5)  # (3 − 1)/(3 + 1)
    assert catalog.X_err[0, 0] == pytest.approx(2 * np.hypot(0.3, 0.3) / 16)


def test_csv_keeps_words_and_knows_missing_numbers(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("Name,Type,F,e_F\nS1,NA,1.5,0.1\nnull,,NA,0.1\nS3,QSO,,0.1\n")
    mapping = {"id": "Name", "class": "Type", "features": {"flux": "F"}}
    catalog = load_catalog(path, mapping=mapping)
    assert catalog.labels.tolist() == ["na", "", "qso"]
    assert catalog.names.tolist() == ["S1", "null", "S3"]
    np.testing.assert_array_equal(catalog.X[:, 0], [1.5, np.nan, np.nan])


@pytest.mark.parametrize(
    ("lines", "column"),
    [
        ("# made by me, 2 tables\n# F: flux\nName,F\nS #1,2.5\n", "F"),
        ("#F,Name\n2.5,S #1\n", "#F"),  # the header itself is commented out
        ("# made by me\n#F,Name\n2.5,S #1\n", "#F"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_comment_lines_before_the_header_of_a_csv(tmp_path, lines, column, ending):
    content = lines.encode()
    path = tmp_path / f"mine.{ending}"
    path.write_bytes(gzip.compress(content) if ending == "csv.gz" else content)
    catalog = load_catalog(
        path, mapping={"id": "Name", "features": {"flux": {"column": column, "error": "none"}}}
    )
    assert catalog.X.tolist() == [[2.5]] and catalog.names.tolist() == ["S #1"]


def test_provenance_says_how_the_table_was_read(tmp_path, table):
    table.write(tmp_path / "mine.ecsv")
    used = load_catalog(tmp_path / "mine.ecsv", mapping=MAPPING).provenance["schema"]
    checksum = used.pop("sha256")
    assert used == {
        **{"name": "mapping", "id": "Name", "ra": "RA", "dec": "Dec", "class": "Type"},
        "features": {
            "flux": {
                **{"column": "F", "unit": "W / m2", "transform": "log10", "error": "e_F"},
                "stated": {"F": "erg / (s cm2)", "e_F": "W / m2"},  # for they differ
            },
            "colour": {"column": "C", "error": "C_err"},
        },
    }
    other = {**MAPPING, "ra": "Dec"}
    again = load_catalog(tmp_path / "mine.ecsv", mapping=other).provenance["schema"]
    assert len(checksum) == 64 and again["sha256"] != checksum


@pytest.mark.parametrize("alias", ["Unc_{}", "e_{}", "{}_err", "{}_error", "{}err", "{}_e"])
def test_the_usual_error_names_are_found(tmp_path, alias):
    pd.DataFrame({"F": [1.0, 2.0], alias.format("F"): [0.1, 0.2]}).to_csv(tmp_path / "a.csv")
    catalog = load_catalog(tmp_path / "a.csv", mapping={"features": {"flux": "F"}})
    assert catalog.X_err[:, 0].tolist() == [0.1, 0.2]


def test_asymmetric_errors_may_be_signed(tmp_path):
    pd.DataFrame({"F": [1.0], "lo": [-3.0], "up": [4.0]}).to_csv(tmp_path / "a.csv")
    mapping = {"features": {"flux": {"column": "F", "error": ["lo", "up"]}}}
    assert load_catalog(tmp_path / "a.csv", mapping=mapping).X_err[0, 0] == np.sqrt(12.5)


@pytest.mark.parametrize(
    ("rule", "expected"), [("not measured", np.inf), ("exact", 0.0), ("nearest", 0.3)]
)
def test_missing_values_and_errors_follow_the_rule(tmp_path, rule, expected):
    frame = pd.DataFrame({"F": [1.0, 2.0, np.nan, 4.0], "e_F": [0.2, np.nan, 0.1, 0.4]})
    frame.to_csv(tmp_path / "a.csv")
    mapping = {"features": {"flux": {"column": "F", "missing_error": rule}}}
    catalog = load_catalog(tmp_path / "a.csv", mapping=mapping)
    assert len(catalog) == 4
    assert catalog.X_err[1, 0] == pytest.approx(expected)
    assert np.isnan(catalog.X[2, 0]) and catalog.X_err[2, 0] == np.inf
    assert sorted(d.count for d in catalog.decisions) == [1, 1]


def test_floor_and_zero_errors(tmp_path):
    frame = pd.DataFrame({"F": [0.0, 1.0, 10.0], "e_F": [0.1, 0.0, 1.0]})
    frame.to_csv(tmp_path / "a.csv")
    feature = {"column": "F", "transform": "log10", "floor": 0.1, "zero_error": "missing"}
    catalog = load_catalog(tmp_path / "a.csv", mapping={"features": {"flux": feature}})
    np.testing.assert_allclose(catalog.X[:, 0], [-1, np.nan, 1])
    rules = [decision.rule for decision in catalog.decisions]
    assert rules == ["no error: not measured", "raised to the floor 0.1"]


def test_hardness_ratio_error_against_monte_carlo():
    catalog = load_catalog("4fgl-dr4", features=["hardness_1GeV"])
    bright = np.flatnonzero(catalog.table["Signif_Avg"] > 100)[:20]
    rng = np.random.default_rng(1)
    for i in bright:
        draws = []
        for k in (2, 3):  # the bands on both sides of 1 GeV
            E, F = catalog.table["nuFnu_Band"][i, k], catalog.table["Flux_Band"][i, k]
            lower, upper = catalog.table["Unc_Flux_Band"][i, k]
            sigma = np.sqrt((lower**2 + upper**2) / 2)
            draws.append(E * rng.normal(F, sigma, 40_000) / F)
        ratio = (draws[1] - draws[0]) / (draws[1] + draws[0])
        assert catalog.X[i, 0] == pytest.approx(np.mean(ratio), abs=0.1 * np.std(ratio))
        assert catalog.X_err[i, 0] == pytest.approx(np.std(ratio), rel=0.05)


def test_slicing_takes_everything_along(dr4):
    rows = np.array([5, 3, 4000])
    part = dr4[rows]
    assert part.names.tolist() == dr4.table["Source_Name"][rows].tolist()
    np.testing.assert_array_equal(part.X, dr4.X[rows])
    np.testing.assert_array_equal(part.position_error, dr4.position_error[rows])
    assert part.labels.tolist() == dr4.labels[rows].tolist()
    crab = dr4[dr4.names == "4FGL J0534.5+2201i"]
    assert len(crab) == len(crab.table) == 1
    assert {d.count for d in crab.decisions} == {1}
    assert len(dr4[:0]) == 0


def test_psr_takes_msp_along_unless_asked_apart(dr4):
    together, apart = dr4.labelled(["bll", "psr"]), dr4.labelled(["bll", "psr", "msp"])
    assert len(together) == len(apart)
    assert set(apart.y) == {"bll", "psr", "msp"}
    assert (apart.y == "msp").sum() == 179
    assert np.array_equal(together.y == "psr", np.isin(apart.y, ["psr", "msp"]))


def test_groups_of_the_users_own_also_on_a_release_without_msp(dr4):
    groups = {"agn": ["bll", "fsrq"], "pulsar": ["psr", "msp"]}
    known = dr4.labelled(groups)
    assert known.classes == ("agn", "pulsar")
    assert (known.y == "agn").sum() == 1490 + 820
    assert (load_catalog("4fgl").labelled(groups).y == "pulsar").sum() == 239
    everything = dr4.with_classes(groups)
    assert len(everything) == len(dr4)
    assert (everything.y == "").sum() == len(dr4) - len(known)


def test_a_source_of_a_group_is_no_target(dr4):
    undecided = ("", "unk", "bcu")
    np.testing.assert_array_equal(dr4.is_target, np.isin(dr4.labels, undecided))
    merged = dr4.with_classes({"agn": ["bll", "fsrq", "bcu"], "psr": ["psr"]})
    np.testing.assert_array_equal(merged.is_target, np.isin(dr4.labels, undecided[:2]))
    assert set(merged.unlabelled().labels) == {"", "unk"}
    assert not set(merged.labelled().names) & set(merged.unlabelled().names)


def test_a_class_in_two_groups_is_refused(dr4):
    with pytest.raises(InputError, match="'bll' is in the groups 'a' and 'b'"):
        dr4.labelled({"a": ["bll"], "b": ["bll", "fsrq"]})


def test_a_toml_schema_may_extend_a_known_one(tmp_path, extract_table):
    extract_table.meta.clear()
    extract_table.rename_column("Flux1000", "F1000")
    extract_table.rename_column("Unc_Flux1000", "e_F1000")
    extract_table.write(tmp_path / "mine.fits")
    (tmp_path / "mine.toml").write_text(
        'extends = "4fgl"\nhdu = ""\n[features.log_flux]\ncolumn = "F1000"\nerror = "e_F1000"\n'
        '[carry]\nflux = { column = "F1000" }\nflux_error = { column = "" }\n'
    )
    mine = load_catalog(tmp_path / "mine.fits", schema=tmp_path / "mine.toml")
    np.testing.assert_array_equal(mine.X, load_catalog("4fgl").X)
    assert "flux" in mine.carried and "flux_error" not in mine.carried


def test_a_mapping_overrides_keys_of_a_known_schema():
    mapping = {"features": {"curvature": {"transform": "log10", "floor": 0.3}}}
    catalog = load_catalog("4fgl", features=["curvature"], mapping=mapping)
    assert np.nanmin(catalog.X) == pytest.approx(np.log10(0.3))


def test_cuts_join_and_are_recorded(dr4):
    cut = load_catalog("4fgl-dr4", cuts=["Signif_Avg > 10 and Flags == 0", "GLAT>=10"])
    kept = (dr4.table["Signif_Avg"] > 10) & (dr4.table["Flags"] == 0) & (dr4.table["GLAT"] >= 10)
    assert cut.names.tolist() == dr4.names[kept].tolist()
    assert len(cut.provenance["cuts"]) == 2


@pytest.mark.parametrize(
    ("value", "error"),
    [("FLUX", "FLUX_ERR"), ("Flux", "UNC_FLUX"), ("F", " F_err "), (" F", "Ferr")],
)
def test_an_error_column_in_another_case_or_with_blanks_is_found(tmp_path, value, error):
    pd.DataFrame({value: [1.0, 2.0], error: [0.1, 0.2]}).to_parquet(tmp_path / "a.parquet")
    catalog = load_catalog(tmp_path / "a.parquet", mapping={"features": {"flux": value}})
    assert catalog.X_err[:, 0].tolist() == [0.1, 0.2]


def test_an_error_column_in_another_case_that_belongs_to_another_column(tmp_path):
    """F_ERR may be the error of F as well as of f; and E_BV is a reddening."""
    columns = {"f": [1.0], "F": [2.0], "F_err": [0.1], "BV": [0.3], "E_BV": [0.7]}
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv")
    mapping = {"features": {"low": "f", "high": "F", "colour": "BV"}}
    with pytest.warns(UserWarning, match="for 'low' .*, 'colour' "):
        catalog = load_catalog(tmp_path / "a.csv", mapping=mapping)
    assert catalog.X_err.tolist() == [[0.0, 0.1, 0.0]]


@pytest.mark.parametrize("other", ["e_F", "F_error"])
def test_two_columns_that_may_be_the_error(tmp_path, other):
    pd.DataFrame({"F": [1.0], "F_err": [0.1], other: [0.2]}).to_csv(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"may both be the error of 'F'; say which"):
        load_catalog(tmp_path / "a.csv", mapping={"features": {"flux": "F"}})
    mapping = {"features": {"flux": {"column": "F", "error": other}}}
    assert load_catalog(tmp_path / "a.csv", mapping=mapping).X_err.tolist() == [[0.2]]


@pytest.mark.parametrize("unit, of_error", [("mag(AB)", "mmag"), ("dex(cm / s2)", "dex")])
def test_errors_of_a_logarithmic_unit_are_differences(tmp_path, unit, of_error):
    errors = [0.1, 0.2] * u.Unit(of_error)
    QTable({"F": [20.0, 21.0] * u.Unit(unit), "F_err": errors}).write(tmp_path / "a.ecsv")
    catalog = load_catalog(tmp_path / "a.ecsv", mapping={"features": {"flux": "F"}})
    factor = 1e-3 if of_error == "mmag" else 1.0
    np.testing.assert_allclose(catalog.X_err[:, 0], [0.1 * factor, 0.2 * factor])
    assert catalog.measurements.units == (unit,)


@pytest.mark.parametrize(
    ("found", "wanted"), [("mag(AB)", "Jy"), ("dex(cm)", "cm"), ("Jy", "mag(AB)")]
)
def test_a_unit_that_converts_by_a_formula_is_no_factor(tmp_path, found, wanted):
    Table({"F": [20.0, 21.0] * u.Unit(found)}).write(tmp_path / "a.ecsv")
    mapping = {"features": {"flux": {"column": "F", "unit": wanted}}}
    with pytest.raises(InputError, match="which does not convert"):
        load_catalog(tmp_path / "a.ecsv", mapping=mapping)
