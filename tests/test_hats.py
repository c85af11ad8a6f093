"""Catalogs in HATS layout, in and out, by processes that are killed on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpal import GPClassifier, InputError, load_catalog, predict
from gpal.cli import app
from gpal.jobs.hats import MARK, is_hats, predict_hats
from gpal.provenance import provenance

lsdb = pytest.importorskip("lsdb", reason="make test-beside")

pytestmark = pytest.mark.filterwarnings("ignore")  # LSDB's own

NAMES = {"id": "name", "class": "class", "ra": "RA", "dec": "DEC"}
FEATURES = {f"f{j}": {"column": f"f{j}", "error": f"e_f{j}"} for j in range(2)}


def sources(number: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=number)
    sky = {"RA": rng.uniform(0, 360, number), "DEC": rng.uniform(-85, 85, number)}
    table = {"name": [f"S{i}" for i in range(number)], **sky}
    for j in range(2):
        error = rng.uniform(0.05, 0.3, number)
        table[f"f{j}"] = kind + j + rng.normal(size=number) * np.hypot(0.5, error)
        table[f"e_f{j}"] = error
    return pd.DataFrame({**table, "class": np.array(["star", "quasar"])[kind]})


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """(folder of a collection, model file, its rows)."""
    folder = tmp_path_factory.mktemp("hats")
    rows = sources(1500)
    rows[:200].to_csv(folder / "known.csv", index=False)
    known = load_catalog(folder / "known.csv", mapping={**NAMES, "features": FEATURES})
    model = GPClassifier(max_rounds=1, input_noise="first_order", n_inducing=10)
    model.fit(known.measurements, known.y)
    model.save(folder / "model.npz", provenance(known.provenance))
    catalog = lsdb.from_dataframe(
        rows.drop(columns="class"),
        ra_column="RA",
        dec_column="DEC",
        partition_rows=150,
        margin_threshold=7200,
        catalog_name="survey",
    )
    catalog.write_catalog(folder / "survey", progress_bar=False)
    return folder / "survey", folder / "model.npz", rows


def same(out, model, rows):
    """The result is that of the table as one, and has its margin."""
    found = lsdb.open_catalog(out)
    assert found.npartitions > 8 and found.margin is not None and len(found.margin) > 0
    table = found.compute(progress_bar=False).set_index("name").loc[rows["name"]]
    whole = predict(model, rows).to_pandas()
    for column in ("p_star", "p_star_std", "entropy", "outside_support"):
        np.testing.assert_allclose(
            table[column].astype(float), whole[column].astype(float), rtol=0, atol=1e-10
        )
    assert table["prediction"].tolist() == whole["prediction"].tolist()
    np.testing.assert_array_equal(table["RA"], rows["RA"])


def test_partitions_margins_and_provenance(survey, tmp_path):
    source, model, rows = survey
    assert is_hats(source) and not is_hats(tmp_path)
    out = tmp_path / "out"
    assert predict_hats(model, source, out) == len(rows)
    same(out, model, rows)
    assert "gpal_provenance" in (out / "out" / "hats.properties").read_text()
    assert json.loads((out / MARK).read_text())["settings"]["classes"] == ["quasar", "star"]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert predict_hats(model, source, out) == len(rows)  # it is there
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    with pytest.raises(InputError, match="of another model, table or settings"):
        predict_hats(model, source, out, confidence=0.9)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InputError, match="not empty"):
        predict_hats(model, source, tmp_path / "full")


def test_a_killed_run_goes_on_where_it_was(survey, tmp_path):
    source, model, rows = survey
    out = tmp_path / "out"
    command = [sys.executable, "-m", "gpal", "predict", model, source, "--out", out]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    done = out / "out" / "done"
    for _ in range(6000):
        if done.is_dir() and len(list(done.iterdir())) >= 3:
            break
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    first = {path.name for path in done.iterdir()}
    assert first and not is_hats(out)
    written = {path: path.stat().st_mtime_ns for path in out.rglob("Npix=*.parquet")}
    assert predict_hats(model, source, out) == len(rows)
    kept = [path for path, when in written.items() if path.stat().st_mtime_ns == when]
    assert len(kept) >= len(first) - 1
    same(out, model, rows)


def test_by_workers_of_dask(survey, tmp_path):
    source, model, rows = survey
    out = tmp_path / "out"
    arguments = ["predict", str(model), str(source), "--out", str(out), "--engine", "dask"]
    done = subprocess.run(
        [sys.executable, "-m", "gpal", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(rows)} sources" in done.stdout
    same(out, model, rows)


def test_what_cannot_be_is_one_line(survey, tmp_path):
    source, model, _ = survey
    for arguments, said in {
        (str(source), "--cut", "f0 > 0"): "not for a HATS catalog",
        (str(source.parent / "known.csv"), "--engine", "dask"): "no catalog in HATS layout",
        (str(source), "--scheduler", "tcp://localhost:1"): "--scheduler is for --engine dask",
    }.items():
        out = str(tmp_path / "p")
        done = CliRunner().invoke(app, ["predict", str(model), *arguments, "--out", out])
        assert isinstance(done.exception, InputError) or done.exit_code == 2
        assert said in f"{done.exception} {done.output}"
