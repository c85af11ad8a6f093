"""What became of the sources of an old release: rule by rule, and counted on real releases."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.evaluation.outcomes import count_outcomes
from gpal.evaluation.prospective import prospective_split

MAPPING = {
    **{"id": "Name", "class": "Type", "ra": "RA", "dec": "Dec"},
    "classes": {
        "default": ["bll", "psr"],
        "candidates": ["", "unk", "bcu"],
        "tree": {
            "agn": ["blazar", "rdg"],
            "blazar": ["bll", "fsrq"],
            "galactic": ["snr", "lmb"],
        },
        "sets": {"bcu": ["bll", "fsrq"], "lmb": ["lmb", "msp"]},
    },
    "features": {"index": {"column": "Index", "error": "none"}},
}
# class before, class after (None: no counterpart), what became of it
BECAME = (
    ("", "BLL", "bll"),
    ("bcu", "bll", "bll"),
    ("unk", "psr", "psr"),
    ("", "rdg", "other agn"),
    ("", "bcu", "other agn"),  # a blazar: it says something
    ("unk", "BCU", "other agn"),
    ("bcu", "fsrq", "other agn"),
    ("", "snr", "other galactic"),
    ("", "lmb", "another class"),  # or a pulsar: no one place
    ("bcu", "xyz", "another class"),
    ("", None, "vanished"),
    ("bcu", None, "vanished"),
    ("", "", "still open"),
    ("", "unk", "still open"),
    ("bcu", "bcu", "still open"),  # nothing new
    ("bcu", "", "still open"),
)


def catalog(folder, name, classes, rows, mapping=MAPPING):
    table = Table(
        {
            "Name": [f"S{i:02d}" for i in rows],
            "Type": classes,
            "RA": 10.0 * np.asarray(rows),
            "Dec": np.zeros(len(rows)),
            "Index": np.arange(len(rows)) % 3 + 0.0,
        }
    )
    path = folder / f"{name}.ecsv"
    table.write(path, overwrite=True)
    return load_catalog(path, mapping=mapping)


@pytest.fixture
def releases(tmp_path):
    known = ["bll", "psr", "bll", "psr"]
    before = [*known, *(old for old, _, _ in BECAME)]
    after = [*known, *(new for _, new, _ in BECAME)]
    found = [i for i, label in enumerate(after) if label is not None]
    old = catalog(tmp_path, "old", before, range(len(before)))
    new = catalog(tmp_path, "new", [after[i] for i in found], found)
    return old, new


def test_every_rule(releases):
    split = prospective_split(*releases)
    assert split.outcome.tolist() == [outcome for _, _, outcome in BECAME]
    assert split.new_labels.tolist() == [new or "" for _, new, _ in BECAME]
    np.testing.assert_array_equal(split.truth != "", np.isin(split.outcome, ["bll", "psr"]))


def test_counts_add_up_and_have_an_order(releases):
    split = prospective_split(*releases)
    counts = count_outcomes(split.outcome, split.classes.tolist())
    assert sum(counts.values()) == len(split.targets) == len(BECAME)
    assert list(counts) == [
        *("bll", "psr", "other agn", "other galactic", "another class", "vanished", "still open")
    ]
    # Classes that nobody found, and the ends that every pair of releases has, are counted as 0.
    nothing = count_outcomes(np.array(["psr"]), ["bll", "psr"])
    assert nothing == {"bll": 0, "psr": 1, "vanished": 0, "still open": 0}


@pytest.mark.parametrize("name", ["vanished", "other agn"])
def test_a_class_called_as_an_outcome_is_refused(releases, name):
    with pytest.raises(InputError, match=f"cannot be called '{name}'"):
        prospective_split(*releases, {name: ["bll"], "psr": ["psr"]})


def test_the_unassociated_sources_of_4fgl():
    """Against counts made by hand from the full files, matched by position."""
    old, new = (load_catalog(name, features=["index"]) for name in ("4fgl", "4fgl-dr4"))
    split = prospective_split(old, new)
    rows = split.origin != "bcu"
    counts = count_outcomes(split.outcome[rows], split.classes.tolist())
    assert sum(counts.values()) == rows.sum() == 1429
    assert {name: counts[name] for name in ("bll", "fsrq", "psr")} == dict(bll=3, fsrq=0, psr=68)
    assert counts["other agn"] == 15
    assert counts["other galactic"] + counts["another class"] == 25
    assert (counts["vanished"], counts["still open"]) == (18, 1300)
    np.testing.assert_array_equal(split.outcome == "vanished", split.new_names == "")
