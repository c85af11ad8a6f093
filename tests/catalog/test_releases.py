"""The real releases: nothing dropped, the counts that are known, extract and full file alike."""

import gzip
import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from full_releases import RELEASES, full_file

from gpal.catalog import known_catalogs, load_catalog
from gpal.catalog.registry import catalogs_folder

EMBEDDED = ("4fgl", "4fgl-dr4", "fl16y")


def test_known_catalogs_lists_every_release_with_its_number_of_sources():
    infos = {info.name: info for info in known_catalogs() if info.name != "lsst-dc2"}
    assert list(infos) == list(RELEASES)  # the oldest first
    assert [name for name, info in infos.items() if info.embedded] == list(EMBEDDED)
    for name in EMBEDDED:
        assert infos[name].n_sources == len(load_catalog(name))


@pytest.mark.parametrize("name", EMBEDDED)
def test_extracts_state_their_origin_and_are_small(name):
    header = fits.getheader(catalogs_folder() / f"{name}.fits.gz", 1)
    assert header["ORIGFILE"] == RELEASES[name]
    assert len(header["ORIGSHA"]) == 64
    assert sum(path.stat().st_size for path in catalogs_folder().glob("*.fits.gz")) < 6e6


def test_the_papers_selection_is_454_sources():
    sources = load_catalog("4FGL", features="paper", cuts="Signif_Avg > 30").labelled()
    assert Counter(sources.y.tolist()) == {"bll": 184, "fsrq": 168, "psr": 102}
    assert sources.measurements.measured.all()
    named = load_catalog("4fgl", features="paper", cuts="paper").labelled()
    assert np.array_equal(named.names, sources.names)


def test_labelled_sources_of_dr4(dr4):
    known = dr4.labelled(["bll", "fsrq", "psr"])
    assert len(known) == 2630
    assert Counter(known.y.tolist()) == {"bll": 1490, "fsrq": 820, "psr": 320}
    assert known.identified.sum() == 22 + 44 + 137 + 139  # capitals in CLASS1
    assert len(dr4.unlabelled()) == 2423 + 137 + 3 + 1622 + 1  # '', unk, UNK, bcu, BCU


def test_every_treatment_of_dr4_is_counted(dr4):
    counts = {(d.column, d.rule.split(":")[0]): d.count for d in dr4.decisions}
    assert counts == {
        ("Flux1000", "no error"): 1,
        ("Signif_Avg", "no value"): 1,
        ("LP_Index", "no value"): 3,
        ("LP_Index", "no error"): 1,
        ("LP_beta", "no value"): 3,
        ("LP_beta", "no error"): 2,
        ("LP_SigCurv", "Unc_LP_Index is missing"): 4,
        ("Variability_Index", "no value"): 1,
    }
    for decision in dr4.decisions:
        if decision.rule.endswith("not measured"):
            j = [dr4.schema.features[f].column for f in dr4.feature_names].index(decision.column)
            assert not dr4.measurements.measured[decision.rows, j].any()


def test_a_censored_beta_keeps_its_value_and_takes_a_typical_error():
    catalog = load_catalog("4fgl")
    rows = next(d.rows for d in catalog.decisions if d.column == "LP_beta")
    j = catalog.feature_names.index("beta")
    raw_error = np.asarray(catalog.table["Unc_LP_beta"], float)
    assert rows.sum() == np.isnan(raw_error).sum() == 86
    np.testing.assert_array_equal(catalog.X[:, j], np.asarray(catalog.table["LP_beta"], float))
    beta, known = catalog.X[:, j], ~np.isnan(raw_error)
    for i in np.flatnonzero(rows)[::20]:
        distance = np.abs(beta - beta[i])
        within = known & (distance <= np.sort(distance[known])[149])
        assert catalog.X_err[i, j] == pytest.approx(np.median(raw_error[within]), rel=0.05)
    assert np.array_equal(catalog.X_err[~rows, j], raw_error[~rows])


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("features", ["default+hardness", "paper"])
def test_extract_and_full_file_are_alike(name, features):
    extract = load_catalog(name, features=features)
    full = load_catalog(full_file(name), features=features)
    np.testing.assert_array_equal(extract.X, full.X)
    np.testing.assert_array_equal(extract.X_err, full.X_err)
    for part in ("names", "labels", "original_labels", "identified", "ra", "dec", "position_error"):
        np.testing.assert_array_equal(getattr(extract, part), getattr(full, part))
    assert extract.measurements.units == full.measurements.units
    assert extract.provenance["release_sha256"] == full.provenance["sha256"]
    assert extract.provenance["sha256"] != full.provenance["sha256"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_workflow_makes_the_extracts_again_to_the_byte(name):
    workflow = runpy.run_path(str(Path(__file__).parents[2] / "workflows" / "make_extracts.py"))
    again = workflow["extract"](full_file(name), name)
    embedded = (catalogs_folder() / f"{name}.fits.gz").read_bytes()
    assert gzip.decompress(again) == gzip.decompress(embedded)


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("features", ["default+hardness", "paper"])
def test_every_release_loads_with_every_source(name, features):
    path = full_file(name)
    catalog = load_catalog(path, features=features)
    assert catalog.schema.name == name
    assert len(catalog) == fits.getheader(path, 1)["NAXIS2"] == catalog.schema.rows
    assert catalog.provenance["sha256"] == catalog.schema.sha256
    assert set(catalog.labelled().y) == {"bll", "fsrq", "psr"}
    measured = catalog.measurements.measured
    assert measured.mean() > (0.85 if name == "3fgl" else 0.998)
    hardness = [j for j, f in enumerate(catalog.feature_names) if f.startswith("hardness")]
    assert np.nanmax(np.abs(catalog.X[:, hardness]), initial=0) <= 1


def test_a_release_without_an_extract_comes_from_fermipy(tmp_path, monkeypatch):
    full = full_file("4fgl-dr2")
    data = tmp_path / "fermipy" / "data" / "catalogs"
    data.mkdir(parents=True)
    (tmp_path / "fermipy" / "__init__.py").touch()
    (data / full.name).symlink_to(full)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(load_catalog("4fgl-dr2")) == 5788


def test_a_renamed_full_file_is_recognised(tmp_path):
    copy = tmp_path / "mine.fits"
    copy.symlink_to(full_file("4fgl-dr3"))
    assert load_catalog(copy).schema.name == "4fgl-dr3"
