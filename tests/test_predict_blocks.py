"""Tables larger than memory: the same numbers in blocks, in every format; faults far down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import Table

from gpal import GPClassifier, load_catalog, predict, predict_file
from gpal.catalog import streaming
from gpal.catalog.readers import read_table
from gpal.errors import InputError
from gpal.provenance import provenance

MAPPING = {
    "id": "Name",
    "class": "Type",
    "ra": "RA",
    "dec": "Dec",
    "features": {
        "index": {"column": "Index", "error": "e_Index"},
        "flux": {"column": "Flux", "error": "e_Flux", "transform": "log10"},
    },
}
FORMATS = ["t.fits", "t.csv", "t.parquet", "t.vot", "t.ecsv"]
P = ["p_bll", "p_psr", "p_bll_std", "p_psr_std", "entropy"]


def sources(n, seed=0):
    rng = np.random.default_rng(seed)
    pulsar = np.arange(n) % 2
    table = Table({"Name": [f"S{i}" for i in range(n)], "Type": np.array(["bll", "psr"])[pulsar]})
    table["RA"], table["Dec"] = rng.uniform(0, 360, n), rng.uniform(-90, 90, n)
    table["Index"], table["e_Index"] = rng.normal(2 + pulsar, 0.5), rng.uniform(0.05, 0.2, n)
    table["Flux"] = rng.lognormal(pulsar, 0.5, n)
    table["e_Flux"] = 0.1 * table["Flux"]
    table["Index"][3] = np.nan
    for name in ("Flux", "e_Flux"):
        table[name].unit = u.mJy
    return table


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A file, as a command writes it."""
    folder = tmp_path_factory.mktemp("fit")
    sources(60).write(folder / "t.fits")
    catalog = load_catalog(folder / "t.fits", mapping=MAPPING)
    fitted = GPClassifier(n_inducing=6, max_rounds=1).fit(catalog.measurements, catalog.y)
    fitted.save(folder / "model.npz", provenance(catalog.provenance))
    return folder / "model.npz"


@pytest.fixture
def tonight():
    table = sources(53, seed=1)
    del table["Type"]
    return table


def written(table, path):
    table = table.copy()
    if path.suffix in (".csv", ".parquet"):
        for name in table.colnames:
            table[name].unit = None
    table.write(path, **({"format": "votable"} if path.suffix == ".vot" else {}))
    return path


@pytest.mark.filterwarnings("ignore:the table states no units")
@pytest.mark.parametrize("name", FORMATS)
def test_blocks_are_the_whole_in_every_format(model, tonight, tmp_path, monkeypatch, name):
    source = written(tonight, tmp_path / name)
    whole = predict(model, source)
    monkeypatch.setattr(streaming, "READ", 8)
    blocks = streaming.CatalogBlocks.of(source, mapping=MAPPING | {"class": ""})
    assert len(list(blocks)) == (1 if name == "t.ecsv" else 7)
    out = tmp_path / f"out{source.suffix if name != 't.ecsv' else '.fits'}"
    counts = predict_file(model, source, out)
    found = read_table(out, words=("name", "prediction"))
    assert len(found) == 53 == sum(counts.values())
    assert found["name"].astype(str).tolist() == tonight["Name"].tolist()
    for column in P:
        np.testing.assert_allclose(found[column], whole[column], rtol=0, atol=1e-12)
    assert found["outside_support"].astype(bool).tolist() == whole["outside_support"].tolist()


def test_tables_and_frames_in_any_order(model, tonight):
    expected = predict(model, tonight)
    shuffled = tonight[tonight.colnames[::-1]]
    np.testing.assert_array_equal(predict(model, shuffled)["p_psr"], expected["p_psr"])
    with pytest.warns(UserWarning, match=r"states no units: .* of the model, flux in mJy"):
        of_frame = predict(model, tonight.to_pandas())
    np.testing.assert_allclose(of_frame["p_psr"], expected["p_psr"], rtol=0, atol=1e-12)
    assert isinstance(tonight.to_pandas(), pd.DataFrame)


def test_other_units_are_converted_before_the_transform(model, tonight, tmp_path):
    expected = predict(model, tonight)
    other = tonight.copy()
    for name in ("Flux", "e_Flux"):
        other[name] = other[name].to(u.Jy)
    made = predict(model, written(other, tmp_path / "jy.fits"))
    np.testing.assert_allclose(made["p_psr"], expected["p_psr"], rtol=0, atol=1e-12)
    other["Flux"].unit = other["e_Flux"].unit = u.mag
    with pytest.raises(InputError, match=r"'Flux' has the unit 'mag', which does not convert"):
        predict(model, other)


def test_an_error_under_another_name_and_none_at_all(model, tonight):
    expected = predict(model, tonight)
    renamed = tonight.copy()
    renamed.rename_column("e_Index", "Index_err")
    np.testing.assert_array_equal(predict(model, renamed)["p_psr"], expected["p_psr"])
    del renamed["Index_err"]
    with pytest.warns(UserWarning, match="'index' has no error bar here, and had one when"):
        exact = predict(model, renamed)
    assert np.abs(exact["p_psr"] - expected["p_psr"]).max() > 1e-6
    del renamed["Index"]
    with pytest.raises(InputError, match="no column 'Index'"):
        predict(model, renamed)


