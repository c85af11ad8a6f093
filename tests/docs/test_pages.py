"""The Python code of README and the other pages runs as it stands."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from astropy.table import Table
from pages import blocks, run

from gpal import GPClassifier
from gpal.catalog import load_catalog
from gpal.files.csv import write_csv

ROOT = Path(__file__).parents[2]
MARKDOWN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page.relative_to(ROOT).as_posix() for page in MARKDOWN if blocks(page, "python")]
PAGES.remove("docs/own-survey.md")  # test_own_survey_page.py


def test_every_room_has_its_api_page():
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    named = set(re.findall(r"^\.\. (?:package|automodule):: (\S+)$", pages, re.MULTILINE))
    rooms = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in [*(ROOT / "gpal").glob("*.py"), *(ROOT / "gpal").rglob("__init__.py")]
    }
    assert named == rooms - {"gpal", "gpal.__main__", "gpal._version"}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What the pages take as given: a table of stars, a release's file, results."""
    folder = tmp_path_factory.mktemp("given")
    rng = np.random.default_rng(0)
    stars = Table(
        {"Name": [f"S{i}" for i in range(9)], "Type": np.repeat(["star", "dwarf", ""], 3)}
    )
    for column in ("RA", "Dec", "bp_rp", "e_bp_rp", "plx", "plx_unc"):
        stars[column] = rng.uniform(0.1, 1.0, size=9)
    stars.write(folder / "survey.csv")
    with gzip.open(ROOT / "catalogs" / "4fgl-dr4.fits.gz") as release:
        for name in ("gll_psc_v35.fit", "gll_psc_v99.fit"):
            release.seek(0)
            (folder / name).write_bytes(release.read())
    results = folder / "results"
    results.mkdir()
    scores = {name: {} for name in ("GPClassifier", "logistic regression")}
    scores["GPClassifier"]["nll"] = scores["logistic regression"]["nll"] = {"mean": 0.3, "se": 0.01}
    (results / "metrics.json").write_text(json.dumps({**scores, "differences": {}}))
    columns = {
        **{"name": ["S0", "S1"], "prediction": ["psr", "MIXED"], "catalog_class": ["psr", ""]},
        **{"candidate": [True, False], "p_psr": [0.99, 0.5]},
    }
    Table(columns).write(results / "probabilities.fits")
    write_csv(results / "probabilities.csv", columns, ["provenance: {}"])
    few = load_catalog("4fgl-dr4").labelled()[::20]
    small = GPClassifier(n_inducing=5, max_rounds=0).fit(few.measurements, few.y)
    small.save(results / "model.npz", {"catalog": few.provenance})
    return folder


@pytest.fixture
def files(given, tmp_path, monkeypatch):
    """The folder with a copy of them."""
    shutil.copytree(given, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page, files, brief_fits):
    run(ROOT / page)
