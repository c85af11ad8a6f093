"""Lists of candidates at a stated purity: of a result, of its folder, of the command."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from astropy.table import Table
from typer.testing import CliRunner

from gpal.cli import app
from gpal.errors import InputError
from gpal.jobs import candidates, classify, validate


@pytest.fixture(scope="module")
def result(small_catalog, noisy_logistic, tmp_path_factory):
    out = tmp_path_factory.mktemp("candidates") / "results"
    prior = {"bll": 0.7, "psr": 0.3}
    return classify(small_catalog, out, classifier=noisy_logistic, n_splits=3, prior=prior)


def test_the_list_is_what_stands_above_the_threshold(result):
    table = result.table
    known = table[np.asarray(table["label"]) != ""]
    found = candidates(result, "psr", 0.85)
    said = found.meta["list"]
    listed = known["p_psr"] >= said["threshold"]
    assert (known["label"][listed] == "psr").mean() == pytest.approx(said["purity"])
    assert said["purity"] >= 0.85 and said["listed"] == listed.sum()
    # the threshold is on the labelled sources' fractions, the probability as it is stated
    rows = np.asarray(table["candidate"]) & (table["p_psr_train"] >= said["threshold"])
    assert set(found["name"]) == set(table["name"][rows]) and 0 < len(found) < 28
    assert (np.diff(found["p_psr"]) <= 0).all()
    assert said["candidates_promised"] == pytest.approx(table["p_psr"][rows].mean())


def test_a_folder_and_its_files_say_the_same(result, tmp_path):
    found = candidates(result, "psr", 0.85)
    for ending in (".csv", ".fits", ".vot", ".parquet"):
        path = tmp_path / f"pulsars{ending}"
        again = candidates(result.folder, "psr", 0.85, path)
        assert again["name"].tolist() == found["name"].tolist()
        assert again.meta == found.meta and path.is_file()
    csv = pd.read_csv(tmp_path / "pulsars.csv", comment="#", keep_default_na=False)
    assert csv["name"].tolist() == found["name"].tolist()
    first = (tmp_path / "pulsars.csv").read_text().splitlines()[0]
    for origin in (
        json.loads(first.removeprefix("# provenance: ")),
        json.loads(Table.read(tmp_path / "pulsars.fits").meta["PROVENAN"]),
    ):
        assert origin["list"] == found.meta["list"]
        assert origin["catalog"] == result.metrics["provenance"]["catalog"]


def test_a_list_takes_the_place_of_no_file_that_it_is_made_from(result):
    for given in (result, result.folder):
        with pytest.raises(InputError, match="would be overwritten"):
            candidates(given, "psr", 0.85, result.folder / "probabilities.fits")


def test_a_list_without_candidates_is_a_table_without_rows(result, tmp_path):
    few = result.table[~np.asarray(result.table["candidate"])]
    none = type(result)(**{**vars(result), "table": few})
    for ending in (".csv", ".fits", ".vot", ".parquet"):
        found = candidates(none, "psr", 0.8, tmp_path / f"none{ending}")
        assert len(found) == 0 and found.meta["list"]["candidates_promised"] is None
        path = tmp_path / f"none{ending}"
        if ending in (".fits", ".vot"):
            again = Table.read(path)
            assert again.colnames == found.colnames and len(again) == 0
        else:
            read = pd.read_parquet if ending == ".parquet" else partial(pd.read_csv, comment="#")
            assert list(read(path).columns) == found.colnames and not len(read(path))


def test_what_cannot_be_listed_is_refused(result, two_releases, noisy_logistic, tmp_path):
    with pytest.raises(InputError, match="no class 'fsrq' in the result; there are: bll, psr"):
        candidates(result, "fsrq")
    same = candidates(result, "PSR", 0.8)["name"].tolist()  # as the class column may print it
    assert same == candidates(result, "psr", 0.8)["name"].tolist()
    with pytest.raises(InputError, match="purity is a fraction, got 90"):
        candidates(result, "psr", 90)
    flipped = result.table.copy()
    flipped["p_psr"] = 1 - flipped["p_psr"]
    wrong = type(result)(**{**vars(result), "table": flipped})
    with pytest.raises(InputError, match="no list of psr reaches a purity of 1"):
        candidates(wrong, "psr", 1.0)
    with pytest.raises(InputError, match="would be overwritten"):
        candidates(result.folder, "psr", 0.8, result.folder / "probabilities.csv")
    with pytest.raises(InputError, match=r"should end in|cannot write"):
        candidates(result, "psr", 0.8, tmp_path / "list.png")
    checked = validate(
        *two_releases, tmp_path / "v", classifier=noisy_logistic, without=[], n_seeds=1
    )
    with pytest.raises(InputError, match="those of a classification"):
        candidates(checked.folder, "psr")
    with pytest.raises(InputError, match=r"no 'metrics\.json'"):
        candidates(tmp_path, "psr")


def test_the_command(result, tmp_path):
    out = tmp_path / "psr.csv"
    arguments = ["candidates", "psr", str(result.folder), "--purity", "0.85", "--out", str(out)]
    ran = CliRunner().invoke(app, arguments)
    said = candidates(result, "psr", 0.85).meta["list"]
    assert ran.exit_code == 0
    assert said["threshold_on"] == "p_psr_train"  # whoever repeats the cut finds as many
    table = result.table[np.asarray(result.table["candidate"])]
    assert np.sum(table[said["threshold_on"]] >= said["threshold"]) == said["n_candidates"]
    stated = f"{said['n_candidates']} candidates with p_psr_train ≥ {said['threshold']:.3f}"
    assert stated in ran.stdout
    assert f"completeness {said['completeness']:.3f}" in ran.stdout and out.is_file()
