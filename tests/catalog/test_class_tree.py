"""The tree of classes: what a name stands for, and the place of every class of the releases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpal.catalog import load_catalog
from gpal.catalog.class_tree import (
    classes_below,
    coarser_classes,
    exhaustive_groups,
    group_fractions,
    levels,
    place_in_words,
    possible_groups,
)
from gpal.catalog.schema import Classes, Schema
from gpal.errors import InputError

TREE = {"agn": ("blazar", "rdg"), "blazar": ("bll", "fsrq"), "pulsar": ("psr", "msp")}
SETS = {"bcu": ("bll", "fsrq"), "agn": ("rdg", "sey")}


def own(*names, **groups):
    return {**{name: (name,) for name in names}, **groups}


def test_fractions_of_groups_from_those_of_names():
    known = {"agn": 0.98, "blazar": 0.9, "pulsar": 0.01}
    counts = {"bll": 30, "fsrq": 10, "psr": 5, "other": 7, "agn": 50, "msp": 5}
    groups = own("bll", "fsrq", psr=("psr", "msp"), other=("snr", "rdg"))
    found = group_fractions(TREE, groups, known, counts)
    assert found == pytest.approx({"bll": 0.675, "fsrq": 0.225, "psr": 0.01, "other": 0.09})
    groups = own("psr", "msp", agn=("bll", "fsrq", "rdg", "agn"), other=("snr",))
    found = group_fractions(TREE, groups, known, counts)
    assert found == pytest.approx({"agn": 0.98, "psr": 0.005, "msp": 0.005, "other": 0.01})
    for groups in (
        own("bll", "psr", other=("fsrq", "snr")),  # other has a part of the blazars
        own("bll", "fsrq", "rdg", other=("snr", "psr")),  # agn of which blazars are a part
        own("bll", "fsrq", "snr", other=("rdg", "psr")),  # of remnants nothing is known
    ):
        assert group_fractions(TREE, groups, known, counts | {"rdg": 1, "snr": 1}) == {}


@pytest.mark.parametrize(
    ("fractions", "words"),
    [
        ({"agm": 0.9}, "how many are 'agm', which is no name"),
        ({"agn": 1.5}, "no fraction between"),
        ({"agn": 0.9, "blazar": 0.8, "pulsar": 0.1}, "agn, pulsar leave nothing"),
    ],
)
def test_fractions_that_cannot_be_are_refused(fractions, words):
    with pytest.raises(InputError, match=words):
        Classes(tree=TREE, fractions={"BCU": fractions})


def test_what_a_name_stands_for():
    assert classes_below(TREE, "agn") == ("bll", "fsrq", "rdg")
    assert classes_below(TREE, "snr") == ("snr",)
    groups = own("bll", "fsrq", psr=("psr", "msp"))
    assert coarser_classes(TREE, groups) == {"agn": ("bll", "fsrq"), "blazar": ("bll", "fsrq")}
    # No name that is a group's, none for one group, none for all of them.
    assert coarser_classes(TREE, own("bll", "fsrq")) == {}
    assert coarser_classes(TREE, own("psr", agn=("bll", "fsrq"))) == {}
    assert coarser_classes(TREE, own("psr", "msp", "bll")) == {"pulsar": ("psr", "msp")}
    # A group that reaches beyond a name is not below it.
    assert coarser_classes(TREE, own("fsrq", "psr", mine=("bll", "snr"))) == {}


def test_levels_divide_the_groups_the_coarsest_first():
    groups = own("bll", "fsrq", "rdg", "psr", "msp", "snr")
    assert levels(TREE, groups) == [
        {"agn": ("bll", "fsrq", "rdg"), "pulsar": ("psr", "msp"), "snr": ("snr",)},
        {"blazar": ("bll", "fsrq"), "rdg": ("rdg",), **own("psr", "msp", "snr")},
    ]
    assert levels(TREE, own("bll", "fsrq", psr=("psr", "msp"))) == [
        {"agn": ("bll", "fsrq"), "psr": ("psr",)}
    ]
    for tree, flat in ((TREE, own("bll", "psr")), ({}, groups), (TREE, own("a", "b"))):
        assert levels(tree, flat) == []


def test_a_place_in_words():
    assert place_in_words(TREE, SETS, "bll") == "agn, blazar"
    assert place_in_words(TREE, SETS, "bcu") == "agn, blazar, bll or fsrq"
    assert place_in_words(TREE, {"mix": ("psr", "rdg")}, "mix") == "psr or rdg"
    assert place_in_words(TREE, SETS, "unk") == ""


def test_what_a_source_may_be():
    groups = own("bll", "fsrq", "psr")
    assert possible_groups(SETS, groups, "bll") == {"bll"}
    assert possible_groups(SETS, groups, "bcu") == {"bll", "fsrq"}
    assert possible_groups(SETS, own("psr", agn=("bll", "fsrq")), "bcu") == {"agn"}
    # What may also be of none of the groups is not known to be of one of them.
    assert possible_groups(SETS, own("bll", "psr"), "bcu") == frozenset()
    assert possible_groups(SETS, groups, "agn") == possible_groups(SETS, groups, "") == frozenset()


@pytest.mark.parametrize(
    ("tree", "sets", "message"),
    [
        ({"a": ("x",), "b": ("x",)}, {}, "'x' is below 'a' and 'b' in classes.tree"),
        ({"a": ("b",), "b": ("a",)}, {}, "lies below itself"),
        ({"a": ("a", "x")}, {}, "lies below itself"),
        ({}, {"bcu": ()}, "says of 'bcu' no class that it may be"),
        ({"A\n": ("x",)}, {}, "printable"),
    ],
)
def test_a_tree_that_is_none_is_refused(tree, sets, message):
    with pytest.raises(InputError, match=message):
        Classes(tree=tree, sets=sets)
    with pytest.raises(InputError, match="must be"):
        Schema.from_dict({"features": {"f": "F"}, "classes": {"tree": {"a": "x"}}})


@pytest.mark.parametrize("release", ["4fgl", "4fgl-dr4", "fl16y"])
def test_every_class_of_a_release_has_its_place(release):
    catalog = load_catalog(release)
    of = catalog.schema.classes
    placed = {name for root in of.tree for name in classes_below(of.tree, root)}
    said = set(catalog.labels.tolist()) - {"", "unk"}
    assert said <= placed | of.sets.keys()
    assert set(of.names) - {"unk"} <= placed | of.sets.keys()
    for members in of.sets.values():
        assert set(members) <= placed
    assert "lmb" not in of.tree["galactic"] and of.sets["lmb"] == ("lmb", "msp")
    assert catalog.levels == [{"agn": ("bll", "fsrq"), "psr": ("psr",)}]


def test_what_the_sources_of_a_release_may_be():
    catalog = load_catalog("4fgl-dr4")
    possible = catalog.possible
    single = np.array([len(found) == 1 for found in possible])
    np.testing.assert_array_equal(single, catalog.y != "")
    assert all(found == {"bll", "fsrq"} for found in possible[catalog.labels == "bcu"])
    several = np.array([len(found) > 1 for found in possible])
    np.testing.assert_array_equal(several, catalog.labels == "bcu")
    with_rdg = catalog.with_classes({"blazar": ["bll", "fsrq"], "psr": ["psr", "msp"]})
    assert set(with_rdg.possible[with_rdg.labels == "bcu"]) == {frozenset({"blazar"})}
    assert len(replace(catalog, labels=catalog.labels)[:0].possible) == 0


def test_groups_that_leave_no_class_out():
    labels = ("bll", "fsrq", "bcu", "rdg", "agn", "psr", "mix", "snr")
    sets = {**SETS, "agn": ("rdg", "bll"), "mix": ("psr", "rdg")}
    assert exhaustive_groups(TREE, sets, ("agn", "pulsar"), labels) == {
        "agn": ("agn", "bcu", "bll", "fsrq", "rdg"),
        "pulsar": ("psr",),
        "other": ("mix", "snr"),
    }
    assert exhaustive_groups(TREE, sets, ("blazar",), ("rdg", "bll")) == {
        "blazar": ("bll",),
        "other": ("rdg",),
    }
    assert exhaustive_groups(TREE, sets, ("agn", "pulsar"), ("bll",)) == {"agn": ("bll",)}


@pytest.mark.parametrize("name", ["4fgl", "4fgl-dr4", "fl16y"])
def test_exhaustive_classes_of_the_releases(name):
    catalog = load_catalog(name, features=["index"]).with_exhaustive_classes()
    every = [label for labels in catalog.groups.values() for label in labels]
    assert len(every) == len(set(every))
    assert set(catalog.labels.tolist()) - set(every) == {"", "unk", "bcu"}
    assert set(catalog.labels[catalog.is_target].tolist()) == {"", "unk"}
    # Known as active galaxies, but not learned from.
    bcu = catalog.labels == "bcu"
    assert (catalog.y[bcu] == "").all() and (catalog.group[bcu] == "agn").all()
    np.testing.assert_array_equal(catalog.group[~bcu], catalog.y[~bcu])
    assert (catalog.y[np.isin(catalog.labels, ["lmb", "spp", "glc"])] == "other").all()
    again = catalog.with_classes(["bll", "psr"])
    assert again.known_as == {} and again.is_target[bcu].all()


def test_a_schema_without_exhaustive_classes(small_catalog):
    with pytest.raises(InputError, match=r"name some of classes\.tree under classes\.exhaustive"):
        small_catalog.with_exhaustive_classes()
    with pytest.raises(
        InputError, match=r"'blzar', which is no name of classes\.tree; did you mean"
    ):
        Classes(tree=TREE, exhaustive=("blzar",))
