"""The embedded photometry: what its tables say, and the covariance that shared bands imply."""

from __future__ import annotations

import gzip
import importlib.util
import os
import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import gpal
from gpal.catalog import load_catalog
from gpal.catalog.registry import catalogs_folder

BANDS = "ugrizy"
BINS = {"0-0.53": 1082, "0.53-0.78": 931, "0.78-0.99": 740, "0.99-1.26": 638, "1.26-3.1": 395}


@pytest.fixture(scope="module")
def dc2():
    return load_catalog("lsst-dc2")


def column(catalog, name):
    return np.asarray(catalog.table[name], dtype=float)


def test_every_galaxy_is_there_and_bright_ones_of_one_table_have_bins(dc2):
    assert len(dc2) == dc2.schema.rows == 30674
    assert Counter(dc2.labelled().y.tolist()) == BINS
    assert dc2.labelled().measurements.X[:, 0].max() <= 24.0  # rounded
    shares = np.histogram(column(dc2, "redshift"), dc2.schema.classes.edges)[0] / len(dc2)
    np.testing.assert_allclose(shares, 0.2, atol=0.01)  # of all galaxies
    np.testing.assert_array_equal(
        np.asarray(dc2.carried["redshift"].data, dtype=float), column(dc2, "redshift")
    )


def test_the_covariance_is_that_of_the_map_from_bands_to_colours(dc2):
    """J diag(σ²) Jᵀ, J the rows of i and of the differences."""
    J = np.zeros((6, 6))
    J[0, BANDS.index("i")] = 1
    for k in range(5):
        J[k + 1, k : k + 2] = 1, -1
    rows = np.flatnonzero(dc2.measurements.measured.all(axis=1))[::97]
    σ = np.column_stack([column(dc2, f"mag_err_{band}") for band in BANDS])[rows]
    expected = np.einsum("jb,nb,kb->njk", J, σ**2, J)
    np.testing.assert_allclose(dc2.measurements.covariance[rows], expected, rtol=1e-10, atol=1e-15)


def test_what_was_not_detected_has_a_limit_in_its_colours(dc2):
    u, g, depth = (column(dc2, name) for name in ("mag_u", "mag_g", "mag_err_u"))
    lost = u == 99
    assert lost.sum() == 2203
    limits, j = dc2.measurements.limits, dc2.feature_names.index("u - g")
    fainter = lost & (g < 99)
    assert not dc2.measurements.measured[lost, j].any()
    np.testing.assert_allclose(limits.value[fainter, j], (depth - g)[fainter])
    np.testing.assert_allclose(limits.confidence[fainter, j], 0.84)  # positive: above it
    np.testing.assert_allclose(limits.error[fainter, j], column(dc2, "mag_err_g")[fainter])


def test_the_depth_is_that_of_one_sigma(dc2):
    """Errors are 2.5 log10(1 + N/S): at the depth of a band, .753."""
    for band in "ug":
        m, σ = column(dc2, f"mag_{band}"), column(dc2, f"mag_err_{band}")
        depth = σ[m == 99]
        assert np.ptp(depth) == 0
        near = np.argsort(np.abs(m - depth[0]))[:3]
        np.testing.assert_allclose(σ[near], 2.5 * np.log10(2), atol=0.15)


def test_the_extract_is_small_and_says_whose_it_is():
    path = catalogs_folder() / "lsst-dc2.fits.gz"
    assert path.stat().st_size < 1e6
    header = fits.getheader(path, 1)
    assert (header["GPALCAT"], header["LICENSE"]) == ("lsst-dc2", "MIT")
    licence = (catalogs_folder() / "lsst-dc2.LICENSE").read_text()
    assert header["ORIGFILE"] in licence and header["ORIGFIL2"] in licence
    assert "LSST Dark Energy Science Collaboration" in licence


def test_the_workflow_makes_the_extract_again_to_the_byte():
    spec = importlib.util.find_spec("rail")
    places = [*(spec.submodule_search_locations or ())] if spec else []
    folders = [Path(place) / "examples_data" / "testdata" for place in places]
    folders.append(Path(os.environ.get("GPAL_DC2_TABLES", ".")))
    folder = next((f for f in folders if (f / "test_dc2_training_9816.pq").is_file()), None)
    if folder is None:
        pytest.skip("no DC2 tables: install pz-rail-base, or set GPAL_DC2_TABLES to their folder")
    script = Path(__file__).parents[2] / "workflows" / "photometry" / "make_extract.py"
    again = runpy.run_path(str(script))["extract"](folder)
    embedded = (catalogs_folder() / "lsst-dc2.fits.gz").read_bytes()
    assert gzip.decompress(again) == gzip.decompress(embedded)


@pytest.mark.slow
def test_a_report_of_galaxies_without_positions(dc2, tmp_path):
    known, unknown = np.flatnonzero(~dc2.is_target)[::30], np.flatnonzero(dc2.is_target)[::900]
    rows = np.concatenate([known, unknown])
    model = gpal.GPClassifier(n_inducing=10, max_rounds=1)
    result = gpal.classify(
        dc2[rows], tmp_path / "out", classifier=model, n_splits=2, progress=False
    )
    table = result.table
    assert len(table) == len(rows) and set(dc2.classes) == set(BINS)
    np.testing.assert_array_equal(table["redshift"], column(dc2, "redshift")[rows])
    assert (tmp_path / "out" / "report.html").is_file()
