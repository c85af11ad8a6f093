"""Scores at a coarser level, against the same scores of labels and probabilities merged by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpal.errors import InputError
from gpal.metrics import (
    METRICS,
    Level,
    class_index,
    coarser,
    confusion_matrix,
    negative_log_predictive_density,
    reliability_curve,
)

CLASSES = ["bll", "fsrq", "psr", "rdg"]
MEMBERS = {"agn": ["fsrq", "bll", "rdg"], "psr": ["psr"]}


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(4, 0.5), size=200)
    return np.array(CLASSES)[(rng.random(200)[:, None] > P.cumsum(axis=1)).sum(axis=1)], P


def test_probabilities_are_sums_and_scores_are_those_of_merged_labels(scored):
    y, P = scored
    by_hand = np.where(y == "psr", "psr", "agn"), np.column_stack([1 - P[:, 2], P[:, 2]])
    found, Q, names = coarser(y, P, CLASSES, MEMBERS)
    assert names == ("agn", "psr")
    np.testing.assert_array_equal(found, by_hand[0])
    np.testing.assert_allclose(Q, by_hand[1], atol=1e-15)
    level, (index, _) = Level.of(CLASSES, MEMBERS), class_index(y, P, CLASSES)
    for score in (*METRICS.values(), confusion_matrix):
        wanted = score(*class_index(*by_hand, names))
        np.testing.assert_allclose(level.at(score)(index, P), wanted, atol=1e-12)
    assert negative_log_predictive_density(found, Q, names) < negative_log_predictive_density(
        y, P, CLASSES
    )


def test_a_set_has_a_class_where_one_holds_all_of_it(scored):
    y, P = scored
    told = y.tolist()
    told[0], told[1], told[2] = {"bll", "fsrq"}, frozenset({"bll", "psr"}), {"psr"}
    with pytest.warns(UserWarning, match="1 of 200 sources are left out: their labels are sets"):
        found, Q, _ = coarser(told, P, CLASSES, MEMBERS)
    rest = np.r_[0, 2:200]
    np.testing.assert_allclose(Q[:, 1], P[rest, 2])
    assert found[0] == "agn" and found[1] == "psr" and len(found) == 199
    with pytest.raises(InputError, match="the label of row 0 is a set of classes"):
        negative_log_predictive_density(np.array(told, dtype=object), P, CLASSES)


def test_sums_are_probabilities_where_rounding_takes_them_above_one():
    P = np.random.default_rng(1).dirichlet([0.05] * 4, size=20_000)
    inside = np.eye(4)[:, :3] @ np.ones(3)
    assert (P @ inside > 1).any()
    names = ["a", "b", "c", "d"]
    y, Q, _ = coarser(["a"] * len(P), P, names, {"x": names[:3], "y": names[3:]})
    assert Q.max() == 1.0 and (np.abs(Q[:, 0] - P @ inside) < 1e-15).all()
    reliability_curve(y == "x", Q[:, 0])  # refuses what is none


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"agn": ["bll", "fsrq"], "psr": ["psr"]}, "'rdg' is in 0 of the coarser classes"),
        ({"agn": CLASSES, "psr": ["psr"]}, "'psr' is in 2 of the coarser classes"),
    ],
)
def test_what_is_no_division_is_refused(scored, members, message):
    with pytest.raises(InputError, match=message):
        coarser(*scored, CLASSES, members)


def test_labels_that_are_none_of_the_classes_are_refused(scored):
    y, P = scored
    with pytest.raises(InputError, match="class 'snr' of y is none of bll"):
        coarser(["snr", *y[1:]], P, CLASSES, MEMBERS)
    with pytest.raises(InputError, match="199 labels"):
        coarser(y[1:], P, CLASSES, MEMBERS)
