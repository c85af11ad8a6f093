"""Lists of probabilities beside one another: identities, numbers by hand, what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpal
from gpal.catalog import load_catalog
from gpal.cli import app
from gpal.cli.probability_lists import parse_list
from gpal.errors import InputError
from gpal.evaluation import (
    ProbabilityList,
    compare_lists,
    logistic_regression,
    prospective_split,
    prospective_validation,
)
from gpal.files.csv import read_csv

CLASSES = ("bll", "psr")


@pytest.fixture(scope="module")
def split(two_releases):
    return prospective_split(*two_releases)


@pytest.fixture(scope="module")
def validation(split):
    models = {
        "one": (logistic_regression(), ["index", "beta", "flux"]),
        "other": (logistic_regression(), ["index"]),
    }
    return prospective_validation(split, models, n_seeds=1)


def as_list(validation, model, rows=slice(None), digits=None):
    P = validation.probabilities[model][0][rows]
    names = validation.split.targets.names[rows]
    return ProbabilityList(names, CLASSES, P if digits is None else P.round(digits))


def test_a_list_of_gpals_has_the_scores_of_its_validation(two_releases, validation):
    lists = {model: as_list(validation, model) for model in validation.models}
    result = gpal.compare(*two_releases, lists)
    for model in validation.models:
        expected = validation.scores(model)
        scores = dict(result.metrics["scores"][model])
        assert scores.pop("per_class") == expected["per_class"]
        for metric, value in scores.items():
            for key in ("mean", "se", "lower", "upper"):
                assert value[key] == pytest.approx(expected[metric][key], rel=1e-9), metric
    found = result.metrics["differences"]["one - other"]
    expected = validation.scores("one", minus=("other", "train"))
    for metric in ("nll", "error", "brier"):
        assert found[metric] == pytest.approx(expected[metric], rel=1e-6, abs=1e-12)
    assert result.metrics["n_compared"] == validation.split.examined.sum()
    assert result.metrics["settings"]["floor"] == np.finfo(float).tiny
    of_origin = result.metrics["by_origin"]
    total = sum(part["n"] * part["scores"]["one"]["nll"]["mean"] for part in of_origin.values())
    nll = result.metrics["scores"]["one"]["nll"]["mean"]
    assert total / result.metrics["n_compared"] == pytest.approx(nll)


def test_a_list_beside_itself_differs_by_nothing(two_releases, validation):
    lists = {name: as_list(validation, "one", digits=2) for name in ("a", "b")}
    metrics = gpal.compare(*two_releases, lists).metrics
    differences = metrics["differences"]["a - b"]
    areas = [of["auc"] for of in differences.pop("per_class").values()]
    for value in [*differences.values(), *areas]:
        assert set(value.values()) == {0.0}
    assert metrics["scores"]["a"] == metrics["scores"]["b"]


def test_numbers_by_hand(two_releases, split):
    """Four sources: right, wrong, a zero at the truth, a tie."""
    rows = np.flatnonzero(split.examined)
    bll = [k for k in rows if split.truth[k] == "bll"][:2]
    psr = [k for k in rows if split.truth[k] == "psr"][:2]
    names = split.targets.names[[*bll, *psr]]
    P = [[0.9, 0.1], [0.2, 0.8], [1.0, 0.0], [0.5, 0.5]]
    sure = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    lists = {
        "hand": ProbabilityList(names, CLASSES, P),
        "sure": ProbabilityList(names[::-1], CLASSES, sure[::-1]),
    }
    metrics = gpal.compare(*two_releases, lists).metrics
    scores = dict(metrics["scores"]["hand"])
    assert scores.pop("per_class")["psr"]["auc"]["mean"] == 0.25  # of four pairs one is in order
    found = {name: value["mean"] for name, value in scores.items()}
    assert found["macro_auc"] == 0.25
    assert metrics["settings"]["floor"] == 0.005  # two digits
    assert found["nll"] == pytest.approx(-np.log([0.9, 0.2, 0.005, 0.5]).mean())
    assert found["error"] == 0.75  # the tie goes to bll
    assert found["brier"] == pytest.approx((0.02 + 1.28 + 2 + 0.5) / 4)
    assert found["ece"] == pytest.approx((0.1 + 0.8 + 1 + 0.5) / 4)
    assert metrics["confusion"]["hand"] == [[1, 1], [2, 0]]
    assert metrics["scores"]["sure"]["nll"]["mean"] == 0
    difference = metrics["differences"]["hand - sure"]["error"]
    assert difference["mean"] == 0.75 and difference["lower"] < 0.75 < difference["upper"]
    facts = metrics["lists"]["hand"]
    assert (facts["n_below_floor"], facts["n_tied"], facts["decimals"]) == (1, 1, 2)
    assert metrics["lists"]["sure"]["n_below_floor"] == 0
    given = gpal.compare(*two_releases, lists, floor=0.3).metrics
    assert given["lists"]["hand"]["n_below_floor"] == 2
    nll = given["scores"]["hand"]["nll"]["mean"]
    assert nll == pytest.approx(-np.log([0.9, 0.3, 0.3, 0.5]).mean())


def test_only_what_all_lists_hold_is_compared(two_releases, validation):
    n = len(validation.split.targets)
    lists = {
        "early": as_list(validation, "one", slice(0, 80)),
        "late": as_list(validation, "other", slice(40, n)),
    }
    result = gpal.compare(*two_releases, lists)
    expected = validation.split.targets.names[40:80][validation.split.examined[40:80]]
    assert result.table["name"].tolist() == expected.tolist()
    counts = {title: of["n_targets"] for title, of in result.metrics["lists"].items()}
    assert counts == {"early": 80, "late": n - 40}
    examined = {title: of["n_examined"] for title, of in result.metrics["lists"].items()}
    assert examined["early"] == validation.split.examined[:80].sum()
    P = validation.probabilities["one"][0][40:80][validation.split.examined[40:80]]
    np.testing.assert_allclose(result.table["early:p_psr"], P[:, 1])


def test_names_are_matched_but_for_white_space(two_releases, validation, split):
    one = as_list(validation, "one")
    spaced = replace(one, names=[f"  {name}\t" for name in one.names])
    strange = ["X 1", "X 2", "X 3", "X 4"]
    more = ProbabilityList(
        [*one.names, *strange], CLASSES, np.vstack([one.probabilities, [[0.5, 0.5]] * 4])
    )
    with pytest.warns(
        UserWarning, match=r"list 'more': 4 of its 124 .*'X 1', 'X 2', 'X 3', \.\.\."
    ):
        metrics = gpal.compare(*two_releases, {"spaced": spaced, "more": more}).metrics
    assert metrics["n_compared"] == split.examined.sum()
    assert metrics["scores"]["spaced"] == metrics["scores"]["more"]
    facts = metrics["lists"]["more"]
    assert facts["n_not_in_old"] == 4 and facts["not_in_old"] == strange[:3]
    known = ProbabilityList(two_releases[0].names, CLASSES, [[0.5, 0.5]] * 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # labelled sources of the release are no strangers
        metrics = gpal.compare(*two_releases, {"all": known}).metrics
    assert metrics["n_compared"] == split.examined.sum()


def test_rows_without_probabilities_are_not_held(two_releases, validation):
    one = as_list(validation, "one", digits=3)
    P = one.probabilities.copy()
    P[:10] = np.nan
    metrics = gpal.compare(*two_releases, {"part": replace(one, probabilities=P)}).metrics
    assert metrics["lists"]["part"]["n_without_probabilities"] == 10
    assert metrics["lists"]["part"]["n_targets"] == len(P) - 10
    assert metrics["n_compared"] == validation.split.examined[10:].sum()


def test_what_cannot_be_compared(two_releases, validation):
    old, new = two_releases
    one = as_list(validation, "one")
    strangers = replace(one, names=[f"J{name}" for name in one.names])
    with (
        pytest.warns(UserWarning, match="120 of its 120"),
        pytest.raises(InputError, match=r"hold 'far' 0, .*begins with 'JS\d+', the old .* 'S000'"),
    ):
        compare_lists(old, new, {"far": strangers})
    for lists, words in (
        ({}, "no list of probabilities"),
        ({"a:b": one}, "no colon"),
        ({"a": one, "A": one}, "the same but for capitals"),
        (
            {"a": one, "b - c": one, "a - b": one, "c": one},
            "two differences of lists would be called 'a - b - c'",
        ),
        ({"x": ProbabilityList(["S240"], ["agn", "psr"], [[0.5, 0.5]])}, "list 'x', .*'agn'"),
    ):
        with pytest.raises(InputError, match=words):
            compare_lists(old, new, lists)
    for floor in (0.0, -1.0, 0.5, np.nan):
        with pytest.raises(InputError, match="floor"):
            compare_lists(old, new, {"a": one}, floor=floor)
    nameless = replace(old, schema=replace(old.schema, id=""))
    with pytest.raises(InputError, match="no names"):
        compare_lists(nameless, new, {"a": one})
    ids = old.measurements.ids.astype(object)
    ids[:2] = "S 1", "S  1"
    twins = replace(old, measurements=replace(old.measurements, ids=ids.astype(str)))
    with pytest.raises(InputError, match="two sources called 'S 1'"):
        compare_lists(twins, new, {"a": one})
    with pytest.raises(InputError, match="newer release"):
        compare_lists(old, old, {"a": one})


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def published(small_releases, tmp_path_factory):
    """Two lists for the sources of old.csv, as files with columns of their own and as of gpal."""
    schema = small_releases / "schema.toml"
    old, new = (load_catalog(small_releases / f"{n}.csv", schema=schema) for n in ("old", "new"))
    split = prospective_split(old, new)
    validation = prospective_validation(
        split, {"logistic": (logistic_regression(), ["index", "beta"])}, n_seeds=1
    )
    P = validation.probabilities["logistic"][0]
    folder = tmp_path_factory.mktemp("published")
    names = split.targets.names
    rounded = P.round(2)
    pd.DataFrame({"Source Name": names, "Pb": rounded[:, 0], "Pp": rounded[:, 1]}).to_csv(
        folder / "smith.csv", index=False
    )
    (folder / "smith.toml").write_text(
        'file = "smith.csv"\nname = "Source Name"\n[probabilities]\nbll = "Pb"\npsr = "Pp"\n'
    )
    results = folder / "results"
    results.mkdir()
    pd.DataFrame({"name": names, "p_bll": P[:, 0], "p_psr": P[:, 1]}).to_csv(
        results / "probabilities.csv", index=False
    )
    provenance = {"catalog": old.provenance}
    (results / "metrics.json").write_text(json.dumps({"provenance": provenance}, default=str))
    return folder, validation


@pytest.fixture(scope="module")
def releases(small_releases):
    schema = small_releases / "schema.toml"
    paths = small_releases / "old.csv", small_releases / "new.csv"
    return (*paths, "--old-schema", schema, "--new-schema", schema)


def test_command_line(published, releases, tmp_path):
    folder, validation = published
    out = tmp_path / "out"
    code, stdout, stderr = run(
        *("compare", *releases, "--out", out, "--list", folder / "results"),
        *("--list", f"Smith 2025={folder / 'smith.csv'},name=Source Name,bll=Pb,psr=Pp"),
    )
    assert (code, stderr) == (0, "")
    assert "results - Smith 2025" in stdout and "95 % intervals" in stdout
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("comparison.csv", "metrics.json"),
        *("scores.png", "reliability.png", "confusion_matrix.png"),
    }
    metrics = json.loads((out / "metrics.json").read_text())
    floored = replace(validation, floor=0.005)
    nll = metrics["scores"]["results"]["nll"]["mean"]
    assert nll == pytest.approx(floored.scores("logistic")["nll"]["mean"])
    origin = metrics["provenance"]
    assert origin["catalog"]["file"] == "old.csv" and origin["new_catalog"]["file"] == "new.csv"
    smith = origin["lists"]["Smith 2025"]
    assert smith["file"] == "smith.csv" and len(smith["sha256"]) == 64
    assert smith["columns"] == {"name": "Source Name", "bll": "Pb", "psr": "Pp"}
    columns = read_csv(
        out / "comparison.csv",
        {"name": str, "new_class": str, "Smith 2025:p_psr": float, "results:p_psr": float},
    )
    split = validation.split
    assert columns["name"].tolist() == split.targets.names[split.examined].tolist()
    assert columns["new_class"].tolist() == split.truth[split.examined].tolist()
    np.testing.assert_allclose(columns["Smith 2025:p_psr"], columns["results:p_psr"], atol=0.0051)
    code, again, _ = run("compare", *releases, "-l", folder / "smith.toml")
    assert code == 0 and f"{metrics['scores']['Smith 2025']['nll']['mean']:.3f}" in again


def test_titles_are_drawn_as_text(two_releases, validation, tmp_path):
    one = as_list(validation, "one")
    result = gpal.compare(*two_releases, {"$x_$": one, "_y^z": one}, tmp_path / "out")
    assert result.folder == tmp_path / "out" and len(list(result.folder.glob("*.png"))) == 3
    assert "$x_$ - _y^z" in repr(result) and "$x_$ - _y^z" in result._repr_html_()
    assert result.summary().rows[1][0] == "_y^z"


def test_conditional_probabilities_and_a_floor(published, releases, tmp_path):
    """A list that also knows remnants, which took a fifth of every source's probability."""
    _, validation = published
    split, P = validation.split, validation.probabilities["logistic"][0]
    frame = pd.DataFrame({"name": split.targets.names, "B": 0.8 * P[:, 0], "P": 0.8 * P[:, 1]})
    frame.assign(R=0.2).to_csv(tmp_path / "more.csv", index=False)
    for named, words in (
        ("bll=B,psr=P,snr=R", "'snr' is in none of bll, psr"),
        ("bll=B,psr=P", "sum to 0.8, not to one"),
    ):
        code, _, stderr = run("compare", *releases, "-l", f"{tmp_path / 'more.csv'},{named}")
        assert code == 2 and words in stderr and "--conditional" in stderr
    for named in ("bll=B,psr=P", "bll=B,psr=P,snr=R"):
        given = f"{tmp_path / 'more.csv'},{named}"
        options = ("--conditional", "--floor", 0.25, "--out", tmp_path / "out")
        code, _, stderr = run("compare", *releases, "-l", given, *options)
        assert (code, stderr) == (0, "")
        metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
        expected = replace(validation, floor=0.25).scores("logistic")
        for metric in ("nll", "error", "brier", "ece"):
            found = metrics["scores"]["more"][metric]["mean"]
            assert found == pytest.approx(expected[metric]["mean"])
        of_truth = P[split.examined][np.arange(len(split.y)), split.y]
        assert metrics["lists"]["more"]["n_below_floor"] == (of_truth < 0.25).sum()
        assert metrics["lists"]["more"]["n_renormalised"] == 40
        assert metrics["settings"]["conditional"] is True