def test_values_that_the_model_has_not_seen_are_told(model, tonight):
    tonight["Index"] *= 1000
    with pytest.warns(UserWarning, match=r"'index': 52 of 52 values are not in the range that"):
        made = predict(model, tonight)
    assert made["outside_support"].sum() >= 52


def test_faults_far_down_the_file(model, tonight, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "READ", 8)
    out = tmp_path / "out.fits"
    tonight["Name"][50] = "S1"
    source = written(tonight, tmp_path / "twice.fits")
    with pytest.raises(InputError, match="column 'Name' holds 1 identifiers twice"):
        predict_file(model, source, out)
    tonight["Name"][50], tonight["e_Flux"][50] = "S50", -1.0
    source = written(tonight, tmp_path / "negative.fits")
    with pytest.raises(InputError, match=r"rows from 48 on.*'e_Flux', row 2 \(S50\)"):
        predict_file(model, source, out)
    assert not out.exists() and not list(tmp_path.glob(".*"))


def test_what_a_table_gives_cause_to_say_is_said_once(model, tonight, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "READ", 8)
    for row in (0, 1, 10, 20, 21):  # one of them alone in its block
        tonight["Index"][row] = -1.0
    del tonight["e_Flux"]
    source = written(tonight, tmp_path / "t.fits")
    features = {"index": "Index", "flux": "Flux"}
    blocks = streaming.CatalogBlocks.of(source, mapping={"features": features}, features="default")
    with pytest.warns(UserWarning) as told:
        whole = load_catalog(source, mapping={"features": features})
    with pytest.warns(UserWarning) as told_of_blocks:
        found = sum(len(block) for block in blocks)
    assert found == len(whole) == 53
    assert [str(w.message) for w in told_of_blocks] == [str(w.message) for w in told]
    assert "found for 'flux'" in str(told[0].message)
    assert str(told[1].message).startswith("-1 in 5 rows of column 'Index' of feature 'index':")


@pytest.mark.filterwarnings("ignore:the table has no column 'Name' of names")
def test_cuts_and_rows_without_names(model, tonight, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "READ", 8)
    del tonight["Name"]
    source = written(tonight, tmp_path / "t.fits")
    whole = predict(model, source)
    assert whole["name"].tolist() == [str(row) for row in range(53)]
    cut = predict(model, source, cuts=["Index > 2.5"])
    chosen = np.asarray(tonight["Index"]) > 2.5
    assert cut["name"].tolist() == np.flatnonzero(chosen).astype(str).tolist()
    np.testing.assert_allclose(cut["p_psr"], whole["p_psr"][chosen], rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="no source passes the cuts"):
        predict(model, source, cuts=["Index > 99"])


# Not `ru_maxrss`: a process that was just made starts with the peak of the one that made it.
MEMORY = """
import re, sys
from pathlib import Path
from gpal import predict_file
predict_file(sys.argv[1], sys.argv[2], sys.argv[3], progress=False)
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(int(peak[1]) * 1024 // 10**6)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own count")
def test_many_rows_take_less_than_half_a_gigabyte_more_than_few(model, tmp_path):
    """A million as well: workflows/benchmarks/predict_rows.py."""
    n = 100_000
    few = sources(n // 100, seed=2).to_pandas().drop(columns="Type")
    many = pd.concat([few] * 100, ignore_index=True)
    many["Name"] = [f"S{i}" for i in range(n)]

    def peak(rows: pd.DataFrame, name: str) -> int:
        """Megabytes, libraries included."""
        rows.to_parquet(tmp_path / f"{name}.parquet")
        files = [model, tmp_path / f"{name}.parquet", tmp_path / f"{name}-out.parquet"]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MEMORY, *map(str, files)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[1],
        )
        return int(done.stdout.split()[-1])

    assert peak(many, "many") - peak(few, "few") < 500, "MB"
    found, expected = (
        pd.read_parquet(tmp_path / f"{name}-out.parquet", columns=["p_psr"])["p_psr"].to_numpy()
        for name in ("many", "few")
    )
    np.testing.assert_allclose(found, np.tile(expected, 100), rtol=0, atol=1e-12)


def test_units_that_the_model_does_not_know_and_lost_positions_are_said(model, tonight, tmp_path):
    index = tonight.copy()
    index["Index"].unit = u.mJy
    with pytest.warns(UserWarning, match=r"without units, .* taken as they stand, index in mJy"):
        predict(model, index)
    tonight.rename_columns(["RA", "Dec"], ["RAJ2000", "DEJ2000"])
    with pytest.warns(UserWarning, match=r"no column 'RA', 'Dec' of positions"):
        found = predict(model, tonight)
    assert np.isnan(found["ra"]).all()
