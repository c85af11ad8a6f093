"""Catalogs in HATS layout, in and out, by processes that are killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from decimal import Decimal

import astropy.table
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from gpal import GPClassifier, InputError, candidates, load_catalog, predict
from gpal.catalog import Schema
from gpal.catalog.registry import find_schema
from gpal.catalog.release_files import sha256
from gpal.cli import app
from gpal.cli.catalogs import labels_named
from gpal.engines import local_client
from gpal.files.fits import write_fits
from gpal.jobs import hats_classification
from gpal.jobs.hats import HatsRows, is_hats, open_hats, said_of_survey
from gpal.jobs.hats_classification import _is_learned, _made, classify_hats, labelled_sources
from gpal.jobs.hats_prediction import MARK, _learned_from, _with_known, predict_hats
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.provenance import provenance, to_json

lsdb = pytest.importorskip("lsdb", reason="pip install 'gpal[hats]'")

pytestmark = pytest.mark.filterwarnings("ignore")  # LSDB's own

NAMES = {"id": "name", "class": "class", "ra": "RA", "dec": "DEC"}
KNOWN = 200
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
    known = np.arange(number) < KNOWN
    table["class"] = np.where(known, np.array(["star", "quasar"])[kind], "")
    return pd.DataFrame({**table, "unused": "x"})


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """(folder of a collection, model file, its rows)."""
    folder = tmp_path_factory.mktemp("hats")
    rows = sources(1500)
    rows[:KNOWN].to_csv(folder / "known.csv", index=False)
    known = load_catalog(folder / "known.csv", mapping={**NAMES, "features": FEATURES})
    model = GPClassifier(max_rounds=1, input_noise="first_order", n_inducing=10)
    model.fit(known.measurements, known.y)
    model.save(folder / "model.npz", provenance(known.provenance))
    catalog = lsdb.from_dataframe(
        rows,
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
    assert sum(predict_hats(model, source, out).values()) == len(rows)
    same(out, model, rows)
    assert "gpal_provenance" in (out / "out" / "hats.properties").read_text()
    assert json.loads((out / MARK).read_text())["settings"]["classes"] == ["quasar", "star"]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert sum(predict_hats(model, source, out).values()) == len(rows)  # it is there
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    with pytest.raises(InputError, match="of another model, table or settings"):
        predict_hats(model, source, out, confidence=0.9)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InputError, match="not empty"):
        predict_hats(model, source, tmp_path / "full")


def wait_for(process, state):
    for _ in range(10000):
        if state():
            return
        assert process.poll() is None
        time.sleep(0.02)
    raise AssertionError("it never came to that")


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(survey, tmp_path):
    source, model, rows = survey
    out = tmp_path / "out"
    command = [sys.executable, "-m", "gpal", "predict", model, source, "--out", out]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    done = out / "out" / "done"
    wait_for(process, lambda: done.is_dir() and len(list(done.iterdir())) >= 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    first = {path.name for path in done.iterdir()}
    assert first and not is_hats(out)
    written = {path: path.stat().st_mtime_ns for path in out.rglob("Npix=*.parquet")}
    assert sum(predict_hats(model, source, out).values()) == len(rows)
    kept = [path for path, when in written.items() if path.stat().st_mtime_ns == when]
    assert len(kept) >= len(first) - 1
    same(out, model, rows)


@pytest.mark.slow
def test_workers_of_dask_one_of_which_is_killed(survey, tmp_path):
    source, model, rows = survey
    out = tmp_path / "out"
    done = out / "out" / "done"
    with local_client(workers=2) as client:
        workers = list(client.run(os.getpid).values())

        def kill_one():
            while not done.is_dir() or len(list(done.iterdir())) < 2:
                time.sleep(0.02)
            os.kill(workers[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one)
        killer.start()
        counts = predict_hats(model, source, out, client=client)
        killer.join()
        assert workers[0] not in client.run(os.getpid).values()
    assert sum(counts.values()) == len(rows)
    same(out, model, rows)


def test_cuts_and_a_schema(survey, schema, tmp_path):
    source, model, rows = survey
    out = str(tmp_path / "out")
    arguments = ["predict", str(model), str(source), "--out", out]
    options = ["--schema", str(schema), "--cut", "f0 > 1"]
    done = CliRunner().invoke(app, [*arguments, *options], catch_exceptions=False)
    number = int((rows["f0"] > 1).sum())
    assert f"{number} sources" in done.output
    found = lsdb.open_catalog(out).compute(progress_bar=False)
    assert set(found["name"]) == set(rows["name"][rows["f0"] > 1])


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    lines = [f'{key} = "{column}"' for key, column in NAMES.items()]
    for name, made in FEATURES.items():
        lines += [f"[features.{name}]", *(f'{key} = "{value}"' for key, value in made.items())]
    path = tmp_path_factory.mktemp("schema") / "mine.toml"
    path.write_text("\n".join(lines))
    return path


def test_only_columns_that_are_needed_are_read(survey, schema):
    catalog, first, _ = open_hats(survey[0], HatsRows(find_schema(schema), ("f1",), "f0 > 0"))
    assert set(catalog.columns) == {"name", "class", "RA", "DEC", "f1", "e_f1", "f0"}
    assert list(first.columns) == list(catalog.columns)


def test_errors_of_the_nearest_rows_need_all_rows(survey, schema, tmp_path):
    nearest = tmp_path / "nearest.toml"
    lines = schema.read_text().replace("[features.f1]", '[features.f1]\nmissing_error = "nearest"')
    nearest.write_text(lines)
    with pytest.raises(InputError, match=r"'f1' has missing_error = 'nearest'.*all rows at once"):
        open_hats(survey[0], HatsRows(find_schema(nearest), ("f1",)))


def test_units_are_those_of_the_survey_and_rows_without_names_have_its_index(survey, schema):
    lines = schema.read_text().replace('id = "name"', "").replace('"e_f1"', '"e_f1"\nunit = "Jy"')
    schema = schema.with_name("unnamed.toml")
    schema.write_text(lines)
    how = HatsRows(find_schema(schema), ("f1",))
    catalog, first, how = open_hats(survey[0], how)
    assert set(how.about.names) >= set(catalog.columns)
    fields = [
        field.with_metadata({"unit": "mJy"}) if field.name.endswith("f1") else field
        for field in how.about
    ]
    found, _ = replace(how, about=pa.schema(fields)).catalog(first)
    np.testing.assert_allclose(found.X[:, 0], first["f1"] / 1000)
    np.testing.assert_allclose(found.X_err[:, 0], first["e_f1"] / 1000)
    assert found.names.tolist() == first.index.astype(str).tolist()


def test_what_astropy_masked_is_missing_there_too(tmp_path):
    """The column that says so is read with the one that it is of."""
    table = astropy.table.Table({"ra": [1.0, 2.0], "dec": [1.0, 2.0]})
    table["f"] = astropy.table.MaskedColumn([1.0, 1e20], mask=[False, True], unit="mJy")
    table.write(tmp_path / "a.parquet")
    stored = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    feature = {"f": {"column": "f", "error": "none", "unit": "Jy"}}
    rules = Schema.from_dict({"ra": "ra", "dec": "dec", "features": feature})
    how, rows = HatsRows(rules, about=stored.schema), stored.to_pandas()
    assert how.columns(rows) == ["ra", "dec", "f", "f.mask"]
    found, _ = how.catalog(rows[how.columns(rows)])
    np.testing.assert_allclose(found.X[:, 0], [0.001, np.nan])


def test_carried_values_that_one_partition_misses(survey, tmp_path):
    """Marks, counts and long identifiers are missing far from the first rows, where none is."""
    _, model, rows = survey
    rows, south = rows.copy(), (rows["DEC"] < -30).to_numpy()
    lost = south & (np.arange(len(rows)) % 3 == 0)
    identifier = np.where(south, 7, 2**60) + np.arange(len(rows))
    rows["flag"] = pd.array(np.arange(len(rows)) % 2 == 0, dtype="boolean")
    rows["count"] = pd.array(np.arange(len(rows)), dtype="Int64")
    rows["number"] = pd.array(identifier, dtype="Int64")
    rows["word"] = pd.array([f"w{i}" for i in range(len(rows))], dtype="string")
    rows.loc[lost, ["flag", "count", "number", "word"]] = pd.NA
    sky = {"ra_column": "RA", "dec_column": "DEC", "catalog_name": "survey"}
    catalog = lsdb.from_dataframe(rows, partition_rows=150, margin_threshold=60, **sky)
    catalog.write_catalog(tmp_path / "survey", progress_bar=False)
    carry = {name: {"column": name} for name in ("flag", "count", "number", "word")}
    carry["marked"] = {"column": "word", "ends": "1"}
    rules = Schema.from_dict({**NAMES, "features": FEATURES, "carry": carry})
    predict_hats(model, tmp_path / "survey", tmp_path / "out", rows=HatsRows(rules))
    kinds = {}
    for path in (tmp_path / "out").rglob("Npix=*.parquet"):
        for field in pyarrow.parquet.read_schema(path):
            if field.name in carry:
                kinds.setdefault(field.name, set()).add(str(field.type))
    assert {name: len(each) for name, each in kinds.items()} == dict.fromkeys(carry, 1), kinds
    found = lsdb.open_catalog(tmp_path / "out").compute(progress_bar=False).set_index("name")
    found = found.loc[rows["name"]]
    for name in ("flag", "count", "number"):
        assert found[name].isna().tolist() == lost.tolist()
        assert found[name][~lost].astype(int).tolist() == rows[name][~lost].astype(int).tolist()
    assert found["word"].tolist() == rows["word"].fillna("").tolist()
    assert found["marked"].tolist() == rows["word"].fillna("").str.endswith("1").tolist()


def test_carried_words_beside_a_margin_without_rows(survey, tmp_path):
    _, model, rows = survey
    rows = rows[:200].assign(word=np.where(np.arange(200) % 3 == 0, None, "w"))
    sky = {"ra_column": "RA", "dec_column": "DEC", "catalog_name": "survey"}
    catalog = lsdb.from_dataframe(rows, partition_rows=60, margin_threshold=0.1, **sky)
    catalog.write_catalog(tmp_path / "survey", progress_bar=False)
    assert lsdb.open_catalog(tmp_path / "survey").margin is not None
    rules = {**NAMES, "features": FEATURES, "carry": {"word": {"column": "word"}}}
    rows_of = HatsRows(Schema.from_dict(rules))
    predict_hats(model, tmp_path / "survey", tmp_path / "out", rows=rows_of)
    found = lsdb.open_catalog(tmp_path / "out").compute(progress_bar=False).set_index("name")
    assert found.loc[rows["name"], "word"].tolist() == rows["word"].fillna("").tolist()


def test_decimals_arrays_and_nested_columns_are_as_in_a_file(survey, tmp_path):
    """Decimals of which some are missing; elements of arrays, whose errors are found by their
    names; light curves, which are refused in one line."""
    _, model, rows = survey
    rows, number = rows[:400].copy(), range(400)
    price = [None if k % 3 == 0 else Decimal(k) / 4 for k in number]
    long = [None if k % 3 == 0 else Decimal(k + 2**60 * (k > 200)) for k in number]
    arrays = [rows[["f0", "f1"]].to_numpy().tolist(), rows[["e_f0", "e_f1"]].to_numpy().tolist()]
    arrays[0][7] = None
    numbers = pa.list_(pa.float64())
    for name, cells, kind in (
        ("price", price, pa.decimal128(10, 2)),
        ("long", long, pa.decimal128(25, 0)),
        ("flux", arrays[0], numbers),
        ("flux_err", arrays[1], numbers),
        ("curve", [[{"t": 1.0}]] * 400, pa.list_(pa.struct({"t": pa.float64()}))),
    ):
        rows[name] = pd.array(cells, dtype=pd.ArrowDtype(kind))
    sky = {"ra_column": "RA", "dec_column": "DEC", "catalog_name": "survey"}
    catalog = lsdb.from_dataframe(rows, partition_rows=100, margin_threshold=7200, **sky)
    catalog.write_catalog(tmp_path / "survey", progress_bar=False)

    carry = {name: {"column": name} for name in ("price", "long")} | {"one": {"column": "flux[1]"}}
    features = {f"f{j}": {"column": f"flux[{j}]"} for j in range(2)}
    rules = Schema.from_dict({**NAMES, "features": features, "carry": carry})
    predict_hats(model, tmp_path / "survey", tmp_path / "out", rows=HatsRows(rules))
    found = lsdb.open_catalog(tmp_path / "out").compute(progress_bar=False)
    found = found.set_index("name").loc[rows["name"]]
    known = [k is not None for k in price]
    assert found["price"].notna().tolist() == known
    assert found["price"][known].tolist() == [float(k) for k in price if k is not None]
    assert found["long"].tolist() == ["" if k is None else str(k) for k in long]
    np.testing.assert_array_equal(found["one"].drop("S7").astype(float), rows["f1"].drop(7))
    assert pd.isna(found["one"]["S7"])
    whole = predict(model, rows.drop(index=7)).to_pandas()
    p = found["p_star"].drop("S7").astype(float)
    np.testing.assert_allclose(p, whole["p_star"], rtol=0, atol=1e-10)

    nested = Schema.from_dict({**NAMES, "features": {"f0": {"column": "curve", "error": "none"}}})
    with pytest.raises(InputError, match="column 'curve' holds lists or records"):
        open_hats(tmp_path / "survey", HatsRows(nested))


def test_fractions_are_those_of_sources_whose_class_is_asked_for(survey, tmp_path):
    """As `classify` of a file has it: not of those that are known to be something else."""
    source, model, rows = survey
    table = predict(model, rows[:60].drop(columns="class"))
    for column, value in {"label": "star", "out_of_fold": False}.items():
        table[column] = [value] * len(table)
    table.write(tmp_path / "known.fits")
    rules = Schema.from_dict(
        {**NAMES, "features": FEATURES, "classes": {"default": ["quasar"]}}, "mine"
    )
    fractions = {"quasar": 0.05, "star": 0.95}
    how = {"rows": HatsRows(rules), "prior": fractions, "known": tmp_path / "known.fits"}
    predict_hats(model, source, tmp_path / "out", **how)
    found = lsdb.open_catalog(tmp_path / "out").compute(progress_bar=False).set_index("name")
    found = found.loc[rows["name"]]["p_star"].to_numpy(float)
    unlabelled = rows.drop(columns="class")
    train, given = (predict(model, unlabelled, prior=of)["p_star"] for of in (None, fractions))
    np.testing.assert_allclose(found, np.where(rows["class"] == "", given, train), atol=1e-10)
    origin = json.loads((tmp_path / "out" / MARK).read_text())["catalog"]
    assert origin["file"] == origin["release_file"] == source.name and origin["release_sha256"]
    assert origin["features"] == list(FEATURES) and origin["feature_set"] is None


def test_an_undecided_class_has_the_fractions_that_the_schema_knows(survey, tmp_path):
    """As in a classification of a file; a schema's, by the classes that leave none out."""
    _, model, rows = survey
    rows = rows[: KNOWN + 300].assign(**{"class": rows["class"].where(rows.index < 300, "maybe")})
    lsdb.from_dataframe(
        rows, ra_column="RA", dec_column="DEC", partition_rows=150, catalog_name="survey"
    ).write_catalog(tmp_path / "survey", progress_bar=False)
    classes = {"candidates": ["maybe"], "tree": {"point": ["star"]}}
    classes["fractions"] = {"maybe": {"point": 0.9}}
    how = HatsRows(Schema.from_dict({**NAMES, "features": FEATURES, "classes": classes}, "mine"))
    known = labelled_sources(tmp_path / "survey", how)
    told = known.with_classes(["star", "other"]).known_fractions()
    assert told == {"maybe": {"star": pytest.approx(0.9), "other": pytest.approx(0.1)}}
    passed = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hats_classification, "classify", lambda known, out, **_: out.mkdir())
        patch.setattr(hats_classification, "_made", lambda out: {})
        patch.setattr(hats_classification, "predict_hats", lambda *_, **options: passed | options)
        for prior in ("train", {"star": 0.5, "other": 0.5}):
            of = known.with_classes(["star", "other"])
            given = classify_hats(of, tmp_path / "survey", tmp_path / "to", how, prior=prior)
            assert given["prior_of"] == (told if prior == "train" else {})
            shutil.rmtree(tmp_path / "to")

    prior_of = {"maybe": {"star": 0.9, "quasar": 0.1}}
    predict_hats(model, tmp_path / "survey", tmp_path / "out", rows=how, prior_of=prior_of)
    found = lsdb.open_catalog(tmp_path / "out").compute(progress_bar=False).set_index("name")
    found = found.loc[rows["name"]]
    unlabelled = rows.drop(columns="class")
    train, maybe = (predict(model, unlabelled, prior=of) for of in (None, prior_of["maybe"]))
    for column in ("p_star", "p_star_std", "entropy"):
        expected = np.where(rows["class"] == "maybe", maybe[column], train[column])
        np.testing.assert_allclose(found[column].to_numpy(float), expected, atol=1e-10)
    assert np.abs(maybe["p_star"] - train["p_star"]).max() > 0.1
    mark = json.loads((tmp_path / "out" / MARK).read_text())
    assert mark["settings"]["known_fractions"] == prior_of


