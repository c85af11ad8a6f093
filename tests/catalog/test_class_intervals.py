"""Classes that are intervals of a number."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.catalog.class_intervals import intervals
from gpal.catalog.schema import Schema
from gpal.errors import InputError

EDGES = (-1, 0, 0.5, 3)


def test_each_value_lies_in_the_interval_that_pandas_gives_it():
    pandas = pytest.importorskip("pandas")
    values = np.random.default_rng(0).uniform(-1, 3, 500)
    names = ["-1-0", "0-0.5", "0.5-3"]
    other = pandas.cut(values, EDGES, right=False, labels=names)
    assert intervals(values, EDGES, "z").tolist() == list(other)


def test_edges_belong_to_the_upper_interval_and_the_last_to_its_own():
    found = intervals(np.array([-1, 0, 0.5, 3, np.nan]), EDGES, "z")
    assert found.tolist() == ["-1-0", "0-0.5", "0.5-3", "0.5-3", ""]


def test_a_value_outside_names_its_row():
    with pytest.raises(InputError, match=r"column 'z', row 2: 3.5 is in no class, .* from -1 to 3"):
        intervals(np.array([0, 1, 3.5]), EDGES, "z")


@pytest.mark.parametrize("edges", [[0, 1], [0, 2, 1], [0, 1, 1], [0, 1, 1 + 1e-9, 1 + 2e-9]])
def test_edges_that_make_no_classes(edges):
    with pytest.raises(InputError, match=r"edges .* in \[classes\]|edges in \[classes\] differ"):
        Schema.from_dict({"features": {"i": "i"}, "classes": {"edges": edges}})


@pytest.mark.parametrize("name", ["t.csv", "t.fits"])
def test_a_table_with_redshifts_is_one_with_bins(tmp_path, name):
    table = Table({"i": [20.0, 21.0, 22.0, 23.0], "e_i": [0.1] * 4, "z": [0.2, 0.7, -99.0, 0.4]})
    table.write(tmp_path / name)
    mapping = {
        "class": "z",
        "sentinels": [-99],
        "classes": {"edges": [0, 0.5, 1]},
        "features": {"i": "i"},
    }
    catalog = load_catalog(tmp_path / name, mapping=mapping)
    assert catalog.labels.tolist() == ["0-0.5", "0.5-1", "", "0-0.5"]
    assert catalog.is_target.tolist() == [False, False, True, False]
    assert catalog.provenance["schema"]["class_edges"] == (0, 0.5, 1)
