"""What a format can show of damage, and what a cell says: refused by row, or read word for word."""

from __future__ import annotations

import csv
import gzip
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.table import MaskedColumn, QTable, Table
from astropy.utils.masked import Masked
from full_releases import RELEASES, full_file
from hypothesis import given, settings
from hypothesis import strategies as st

from gpal.catalog import load_catalog
from gpal.catalog.readers import read_table, table_blocks
from gpal.catalog.readers.parquet_metadata import described
from gpal.catalog.streaming import CatalogBlocks
from gpal.errors import InputError
from gpal.files.csv import write_csv
from gpal.files.fits import write_fits

MAPPING = {"id": "Name", "class": "Type", "features": {"flux": {"column": "F", "error": "none"}}}


def load(path, content=None, **options):
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_catalog(path, mapping={**MAPPING, **options})


def refused(path, content=None, **options) -> str:
    with pytest.raises(InputError) as caught:
        load(path, content, **options)
    text = str(caught.value)
    assert text.isprintable() and len(text) <= 1000
    return text


# CSV


@pytest.mark.parametrize("cell", ["", "NaN", "false"])
def test_truths_as_a_feature_also_where_one_is_missing(tmp_path, cell):
    content = f"Name,Type,F\na,bll,True\nb,bll,{cell}\nc,psr,FALSE\n"
    missing = np.nan if cell != "false" else 0.0
    np.testing.assert_array_equal(load(tmp_path / "a.csv", content).X[:, 0], [1, missing, 0])
    assert "column 'F' holds text, not numbers (row 1: 'maybe')" in refused(
        tmp_path / "b.csv", content.replace(f"bll,{cell}\n", "bll,maybe\n")
    )


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["001", "002", "03"], ["0", "1", ""]),
        (["1E5", "7", "1e5"], ["1.0", "01", "1"]),
        (["1234567890123456789", "1234567890123456788", "1"], ["True", "FALSE", ""]),
        (["1e400", "0x10", "NA"], ["NA", "nan", "a b"]),
    ],
)
def test_identifiers_and_classes_of_a_csv_are_word_for_word(tmp_path, names, classes):
    rows = [f"{n},{c},{k}" for k, (n, c) in enumerate(zip(names, classes))]
    catalog = load(tmp_path / "a.csv", "Name,Type,F\n" + "\n".join(rows) + "\n")
    assert catalog.names.tolist() == names == catalog.table["Name"].tolist()
    assert catalog.original_labels.tolist() == classes
    assert set(catalog.classes) == {word.lower() for word in classes} - {"", "na", "nan"}


def test_blanks_in_a_header_are_no_part_of_its_names(tmp_path):
    catalog = load(tmp_path / "a.csv", "Name, Type ,\tF\na, x, 1\nb, y, 2\n")
    assert catalog.table.colnames == ["Name", "Type", "F"]
    assert catalog.original_labels.tolist() == ["x", "y"] and catalog.X[:, 0].tolist() == [1, 2]
    assert "2 columns are called 'F'" in refused(tmp_path / "b.csv", "Name,Type,F, F\na,x,1,2\n")


def test_columns_of_a_csv_that_are_all_numbers_are_numbers(tmp_path):
    text = "Name,Type,F,n,m,b,big,word\n1,a,1.5,1,,True,12345678901234567890123,x\n"
    text += "2,b,-2e-3,-02,NA,false,1,2\n"
    table = load(tmp_path / "a.csv", text).table
    assert [table[name].dtype.kind for name in table.colnames] == [*"UUfifbUU"]
    assert table["F"].tolist() == [1.5, -0.002] and table["n"].tolist() == [1, -2]
    assert np.isnan(table["m"]).all() and table["b"].tolist() == [True, False]
    assert table["big"][0] == "12345678901234567890123" and table["word"].tolist() == ["x", "2"]


@pytest.mark.parametrize(
    "cell", ["1,5", "x", "1_000", "0x10", "1e400", "\u0661", "1.2.3", "--1", "="]
)
def test_a_cell_that_is_no_number_is_named(tmp_path, cell):
    said = refused(tmp_path / "a.csv", f'Name,Type,F\na,x,1\nb,x,"{cell}"\n')
    assert f"column 'F' holds text, not numbers (row 1: '{cell}')" in said


