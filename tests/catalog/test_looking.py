"""Looking at a table before it is fitted: what is printed is what is there."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table
from typer.testing import CliRunner

from gpal.catalog import Schema, inspect_catalog, load_catalog
from gpal.cli import app
from gpal.cli.catalogs import show_first
from gpal.errors import InputError

MAPPING = {
    "id": "name",
    "class": "kind",
    "classes": {"default": ["star", "dwarf"], "groups": {"dwarf": ["wd", "bd"]}},
    "features": {
        "u": {"column": "u", "error": "du"},
        "g": {"column": "g", "unit": "mag", "transform": "asinh"},
        "r": {"column": "r", "error": "none"},
        "i": {"column": "i"},
    },
}


@pytest.fixture
def table():
    """40 sources: u with 2 values missing, 3 errors of 0 and 1 missing; g, r, i as they should."""
    rng = np.random.default_rng(3)
    t = Table({"name": [f"S{i}" for i in range(40)]})
    t["kind"] = np.repeat(["star", "wd", "bd", "galaxy", ""], [12, 6, 4, 3, 15])
    for column in ("u", "g", "r", "i"):
        t[column] = rng.normal(18.0, 1.0, size=40)
    t["du"] = t["e_g"] = 0.1
    t["g"].unit = "mag"
    t["u"][[1, 2]] = np.nan
    t["du"][[5, 6, 7]] = 0.0
    t["du"][9] = np.nan
    return t


@pytest.fixture
def file(table, tmp_path):
    path = tmp_path / "some.ecsv"
    table.write(path)
    return path


def test_facts_of_a_feature_are_those_of_the_table(file, table):
    u, g, r, i = inspect_catalog(file, mapping=MAPPING).features
    assert (u.columns, u.errors, u.error_found) == (("u",), ("du",), "declared")
    assert (u.n_measured, u.zero_errors, u.negative_errors) == (37, 3, 0)
    assert dict(u.decisions) == {
        "no value: not measured": 2,
        "an error of 0: taken as exact": 3,
        "no error: not measured": 1,
    }
    known = np.isfinite(table["u"]) & np.isfinite(table["du"])
    np.testing.assert_array_equal(np.sort(u.values), np.sort(table["u"][known]))
    assert u.histogram.sum() == 37 and u.median_error == pytest.approx(0.1)

    assert (g.errors, g.error_found, g.unit) == (("e_g",), "found by its name", "mag")
    np.testing.assert_allclose(np.sort(g.values), np.sort(np.arcsinh(table["g"])))
    assert (r.errors, r.error_found) == ((), "none declared")
    assert (i.errors, i.error_found) == ((), "")
    assert np.isnan(i.median_error)


def test_classes_are_counted_by_what_is_made_of_them(file):
    found = inspect_catalog(file, mapping=MAPPING)
    assert found.class_column == "kind"
    assert found.groups == {"star": {"star": 12}, "dwarf": {"wd": 6, "bd": 4}}
    assert (found.undecided, found.others) == ({"": 15}, {"galaxy": 3})


def test_a_catalog_and_its_file_are_looked_at_alike(file):
    catalog = load_catalog(file, mapping=MAPPING | {"features": {"u": MAPPING["features"]["u"]}})
    of_file = inspect_catalog(file, mapping=MAPPING, features=["u"])
    assert str(inspect_catalog(catalog)) == str(of_file)
    assert inspect_catalog(catalog[:10]).n == 10


def test_the_long_form_says_all_and_the_short_one_a_line_per_feature(file):
    found = inspect_catalog(file, mapping=MAPPING)
    long, short = str(found), found.short().splitlines()
    assert short[0] == (
        "some.ecsv: 40 sources: 22 of a class to tell apart (star 12, dwarf 10), 15 to classify,"
        " 3 of other classes"
    )
    assert len(short) == 5 and "! NO ERROR COLUMN FOUND" in short[4]
    assert all("NO ERROR" not in line for line in short[:4])
    assert "u ± du" in short[1] and "2: no value: not measured" in short[1]
    assert found.without_error == ("i",)
    for words in (
        "error: du, declared; median error 0.1",
        "37 measured",
        "! 3: an error of 0: taken as exact; where 0 means",
        '1: no error: not measured; where they are limits, upper_limit = "u" (of magnitudes',
        "g: asinh g ± e_g [mag]",
        "exact, as the schema says",
        "dwarf: 10 = wd 6, bd 4",
        "undecided, to be classified: no class 15",
        "others, neither learned nor classified: galaxy 3",
    ):
        assert words in long, long
    bars = [line for line in long.splitlines() if line.startswith("    |")]
    assert len(bars) == 4 and all("█" in line for line in bars)


def test_what_cannot_be_used_is_said_and_the_rest_looked_at(file, table):
    table["e_g"][3] = -0.5
    table.write(file, overwrite=True)
    with pytest.raises(InputError):
        load_catalog(file, mapping=MAPPING)
    found = inspect_catalog(file, mapping=MAPPING)
    assert [bool(facts.problem) for facts in found.features] == [False, True, False, False]
    assert found.problems[0].startswith("column 'e_g', row 3 (S3): -0.5")
    assert found.problems[0] in str(found) and found.problems[0] in found.short()
    assert found.groups["star"] == {"star": 12}


def test_a_table_that_cannot_be_read_is_refused(file):
    with pytest.raises(InputError, match=r"some\.ecsv: no column 'nome'"):
        inspect_catalog(file, mapping=MAPPING | {"id": "nome"})
    with pytest.raises(InputError, match="no feature 'z'"):
        inspect_catalog(file, mapping=MAPPING, features=["z"])


@pytest.mark.parametrize(
    "key, shown", [("difference", "gr: g - r ± e_g"), ("ratio", "gr: asinh(g / r) ± e_g")]
)
def test_a_difference_or_ratio(file, key, shown):
    mapping = {"features": {"gr": {key: ["g", "r"]}}}
    if key == "ratio":
        mapping["features"]["gr"]["transform"] = "asinh"
    (facts,) = inspect_catalog(file, mapping=mapping).features
    assert facts.columns == ("g", "r") and facts.n_measured == 40
    assert facts.errors == ("e_g",) and facts.error_found == ""  # r has none
    printed = str(inspect_catalog(file, mapping=mapping))
    assert shown in printed and "NO ERROR COLUMN FOUND" in printed


def test_a_schema_without_classes(file):
    schema = Schema.from_dict({"features": {"u": {"column": "u", "error": "du"}}})
    found = inspect_catalog(file, schema=schema)
    assert found.headline() == "some.ecsv: 40 sources" and str(found).endswith("no class column")


def test_check_prints_it_and_fails_where_a_feature_cannot_be_used(tmp_path, file, table):
    schema = tmp_path / "some.toml"
    schema.write_text(
        'id = "name"\nclass = "kind"\n[features]\ng = "g"\n[features.u]\ncolumn = "u"\nerror = "du"'
    )
    arguments = ["schema", "check", str(file), "--schema", str(schema)]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{inspect_catalog(file, schema=schema)}\n"
    table["e_g"][3] = -0.5
    table.write(file, overwrite=True)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and "37 measured" in result.stdout
    assert result.stderr.startswith("gpal: 1 of 2 features cannot be used: column 'e_g', row 3")


@pytest.mark.parametrize(
    "read, rows, said",
    [
        (1000, 40, None),
        (1000, None, None),
        (40, 1000, "The first 40 sources that are read, of 1000 rows in all:"),
        (40, None, "The first 40 sources that are read:"),
    ],
)
def test_of_a_table_in_blocks_the_first_is_looked_at(file, capsys, monkeypatch, read, rows, said):
    monkeypatch.setattr("gpal.catalog.streaming.READ", read)
    show_first(load_catalog(file, mapping=MAPPING, features=["r"]), rows)
    printed = capsys.readouterr().out.splitlines()
    if said is not None:
        assert printed.pop(0) == said
    assert printed[0].startswith("some.ecsv: 40 sources: ") and printed[1].startswith("  r: ")


def test_a_known_release_has_nothing_that_wants_a_decision():
    result = CliRunner().invoke(app, ["schema", "check", "4fgl-dr4"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "!" not in result.stdout and "error: Unc_LP_Index, declared" in result.stdout


def test_a_feature_whose_error_is_undecided_is_not_called_exact(tmp_path):
    table = Table({"F": [1.0, 2.0], "e_F": [0.1, 0.1], "F_err": [0.1, 0.1]})
    table.write(tmp_path / "a.ecsv")
    found = inspect_catalog(tmp_path / "a.ecsv", mapping={"features": {"F": "F"}})
    assert "may both be the error" in found.features[0].problem
    assert found.features[0].error_found == "" and "exact" not in found.short()
