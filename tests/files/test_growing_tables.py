"""A table written in blocks is the table written at once, in every format."""

from __future__ import annotations

import json

import numpy as np
import pytest
from astropy import units as u
from astropy.io import fits
from astropy.table import Table, vstack
from astropy.utils.exceptions import AstropyUserWarning

from gpal.catalog.readers import read_table
from gpal.errors import InputError
from gpal.files.csv import write_csv
from gpal.files.fits import write_fits
from gpal.files.growing_tables import ENDINGS, growing_table


@pytest.fixture(scope="module")
def blocks():
    """Names grow longer; some need escapes in every format."""
    rng = np.random.default_rng(0)
    made = []
    for names in (["a", "=b"], ["<c> & 'd'"], ["β Cas \\ long name", "e", 'f, "g"']):
        n = len(names)
        table = Table({"name": names, "ra": rng.uniform(0, 360, n), "far": rng.random(n) < 0.5})
        table["ra"][0] = np.nan
        table["p_α"], table["p_β"] = rng.random((2, n))
        table["ra"].unit, table["ra"].description = u.deg, "right ascension"
        table["name"].meta["ucd"], table["ra"].meta["ucd"] = "meta.id", "pos.eq.ra"
        made.append(table)
    return made


def written(blocks, path):
    provenance = json.dumps({"seed": 1})
    with growing_table(path, {"CREATOR": "gpal β"}, ["provenance: {}"], provenance) as table:
        for block in blocks:
            table.write(block)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_read_is_what_was_written(blocks, tmp_path, ending):
    found = read_table(written(blocks, tmp_path / f"table{ending}"), words=("name",))
    expected = vstack(blocks)
    unescaped = (
        found.colnames
        if ending != ".fits"
        else [name.encode().decode("unicode_escape") for name in found.colnames]
    )
    assert unescaped == expected.colnames
    for name, wanted in zip(found.colnames, expected.colnames, strict=True):
        values = np.asarray(np.ma.filled(found[name], np.nan) if name == "ra" else found[name])
        if ending == ".fits" and values.dtype.kind in "SU":
            values = np.array(
                [str(v).encode().decode("unicode_escape") for v in values.astype(str)]
            )
        np.testing.assert_array_equal(values, expected[wanted])
    if ending in (".fits", ".vot"):
        assert found["ra"].unit == u.deg and found["ra"].description == "right ascension"
    if ending == ".fits":
        assert (found.meta["TUCD1"], found.meta["TUCD2"]) == ("meta.id", "pos.eq.ra")
    if ending == ".vot":
        assert (tmp_path / "table.vot").read_bytes().count(b"<TD>NaN</TD>") == 3
        assert [found[name].meta["ucd"] for name in ("name", "ra")] == ["meta.id", "pos.eq.ra"]
    assert [path.name for path in tmp_path.iterdir()] == [f"table{ending}"]


def test_csv_is_that_of_the_whole_table(blocks, tmp_path):
    whole = vstack(blocks)
    lines = ["provenance: {}", *(f"{c.name}: {c.description}" for c in whole.itercols())]
    lines[2] = "ra [deg]: right ascension"
    write_csv(tmp_path / "whole.csv", {c.name: c for c in whole.itercols()}, lines)
    grown = written(blocks, tmp_path / "grown.csv").read_bytes()
    assert grown == (tmp_path / "whole.csv").read_bytes()


def test_fits_is_whole_and_says_so(blocks, tmp_path):
    path = written(blocks * 2000, tmp_path / "grown.fits")  # more than a record
    with fits.open(path, checksum=True) as hdus:  # a warning where one is wrong
        assert hdus[1].header["PROVENAN"] == '{"seed": 1}' and hdus[1].header["NAXIS2"] == 12_000
        assert path.stat().st_size % 2880 == 0
        assert hdus[1].data["far"][:2].tolist() == blocks[0]["far"].tolist()
    damaged = bytearray(path.read_bytes())
    damaged[-2880] ^= 1
    (tmp_path / "damaged.fits").write_bytes(damaged)
    with (
        pytest.warns(AstropyUserWarning, match="verification failed"),
        fits.open(tmp_path / "damaged.fits", checksum=True) as hdus,
    ):
        assert len(hdus[1].data) == 12_000
    whole = vstack(blocks)
    write_fits(whole, tmp_path / "whole.fits")
    header, grown = (fits.getheader(tmp_path / n, 1) for n in ("whole.fits", "grown.fits"))
    for key in ("TFORM1", "TFORM2", "TFORM3", "TTYPE4", "TUNIT2", "TCOMM2"):
        assert header.get(key) == grown.get(key), key


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"should end in \.fits, \.csv, \.parquet, \.vot"):
        written([], tmp_path / "table.txt")