@pytest.mark.parametrize("cell", ["", "NA", "nan", "null", "None", "--", "n/a", " "])
def test_a_number_that_is_missing_is_not_measured(tmp_path, cell):
    catalog = load(tmp_path / "a.csv", f"Name,Type,F\na,x,1\nb,x,{cell}\n")
    assert catalog.X_err[:, 0].tolist() == [0, np.inf]


def test_numbers_keep_every_digit(tmp_path):
    values = np.random.default_rng(0).lognormal(0, 30, 2000)
    frame = pd.DataFrame({"Name": range(2000), "Type": "a", "F": values})
    frame.to_csv(tmp_path / "a.csv", index=False, float_format=lambda x: repr(float(x)))
    np.testing.assert_array_equal(load(tmp_path / "a.csv").X[:, 0], values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Name,Type,F\na,x,1,\nb,x,2,\n", "row 0 (line 2) has 4 fields and the header 3"),
        ("Name,Type,F\na,x,1,0\nb,x,2,0\n", "row 0 (line 2) has 4 fields and the header 3"),
        ("# by me\nName,Type,F\na,x,1\nb,x\n", "row 1 (line 4) has 2 fields and the header 3"),
        ("# Name,Type,F\na,x,1,\nb,x,2,\n", "row 0 (line 2) has 4 fields and the header 3"),
        ("Name,Type,F,F\na,x,1,2\n", "2 columns are called 'F'"),
        ("F\n1\n\n3\n", "line 3 is blank: of a table of one column"),
        ("Name,Type,F\na,x,1\n\x00\x00,x,2\n", "NUL bytes"),
        ("Name,Type,F\na,x,1\n# a remark, with, commas\nb,x,2\n", "line 3 begins with '#'"),
        ("Name,Type,F\na,x,1\n,x,2\n", "column 'Name', row 1 is empty"),
        ("Name,Type,F\na,x,1\n  ,x,2\n", "column 'Name', row 1 is empty"),
        ('Name,Type,F\na,"x,1\n', "not a readable csv file"),
        ("Name,Type,F\na,x\x1b[31m,1\n", "column 'Type', cell 'x\\x1b[31m' (row 0)"),
        ('Name,Type,F\n"a\nb",x,1\n', "column 'Name', cell 'a\\nb' (row 0)"),
        ("Name,Type,F\na\u202e,x,1\n", "column 'Name', cell 'a\\u202e' (row 0)"),
        (b"Name,Type,F\na,x,1\nb\xff,x,1\n", "column 'Name', row 1"),
        (f"Name,Type,F\n{'z' * 5000},x,1\n", "(row 0): it has at most 200 characters"),
        ("\n\n", "no column 'Name'"),
        ("Name;Type;F\na;x;1\n", "separated by a semicolon, not by ','; save it so, as by pandas"),
        ("Name\tType\tF\na\tx\t1\n", "separated by a tab"),
        ("Name|Type|F\na|x|1\n", "separated by a bar"),
    ],
)
def test_a_csv_that_cannot_be_what_it_says(tmp_path, text, words):
    for ending in ("csv", "csv.gz"):
        content = text if isinstance(text, bytes) else text.encode()
        packed = gzip.compress(content) if ending == "csv.gz" else content
        said = refused(tmp_path / f"a.{ending}", packed)
        assert words in said or ("no rows" in said and words.startswith("no column"))


def test_what_gpal_does_not_use_may_hold_anything(tmp_path):
    text = 'Name,Type,F,note,other\na,x,1,"\x1b\n#",\u202e\nb,x,2,\xff\xfe,' + "z" * 5000 + "\n"
    catalog = load(tmp_path / "a.csv", text.encode("utf-8").replace(b"\xc3\xbf", b"\xff"))
    assert catalog.X[:, 0].tolist() == [1, 2]


