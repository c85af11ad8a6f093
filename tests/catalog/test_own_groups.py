"""Groups of one's own come before the catalog's classes; nobody is both labelled and a target."""

from __future__ import annotations

import pytest

from gpal import load_catalog


@pytest.fixture(scope="module")
def release():
    return load_catalog("4fgl-dr4")


def test_a_group_of_ones_own_before_the_class_of_that_name(release):
    grouped = release.with_classes({"agn": ["bll", "fsrq"]})
    wanted = {"bll", "fsrq"}
    assert set(grouped.labelled(["agn"]).labels) == wanted
    assert set(grouped.labelled().labels) == wanted
    assert set(grouped.with_classes(["psr", "agn"]).labelled().labels) == wanted | {"psr", "msp"}
    assert set(release.labelled(["agn"]).labels) == {"agn"}  # without it, the catalog's own


def test_the_name_of_a_group_in_other_capitals(release):
    found = release.with_classes({"AGN": ["BLL", "fsrq"]}).labelled(["agn"])
    assert found.classes == ("AGN",) and set(found.y) == {"AGN"}


def test_a_later_dictionary_replaces_the_groups(release):
    grouped = release.with_classes({"agn": ["bll"]}).with_classes({"other": ["fsrq"]})
    assert set(grouped.labelled(["agn"]).labels) == {"agn"}


def test_a_group_with_an_undecided_class_is_labelled_only(release):
    groups = {"agn": ["bll", "fsrq", "bcu"], "psr": ["psr", "msp"]}
    grouped = release.with_classes(groups)
    assert "bcu" in grouped.labelled().labels and "bcu" not in grouped.unlabelled().labels
    assert not (grouped.is_target & (grouped.y != "")).any()
    known, new = release.labelled(groups), release.unlabelled(groups)
    assert not set(known.names) & set(new.names)
    assert len(known) + len(new) == len(grouped.labelled()) + grouped.is_target.sum()


def test_a_catalog_in_a_few_lines(release):
    said = repr(release)
    assert len(said.splitlines()) < 8 and len(said) < 1000
    assert f"{len(release)} sources" in said
    assert f"psr {len(release.labelled(['psr']))}" in said
    measurements = repr(release.measurements)
    assert len(measurements) < 500 and f"{len(release)} sources" in measurements
    assert f"{int((~release.measurements.measured).sum())} values not measured" in measurements
