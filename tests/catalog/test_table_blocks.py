"""A file in blocks is the file as a whole, in every format; damage is found where it is."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from astropy import units as u
from astropy.io import fits
from astropy.table import MaskedColumn, Table, vstack

from gpal.catalog.readers import read_table, table_blocks
from gpal.errors import InputError

FORMATS = ["t.fits", "t.csv", "t.parquet", "t.vot", "t.ecsv", "t.csv.gz"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = Table({"name": [f'S {"x" * (i % 5)}{i}, "q"' for i in range(25)]})
    table["flux"] = rng.normal(size=25)
    table["flux"][7] = np.nan
    table["flux"].unit = u.mJy
    table["n"] = MaskedColumn(np.arange(25), mask=np.arange(25) == 12)
    return table


def write(table, path):
    if path.name.endswith(".gz"):
        plain = write(table, path.with_suffix(""))
        path.write_bytes(gzip.compress(plain.read_bytes()))
        return path
    if path.suffix == ".fits":
        table.write(path)
        with fits.open(path, mode="update") as hdus:
            hdus[1].add_checksum()
    elif path.suffix == ".parquet":
        table.write(path)
    else:
        table.write(path, **({"format": "votable"} if path.suffix == ".vot" else {}))
    return path


@pytest.mark.filterwarnings("ignore:.*unit.*")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rows", [1, 7, 25, 100])
def test_blocks_are_the_whole(table, tmp_path, name, rows):
    path = write(table, tmp_path / name)
    whole = read_table(path, words=("name",))
    blocks = list(table_blocks(path, rows, words=("name",)))
    if name in FORMATS[:4]:
        assert [len(block) for block in blocks] == [
            min(rows, 25 - first) for first in range(0, 25, rows)
        ]
    found = vstack(blocks)
    assert found.colnames == whole.colnames
    for column in whole.colnames:
        assert found[column].unit == whole[column].unit
        wanted = np.ma.asarray(whole[column])
        np.testing.assert_array_equal(np.ma.asarray(found[column]).mask, wanted.mask)
        np.testing.assert_array_equal(np.ma.asarray(found[column]), wanted)


@pytest.mark.parametrize(
    "text",
    [
        "name,flux\nS1,1\nS2,2\nS3,3\n",
        '\ufeff# remark "\nname,flux\r\nS1,1\r\n\r\nS2,2\r\nS3,3',
        "# about\n# name,flux\nS1,1\nS2,2\nS3,3\n",
        'name,flux\n"S\n1",1\n"S,2",2\nβ,3\n',
    ],
)
def test_csv_as_people_write_it(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    whole = read_table(path, words=("name",))
    found = vstack(list(table_blocks(path, 1, words=("name",))))
    assert found.colnames == whole.colnames and len(found) == len(whole) == 3
    for column in whole.colnames:
        assert found[column].tolist() == whole[column].tolist()


def test_damage_is_told_with_its_place(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,flux\n" + "S,1\n" * 10 + "S,1,2\n")
    blocks = table_blocks(path, 4)
    assert [len(next(blocks)) for _ in range(2)] == [4, 4]
    with pytest.raises(InputError, match=r"in the rows from 8 on.*row 2 .*has 3 fields"):
        next(blocks)


def test_a_wrong_checksum_is_found_before_the_first_row(table, tmp_path):
    path = write(table, tmp_path / "t.fits")
    content = bytearray(path.read_bytes())
    content[-2880] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="not what its checksum says"):
        next(table_blocks(path, 5))
    assert len(next(table_blocks(path, 5, trusted=lambda _: True))) == 5


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.fits"])
def test_nothing_and_no_file(table, tmp_path, name):
    with pytest.raises(InputError, match="no such file"):
        next(table_blocks(tmp_path / name, 5))
    table[:0].write(tmp_path / name)
    with pytest.raises(InputError, match="no rows"):
        next(table_blocks(tmp_path / name, 5))


def test_a_truncated_file_is_refused(table, tmp_path):
    path = write(table, tmp_path / "t.vot")
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(InputError, match="truncated"):
        list(table_blocks(path, 5))


def test_a_header_that_is_a_remark_is_that_of_every_block(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("# made by hand\n# id,f,g\na,1,2\nb,2,3\nc,,\nd,,\ne,5,6\n")
    blocks = list(table_blocks(path, 2))
    names = read_table(path).colnames
    assert [block.colnames for block in blocks] == [names] * 3
    assert [name for block in blocks for name in block[names[0]]] == list("abcde")