def test_pairs_of_errors_of_a_difference_are_read(survey):
    rows = survey[2][:20].assign(u=1.0, g=2.0)
    for name in ("u_err_lo", "u_err_hi", "g_err_lo", "g_err_hi"):
        rows[name] = 0.1
    made = {"ug": {"difference": ["u", "g"]}}
    how = HatsRows(Schema.from_dict({**NAMES, "features": made}, "mine"))
    wanted = how.columns(rows)
    assert {"u", "g", "u_err_lo", "u_err_hi", "g_err_lo", "g_err_hi"} < {*wanted}
    np.testing.assert_allclose(how.catalog(rows[wanted])[0].measurements.X_err, np.sqrt(0.02))


def test_a_cut_knows_the_sentinels_of_a_feature_that_is_not_used(survey):
    """The error of `mag_u` is found by the name of a column that the features do not need."""
    rows = survey[2][:3].assign(mag_u=1.0, magErr_u=[0.1, 0.9, -99.0])
    made = {**FEATURES, "U": {"column": "mag_u", "sentinels": [-99]}}
    how = HatsRows(Schema.from_dict({**NAMES, "features": made}, "mine"), ("f0",), "magErr_u < 0.5")
    for columns in (list(rows.columns), how.columns(rows)):
        assert how.catalog(rows[columns])[1].tolist() == [True, False, False]


