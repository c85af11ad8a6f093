"""Catalogs that several tests read."""

import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.catalog.registry import catalogs_folder


@pytest.fixture(scope="session")
def dr4():
    return load_catalog("4fgl-dr4")


@pytest.fixture
def extract_table():
    """The embedded 4FGL extract as a table that a test may damage."""
    return Table.read(catalogs_folder() / "4fgl.fits.gz", hdu=1, mask_invalid=False)