def test_a_table_that_gpal_wrote_is_read_as_it_was(tmp_path):
    names = ["=1+1", "-a", "'quoted", "#1", "-1", "001", 'a,"b"']
    columns = {"Name": names, "Type": ["+x"] * len(names), "=F": np.arange(7.0)}
    write_csv(tmp_path / "a.csv", columns, ["by gpal"])
    catalog = load(tmp_path / "a.csv", features={"flux": {"column": "=F", "error": "none"}})
    assert catalog.names.tolist() == names and set(catalog.labels) == {"+x"}
    assert catalog.X[:, 0].tolist() == list(range(7))


@pytest.mark.parametrize("start", ["", "# by me\n", "# by me\n\n# again, and again\n"])
def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path, start):
    text = f"\ufeff{start}Name,Type,F\na,x,1\n"
    assert load(tmp_path / "a.csv", text).names.tolist() == ["a"]


def test_damage_to_a_compressed_csv_is_seen(tmp_path):
    rows = "".join(f"S{i},x,{i}\n" for i in range(200))
    packed = bytearray(gzip.compress(f"Name,Type,F\n{rows}".encode()))
    packed[-6] ^= 1  # the checksum
    assert "CRC" in refused(tmp_path / "a.csv.gz", bytes(packed))


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path):
    packed = gzip.compress(bytes(6 * 10**7))
    assert len(packed) < 10**5
    for ending in ("csv.gz", "fits.gz"):
        said = refused(tmp_path / f"a.{ending}", packed)
        assert "unpacks to more than 200 times its size" in said


PRINTABLE = st.characters(exclude_categories=("C", "Z"), exclude_characters="\ufffd")


@settings(deadline=None, max_examples=25)
@given(
    st.dictionaries(
        st.text(PRINTABLE, min_size=1, max_size=200),
        st.tuples(st.text(PRINTABLE, max_size=20), st.floats(-1e300, 1e300)),
        min_size=1,
    )
)
def test_whatever_a_csv_holds_is_read_as_it_is(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["Name", "Type", "F"])
        writer.writerows([name, word, repr(number)] for name, (word, number) in rows.items())
    catalog = load(path, sentinels=[])  # whatever the numbers look like
    assert catalog.names.tolist() == list(rows)
    assert catalog.original_labels.tolist() == [word for word, _ in rows.values()]
    assert catalog.X[:, 0].tolist() == [number for _, number in rows.values()]


# FITS


@pytest.fixture
def table():
    return Table({"Name": ["a", "b"], "Type": ["x", "y"], "F": [1.5, 2.5]})


def test_two_columns_of_one_name_of_a_fits_file_are_named(tmp_path, table):
    table["G"] = [3.0, 4.0]
    table.write(tmp_path / "a.fits")
    whole = (tmp_path / "a.fits").read_bytes()
    said = refused(tmp_path / "a.fits", whole.replace(b"TTYPE4  = 'G ", b"TTYPE4  = 'F "))
    assert "2 columns are called 'F'; give every column a name of its own" in said


def test_a_fits_file_is_held_against_its_checksums(tmp_path, table):
    path = tmp_path / "a.fits"
    write_fits(table, path)
    whole = path.read_bytes()
    assert load(path).X[:, 0].tolist() == [1.5, 2.5]
    for before, after in (
        (np.array(2.5, ">f8").tobytes(), np.array(3.5, ">f8").tobytes()),  # data
        (b"TTYPE3  = 'F ", b"TTYPE3  = 'G "),  # header
    ):
        assert before in whole
        assert "is not what its checksum says" in refused(path, whole.replace(before, after))


def test_a_file_that_is_known_is_read_whatever_it_says_of_itself(tmp_path, table):
    path = tmp_path / "a.fits"
    write_fits(table, path)
    before, after = (np.array(value, ">f8").tobytes() for value in (2.5, 3.5))
    path.write_bytes(path.read_bytes().replace(before, after))
    with pytest.raises(InputError, match="is not what its checksum says"):
        read_table(path)
    asked = []
    assert len(read_table(path, trusted=lambda file: asked.append(file) or True)) == 2
    assert asked == [path]


