"""FITS tables that gpal writes: letters, descriptions, and the checksums that others verify."""

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

from gpal.files.fits import write_fits


@pytest.fixture
def table():
    made = Table({"a": [1.0, 2.0], "name": ["β Cas", "b"]}, meta={"TITLE": "résumé"})
    made["a"].unit, made["a"].description = "deg", "größe"
    return made


def test_a_table_is_read_again_with_what_describes_it(tmp_path, table):
    write_fits(table, tmp_path / "a.fits")
    again = Table.read(tmp_path / "a.fits")
    assert again["a"].unit == "deg" and again["a"].description == "gr\\xf6\\xdfe"
    assert (
        again["name"].tolist() == ["\\u03b2 Cas", "b"] and again.meta["TITLE"] == "r\\xe9sum\\xe9"
    )


@pytest.mark.filterwarnings("ignore:.*verification failed:astropy.utils.exceptions.AstropyWarning")
def test_checksums_are_those_that_astropy_computes(tmp_path, table):
    path = tmp_path / "a.fits"
    write_fits(table, path)
    content = path.read_bytes()

    def verdicts() -> list[tuple[int, int]]:
        with fits.open(path) as hdus:
            return [(hdu.verify_checksum(), hdu.verify_datasum()) for hdu in hdus]

    assert verdicts() == [(1, 1), (1, 1)]
    path.write_bytes(
        content.replace(np.array(2.0, ">f8").tobytes(), np.array(3.0, ">f8").tobytes())
    )
    assert verdicts() == [(1, 1), (0, 0)]
    path.unlink()
    write_fits(table, path)
    assert path.read_bytes() == content  # no date in it