def test_a_list_made_from_the_newer_release_is_warned_of(published, releases, tmp_path):
    folder, _ = published
    results = tmp_path / "later"
    results.mkdir()
    (results / "probabilities.csv").write_bytes(
        (folder / "results" / "probabilities.csv").read_bytes()
    )
    newer = load_catalog(releases[1], schema=releases[3])
    content = {"provenance": {"catalog": newer.provenance}}
    (results / "metrics.json").write_text(json.dumps(content, default=str))
    with pytest.warns(UserWarning, match="'later' was made from .*learned from the answers"):
        code, _, _ = run("compare", *releases, "--list", results)
    assert code == 0


@pytest.mark.parametrize(
    "lists, words",
    [
        ([], ["no list"]),
        (["{}/missing.csv"], ["missing.csv", "no such file"]),
        (["{}/smith.csv"], ["no column 'name'", "Source Name, Pb, Pp"]),
        (["{}/smith.csv,name=Source Name,bll=Pb"], ["nothing of 'psr'"]),
        (["{}/smith.csv,name"], ["CLASS=COLUMN"]),
        (["{}/smith.csv,bll=Pb,bll=Pp"], ["'bll' is there twice"]),
        (["smith="], ["no file"]),
        (["{}/smith.toml", "{}/smith.csv,bll=Pb"], ["smith"]),
        (["{0}/smith.toml", "{0}/smith.toml"], ["two lists are called 'smith'"]),
        (["{}/smith.toml,bll=Pb"], ["names the columns itself"]),
    ],
)
def test_bad_lists_are_one_line_and_exit_code_2(lists, words, published, releases, tmp_path):
    folder, _ = published
    given = [argument for text in lists for argument in ("--list", text.format(folder))]
    code, _, stderr = run("compare", *releases, *given, "--out", tmp_path / "out")
    assert code == 2
    assert stderr.startswith("gpal: ") and stderr.count("\n") == 1
    assert all(word in stderr for word in words)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_read_is_not_written(published, releases):
    folder, _ = published
    path = folder / "results" / "comparison.csv"
    path.write_bytes((folder / "results" / "probabilities.csv").read_bytes())
    code, _, stderr = run("compare", *releases, "-l", path, "--out", folder / "results")
    path.unlink()
    assert code == 2 and "would be overwritten" in stderr