def test_checksums_do_not_follow_a_table_that_is_changed(tmp_path, table):
    write_fits(table, tmp_path / "a.fits")
    read = load(tmp_path / "a.fits").table
    read["F"][0] = 7.0
    read.write(tmp_path / "b.fits")
    assert load(tmp_path / "b.fits").X[:, 0].tolist() == [7.0, 2.5]


@pytest.mark.parametrize("name", RELEASES)
def test_every_full_release_is_read_whatever_its_checksums(name, tmp_path):
    """That of 4FGL states wrong ones; the SHA-256 of the whole file says that it is genuine."""
    path = full_file(name)
    with fits.open(path) as hdus:
        genuine = all(hdu.verify_checksum() and hdu.verify_datasum() for hdu in hdus)
    assert genuine == (name != "4fgl")
    assert len(load_catalog(path)) == load_catalog(path).schema.rows
    copy = tmp_path / path.name
    content = path.read_bytes()
    copy.write_bytes(content[:-100_000] + bytes([content[-100_000] ^ 1]) + content[-99_999:])
    with pytest.raises(InputError, match="is not what its checksum says"):
        load_catalog(copy)


def test_bytes_that_are_no_utf_8_are_named(tmp_path, table):
    table["Name"] = np.array([b"a", b"b\xff"])
    table.write(tmp_path / "a.fits")
    assert "column 'Name', row 1 ('b�') holds bytes that are no UTF-8" in refused(
        tmp_path / "a.fits"
    )
    table["Name"], table["note"] = ["a", "b"], np.array([b"\xff", b"\x00\x01"])
    table.write(tmp_path / "b.fits")
    assert len(load(tmp_path / "b.fits")) == 2


# VOTable and ECSV


def as_votable(table) -> str:
    memory = io.BytesIO()
    table.write(memory, format="votable")
    return memory.getvalue().decode()


@pytest.mark.parametrize("cell", ["1,5", "x", "1_000"])
def test_a_cell_of_a_votable_that_is_no_number(tmp_path, table, cell):
    text = as_votable(table).replace("<TD>2.5</TD>", f"<TD>{cell}</TD>")
    assert f"column 'F' holds text, not numbers (row 1: '{cell}')" in refused(
        tmp_path / "a.vot", text
    )
    unused = {"features": {"flux": {"column": "G", "error": "none"}}}
    table["G"] = [3.0, 4.0]
    text = as_votable(table).replace("<TD>2.5</TD>", f"<TD>{cell}</TD>")
    assert load(tmp_path / "b.vot", text, **unused).X[:, 0].tolist() == [3, 4]


def test_words_of_a_votable_are_whole_and_its_empty_numbers_missing(tmp_path, table):
    table["n"] = [0, 7]
    text = as_votable(table).replace('version="1.4"', 'version="1.1"')
    text = text.replace('arraysize="1"', 'arraysize="2"')
    text = text.replace("<TD>b</TD>", "<TD>longer than declared</TD>").replace(
        "<TD>7</TD>", "<TD/>"
    )
    catalog = load(tmp_path / "a.vot", text, features={"n": {"column": "n", "error": "none"}})
    assert catalog.names.tolist() == ["a", "longer than declared"]
    assert catalog.X_err[:, 0].tolist() == [0, np.inf]


def test_a_number_too_large_for_its_type_is_not_cut(tmp_path, table):
    table["n"] = np.array([1, 7], dtype=np.int16)
    text = as_votable(table).replace("<TD>7</TD>", "<TD>70000</TD>")
    catalog = load(tmp_path / "a.vot", text, features={"n": {"column": "n", "error": "none"}})
    assert catalog.X[:, 0].tolist() == [1, 70_000]


@pytest.mark.filterwarnings("ignore:.*Implicitly generating an ID")
def test_columns_of_a_votable_have_their_names(tmp_path, table):
    """An ID has fewer characters, and stands in only where two names are the same."""
    table["[Fe/H]"] = [1.0, 2.0]
    text = as_votable(table)
    assert 'ID="_Fe_H_"' in text or 'ID="__Fe_H_"' in text
    feature = {"column": "[Fe/H]", "error": "none"}
    assert load(tmp_path / "a.vot", text, features={"z": feature}).X[:, 0].tolist() == [1, 2]
    text = text.replace('name="[Fe/H]"', 'name="F"')
    other = load(tmp_path / "b.vot", text, features={"z": {"column": "F", "error": "none"}})
    assert other.X[:, 0].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("ending", ["vot", "ecsv"])
