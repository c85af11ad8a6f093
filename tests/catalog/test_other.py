"""`other`: every decided class that the classes told apart leave out."""

import numpy as np
import pytest

from gpal import load_catalog
from gpal.cli.options import CatalogOptions
from gpal.errors import InputError


@pytest.fixture(scope="module")
def catalog():
    return load_catalog("4fgl-dr4")


def test_it_takes_what_is_decided_and_in_no_other_group(catalog):
    four = catalog.with_classes(["bll", "fsrq", "psr", "other"])
    assert four.leaves_none_out and not catalog.leaves_none_out
    labels = set(np.unique(catalog.labels).tolist())
    rest = labels - {"bll", "fsrq", "psr", "msp"} - catalog.schema.classes.open
    assert set(four.groups["other"]) == rest and {"snr", "rdg", "glc"} <= rest
    assert not four.is_of_another_class.any()
    np.testing.assert_array_equal(four.y == "other", catalog.is_of_another_class)
    np.testing.assert_array_equal(four.is_target, catalog.is_target)


def test_where_nothing_is_left_it_is_refused(catalog):
    few = catalog[np.isin(catalog.labels, ["bll", "psr", ""])]
    with pytest.raises(InputError, match="no class is left for 'other'"):
        few.with_classes(["bll", "psr", "other"])


def test_a_class_of_that_name_is_that_class(tmp_path):
    (tmp_path / "t.csv").write_text("x,kind\n1,star\n2,other\n3,galaxy\n")
    mapping = {"class": "kind", "features": {"x": {"column": "x", "error": "none"}}}
    catalog = load_catalog(tmp_path / "t.csv", mapping=mapping)
    assert catalog.with_classes(["star", "other"]).groups["other"] == ("other",)


@pytest.mark.parametrize(
    ("options", "least", "classes", "significance"),
    [
        ({}, 10, ("bll", "fsrq", "psr", "other"), False),
        ({}, 0, ("bll", "fsrq", "psr"), True),
        ({}, 10_000, ("bll", "fsrq", "psr"), True),
        ({"classes": ["bll,fsrq,psr"]}, 10, ("bll", "fsrq", "psr"), True),
        ({"exhaustive": True}, 10, ("agn", "pulsar", "other"), False),
        ({"features": "default"}, 10, ("bll", "fsrq", "psr", "other"), True),
    ],
)
def test_what_a_command_tells_apart(options, least, classes, significance):
    catalog = CatalogOptions(**options).open_for_all("4fgl", None, least)
    assert catalog.classes == classes
    assert ("log_significance" in catalog.feature_names) == significance