def test_the_table_that_a_toml_file_names_is_not_written(published, releases):
    folder, _ = published
    path = folder / "results" / "comparison.csv"
    path.write_bytes((folder / "results" / "probabilities.csv").read_bytes())
    named = folder / "named.toml"
    named.write_text('file = "results/comparison.csv"\n')
    code, _, stderr = run("compare", *releases, "-l", named, "--out", folder / "results")
    path.unlink()
    assert code == 2 and "would be overwritten" in stderr
    code, _, stderr = run("compare", *releases, "-l", "~no-such-user/x.csv", "--out", folder / "o")
    assert code == 2 and "no file '~no-such-user/x.csv'; check the path" in stderr


def test_lists_as_they_are_typed(tmp_path):
    odd = tmp_path / "a=b,c.csv"
    odd.touch()
    assert parse_list(str(odd)) == ("a=b,c", odd, None, None)
    title, path, name, columns = parse_list("Smith 2025=p.csv, name=Source_Name,bll = P_BLL")
    assert (title, path.name, name, columns) == (
        *("Smith 2025", "p.csv", "Source_Name"),
        {"bll": "P_BLL"},
    )
    assert parse_list("results/dr4/")[0] == "dr4"


def test_a_comparison_does_not_take_the_place_of_a_list(two_releases, validation, tmp_path):
    one = as_list(validation, "one")
    columns = {f"p_{name}": one.probabilities[:, c] for c, name in enumerate(CLASSES)}
    pd.DataFrame({"name": one.names, **columns}).to_csv(tmp_path / "probabilities.csv", index=False)
    (tmp_path / "metrics.json").write_text('{"kind": "classification"}')
    with pytest.raises(InputError, match="read by this command and would be overwritten"):
        gpal.compare(*two_releases, {"one": tmp_path}, tmp_path)
    out = tmp_path / "compared"
    gpal.compare(*two_releases, {"one": tmp_path}, out)
    with pytest.raises(InputError, match="holds a comparison of lists"):
        gpal.compare(*two_releases, {"one": out})


def test_one_examined_source_has_no_error(two_releases, validation, split):
    """Nor an interval, as where the one is chosen of several."""
    names = split.targets.names[split.examined]
    examined = np.flatnonzero(np.isin(split.targets.names, names[:1]))
    result = gpal.compare(*two_releases, {"one": as_list(validation, "one", examined)})
    found = result.metrics["scores"]["one"]["nll"]
    assert np.isfinite(found["mean"])
    assert all(np.isnan(found[key]) for key in ("se", "lower", "upper"))
