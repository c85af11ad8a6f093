"""Columns that go to the outputs as they stand: `[carry.NAME]` of a schema."""

from __future__ import annotations

import astropy.units as u
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from astropy.io import fits
from astropy.table import MaskedColumn, Table

from gpal.catalog import load_catalog
from gpal.catalog.readers import read_table
from gpal.catalog.streaming import CatalogBlocks
from gpal.errors import InputError
from gpal.evaluation import logistic_regression
from gpal.files.growing_tables import growing_table
from gpal.jobs import classify
from gpal.jobs.probability_catalogue import read_probabilities

MAPPING = {
    "id": "Name",
    "class": "Type",
    "features": {"index": {"column": "Index", "error": "none"}},
    "carry": {
        "counterpart": {"column": "Other", "label": "other name", "ucd": "meta.id.assoc"},
        "flux": "Flux",
        "count": "Count",
        "band_2": "Bands[1]",
        "wide": {"column": "Name", "ends": "e"},
        "nothing": {"column": ""},
    },
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    kind = np.repeat(["bll", "psr", ""], [12, 12, 6])
    table = Table({"Name": [f"S{i:02d}{'e' if i % 5 == 0 else ''}" for i in range(30)]})
    table["Type"] = kind
    table["Index"] = rng.normal(np.where(kind == "psr", 3, 2), 0.3)
    other = [f"=3C {i}" for i in range(30)]
    other[4], other[7] = "", "B3 0019+451\n"
    table["Other"] = other
    table["Flux"] = rng.lognormal(size=30).astype(">f4")
    table["Flux"].unit = "ph / (s cm2)"
    table["Count"] = MaskedColumn(np.arange(30), mask=np.arange(30) == 2)
    table["Bands"] = rng.normal(size=(30, 3))
    return table


@pytest.fixture(scope="module")
def catalog(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("carry") / "table.fits"
    table.write(path)
    return load_catalog(path, mapping=MAPPING)


def test_values_units_and_words(catalog, table):
    carried = catalog.carried
    assert list(carried) == ["counterpart", "flux", "count", "band_2", "wide"]
    assert carried["counterpart"][4] == "" and carried["counterpart"][7] == "B3 0019+451"
    assert carried["counterpart"].description == "other name"
    assert carried["counterpart"].meta["ucd"] == "meta.id.assoc"
    np.testing.assert_array_equal(carried["flux"], table["Flux"])
    assert carried["flux"].dtype == np.dtype("f4") and str(carried["flux"].unit) == "ph / (s cm2)"
    assert np.isnan(carried["count"][2]) and carried["count"][3] == 3
    np.testing.assert_array_equal(carried["band_2"], table["Bands"][:, 1])
    assert np.flatnonzero(carried["wide"]).tolist() == [0, 5, 10, 15, 20, 25]
    some = catalog[[3, 5]]
    assert some.carried["wide"].tolist() == [False, True]
    assert some.carried["flux"].unit == carried["flux"].unit


def test_they_are_in_the_files_with_unit_and_ucd(catalog, tmp_path):
    """Through FITS and CSV, cell by cell, in the order of the sources."""
    out = tmp_path / "results"
    classify(catalog, out, classifier=logistic_regression(), n_splits=2)
    header = fits.getheader(out / "probabilities.fits", 1)
    place = {header[f"TTYPE{n}"]: n for n in range(1, header["TFIELDS"] + 1)}
    assert header[f"TUCD{place['counterpart']}"] == "meta.id.assoc"
    assert header[f"TUCD{place['ra']}"] == "pos.eq.ra;meta.main"
    assert header[f"TUCD{place['p_bll']}"] == "stat.probability"
    assert header[f"TUNIT{place['flux']}"] == "ph s-1 cm-2"
    for name in ("probabilities.fits", "probabilities.csv"):
        again = read_probabilities(out / name)
        assert [str(w) for w in again["counterpart"]] == catalog.carried["counterpart"].tolist()
        np.testing.assert_array_equal(np.asarray(again["flux"], "f4"), catalog.carried["flux"])
        assert np.isnan(np.ma.filled(again["count"].astype(float), np.nan)[2])
        np.testing.assert_array_equal(np.asarray(again["wide"], bool), catalog.carried["wide"])


def test_what_the_releases_carry():
    dr4 = load_catalog("4fgl-dr4")
    carried = dr4.carried
    row = dr4.names.tolist().index("4FGL J0534.5+2200")
    assert carried["counterpart"][row] == "PSR J0534+2200"
    clump = (np.asarray(dr4.table["Flags"]) & 32) > 0  # bit 6: on a clump of interstellar gas
    assert (clump & carried["confused"]).sum() == carried["confused"].sum() == 351
    assert carried["extended"].sum() == 81
    np.testing.assert_array_equal(carried["significance"], dr4.table["Signif_Avg"])
    assert "association_probability" in carried and str(carried["flux"].unit) == "ph / (s cm2)"


def test_ucds_are_words_of_the_vocabulary():
    from astropy.io.votable.ucd import parse_ucd

    for name in ("4fgl", "4fgl-dr4", "fl16y"):
        for column in load_catalog(name).carried.values():
            parse_ucd(column.meta["ucd"], check_controlled_vocabulary=True)


def test_a_column_that_is_not_there_is_said(table, tmp_path):
    path = tmp_path / "table.ecsv"
    table["Name", "Type", "Index"].write(path)
    mapping = {**MAPPING, "carry": {"flux": "Flx", "wide": {"column": "Name", "ends": "e"}}}
    with pytest.warns(
        UserWarning, match=r"go without flux \(column 'Flx'\): the table has no such"
    ):
        catalog = load_catalog(path, mapping=mapping)
    assert list(catalog.carried) == ["wide"]


def test_letters_that_are_lost_are_said(tmp_path):
    text = "Name,Type,Index,where\na,x,1.0,Boötes\nb,y,2.0,Leo\n"
    (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
    features = {"index": {"column": "Index", "error": "none"}}
    mapping = {"id": "Name", "class": "Type", "features": features, "carry": {"where": "where"}}
    with pytest.warns(UserWarning, match="column 'where' holds bytes that are no UTF-8"):
        load_catalog(tmp_path / "a.csv", mapping=mapping)


@pytest.mark.parametrize("name", ["ra", "Prediction", "p_psr", "a\nb", "β" * 20])
def test_names_that_the_outputs_have_are_refused(name, table, tmp_path):
    path = tmp_path / "table.ecsv"
    table["Name", "Type", "Index"].write(path)
    with pytest.raises(InputError, match=r"carried column|tables of results"):
        load_catalog(path, mapping={**MAPPING, "carry": {name: "Index"}})


def test_a_unit_that_fits_cannot_spell_stands_in_the_description(table, tmp_path):
    path = tmp_path / "table.ecsv"
    odd = table["Name", "Type", "Index"]
    odd["Index"].unit = u.earthMass
    odd.write(path)
    mapping = {**MAPPING, "carry": {"slope": "Index"}}
    column = load_catalog(path, mapping=mapping).carried["slope"]
    assert column.unit is None and column.description.endswith(f"[{u.earthMass}]")


def test_whole_numbers_are_kept_digit_by_digit(table, tmp_path):
    """Identifiers of 19 digits as text, unsigned numbers as numbers, in files written in blocks."""
    path = tmp_path / "table.fits"
    long = table["Name", "Type", "Index"]
    long["Gaia"] = 2**62 + np.arange(30)
    long["Seen"] = MaskedColumn(2**60 + 1 + np.arange(30), mask=np.arange(30) == 3)
    long["Bits"] = np.arange(30, dtype=np.uint16) + 65000
    long.write(path)
    carry = {"gaia": "Gaia", "seen": "Seen", "bits": "Bits"}
    carried = load_catalog(path, mapping={**MAPPING, "carry": carry}).carried
    assert carried["gaia"].tolist() == [str(2**62 + k) for k in range(30)]
    assert carried["seen"][3] == "" and carried["seen"][4] == str(2**60 + 5)
    for ending in (".fits", ".vot", ".parquet", ".csv"):
        out = tmp_path / f"grown{ending}"
        with growing_table(out, {}, ["remark"], "{}") as file:
            for rows in (slice(0, 10), slice(10, 30)):
                file.write(Table({name: column[rows] for name, column in carried.items()}))
        again = read_table(out, words=("gaia", "seen"))
        assert [str(word) for word in again["gaia"]] == carried["gaia"].tolist()
        np.testing.assert_array_equal(again["bits"], long["Bits"])


def test_an_element_of_an_array_is_kept_as_a_column_is(table, tmp_path):
    path = tmp_path / "table.fits"
    arrays = table["Name", "Type", "Index"]
    arrays["Seen"] = 2**60 + 1 + np.arange(60).reshape(30, 2)
    arrays["Seen"][:, 1] %= 7
    arrays.write(path)
    carry = {"long": "Seen[0]", "short": "Seen[1]"}
    carried = load_catalog(path, mapping={**MAPPING, "carry": carry}).carried
    assert carried["long"].tolist() == [str(2**60 + 1 + 2 * k) for k in range(30)]
    np.testing.assert_array_equal(carried["short"], arrays["Seen"][:, 1])
    for expression, message in (("Seen[2]", r"no element \[2\]"), ("Seen", "pick an element")):
        with pytest.raises(InputError, match=message):
            load_catalog(path, mapping={**MAPPING, "carry": {"seen": expression}})


def test_an_element_of_words_and_one_of_lists(tmp_path):
    words = {"Name": ["a", "b"], "Index": [1.0, 2.0], "Both": [["x", "y"], ["z", ""]]}
    Table(words).write(tmp_path / "a.fits")
    mapping = {**MAPPING, "class": "", "carry": {"second": "Both[1]"}}
    carried = load_catalog(tmp_path / "a.fits", mapping=mapping).carried
    assert carried["second"].tolist() == ["y", ""]
    pq.write_table(
        pa.table({**words, "Both": pa.array([None, None], pa.list_(pa.float64()))}),
        tmp_path / "b.parquet",
    )
    assert np.isnan(load_catalog(tmp_path / "b.parquet", mapping=mapping).carried["second"]).all()


def test_blocks_of_a_table_are_alike(tmp_path):
    """A block without text, one with a missing whole number; text after numbers is refused."""
    lines = ["Name,Index,Other,Count,Late"]
    lines += [f"S{k},{k / 7},{'3C 1' if k < 3 else ''},{k if k != 5 else ''},{k}" for k in range(9)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    mapping = {"id": "Name", "features": {"index": {"column": "Index", "error": "none"}}}
    mapping["carry"] = {"other": "Other", "count": "Count", "late": "Late"}
    blocks = list(CatalogBlocks.of(path, mapping=mapping, rows=4))
    assert [len(block) for block in blocks] == [4, 4, 1]
    for name in ("other", "count"):
        assert len({block.carried[name].dtype.kind for block in blocks}) == 1
    assert [word for block in blocks for word in block.carried["other"]] == ["3C 1"] * 3 + [""] * 6
    counts = np.concatenate([block.carried["count"] for block in blocks])
    np.testing.assert_array_equal(counts, [0, 1, 2, 3, 4, np.nan, 6, 7, 8])
    path.write_text("\n".join([*lines[:-1], "S8,1,3C 1,8,word"]) + "\n")
    with pytest.raises(InputError, match="'late' holds numbers in the rows before and text in"):
        list(CatalogBlocks.of(path, mapping=mapping, rows=4))


def test_text_that_begins_in_a_later_block(tmp_path):
    """The first block of a CSV has empty cells, which are as good as numbers."""
    path = tmp_path / "table.csv"
    lines = ["Name,Index,Other,Empty,Number"]
    lines += [f"S{k},{k / 7},{'3C 1' if k == 7 else ''},,{k if k > 5 else ''}" for k in range(9)]
    path.write_text("\n".join(lines) + "\n")
    mapping = {"id": "Name", "features": {"index": {"column": "Index", "error": "none"}}}
    mapping["carry"] = {"other": "Other", "empty": "Empty", "number": "Number"}
    blocks = list(CatalogBlocks.of(path, mapping=mapping, rows=3))
    assert [word for block in blocks for word in block.carried["other"]] == [*[""] * 7, "3C 1", ""]
    for name in ("empty", "number"):
        assert {block.carried[name].dtype.kind for block in blocks} == {"f"}


@pytest.mark.parametrize("ending", [".parquet", ".fits", ".vot"])
@pytest.mark.parametrize("missing", [[7], [1], [0, 1, 2], [3, 4, 5], []])
def test_marks_of_which_some_blocks_lack_one(tmp_path, ending, missing):
    """As in the whole table: numbers if one is missing anywhere, else marks."""
    path = tmp_path / f"table{ending}"
    names, index = [f"S{k}" for k in range(9)], np.arange(9) / 7
    if ending == ".fits":
        Table({"Name": names, "Mark": np.arange(9) % 2 == 1, "Index": index}).write(path)
        content = path.read_bytes()
        for k in missing:  # neither T nor F
            content = content.replace(f"S{k}{'FT'[k % 2]}".encode(), f"S{k}\0".encode())
        path.write_bytes(content)
    elif ending == ".vot":
        marks = MaskedColumn(np.arange(9) % 2 == 1, mask=np.isin(np.arange(9), missing))
        Table({"Name": names, "Index": index, "Mark": marks}).write(path, format="votable")
    else:
        marks = [None if k in missing else k % 2 == 1 for k in range(9)]
        pq.write_table(pa.table({"Name": names, "Index": index, "Mark": marks}), path)
    mapping = {"id": "Name", "features": {"index": {"column": "Index", "error": "none"}}}
    mapping["carry"] = {"mark": "Mark", "first": {"column": "Name", "ends": "0"}}
    whole = load_catalog(path, mapping=mapping).carried
    blocks = list(CatalogBlocks.of(path, mapping=mapping, rows=3))
    for name in ("mark", "first"):
        parts = [block.carried[name] for block in blocks]
        assert {part.dtype for part in parts} == {whole[name].dtype}
        np.testing.assert_array_equal(np.concatenate(parts), whole[name])
    assert whole["mark"].dtype.kind == ("f" if missing else "b")


@pytest.mark.parametrize("ending", [".parquet", ".fits"])
def test_identifiers_that_grow_beyond_a_float(tmp_path, ending):
    """Small ones stand in the first block, long ones in the last, and one is missing."""
    path = tmp_path / f"table{ending}"
    ids = MaskedColumn([4_295_806_720 + k for k in range(6)] + [2**62 + k for k in range(3)])
    ids.mask = [k == 4 for k in range(9)]
    names, index = [f"S{k}" for k in range(9)], np.arange(9) / 7
    wide = np.arange(9) + 2**40
    Table({"Name": names, "Index": index, "Gaia": ids, "Wide": wide}).write(path)
    mapping = {"id": "Name", "features": {"index": {"column": "Index", "error": "none"}}}
    mapping["carry"] = {"gaia": "Gaia", "wide": "Wide"}
    blocks = list(CatalogBlocks.of(path, mapping=mapping, rows=3))
    words = [word for block in blocks for word in block.carried["gaia"]]
    assert words == ["" if ids.mask[k] else str(ids.data[k]) for k in range(9)]
    np.testing.assert_array_equal(np.concatenate([b.carried["wide"] for b in blocks]), wide)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_and_times_are_text(tmp_path, unit):
    day = np.array(["2020-01-01T06:00", "NaT", "2021-03-01T00:00"], dtype=f"M8[{unit}]")
    pd.DataFrame({"X": [1.0, 2.0, 3.0], "day": day}).to_parquet(tmp_path / "a.parquet")
    features = {"x": {"column": "X", "error": "none"}}
    mapping = {"features": features, "carry": {"day": "day"}}
    found = load_catalog(tmp_path / "a.parquet", mapping=mapping).carried["day"]
    assert list(found) == ["2020-01-01T06:00:00", "", "2021-03-01T00:00:00"]


def test_times_of_a_zone_are_in_universal_time_and_say_so(tmp_path):
    day = pd.to_datetime(["2020-06-01T22:00", None, "2020-01-01T00:00"]).tz_localize(
        "America/New_York"
    )
    pd.DataFrame({"X": [1.0, 2.0, 3.0], "day": day}).to_parquet(tmp_path / "a.parquet")
    features = {"x": {"column": "X", "error": "none"}}
    mapping = {"features": features, "carry": {"day": "day"}}
    found = load_catalog(tmp_path / "a.parquet", mapping=mapping).carried["day"]
    assert list(found) == ["2020-06-02T02:00:00Z", "", "2020-01-01T05:00:00Z"]
