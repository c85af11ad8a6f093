"""CSV of gpal's own: read as it was written, and no cell is a formula to a spreadsheet."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpal.errors import InputError
from gpal.files.csv import read_csv, write_csv

WORDS = [
    "0",
    "1",
    "True",
    "001",
    "NA",
    "1E5",
    "nan",
    "",
    "#1",
    "=1+1",
    "+a",
    "-b",
    "-0",
    "+1.5",
    "@c",
    "'",
    "''d",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
COLUMNS = st.lists(
    st.tuples(
        TEXT | st.sampled_from(WORDS),
        st.floats(allow_nan=True, allow_infinity=True),
        st.integers(-(2**53), 2**53),
        st.booleans(),
    ),
    max_size=8,
)
KINDS = {"word": str, "value": float, "count": float, "flag": bool}


def spreadsheet(path) -> list[list[str]]:
    """Cells as a spreadsheet makes them of a file, by commas or by semicolons."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.readlines()
    return [row for mark in ",;" for row in csv.reader(lines, delimiter=mark)]


def runs(cell: str) -> bool:
    """Whether a spreadsheet would take a cell for a formula."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    return False


@given(COLUMNS, st.text(max_size=20))
def test_what_is_read_is_what_was_written(tmp_path_factory, rows, remark):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    word, value, count, flag = zip(*rows) if rows else ((), (), (), ())
    columns = {
        "word": np.array(word, dtype=object),
        "value": np.array(value, dtype=float),
        "count": np.array(count, dtype=int),
        "flag": np.array(flag, dtype=bool),
    }
    write_csv(path, columns, ["provenance: {}", remark])
    found = read_csv(path, KINDS)
    assert found["word"].tolist() == list(word)
    np.testing.assert_array_equal(found["value"], value)
    np.testing.assert_array_equal(found["count"], count)
    assert found["flag"].tolist() == list(flag)
    assert not any(runs(cell) for row in spreadsheet(path) for cell in row)


def test_words_stay_words_for_other_readers(tmp_path):
    write_csv(tmp_path / "a.csv", {"word": WORDS, "n": np.arange(len(WORDS))}, ["of: a test"])
    with open(tmp_path / "a.csv", newline="") as file:
        lines = [line for line in file if not line.startswith("# ")]
    rows = list(csv.DictReader(lines))
    plain = [row["word"].removeprefix("'") for row in rows]
    assert plain == WORDS and [row["n"] for row in rows] == [str(k) for k in range(len(WORDS))]


@pytest.mark.parametrize("title", ["a,=1+1", 'a;"=1+1"', "a,@x\n=2", "köln, +3"])
def test_remarks_hold_no_formula_and_json_stays_what_it_was(tmp_path, title):
    path = tmp_path / "a.csv"
    about = {"title": title}
    write_csv(path, {"a": [1.0]}, [f"provenance: {json.dumps(about)}", f"a: {title}"])
    assert not any(runs(cell) for row in spreadsheet(path) for cell in row)
    first = path.read_text().splitlines()[0]
    assert json.loads(first.removeprefix("# provenance: ")) == about


def test_marks_are_told_of_without_remarks_too(tmp_path):
    write_csv(tmp_path / "a.csv", {"w": ["=1"]}, [])
    assert read_csv(tmp_path / "a.csv", {"w": str})["w"].tolist() == ["=1"]


@pytest.mark.parametrize("remarks", [["of: a test", "α"], []])
def test_a_byte_order_mark_that_a_spreadsheet_has_put_before_it(tmp_path, remarks):
    path = tmp_path / "a.csv"
    write_csv(path, {"w": ["=1", "β"]}, remarks)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_csv(path, {"w": str})["w"].tolist() == ["=1", "β"]


def test_masked_values_are_empty(tmp_path):
    write_csv(
        tmp_path / "a.csv",
        {"n": np.ma.array([1, 2], mask=[False, True]), "w": np.ma.array(["a", "b"], mask=[1, 0])},
        [],
    )
    found = read_csv(tmp_path / "a.csv", {"n": float, "w": str})
    np.testing.assert_array_equal(found["n"], [1, np.nan])
    assert found["w"].tolist() == ["", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"w","n","t"\n"a",1,True\n"b",2\n', "row 1 has 2 cells, the heading 3"),
        ('"w","n","t"\n"a",1,True\n\n', "row 1 has 0 cells"),
        ('"w","n","t"\n# a remark\n"a",1,True\n', "row 0 has 1 cells"),
        ('"w","n","t"\n"a",1_0,True\n', "column 'n', row 0: '1_0' is no number"),
        ('"w","n","t"\n"a",1,1\n', "column 't', row 0: '1' is neither True nor False"),
        ('"w","n","n","t"\n"a",1,2,True\n', "2 columns 'n', not one"),
        ('"w","t"\n"a",True\n', "0 columns 'n', not one"),
        ('"w","n","t"\n"a"b,1,True\n', "no CSV"),
        ('"w","n","t"\n"a\0",1,True\n', "NUL"),
        ("# only\n", "no heading"),
        ("", "no heading"),
    ],
)
def test_damage_is_refused(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_csv(tmp_path / "a.csv", {"w": str, "n": float, "t": bool})


def test_half_a_character_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"half a character.*FITS"):
        write_csv(tmp_path / "a.csv", {"w": ["\ud800"]}, [])


def test_files_of_before_are_read_as_they_stand(tmp_path):
    (tmp_path / "a.csv").write_text('# provenance: {}\n"w","t"\n"\'tis",True\n"001",False\n')
    found = read_csv(tmp_path / "a.csv", {"w": str, "t": bool}, optional={"n": float})
    assert found["w"].tolist() == ["'tis", "001"] and "n" not in found