def test_every_probability_of_a_source_that_was_learned_from_is_replaced(tmp_path):
    """FITS has names and words that are not ASCII in escapes."""
    classes = ["δ scuti", "rr lyrae", "a\\b"]
    own = astropy.table.Table({"name": ["a", "β"], "label": [classes[0], ""]})
    own["prediction"], own["out_of_fold"] = [classes[1], "MIXED"], [True, False]
    for k, name in enumerate(classes):
        own[f"p_{name}"], own[f"p_{name}_std"] = [0.1 * k, 0.5], [0.01, 0.02]
    write_fits(own, tmp_path / "p.fits")
    assert read_probabilities(tmp_path / "p.fits").colnames == own.colnames
    known = _learned_from(str(tmp_path / "p.fits"), sha256(tmp_path / "p.fits"))
    new = own.to_pandas().drop(columns=["label", "out_of_fold"])
    new.iloc[:, 2:] = 0.99
    found = _with_known(new, known, classes)
    for k, name in enumerate(classes):
        assert found[f"p_{name}"].tolist() == [0.1 * k, 0.99]
    assert found["out_of_fold"].tolist() == [True, False]
    with pytest.raises(InputError, match="no column 'p_δ scuti'"):
        _with_known(new, known.drop(columns="p_δ scuti"), classes)