def test_two_columns_of_one_name(tmp_path, table, ending):
    if ending == "vot":
        text = as_votable(table).replace('"Type"', '"F"')
    else:
        table.write(tmp_path / "whole.ecsv")
        text = (tmp_path / "whole.ecsv").read_text().replace("Type", "F")
    assert "2 columns are called 'F'" in refused(tmp_path / f"a.{ending}", text)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("b y 2.5", "b y 1_000", "column 'F' holds text, not numbers (row 1: '1_000')"),
        ("b y 2.5", "b y", "row 1 (line 10) has 2 fields"),
        ("b y 2.5", "# y 2.5", "line 10 begins with '#'"),
        ("Name Type F", "Name F Type", "the columns of its header are not those of its table"),
        ("# datatype:", "# datatypes:", "its header does not describe its columns"),
    ],
)
def test_an_ecsv_that_cannot_be_what_it_says(tmp_path, table, before, after, words):
    table.write(tmp_path / "a.ecsv")
    text = (tmp_path / "a.ecsv").read_text()
    assert before in text
    assert words in refused(tmp_path / "a.ecsv", text.replace(before, after))


@pytest.mark.parametrize("method", ["data_mask", "null_value"])
def test_a_masked_word_of_an_ecsv_is_missing(tmp_path, table, method):
    table["Type"] = MaskedColumn(["x", "y"], mask=[False, True])
    table.write(tmp_path / "a.ecsv", serialize_method=method)
    assert load(tmp_path / "a.ecsv").labels.tolist() == ["x", ""]


# Parquet


def test_what_parquet_may_hold(tmp_path):
    arrow = pa.table(
        {
            "Name": pa.array([b"a", b"b"], pa.binary()),  # words without a mark, of older writers
            "Type": pa.array(["x", None]).dictionary_encode(),
            "F": pa.array([1, None], pa.int64()),
            "list": [[1.0, 2.0], [3.0]],
            "pair": [[1.0, 2.0], None],
            "held": [[1.0, 2.0], []],
            "long": pa.array([Decimal(10**25 + 1), None]),
            "when": pa.array([2**62, 0], pa.timestamp("us")),
            "truth": [True, None],
        }
    )
    pq.write_table(arrow, tmp_path / "a.parquet")
    catalog = load(tmp_path / "a.parquet")
    assert catalog.names.tolist() == ["a", "b"] and catalog.labels.tolist() == ["x", ""]
    assert catalog.X_err[:, 0].tolist() == [0, np.inf]
    assert catalog.table["long"].tolist() == ["10000000000000000000000001", ""]
    for column in ("pair[1]", "held[1]"):
        feature = {"f": {"column": column, "error": "none"}}
        second = load(tmp_path / "a.parquet", features=feature)
        assert second.X_err[:, 0].tolist() == [0, np.inf] and second.X[0, 0] == 2.0
        mapping = {**MAPPING, "features": feature}
        blocks = CatalogBlocks.of(tmp_path / "a.parquet", mapping=mapping, rows=1)
        assert [block.X_err[0, 0] for block in blocks] == [0, np.inf]
    for column, words in (
        ("list", "column 'list' holds lists or records"),
        ("when", "column 'when' holds no numbers"),
    ):
        feature = {"f": {"column": column, "error": "none"}}
        assert words in refused(tmp_path / "a.parquet", features=feature)
    assert "column 'Name', row 1 ('b�') holds bytes that are no UTF-8" in _parquet_with(
        tmp_path, arrow, pa.array([b"a", b"b\xff"], pa.binary())
    )


def _parquet_with(folder, arrow, names) -> str:
    pq.write_table(arrow.set_column(0, "Name", names), folder / "b.parquet")
    return refused(folder / "b.parquet")


