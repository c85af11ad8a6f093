"""The validation of two releases end to end: folder, metrics, report, command line."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.table import Table
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from gpal import GPClassifier, plot
from gpal.catalog import load_catalog
from gpal.cli import app
from gpal.cli.catalogs import with_classes
from gpal.cli.class_fractions import of_classes, parse_prior
from gpal.cli.commands.validate import _summary
from gpal.errors import InputError
from gpal.evaluation import logistic_regression
from gpal.evaluation.prior_shift import reweight
from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.jobs import classify, validate
from gpal.jobs.class_counts import target_counts
from gpal.jobs.class_fractions import check_prior
from gpal.jobs.models import MODEL
from gpal.metrics import class_counts
from gpal.recommended import RECOMMENDED_MODEL
from gpal.report import render_report
from gpal.report.validation import FIGURES

RECOMMENDED = "by origin"

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FROZEN = Path(__file__).parents[1] / "workflows" / "validation" / "frozen.toml"


@pytest.fixture(scope="module")
def result(two_releases, noisy_logistic, tmp_path_factory):
    return validate(
        *two_releases,
        tmp_path_factory.mktemp("validation") / "out",
        classifier=noisy_logistic,
        without=["beta"],
        significance="Flux",
        n_seeds=2,
    )


def test_files(result):
    names = {path.name for path in result.folder.iterdir()}
    assert names == {
        *("report.html", "metrics.json", "probabilities.fits", "probabilities.csv"),
        *("scores.png", "reliability.png", "reliability_corrected.png", "calibration.png"),
        *("reliability_by_origin.png", "roc.png", "purity_completeness.png"),
    }


def test_metrics(result):
    metrics = json.loads((result.folder / "metrics.json").read_text())
    assert metrics["n_labelled"] == 160 and metrics["n_targets"] == 120
    assert metrics["n_examined"] == sum(metrics["n_examined_per_class"].values())
    assert list(metrics["variants"]) == ["all features", "without beta"]
    for groups in (metrics["settings"]["groups"], metrics["settings"]["new_groups"]):
        assert sorted(groups) == metrics["settings"]["classes"] and all(groups.values())
    for model in metrics["models"]:
        for metric in ("error", "nll", "brier", "ece"):
            assert {"mean", "se"} <= set(metrics[model][metric])
        assert metrics[model] == metrics["variants"]["all features"]["train"][model]
    origins = metrics["by_origin"]
    assert {name: part["n_targets"] for name, part in origins.items()} == {
        "bcu": 60,
        "unassociated": 60,
    }
    priors = metrics["priors"]["all features"]
    assert priors["labelled"]["psr"] == 0.25
    unassociated = priors["by origin"]["unassociated"]
    assert unassociated["fractions"]["psr"] > 0.4
    assert priors["by origin"]["bcu"]["fractions"]["psr"] < 0.2
    shift = metrics["covariate_shift"]
    assert set(shift["features"]) == {"index", "beta", "flux"}
    assert sum(d["n"] for d in shift["deciles"]) == 120
    assert sum(d["n_examined"] for d in shift["deciles"]) == metrics["n_examined"]
    assert metrics["provenance"]["new_catalog"]["file"] == "new.ecsv"


def test_reliability_of_every_origin(result):
    split = result.variants["all features"].split
    P = result.variants["all features"].corrected(MODEL, RECOMMENDED)[0][split.examined]
    origin = split.origin[split.examined]
    for name in ("bcu", "unassociated"):
        bins = result.metrics["by_origin"][name]["reliability"]["psr"]
        rows = origin == name
        assert sum(b["n"] for b in bins) == rows.sum() > 0
        members = sum(b["n"] * b["observed"] for b in bins)
        assert members == pytest.approx((split.truth[split.examined][rows] == "psr").sum())
        assert sum(b["n"] * b["predicted"] for b in bins) == pytest.approx(P[rows, 1].sum())
    grid = plot.reliability_by_origin(result.metrics["by_origin"], ["bll", "psr"])
    titles = [axes.get_title() for axes in grid.ravel()]
    assert titles == [f"{o}: {c}" for o in ("bcu", "unassociated") for c in ("bll", "psr")]
    assert "reliability_by_origin" in FIGURES


def test_table_and_surprises(result):
    table, written = result.table, Table.read(result.folder / "probabilities.fits")
    assert written.meta["TUCD1"] == "meta.id;meta.main"
    assert written.meta["TUCD2"] == "pos.eq.ra;meta.main"
    assert len(table) == len(written) == 120
    for suffix in ("", "_prior"):
        total = table[f"p_bll{suffix}"] + table[f"p_psr{suffix}"]
        np.testing.assert_allclose(total, 1)
        np.testing.assert_array_equal(table[f"p_psr{suffix}"], written[f"p_psr{suffix}"])
    asked = table[table["new_class"] != ""]
    of_truth = np.where(asked["new_class"] == "psr", asked["p_psr_prior"], asked["p_bll_prior"])
    surprises = result.metrics["surprises"]
    assert [s["p_truth"] for s in surprises] == pytest.approx(np.sort(of_truth)[: len(surprises)])
    worst = surprises[0]
    row = asked[asked["name"] == worst["name"]][0]
    assert (row["new_class"], row["origin"]) == (worst["new_class"], worst["origin"])
    assert worst["predicted"] != worst["new_class"]


def test_what_became_of_every_target(result):
    metrics = json.loads((result.folder / "metrics.json").read_text())
    of = metrics["outcomes"]
    every, outcome = of["all targets"], np.asarray(result.table["outcome"])
    assert sum(every.values()) == len(outcome) == metrics["n_targets"]
    assert every == {name: (outcome == name).sum() for name in every}
    assert {name: every[name] for name in ("bll", "psr")} == metrics["n_examined_per_class"]
    for name, part in metrics["by_origin"].items():
        assert sum(of["by origin"][name].values()) == part["n_targets"]
    for name in every:
        assert every[name] == sum(counts[name] for counts in of["by origin"].values())
    now = np.asarray(result.table["new_class"])
    np.testing.assert_array_equal(outcome[now != ""], now[now != ""])
    printed = np.asarray(result.table["new_catalog_class"])
    assert set(printed[outcome == "still open"].tolist()) == {"", "bcu"}
    assert "What became of the targets" in (result.folder / "report.html").read_text()
    lines = _summary(metrics).splitlines()
    [heading] = [i for i, line in enumerate(lines) if line.startswith("what became of them")]
    assert lines[heading + 3].split() == ["all", "targets", *map(str, every.values())]
    assert lines[heading].split("them")[1].split() == " ".join(every).split()


def test_numbers_of_each_class(result):
    """Of a classifier without a posterior: Poisson-binomial, and a bootstrap by origin."""
    counts, split = result.metrics["counts"], result.variants["all features"].split
    P = result.variants["all features"].corrected(MODEL)[0]
    plain, corrected = counts["train"]["sets"], counts[RECOMMENDED]["sets"]
    assert counts["train"]["holds"] == ["sampling"]
    assert counts[RECOMMENDED]["holds"] == ["sampling", "class fractions"]
    for name, rows in (
        ("all targets", np.full(len(P), True)),
        ("bcu", split.origin == "bcu"),
        ("examined", split.examined),
    ):
        found = plain[name]["classes"]["psr"]
        assert plain[name]["n"] == corrected[name]["n"] == rows.sum()
        assert found["mean"] == pytest.approx(P[rows, 1].sum())
        assert found.items() >= class_counts(P[rows]).as_dict(["bll", "psr"])["psr"].items()
    for name, part in plain.items():
        true = {c: of.get("true") for c, of in part["classes"].items()}
        asked = split.truth[split.examined & (split.origin == name.removeprefix("examined, "))]
        if name == "examined":
            assert true == result.metrics["n_examined_per_class"]
        elif name.startswith("examined, "):
            assert true == {c: (asked == c).sum() for c in ("bll", "psr")}
        else:
            assert set(true.values()) == {None}
    # 48 of 60 unassociated sources are pulsars, which only estimated fractions know; the ten
    # pseudo-sources at the mix of all targets leave their number a little low.
    labelled, by_origin = (s["unassociated"]["classes"]["psr"] for s in (plain, corrected))
    assert labelled["upper"] < by_origin["lower"] < by_origin["mean"] < 48
    assert 48 - by_origin["mean"] < 0.5 * (48 - labelled["mean"])


def test_draws_of_the_targets(two_releases, brief_fits):
    split = prospective_split(*two_releases)
    models = {
        MODEL: (GPClassifier(kernel="rbf", max_rounds=1, n_inducing=20), ["index", "beta"]),
        "plain": (logistic_regression(), ["index"]),
    }
    found = prospective_validation(split, models, n_seeds=1, n_draws=150)
    assert found.draws.keys() == {MODEL} and found.draws[MODEL].shape == (150, 120, 2)
    counts = target_counts(found, MODEL, "train", 0)
    assert counts["holds"] == ["sampling", "model"]
    psr = counts["sets"]["all targets"]["classes"]["psr"]
    expected = found.probabilities[MODEL][0][:, 1].sum()
    assert psr["mean"] == pytest.approx(expected, abs=4 * psr["shared_sd"] / np.sqrt(150) + 0.3)
    assert psr["shared_sd"] > 0


@pytest.mark.parametrize("absent", ["some", "all"])
def test_a_sentinel_is_no_significance(two_releases, noisy_logistic, tmp_path, absent):
    old, new = two_releases
    table = old.table.copy()
    S = np.random.default_rng(0).lognormal(2, 1, len(table))
    S[:: 3 if absent == "some" else 1] = -999.0
    table["S"] = S
    old = replace(old, table=table, schema=replace(old.schema, sentinels=(-999.0,)))
    options = {"classifier": noisy_logistic, "n_seeds": 1, "significance": "S", "progress": False}
    found = validate(old, new, tmp_path / "out", **options).table["significance"]
    kept = S[old.is_target]
    np.testing.assert_array_equal(found, np.where(kept == -999, np.nan, kept))
    table["S"] = np.full(len(table), "bright")
    with pytest.raises(InputError, match="column 'S' holds text, not numbers"):
        validate(replace(old, table=table), new, tmp_path / "text", **options)
    assert not (tmp_path / "text").exists()


def test_report_is_rebuilt_from_the_folder(result):
    page = result.folder / "report.html"
    first = page.read_text()
    assert result.metrics["surprises"][0]["name"] in first
    assert "without beta" in first and "http" not in first.replace("http-equiv", "")
    page.unlink()
    render_report(result.folder)
    assert page.read_text() == first


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_seeds": 0}, "n_seeds"),
        ({"without": ["colour"]}, "no such feature"),
        ({"without": ["index", "beta", "flux"]}, "no feature is left"),
    ],
)
def test_bad_options(two_releases, noisy_logistic, tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        validate(*two_releases, tmp_path / "out", classifier=noisy_logistic, **options)
    assert list(tmp_path.iterdir()) == []


def test_frozen_settings_are_the_defaults():
    frozen = tomllib.loads(FROZEN.read_text())
    assert frozen["model"] == RECOMMENDED_MODEL
    assert frozen["prior"]["correction"] == RECOMMENDED


def test_classes_and_priors_of_the_command_line():
    dr4 = load_catalog("4fgl-dr4")
    assert with_classes(dr4, ["agn=bll+fsrq+bcu,psr"]).groups == {
        "psr": ("psr", "msp"),
        "agn": ("bll", "fsrq", "bcu"),
    }
    assert with_classes(dr4, ["psr", "msp"]).groups == {"psr": ("psr",), "msp": ("msp",)}
    for bad in ("agn=", "=bll", "psr=msp"):
        with pytest.raises(InputError, match="write a new group with its classes"):
            with_classes(dr4, ["psr", bad])
    assert parse_prior("estimated") == "estimated"
    given = parse_prior("BLL=0.5, psr=0.2,agn=0.3")
    assert of_classes(given, ("AGN", "bll", "psr")) == {"bll": 0.5, "psr": 0.2, "AGN": 0.3}
    assert of_classes(given, ("bll",)) == {"bll": 0.5, "psr": 0.2, "agn": 0.3}  # refused by name
    assert of_classes("train", ("bll",)) == "train"
    with pytest.raises(InputError, match="cannot read the prior"):
        parse_prior("bll=half")
    with pytest.raises(InputError, match="names a class twice"):
        parse_prior("bll=0.5,psr=0.2,BLL=0.3")
    with pytest.warns(UserWarning, match="sum to 0.9; they are divided by that"):
        check_prior({"bll": 0.5, "psr": 0.4}, {"bll": 3, "psr": 2}, np.array([True]))
    thirds = dict.fromkeys(("bll", "fsrq", "psr"), 0.33)
    check_prior(thirds, thirds, np.array([True]))  # in silence: a warning is an error here


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_calibrate_errors_writes_a_file_that_loads(tmp_path):
    path = tmp_path / "errors.toml"
    code, stdout, _ = run(
        *("catalogs", "calibrate-errors", "4fgl", "4fgl-dr4", "--out", path),
        *("--cut", "Signif_Avg < 10"),
    )
    assert code == 0
    assert stdout.rstrip().endswith(os.fspath(path))
    scale = tomllib.loads(path.read_text())["error_calibration"]["scale"]
    # errors of faint sources come out too small by 10 to 35 %
    assert 1.05 < scale["index"] < 1.4 and 1.05 < scale["beta"] < 1.4
    plain, scaled = load_catalog("4fgl"), load_catalog("4fgl", error_scale=path)
    j = plain.feature_names.index("index")
    np.testing.assert_allclose(scaled.X_err[:, j], scale["index"] * plain.X_err[:, j])


def test_calibrate_errors_of_catalogs_of_ones_own(tmp_path):
    rng = np.random.default_rng(0)
    colour, sky = rng.normal(size=200), {"RA": np.linspace(0, 350, 200), "Dec": np.zeros(200)}
    for name, σ in (("old", 0.2), ("new", 0.1)):
        table = Table({"Name": [f"S{i}" for i in range(200)], **sky})
        table["C"], table["e_C"] = colour + rng.normal(0, σ, 200), np.full(200, σ)
        table.write(tmp_path / f"{name}.csv")
    schema, out = tmp_path / "mine.toml", tmp_path / "errors.toml"
    schema.write_text('id = "Name"\nra = "RA"\ndec = "Dec"\n[features]\n"bp-rp \\"colour" = "C"\n')
    code, _, stderr = run(
        *("catalogs", "calibrate-errors", tmp_path / "old.csv", tmp_path / "new.csv"),
        *("--old-schema", schema, "--new-schema", schema, "--independent", "--out", out),
    )
    assert (code, stderr) == (0, "")
    scaled = load_catalog(tmp_path / "old.csv", schema=schema, error_scale=out)
    scale = tomllib.loads(out.read_text())["error_calibration"]["scale"]['bp-rp "colour']
    assert scale == pytest.approx(1, abs=0.2)
    np.testing.assert_allclose(scaled.X_err, 0.2 * scale)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["4fgl", "4fgl"], ["newer release"]),
        (["4fgl", "4fgl-dr44"], ["did you mean"]),
        (["4fgl", "fl16y", "--class", "bll,msp"], ["msp", "DR3"]),
        (["4fgl", "fl16y", "--without", "colour"], ["colour"]),
        (["4fgl", "fl16y", "--open", "--class", "bll,psr"], ["--open", "--class"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    code, stdout, stderr = run("validate", *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert not stdout or " sources: " in stdout.splitlines()[0]  # what was read
    assert stderr.startswith("gpal: ") and stderr.count("\n") == 1
    assert all(word in stderr for word in words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "prior", ["estimated", pytest.param({"bll": 0.4, "psr": 0.6}, marks=pytest.mark.slow)]
)
def test_classify_with_class_fractions(two_releases, noisy_logistic, tmp_path, prior):
    old, _ = two_releases
    table, metrics = (
        getattr(classify(old, tmp_path, classifier=noisy_logistic, n_splits=3, prior=prior), part)
        for part in ("table", "metrics")
    )
    before = np.column_stack([table["p_bll_train"], table["p_psr_train"]])
    after = np.column_stack([table["p_bll"], table["p_psr"]])
    candidate = np.asarray(table["candidate"])
    np.testing.assert_array_equal(after[~candidate], before[~candidate])
    train = np.array([0.75, 0.25])
    if prior == "estimated":
        assert set(metrics["priors"]) == {"all candidates", "unassociated", "bcu"}
        for name, label in (("unassociated", ""), ("bcu", "bcu")):
            rows = candidate & (np.asarray(table["catalog_class"]) == label)
            mix = np.array(list(metrics["priors"][name]["fractions"].values()))
            np.testing.assert_allclose(after[rows], reweight(before[rows], train, mix))
        page, mix = (tmp_path / "report.html").read_text(), metrics["priors"]["bcu"]
        assert f"{mix['fractions']['psr']:.3f}" in page
        assert f"{mix['lower']['psr']:.3f} to {mix['upper']['psr']:.3f}" in page
    else:
        expected = reweight(before[candidate], train, np.array([0.4, 0.6]))
        np.testing.assert_allclose(after[candidate], expected)
    assert MODEL in metrics and (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    "prior",
    [
        *("guessed", {"bll": 1.0}, {"bll": -1.0, "psr": 2.0}, {"bll": 0, "psr": 0}),
        *({"bll": np.inf, "psr": 1.0}, {"bll": np.nan, "psr": 1.0}),
    ],
)
def test_classify_refuses_bad_fractions(two_releases, noisy_logistic, tmp_path, prior):
    with pytest.raises(InputError, match="prior"):
        classify(two_releases[0], tmp_path / "out", classifier=noisy_logistic, prior=prior)
    assert list(tmp_path.iterdir()) == []


def test_areas_under_roc_curves_of_the_examined(result):
    """Means against scikit-learn, bootstrap errors against its areas of samples drawn again."""
    main = result.variants["all features"]
    y = main.split.y
    for correction in ("train", RECOMMENDED):
        P = main.corrected(MODEL, correction)[:, main.split.examined]
        expected = np.mean([roc_auc_score(y == 1, p[:, 1]) for p in P])
        scores = result.metrics["variants"]["all features"][correction][MODEL]
        found = scores["per_class"]["psr"]["auc"]
        assert found["mean"] == pytest.approx(expected)
        assert found["lower"] < found["mean"] < found["upper"]
        assert scores["macro_auc"]["mean"] == pytest.approx(expected)  # of two classes both alike
    rng = np.random.default_rng(7)
    drawn = [rng.integers(len(y), size=len(y)) for _ in range(300)]
    again = [roc_auc_score(y[rows] == 1, P[0][rows, 1]) for rows in drawn]
    assert found["se"] == pytest.approx(np.std(again), rel=0.25)
    other = main.models[-1]
    gap = main.scores(MODEL, minus=(other, "train"))["macro_auc"]
    each = [main.scores(m)["macro_auc"]["mean"] for m in (MODEL, other)]
    assert gap["mean"] == pytest.approx(each[0] - each[1])


def test_a_class_that_was_not_found_has_no_area(result):
    main = result.variants["all features"]
    scores = main.scores(MODEL, rows=main.split.y == 0)
    assert np.isnan(scores["macro_auc"]["mean"]) and np.isnan(scores["macro_auc"]["se"])
    assert np.isfinite(scores["nll"]["mean"])


def test_lists_of_targets_and_parts_of_the_sky(result):
    table, metrics = result.table, json.loads((result.folder / "metrics.json").read_text())
    examined = table[table["new_class"] != ""]
    for correction, suffix in (("train", ""), (RECOMMENDED, "_prior")):
        for row in metrics["purity"][correction][MODEL]["psr"]:
            p = np.asarray(examined[f"p_psr{suffix}"])
            right = np.asarray(examined["new_class"] == "psr")[p >= row["threshold"]]
            assert row["purity"] == pytest.approx(right.mean())
            assert row["purity"] >= row["asked"]
            assert row["listed"] == len(right)
            assert row["n_candidates"] == (table[f"p_psr{suffix}"] >= row["threshold"]).sum()
    near = np.abs(SkyCoord(table["ra"], table["dec"], unit="deg").galactic.b.deg) < 10
    part = metrics["by_latitude"]["|b| < 10 deg"]
    assert part["n_targets"] == near.sum() > 0
    assert part["n_examined"] == (near & (table["new_class"] != "")).sum()