def test_another_runs_model_in_the_folder_is_not_taken_for_this_ones(tmp_path):
    """As that of `classify` of a file, which leaves the mark."""
    for name in ("model.npz", "probabilities.fits"):
        (tmp_path / name).write_text("first")
    job = {"classifier": "C()"}
    (tmp_path / MARK).write_text(to_json(job | {"made": _made(tmp_path)}))
    assert _is_learned(tmp_path, job)
    (tmp_path / "model.npz").write_text("second")
    assert not _is_learned(tmp_path, job)
    (tmp_path / "probabilities").mkdir()
    with pytest.raises(InputError, match="holds results of another survey"):
        _is_learned(tmp_path, job)


def test_an_undecided_class_that_a_group_names_is_learned_from(survey, tmp_path):
    """As `bcu` is of a file, with --class agn=bll+fsrq+bcu."""
    rules = {**NAMES, "features": FEATURES, "classes": {"candidates": ["quasar"]}}
    rows = HatsRows(Schema.from_dict(rules, "mine"))
    stars = int((survey[2]["class"] == "star").sum())
    assert len(labelled_sources(survey[0], rows)) == stars
    assert labels_named(["point=star+Quasar,other"]) == {"star", "Quasar", "other"}
    known = labelled_sources(survey[0], rows, named={"star", "Quasar"})
    assert len(known) == KNOWN and {*known.with_classes(["star", "quasar"]).y} == {"star", "quasar"}
    rules["classes"] |= {"groups": {"point": ["star", "quasar"]}, "default": ["point"]}
    grouped = labelled_sources(survey[0], HatsRows(Schema.from_dict(rules, "mine")))
    assert grouped.y.tolist() == ["point"] * KNOWN