def test_identifiers_of_parquet_are_exact_where_one_class_is_missing(tmp_path):
    names = [2**62 + 1, 2**62 + 5, 2**62]
    frame = pd.DataFrame({"Name": names, "Type": [1, None, 0], "F": [1.0, 2.0, 3.0]})
    frame["Type"] = frame["Type"].astype("Int64")
    frame.set_index("Name").to_parquet(tmp_path / "a.parquet")
    catalog = load(tmp_path / "a.parquet")
    assert catalog.names.tolist() == list(map(str, names))
    assert catalog.original_labels.tolist() == ["1", "", "0"]


@pytest.mark.parametrize("who", ["field", "astropy", "votable", "blocks"])
def test_units_of_parquet_are_those_of_its_metadata(tmp_path, who):
    """A unit that is not read is another one: mJy taken for Jy."""
    path = tmp_path / "a.parquet"
    table = Table({"Name": ["a", "b"], "Type": ["x", "y"], "F": [1500.0, 2500.0]})
    said = {"unit": "mJy", "description": "peak flux", "ucd": "phot.flux"}
    if who == "votable":
        fields = '<FIELD name="Name" datatype="char" arraysize="*"/><FIELD name="F" unit="mJy"'
        fields += ' ucd="phot.flux" datatype="double"><DESCRIPTION>peak flux</DESCRIPTION></FIELD>'
        xml = '<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE>'
        xml += f"<TABLE>{fields}</TABLE></RESOURCE></VOTABLE>"
        arrow = pa.Table.from_pandas(table.to_pandas(), preserve_index=False)
        about = {"IVOA.VOTable-Parquet.version": "1.0", "IVOA.VOTable-Parquet.content": xml}
        pq.write_table(arrow.replace_schema_metadata(about), path)
    elif who == "astropy":
        table["F"].unit, table["F"].description = said["unit"], said["description"]
        table["F"].meta["ucd"] = said["ucd"]
        table.write(path)
    else:
        arrow = pa.Table.from_pandas(table.to_pandas(), preserve_index=False)
        field = arrow.schema.field("F").with_metadata(said)
        pq.write_table(arrow.cast(arrow.schema.set(2, field)), path)
    blocks = list(table_blocks(path, 1)) if who == "blocks" else [read_table(path)]
    for block in blocks:
        info = block["F"].info
        assert (str(info.unit), info.description, info.meta["ucd"]) == tuple(said.values())
    flux = {"f": {"column": "F", "error": "none", "unit": "Jy"}}
    assert load(path, features=flux).X[:, 0].tolist() == [1.5, 2.5]
    assert "does not convert to 'm'" in refused(
        path, features={"f": {"column": "F", "error": "none", "unit": "m"}}
    )


def test_a_time_of_parquet_has_no_unit(tmp_path):
    table = pa.table(
        {"Name": ["a"], "Type": ["x"], "F": [1.0], "t": pa.array([0], pa.timestamp("s"))}
    )
    field = table.schema.field("t").with_metadata({"unit": "s", "description": "when"})
    units = table.schema.set(3, field)
    frame = described(Table.from_pandas(table.to_pandas()), units)
    assert frame["t"][0].isot.startswith("1970")
    pq.write_table(table.cast(units), tmp_path / "a.parquet")
    assert len(load(tmp_path / "a.parquet")) == 1


