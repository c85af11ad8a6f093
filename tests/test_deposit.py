"""The tables for a deposit, read again by astropy's reader of CDS tables."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.evaluation import logistic_regression
from gpal.jobs import classify
from gpal.jobs.probability_catalogue import read_probabilities

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def deposit():
    path = ROOT / "workflows" / "catalogue" / "deposit.py"
    spec = importlib.util.spec_from_file_location("deposit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = tmp_path_factory.mktemp("results")
    for name in ("4fgl-dr4", "fl16y"):
        catalog = load_catalog(name)[::10]
        classify(catalog, made / name, classifier=logistic_regression(), n_splits=2)
    return [made / "4fgl-dr4", made / "fl16y"]


@pytest.fixture(scope="module")
def place(deposit, folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("deposit") / "out"
    deposit.deposit(folders, out)
    return out


def test_the_table_is_what_the_readme_says(place, folders):
    for folder in folders:
        before = read_probabilities(folder / "probabilities.fits")
        path, readme = str(place / f"{folder.name}.dat"), str(place / "ReadMe")
        found = Table.read(path, readme=readme, format="ascii.cds")
        assert found.colnames == before.colnames and len(found) == len(before)
        for name in before.colnames:
            column, expected = np.ma.asarray(found[name]), before[name]
            mask = np.ma.getmaskarray(column)
            if expected.dtype.kind == "U":
                assert column.filled("").tolist() == expected.tolist(), name
                continue
            values = np.ma.filled(np.ma.asarray(expected, float), np.nan)
            np.testing.assert_array_equal(mask, ~np.isfinite(values))
            close = {"atol": 5.1e-5, "rtol": 0} if values[~mask].max() > 0.01 else {"rtol": 5.1e-5}
            np.testing.assert_allclose(column[~mask].astype(float), values[~mask], **close)
            if expected.unit is not None:
                assert found[name].unit.is_equivalent(expected.unit)
            assert expected.meta["ucd"] in " ".join(found[name].description.split()).replace(
                "; ", ";"
            )


def test_the_readme_is_one(place, folders):
    text = (place / "ReadMe").read_text("ascii")
    assert max(map(len, text.splitlines())) <= 80
    metrics = json.loads((folders[1] / "metrics.json").read_text())
    nll = metrics["GPClassifier"]["nll"]
    assert f"nll {nll['mean']:.3f} +-{nll['se']:.3f}" in " ".join(text.split())
    assert metrics["provenance"]["catalog"]["release_sha256"] in text
    assert f"gpal {metrics['provenance']['gpal']}" in text
    for line in (place / "SHA256SUMS").read_text().splitlines():
        checksum, name = line.split("  ")
        assert hashlib.sha256((place / name).read_bytes()).hexdigest() == checksum
    names = {path.name for path in place.iterdir()}
    assert {"CITATION.cff", "4fgl-dr4.fits", "fl16y.csv", "fl16y_metrics.json"} <= names
    assert "4fgl-dr4_sky_map.png" in names


def test_a_name_that_is_not_ascii_is_escaped(deposit, folders, tmp_path):
    folder = tmp_path / "greek"
    shutil.copytree(folders[0], folder)
    table = read_probabilities(folder / "probabilities.fits")
    column = next(name for name in table.colnames if table[name].dtype.kind == "U")
    table[column] = table[column].astype("<U40")
    table[column][0] = "β Cas"
    assert "\\u03b2 Cas" in deposit.fixed(table)[column].tolist()


def test_a_folder_that_holds_something_is_refused(deposit, folders, place):
    with pytest.raises(InputError, match="is not empty, and a deposit describes all that is in it"):
        deposit.deposit(folders[:1], place)


def test_what_cannot_be_deposited(deposit, folders, tmp_path):
    with pytest.raises(InputError, match="as a folder before it"):
        deposit.deposit([folders[0], folders[0]], tmp_path / "out")
    folder = tmp_path / "undescribed"
    shutil.copytree(folders[0], folder)
    table = read_probabilities(folder / "probabilities.fits")
    table["flux"].description = None
    with pytest.raises(InputError, match="'flux' has no description"):
        deposit.fixed(table)
    assert not (tmp_path / "out").exists()