def test_fractions_of_other_classes_are_refused_before_anything_is_learned(survey, tmp_path):
    rows = HatsRows(Schema.from_dict({**NAMES, "features": FEATURES}, "mine"))
    known = labelled_sources(survey[0], rows).with_classes(["star", "quasar"])
    with pytest.raises(InputError, match="fraction of 0 or more for each of star, quasar"):
        classify_hats(known, survey[0], tmp_path / "out", rows, prior={"star": 0.5, "agn": 0.5})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_classify_learns_from_known_sources_and_goes_on_where_it_was(survey, schema, tmp_path):
    """Killed while it predicts; workers of Dask do the rest."""
    source, _, rows = survey
    out = tmp_path / "out"
    command = [sys.executable, "-m", "gpal", "classify", source, "--schema", schema, "--out", out]
    command += ["--folds", "2", "--jobs", "1", "--input-noise", "first_order"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = out / "probabilities" / "probabilities" / "done"
    wait_for(process, lambda: done.is_dir() and len(list(done.iterdir())) >= 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    learned = (out / "model.npz").stat().st_mtime_ns
    again = subprocess.run([*command, "--engine", "dask"], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert f"{KNOWN} labelled sources" in again.stdout and f"{len(rows)} sources" in again.stdout
    assert "it/s" not in again.stderr  # no bar in a pipe
    assert (out / "model.npz").stat().st_mtime_ns == learned

    catalog = lsdb.open_catalog(out / "probabilities")
    found = catalog.compute(progress_bar=False).set_index("name").loc[rows["name"]]
    by_model = predict(out / "model.npz", rows[KNOWN:].drop(columns="class")).to_pandas()
    unseen = read_probabilities(out / "probabilities.fits").to_pandas().set_index("name")
    assert found["out_of_fold"].sum() == KNOWN
    for column in ("p_star", "p_star_std", "entropy"):
        new = found[column][KNOWN:].to_numpy(float)
        np.testing.assert_allclose(new, by_model[column], rtol=0, atol=1e-10)
        old = found[column][:KNOWN].to_numpy(float)
        np.testing.assert_array_equal(old, unseen.loc[rows["name"][:KNOWN], column])
    assert found["label"].tolist() == rows["class"].tolist()
    other = CliRunner().invoke(app, [*map(str, command[3:]), "--seed", "1"])
    assert "results of another survey, schema, model or settings" in other.output
    with pytest.raises(InputError, match="are in HATS layout"):  # no list of none
        candidates(out, "star")


def test_another_model_at_the_same_place_is_another_model(survey, tmp_path):
    """In one process, which keeps what it has read; so it is for what was known of the sources."""
    source, first, rows = survey
    model, known = tmp_path / "model.npz", tmp_path / "known.csv"
    model.write_bytes(first.read_bytes())
    table = pd.DataFrame({"name": rows["name"][:2], "p_quasar": 0.1, "p_star": 0.9})
    table.assign(label="star", prediction="star", out_of_fold=True).to_csv(known, index=False)
    predict_hats(model, source, tmp_path / "first", known=known)
    other = GPClassifier.load(first)
    other.model_ = replace(other.model_, temperature=1e9)  # which knows nothing
    other.save(model)
    table = table.assign(p_quasar=0.8, p_star=0.2)
    table.assign(label="star", prediction="star", out_of_fold=True).to_csv(known, index=False)
    predict_hats(model, source, tmp_path / "second", known=known)
    one, two = (
        lsdb.open_catalog(tmp_path / name).compute(progress_bar=False).set_index("name")
        for name in ("first", "second")
    )
    of_model, of_known = rows["name"][2:], rows["name"][:2]
    np.testing.assert_allclose(two.loc[of_model, "p_star"], 0.5, atol=1e-3)
    assert np.abs(one.loc[of_model, "p_star"] - 0.5).max() > 0.1
    assert two.loc[of_known, "p_star"].tolist() == [0.2, 0.2]


def test_a_survey_that_was_written_again_is_another_one(survey, tmp_path):
    source, model, _ = survey
    copied, out = tmp_path / "survey", tmp_path / "out"
    shutil.copytree(source, copied)
    predict_hats(model, copied, out)
    said = json.loads((out / MARK).read_text())
    assert said["catalog"]["sha256"] == said_of_survey(source, None)["sha256"]  # wherever it lies
    for partition in copied.rglob("Npix=*.parquet"):
        table = pyarrow.parquet.read_table(partition)
        more = pa.compute.add(table["f0"], 3.0)
        table = table.set_column(table.column_names.index("f0"), "f0", more)
        pyarrow.parquet.write_table(table, partition)
    with pytest.raises(InputError, match="results of another model, table or settings"):
        predict_hats(model, copied, out)
    assert said_of_survey(copied, None)["sha256"] != said["catalog"]["sha256"]


def test_what_cannot_be_is_one_line(survey, tmp_path):
    source, model, _ = survey
    for arguments, said in {
        (str(source.parent / "known.csv"), "--engine", "dask"): "no catalog in HATS layout",
        (str(source), "--scheduler", "tcp://localhost:1"): "--scheduler is for --engine dask",
        (str(source.parent / "known.csv"), "--scheduler", "tcp://a:1"): "no catalog in HATS layout",
    }.items():
        out = str(tmp_path / "p")
        done = CliRunner().invoke(app, ["predict", str(model), *arguments, "--out", out])
        assert isinstance(done.exception, InputError) or done.exit_code == 2
        assert said in f"{done.exception} {done.output}"
    done = CliRunner().invoke(app, ["classify", str(source), "--schema", "4fgl", "--faint"])
    assert done.exit_code == 2 and "--faint is not for a catalog in HATS layout" in done.stderr


def test_a_name_that_two_sources_have_is_refused(survey):
    """The second would have the label and the probabilities of the first."""
    new = pd.DataFrame({"name": ["A", "B"], "ra": [1.0, 2.0], "dec": 0.0, "p_a": 0.5, "p_b": 0.5})
    known = new[:1].assign(label="a", out_of_fold=True, p_a=0.9, p_b=0.1).set_index("name")
    assert _with_known(new.copy(), known, ["a", "b"])["p_a"].tolist() == [0.9, 0.5]
    with pytest.raises(InputError, match="two sources of the survey are called 'A'"):
        _with_known(new.assign(ra=200.0), known, ["a", "b"])


def test_a_cut_that_no_source_of_the_first_partition_passes(survey, tmp_path):
    source, model, rows = survey
    passed = rows["DEC"] < -40
    rules = Schema.from_dict({**NAMES, "features": FEATURES}, "mine")
    how = HatsRows(rules, cuts="DEC < -40")
    first = open_hats(source, HatsRows(rules))[1]
    assert not (first["DEC"] < -40).any()
    counts = predict_hats(model, source, tmp_path / "out", rows=how)
    assert sum(counts.values()) == passed.sum()
    assert json.loads((tmp_path / "out" / MARK).read_text())["catalog"]["cuts"] == ["DEC < -40"]
    with pytest.raises(InputError, match="no source of the survey passes the cuts DEC < -95"):
        predict_hats(model, source, tmp_path / "none", rows=HatsRows(rules, cuts="DEC < -95"))
    assert not (tmp_path / "none").exists()


def test_the_result_is_a_folder_apart_from_the_survey(survey, tmp_path):
    source, model, _ = survey
    with pytest.raises(InputError, match=r"'predictions.fits' the name of a file"):
        predict_hats(model, source, "predictions.fits")
    rows = HatsRows(Schema.from_dict({**NAMES, "features": FEATURES}, "mine"))
    known = labelled_sources(source, rows).with_classes(["star", "quasar"])
    for job in (
        lambda: predict_hats(model, source, source / "out"),
        lambda: classify_hats(known, source, source / "out", rows),
    ):
        with pytest.raises(InputError, match=r"is in the survey's own folder"):
            job()
    assert not (source / "out").exists()