@pytest.mark.parametrize("quantity", [False, True])
def test_what_astropy_masked_in_a_parquet_is_missing(tmp_path, quantity):
    """It is written as the number beneath the mask, and a column `F.mask` says that it is none."""
    values, mask = [1.5, 1e20, 2.5], [False, True, False]
    table = QTable({"Name": ["a", "b", "c"]})
    table["Type"] = MaskedColumn(["x", "y", "z"], mask=mask)
    masked = MaskedColumn(values, mask=mask, unit="mJy")
    table["F"] = Masked(values * u.mJy, mask) if quantity else masked
    table["pair"] = MaskedColumn([[1, 2]] * 3, mask=[[0, 0], [0, 1], [0, 0]])
    table.write(tmp_path / "a.parquet")
    catalog = load(tmp_path / "a.parquet")
    assert catalog.table.colnames == ["Name", "Type", "F", "pair"]
    assert catalog.measurements.measured[:, 0].tolist() == [True, False, True]
    assert catalog.measurements.units == ("mJy",)
    assert catalog.labels.tolist() == ["x", "", "z"]
    second = load(tmp_path / "a.parquet", features={"f": {"column": "pair[1]", "error": "none"}})
    assert second.measurements.measured[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize("key", ["table_meta_yaml", "IVOA.VOTable-Parquet.content"])
def test_metadata_of_parquet_that_say_nothing_are_refused(tmp_path, key):
    arrow = pa.table({"Name": ["a"], "Type": ["x"], "F": [1.0]})
    pq.write_table(arrow.replace_schema_metadata({key: "<{"}), tmp_path / "a.parquet")
    assert "its metadata do not describe its columns" in refused(tmp_path / "a.parquet")


def test_pages_of_parquet_are_held_against_their_checksums(tmp_path):
    frame = pd.DataFrame({"Name": ["a", "b"], "Type": ["x", "y"], "F": [1.5, 2.5]})
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    frame.to_parquet(tmp_path / "a.parquet", index=False, write_statistics=False, **options)
    content = (tmp_path / "a.parquet").read_bytes()
    before, after = np.array([2.5]).tobytes(), np.array([3.5]).tobytes()
    assert content.count(before) == 1
    assert "CRC" in refused(tmp_path / "a.parquet", content.replace(before, after))


# everywhere


@pytest.mark.parametrize("ending", ["fits", "vot", "ecsv"])
def test_columns_of_arrays(tmp_path, table, ending):
    """A column of pairs, and one of arrays of different lengths."""
    table["pair"] = [[1.0, 2.0], [3.0, 4.0]]
    table["list"] = np.array([np.array([1.0]), np.array([1.0, 2.0])], dtype=object)
    path = tmp_path / f"a.{ending}"
    if ending == "fits":
        formats = {"pair": "2D", "list": "PD()"}
        columns = [
            fits.Column(name, formats.get(name, "D" if name == "F" else "1A"), array=table[name])
            for name in table.colnames
        ]
        fits.BinTableHDU.from_columns(columns).writeto(path)
    elif ending == "vot":
        table.write(path, format="votable")
    else:
        table.write(path)
    assert load(path, features={"f": {"column": "pair[1]", "error": "none"}}).X[1, 0] == 4
    said = refused(path, features={"f": {"column": "list", "error": "none"}})
    assert "column 'list' holds lists or records" in said
    for name in ("pair", "list"):
        assert f"column '{name}' holds no names" in refused(path, id=name)


def test_a_column_of_positions(tmp_path, table):
    table["place"] = SkyCoord([1, 2], [3, 4], unit="deg")
    table.write(tmp_path / "a.ecsv")
    assert "holds no names" in refused(tmp_path / "a.ecsv", id="place")
    said = refused(tmp_path / "a.ecsv", features={"f": {"column": "place", "error": "none"}})
    assert "column 'place' holds no numbers" in said


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="check the path"):
        read_table(tmp_path / "folder.csv")
    for name in ("x" * 5000, "a\0b.csv", "~nobody-of-that-name/a.csv"):
        with pytest.raises(InputError):
            load_catalog(name, mapping=MAPPING)


@pytest.mark.parametrize("unit", ["10**400 m", "m(", "0 m", "erg / s"])
def test_a_unit_that_does_not_convert(tmp_path, table, unit):
    table["F"].unit = "s"
    table.write(tmp_path / "a.ecsv")
    text = (tmp_path / "a.ecsv").read_text()
    assert "unit: s," in text
    text = text.replace("unit: s,", f"unit: '{unit}',")
    said = refused(tmp_path / "a.ecsv", text, features={"f": {"column": "F", "unit": "m"}})
    assert f"column 'F' has the unit '{unit}', which does not convert to 'm'" in said


# FITS: what TNULL and truth values say of what is missing


