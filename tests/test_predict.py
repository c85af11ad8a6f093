"""A table by a model of before: the same numbers, features by name, nothing dropped in silence."""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from astropy import units
from astropy.table import QTable, Table
from sklearn.base import clone
from typer.testing import CliRunner

from gpal import GPClassifier
from gpal.catalog import load_catalog
from gpal.catalog.release_files import sha256
from gpal.cli import app
from gpal.errors import InputError
from gpal.files.csv import read_csv
from gpal.jobs.classification import classify
from gpal.jobs.prediction import predict, predict_file
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.provenance import provenance


@pytest.fixture(scope="module")
def result(small_catalog, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "results"
    small = GPClassifier(n_inducing=5, max_rounds=1)
    return classify(small_catalog, out, classifier=small, n_splits=2)


@pytest.fixture
def model(result):
    return GPClassifier.load(result.folder / "model.npz")


@pytest.fixture
def table(small_catalog):
    return small_catalog.table.copy()


def written(table: Table, path):
    table.write(path, overwrite=True)
    return path


def test_the_same_numbers_as_in_the_catalogue_of_the_model(result, model, table, tmp_path):
    del table["Type"]
    shuffled = table[table.colnames[::-1]]  # features are found by name
    source = written(shuffled, tmp_path / "tonight.ecsv")
    made = predict(model, source)
    unlabelled = np.asarray(result.table["label"]) == ""
    for name in ("p_bll", "p_psr", "p_bll_std", "p_psr_std", "entropy"):
        expected = np.asarray(result.table[name])[unlabelled]
        np.testing.assert_allclose(np.asarray(made[name])[unlabelled], expected, rtol=1e-12)
    outside = np.asarray(result.table["outside_support"])
    assert made["outside_support"][unlabelled].tolist() == outside[unlabelled].tolist()
    counts = predict_file(model, source, tmp_path / "tonight.fits")
    stored = read_probabilities(tmp_path / "tonight.fits")
    assert counts == dict(zip(*np.unique(stored["prediction"], return_counts=True), strict=True))
    assert stored.colnames == made.colnames
    for name in made.colnames:
        np.testing.assert_array_equal(stored[name], made[name])
    assert stored["name"].tolist() == table["Name"].tolist()
    assert model.provenance_["model_sha256"] in stored.meta["PROVENAN"]
    for written_or_not in (stored, made):
        assert sha256(source) in written_or_not.meta["PROVENAN"]


def test_the_classifier_of_a_result_is_that_of_its_file(result, model, table, small_catalog):
    assert result.classifier.provenance_ == model.provenance_
    ours, theirs = (predict(fitted, table.to_pandas()) for fitted in (result.classifier, model))
    np.testing.assert_array_equal(ours["p_psr"], theirs["p_psr"])
    known = small_catalog.labelled(["bll", "psr"])
    refitted = model.refit(known.measurements, known.y)  # no longer that of the file
    assert refitted.provenance_ == {
        key: value for key, value in model.provenance_.items() if key != "model_sha256"
    }
    assert not clone(model).fit(known.measurements, known.y).provenance_


def test_csv_and_other_fractions(model, small_catalog, tmp_path):
    catalog = small_catalog
    prior = {"bll": 0.2, "psr": 0.8}
    made = predict(model, catalog, prior=prior, confidence=0.9)
    predict_file(model, catalog, tmp_path / "tonight.csv", prior=prior, confidence=0.9)
    expected = model.predict_proba(catalog.measurements, prior=prior)
    np.testing.assert_allclose(made["p_psr"], expected[:, 1], rtol=1e-12)
    columns = read_csv(tmp_path / "tonight.csv", {"name": str, "prediction": str, "p_psr": float})
    np.testing.assert_array_equal(columns["p_psr"], made["p_psr"])
    called = np.where(
        expected.max(axis=1) < 0.9, "MIXED", np.array(["bll", "psr"])[expected.argmax(axis=1)]
    )
    assert columns["prediction"].tolist() == called.tolist()


def test_a_feature_that_is_not_there(model, table, tmp_path):
    del table["Beta"]
    with pytest.raises(InputError, match="no column 'Beta'"):
        predict(model, written(table, tmp_path / "tonight.ecsv"))


def test_a_feature_that_is_made_otherwise(model, table, tmp_path):
    path, schema = written(table, tmp_path / "tonight.ecsv"), tmp_path / "other.toml"
    features = '[features]\nindex = "Index"\nbeta = "Beta"\n'
    features += 'flux = {column = "Flux", error = "none"}\n'
    schema.write_text(features)
    with pytest.raises(InputError, match=r"'flux' has the transform 'none' here and 'log10' in"):
        predict(model, path, schema=schema)
    schema.write_text(features.replace('"Flux",', '"Flux", transform = "log10",'))
    assert len(predict(model, path, schema=schema)) == 90


def test_an_error_column_of_another_name_is_a_sigma(tmp_path):
    """Not an inverse variance, as the model's was."""
    rng = np.random.default_rng(0)
    kind = np.resize(["a", "b"], 60)
    F, error = np.where(kind == "a", 10.0, 14.0) + rng.normal(size=60), rng.uniform(0.2, 2.0, 60)
    names = [f"s{i}" for i in range(60)]
    fitted_to = {"name": names, "kind": kind, "F": F, "F_ivar": error**-2}
    Table(fitted_to).write(tmp_path / "a.ecsv")
    of_f = {"column": "F", "error": "F_ivar", "error_kind": "inverse variance"}
    mapping = {"id": "name", "class": "kind", "features": {"f": of_f}}
    known = load_catalog(tmp_path / "a.ecsv", mapping=mapping)
    model = GPClassifier(max_rounds=0).fit(known.measurements, known.labels)
    model.provenance_ = {"catalog": known.provenance}
    expected = predict(model, Table({"name": names, "F": F, "F_ivar": error**-2}))["p_a"]
    with pytest.warns(UserWarning, match="lacks 'F_ivar'.*taken from 'F_err', as 1-sigma"):
        found = predict(model, Table({"name": names, "F": F, "F_err": error}))["p_a"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_feature_that_is_softened_otherwise(tmp_path):
    rng = np.random.default_rng(0)
    kind = np.resize(["a", "b"], 60)
    F = np.where(kind == "a", 1.0, 2.0) + rng.normal(0.0, 0.3, 60)
    Table({"name": np.arange(60), "kind": kind, "F": F, "e_F": np.full(60, 0.1)}).write(
        tmp_path / "a.ecsv"
    )
    softened = {"column": "F", "transform": "asinh", "softening": 0.8}
    mapping = {"id": "name", "class": "kind", "features": {"f": softened}}
    known = load_catalog(tmp_path / "a.ecsv", mapping=mapping)
    model = GPClassifier(max_rounds=0).fit(known.measurements, known.labels)
    model.provenance_ = {"catalog": known.provenance}
    schema = tmp_path / "mine.toml"
    for words, refused in (("", True), ("softening = 2.0", True), ("softening = 0.8", False)):
        schema.write_text(f'id = "name"\n[features.f]\ncolumn = "F"\ntransform = "asinh"\n{words}')
        if refused:
            with pytest.raises(InputError, match=r"softening .* here and 0.8 in the model"):
                predict(model, tmp_path / "a.ecsv", schema=schema)
        else:
            assert len(predict(model, tmp_path / "a.ecsv", schema=schema)) == 60


def test_an_error_bar_that_is_missing_is_told(model, table, tmp_path):
    del table["e_Index"]
    path, schema = written(table, tmp_path / "tonight.ecsv"), tmp_path / "mine.toml"
    schema.write_text(
        '[features]\nindex = {column = "Index", error = "none"}\nbeta = "Beta"\n'
        'flux = {column = "Flux", error = "none", transform = "log10"}\n'
    )
    with pytest.warns(UserWarning, match="'index' has no error bar here, and had one"):
        predict(model, path, schema=schema)


def test_a_model_that_knows_no_columns(small_catalog, table, tmp_path):
    path = tmp_path / "model.npz"
    sources = small_catalog.labelled()
    GPClassifier(n_inducing=5, max_rounds=0).fit(sources.measurements, sources.y).save(path)
    plain, source = GPClassifier.load(path), written(table, tmp_path / "tonight.ecsv")
    with pytest.raises(InputError, match="does not say of which columns"):
        predict(plain, source)
    X = sources.measurements.X[:, :1]
    nameless = GPClassifier(n_inducing=5, max_rounds=0).fit(X, sources.y)
    with pytest.raises(InputError, match="without names of features"):
        predict(nameless, source)


def test_errors_that_are_scaled_need_the_same(result, table, tmp_path):
    scaled = GPClassifier.load(result.folder / "model.npz")
    scaled.provenance_["catalog"]["error_scale"] = {"index": 1.2}
    with pytest.raises(InputError, match="give one: --error-scale"):
        predict(scaled, written(table, tmp_path / "tonight.ecsv"))


@pytest.mark.parametrize(
    ("out", "options", "said"),
    [
        ("tonight.txt", {}, "should end in .fits, .csv, .parquet, .vot"),
        ("tonight.fits", {"confidence": 2}, "confidence"),
        ("tonight.fits", {"prior": {"bll": 1.0}}, "prior"),
    ],
)
def test_what_is_refused_leaves_nothing(model, small_catalog, tmp_path, out, options, said):
    with pytest.raises(InputError, match=said):
        predict_file(model, small_catalog, tmp_path / out, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["~nobody-of-this-name/a.csv", "a" * 5000, "a\0.csv"])
def test_a_name_that_no_file_can_have(model, tmp_path, name):
    with pytest.raises(InputError, match=r"no file '|no catalog named '"):
        predict(model, name)


def test_what_is_for_files_is_not_ignored_for_tables(model, small_catalog, table):
    for source in (small_catalog, table, table.to_pandas()):
        with pytest.raises(InputError, match=f"cuts is for files, .* a {type(source).__name__}"):
            predict(model, source, cuts="index > 2")
    with pytest.raises(InputError, match="error_scale is for files"):
        predict(model, small_catalog, error_scale={"index": 1.2})


def test_a_source_whose_name_is_two_lines(model, small_catalog, tmp_path):
    names = small_catalog.names.astype(object)
    names[3] = "two\nlines"
    sources = replace(small_catalog.measurements, ids=names)
    with pytest.raises(InputError, match="source name"):
        predict_file(model, replace(small_catalog, measurements=sources), tmp_path / "p.csv")
    assert not list(tmp_path.iterdir())


def test_a_table_without_rows(model, small_catalog, table, tmp_path):
    for source in (small_catalog[[]], table[:0]):
        with pytest.raises(InputError, match="has no rows"):
            predict_file(model, source, tmp_path / "none.vot")


def test_on_the_command_line(result, table, tmp_path):
    source, out = written(table, tmp_path / "tonight.ecsv"), tmp_path / "tonight.csv"
    arguments = ["predict", str(result.folder / "model.npz"), str(source), "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "90 sources" in done.output and out.is_file()
    looked = done.output.splitlines()
    assert looked[0] == "tonight.ecsv: 90 sources"  # and then a line for each feature
    assert looked[1].startswith("  index: Index ± e_Index; 90 measured, ")
    done = CliRunner().invoke(app, [*arguments, "--prior", "estimated"])
    assert done.exit_code == 2 and "--prior is train, or fractions" in done.output
    done = CliRunner().invoke(app, [*arguments, "--prior", "BLL=0.3,Psr=0.7"])
    assert done.exit_code == 0, done.output
    made = predict(result.folder / "model.npz", source, prior={"bll": 0.3, "psr": 0.7})
    np.testing.assert_allclose(read_probabilities(out)["p_bll"], made["p_bll"], rtol=1e-6)
    missing = CliRunner().invoke(app, ["predict", str(tmp_path / "no.npz"), str(source)])
    assert missing.exit_code == 2 and "no model file" in missing.output


def test_a_known_release_is_read_by_its_own_schema(model):
    with pytest.raises(InputError, match="'flux' has the transform 'none' here"):
        predict(model, "4fgl-dr4")


def test_neither_the_model_nor_the_table_is_overwritten(result, table, tmp_path):
    source = written(table, tmp_path / "tonight.ecsv").rename(tmp_path / "tonight.csv")
    model = shutil.copy(result.folder / "model.npz", tmp_path / "model.fits")
    for out in (source, model):
        before = Path(out).read_bytes()
        done = CliRunner().invoke(app, ["predict", str(model), str(source), "--out", str(out)])
        assert done.exit_code == 2 and "would be overwritten" in done.output
        with pytest.raises(InputError, match="would be overwritten"):
            predict_file(model, source, out)
        assert Path(out).read_bytes() == before


def test_a_table_among_the_outputs_of_classify_is_not_overwritten(small_catalog, tmp_path):
    source = written(small_catalog.table.copy(), tmp_path / "probabilities.ecsv")
    source = source.rename(tmp_path / "probabilities.fits")
    small_catalog.table.write(source, overwrite=True)
    before = source.read_bytes()
    (tmp_path / "mine.toml").write_text(
        'id = "Name"\nclass = "Type"\n[features]\nindex = "Index"\n'
    )
    arguments = ["classify", str(source), "--schema", str(tmp_path / "mine.toml")]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert done.exit_code == 2 and "would be overwritten" in done.output
    assert source.read_bytes() == before


def test_rows_of_a_frame_keep_their_names(model, table):
    """They may be its index, and a table may have none at all."""
    frame = table.to_pandas()
    expected = predict(model, frame)
    for indexed in (frame.set_index("Name"), frame.set_index(["Name", "RA"])):
        found = predict(model, indexed)
        assert found["name"].tolist() == expected["name"].tolist() == table["Name"].tolist()
        np.testing.assert_array_equal(found["p_psr"], expected["p_psr"])
    assert predict(model, frame[30:])["name"].tolist() == table["Name"][30:].tolist()
    for slice_of, first in ((slice(30, None), "30"), (slice(1, None, 2), "1")):
        assert predict(model, frame.drop(columns="Name")[slice_of])["name"][0] == first
    for index in (pd.date_range("2026-01-01", periods=90), pd.Index([None, *map(str, range(89))])):
        with pytest.warns(UserWarning, match="no column 'Name' of names"):
            assert predict(model, frame.drop(columns="Name").set_index(index))["name"][1] == "1"
    numbered = frame.drop(columns="Name").assign(unused=1).rename(columns={"unused": 3})
    numbered.index = pd.Index([f"S{k}" for k in range(90)], name=5)
    assert predict(model, numbered)["name"][1] == "S1"
    anonymous = frame.drop(columns="Name").set_index(np.arange(90) + 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert predict(model, anonymous)["name"].tolist() == [str(k) for k in range(1000, 1090)]
    for nameless in (frame.drop(columns="Name"), frame.drop(columns="Name").set_index("Type")):
        with pytest.warns(UserWarning, match="no column 'Name' of names: sources are called by"):
            assert predict(model, nameless)["name"][:2].tolist() == ["0", "1"]


def test_a_file_without_names_is_said(model, table, tmp_path):
    del table["Name"]
    with pytest.warns(UserWarning, match="the table has no column 'Name' of names"):
        predict(model, written(table, tmp_path / "a.ecsv"))


def test_tables_of_quantities_and_columns_of_one_name(model, table):
    expected = predict(model, table)["p_psr"]
    quantities = QTable(table)
    quantities["Flux"] = quantities["Flux"].value * units.dimensionless_unscaled
    np.testing.assert_array_equal(predict(model, quantities)["p_psr"], expected)
    frame = table.to_pandas()
    double = frame[[*frame.columns, "Index"]]
    with pytest.raises(InputError, match="2 columns are called 'Index'"):
        predict(model, double)


@pytest.mark.parametrize("make", [lambda frame: frame.iloc[0], dict])
def test_a_row_of_a_frame_is_no_frame(result, table, make):
    model = GPClassifier.load(result.folder / "model.npz")
    with pytest.raises(InputError, match=r"a row make a frame: frame.iloc\[\[0\]\]"):
        predict(model, make(table.to_pandas()))


def test_train_is_train_also_of_a_model_made_with_other_fractions(result, table, tmp_path):
    """And the provenance says which were taken."""
    made = GPClassifier.load(result.folder / "model.npz")
    made.set_params(prior={"bll": 0.9, "psr": 0.1})
    made.save(tmp_path / "model.npz", made.provenance_)
    source, out = written(table, tmp_path / "tonight.ecsv"), tmp_path / "out.fits"
    plain = predict(result.folder / "model.npz", source)["p_bll"]
    for arguments, fractions in (([], {"bll": 0.9, "psr": 0.1}), (["--prior", "train"], "train")):
        command = ["predict", str(tmp_path / "model.npz"), str(source), "--out", str(out)]
        done = CliRunner().invoke(app, [*command, *arguments])
        assert done.exit_code == 0, done.output
        found = read_probabilities(out)
        assert np.allclose(found["p_bll"], plain) == (fractions == "train")
        assert json.loads(found.meta["PROVENAN"])["settings"]["prior"] == fractions


@pytest.mark.filterwarnings("ignore:no error column found")
@pytest.mark.parametrize("errors", [("F_err", "G_err"), ("F_err_lo", "F_err_hi", "G_err")])
def test_an_error_bar_of_a_difference_that_is_lost_is_said(errors, tmp_path):
    rng, n = np.random.default_rng(0), 40
    table = Table({"name": [f"s{i}" for i in range(n)], "kind": ["a", "b"] * (n // 2)})
    for column in ("F", "G", *errors):
        table[column] = rng.uniform(1, 2, n)
    mapping = {"id": "name", "class": "kind", "features": {"f": {"difference": ["F", "G"]}}}
    known = load_catalog(written(table, tmp_path / "known.ecsv"), mapping=mapping)
    model = GPClassifier(max_rounds=0, n_inducing=5, input_noise="first_order")
    model.fit(known.measurements, known.y)
    model.save(tmp_path / "model.npz", provenance(known.provenance))
    bare = written(table["name", "kind", "F", "G"], tmp_path / "bare.ecsv")
    new = load_catalog(bare, mapping=mapping)
    with pytest.warns(UserWarning, match="'f' has no error bar here, and had one when"):
        predict(tmp_path / "model.npz", new)