@pytest.mark.parametrize("scale", [{}, {"TZERO": 32768}, {"TSCAL": 0.5, "TZERO": 100.0}])
@pytest.mark.parametrize("null", [3, -99, 110])
def test_fits_null_integers_are_missing_whatever_their_scale(tmp_path, scale, null):
    """TNULL is compared with what stands in the file, before TSCAL and TZERO."""
    stored = np.array([1, null, 20, 110, -99, 3], dtype=np.int16)
    names = np.array([f"s{k}" for k in range(len(stored))])
    hdu = fits.BinTableHDU.from_columns(
        [fits.Column("Name", "4A", array=names), fits.Column("F", "I", array=stored)]
    )
    hdu.header["TNULL2"] = null
    for key, value in scale.items():
        hdu.header[f"{key}2"] = value
    hdu.writeto(tmp_path / "a.fits")
    values = load(tmp_path / "a.fits", **{"class": "", "sentinels": []}).X[:, 0]
    expected = stored * scale.get("TSCAL", 1.0) + scale.get("TZERO", 0.0)
    np.testing.assert_array_equal(values, np.where(stored == null, np.nan, expected))


@pytest.mark.parametrize("null", ["-99", "***", "0.5"])
@pytest.mark.parametrize("format", ["I7", "F7.1", "E7.1", "A7"])
def test_fits_null_texts_are_missing(tmp_path, format, null):
    """A table of text states TNULL as it stands in the field; an empty field is missing as well."""
    start = np.ones(4) if format != "A7" else ["1"] * 4
    hdu = fits.TableHDU.from_columns(
        [
            fits.Column("Name", "A2", array=["s0", "s1", "s2", "s3"]),
            fits.Column("F", format, array=start, null=null),
        ]
    )
    hdu.writeto(tmp_path / "a.fits")
    content = (tmp_path / "a.fits").read_bytes()
    for name, text in (("s0", "7"), ("s1", null), ("s2", ""), ("s3", "8")):
        at = content.index(name.encode()) + 2
        content = content[:at] + text.rjust(7).encode() + content[at + 7 :]
    found = load(tmp_path / "a.fits", content, **{"class": "", "sentinels": []})
    assert found.X[:, 0].tolist() == pytest.approx([7, np.nan, np.nan, 8], nan_ok=True)


def test_a_column_of_positions_of_a_fits_beside_others(tmp_path):
    table = QTable({"Name": ["s0", "s1"], "F": [1.0, 2.0]})
    table["place"] = SkyCoord([1, 2], [3, 4], unit="deg")
    table.write(tmp_path / "a.fits")
    assert load(tmp_path / "a.fits", **{"class": ""}).X[:, 0].tolist() == [1, 2]


def test_a_fits_truth_value_that_is_neither_is_missing(tmp_path):
    path = tmp_path / "a.fits"
    columns = [
        fits.Column("Name", "2A", array=np.array(["s0", "s1", "s2"])),
        fits.Column("F", "L", array=np.array([True, False, False])),
    ]
    fits.BinTableHDU.from_columns(columns).writeto(path)
    content = path.read_bytes()
    assert b"s2F" in content
    catalog = load(path, content.replace(b"s2F", b"s2\0"), **{"class": ""})
    np.testing.assert_array_equal(catalog.X[:, 0], [1.0, 0.0, np.nan])


def test_a_number_in_the_header_of_a_csv_is_a_name(tmp_path):
    features = {"features": {"x": {"column": "x", "error": "none"}}}
    for head in ("# fluxes\nx,70,nan", "# x,70,nan\n# a remark\nx,70,nan", "# of Gaia, DR3\nx,1,2"):
        (tmp_path / "a.csv").write_text(f"{head}\n1,5,6\n2,5,6\n")
        assert load_catalog(tmp_path / "a.csv", mapping=features).X[:, 0].tolist() == [1, 2]
    (tmp_path / "a.csv").write_text('# name,x\n"A, B",1\nC,2\n')
    assert load_catalog(tmp_path / "a.csv", mapping=features).X[:, 0].tolist() == [1, 2]
