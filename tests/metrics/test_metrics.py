"""Every metric against scikit-learn, a hand calculation or a simulator whose answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from sklearn import metrics as sklearn_metrics

from gpal.errors import InputError
from gpal.metrics import (
    METRICS,
    brier,
    class_counts,
    class_index,
    coarser,
    confusion_matrix,
    entropy,
    error,
    expected_calibration_error,
    expected_nll,
    negative_log_predictive_density,
    precision_recall_f1,
    pure_list,
    reliability_curve,
)


def draw(seed: int, n: int = 300, C: int = 3, concentration: float = 0.5):
    """Probabilities and classes drawn from them: perfectly calibrated by construction."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(C, concentration), size=n)
    y = (rng.random(n)[:, None] > P.cumsum(axis=1)).sum(axis=1)
    return y, P


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_against_scikit_learn(seed, C):
    y, P = draw(seed, C=C)
    labels = np.arange(C)
    call = P.argmax(axis=1)
    assert error(y, P) == pytest.approx(1 - sklearn_metrics.accuracy_score(y, call))
    assert negative_log_predictive_density(y, P) == pytest.approx(
        sklearn_metrics.log_loss(y, P, labels=labels)
    )
    one_hot = np.eye(C)[y]
    columns = [np.mean((P[:, c] - one_hot[:, c]) ** 2) for c in labels]
    assert brier(y, P) == pytest.approx(sum(columns))
    for name, score in (
        ("macro_f1", sklearn_metrics.f1_score),
        ("macro_precision", sklearn_metrics.precision_score),
        ("macro_recall", sklearn_metrics.recall_score),
    ):
        expected = score(y, call, average="macro", labels=labels, zero_division=0.0)
        assert METRICS[name](y, P) == pytest.approx(expected)


def test_by_hand():
    P = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    y = np.array([0, 0, 1])
    assert error(y, P) == pytest.approx(1 / 3)
    assert negative_log_predictive_density(y, P) == pytest.approx(
        -(np.log(0.8) + np.log(0.4) + np.log(0.7)) / 3
    )
    assert brier(y, P) == pytest.approx((2 * 0.04 + 2 * 0.36 + 2 * 0.09) / 3)
    # three different bins of width 1/15: gaps 0.2 (right), 0.6 (wrong), 0.3 (right)
    assert expected_calibration_error(y, P) == pytest.approx((0.2 + 0.6 + 0.3) / 3)
    np.testing.assert_allclose(precision_recall_f1(y, P), [[1, 0.5], [0.5, 1], [2 / 3, 2 / 3]])
    np.testing.assert_allclose(confusion_matrix(y, P), [[0.5, 0.5], [0, 1]])


def test_an_impossible_event_scores_terribly_but_finitely():
    assert negative_log_predictive_density(np.array([1]), np.array([[1.0, 0.0]])) == pytest.approx(
        -np.log(np.finfo(float).tiny)
    )


def test_calibration_error_of_a_calibrated_simulator_is_near_zero():
    assert expected_calibration_error(*draw(0, n=100_000)) < 0.01


def test_calibration_error_of_an_overconfident_simulator_is_the_known_gap():
    rng = np.random.default_rng(1)
    n, says, truth = 100_000, 0.95, 0.7
    P = np.tile([says, 1 - says], (n, 1))
    y = (rng.random(n) > truth).astype(int)
    assert expected_calibration_error(y, P) == pytest.approx(says - truth, abs=0.005)


def test_calibration_error_takes_a_confidence_of_one():
    P = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert expected_calibration_error(np.array([0, 1]), P) == pytest.approx(0.5)


def test_entropy():
    _, P = draw(2)
    np.testing.assert_allclose(entropy(P), scipy_entropy(P, axis=1))
    np.testing.assert_allclose(entropy(np.array([[1.0, 0.0], [0.5, 0.5]])), [0, np.log(2)])


def test_names_of_classes_in_any_order_of_the_columns():
    y, P = draw(3)
    names = np.array(["psr", "bll", "fsrq"])
    for name, metric in METRICS.items():
        assert metric(y, P) == metric(*class_index(names[y], P, classes=names)), name
    for score in (error, brier, negative_log_predictive_density, expected_calibration_error):
        assert score(y, P) == score(names[y], P, classes=names)
    swapped = class_index([1, 0, 1], [[0.2, 0.8]] * 3, classes=[1, 0])[0]
    assert swapped.tolist() == [0, 1, 0]  # numbers that are names
    assert class_index([1, 0], [[0.2, 0.8]] * 2, classes=["0", "1"])[0].tolist() == [1, 0]
    # pandas makes floats of whole numbers of which one is missing
    assert class_index([1, 2, 2], np.eye(3), classes=[1.0, 2.0, 3.0])[0].tolist() == [0, 1, 1]


def test_what_lies_under_a_mask_is_no_label():
    y, P = np.ma.array([0, 1, 0], mask=[0, 0, 1]), np.eye(2)[[0, 1, 1]]
    for name, metric in METRICS.items():
        with pytest.raises(InputError, match="row 2 of y is masked"):
            metric(y, P)
        assert metric(np.ma.array(y.data), P) == metric(y.data, P), name
    with pytest.raises(InputError, match="row 1 of P is masked"):
        class_index([0, 1], np.ma.array(np.eye(2), mask=[[0, 0], [1, 0]]))
    member = np.ma.array([True, True, False], mask=[0, 0, 1])
    with pytest.raises(InputError, match="row 2 of member is masked"):
        pure_list(member, [0.9, 0.8, 0.7], 0.6)


@pytest.mark.parametrize(
    ("y", "P", "classes", "words"),
    [
        ([0, -1], [[0.5, 0.5]] * 2, None, "indices from -1 to 0"),
        ([0, 2], [[0.5, 0.5]] * 2, None, "indices from 0 to 2"),
        ([True, False], [[0.5, 0.5]] * 2, None, "no class indices"),
        (["a", "b"], [[0.5, 0.5]] * 2, None, "give `classes`"),
        (["a", "c"], [[0.5, 0.5]] * 2, ["a", "b"], "class 'c' of y is none of a, b"),
        (["a", "b"], [[0.5, 0.5]] * 2, ["a", "a"], "as many different classes"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]], None, "row 1 of P holds no probabilities"),
        ([0, 1], [[0.5, 0.5], [np.nan, 0.5]], None, "row 1 of P holds no probabilities"),
        ([0, 1], [[1.5, -0.5], [0.5, 0.5]], None, "row 0 of P holds no probabilities"),
        ([0, 1, 1], [[0.5, 0.5]] * 2, None, r"y has shape \(3,\) and P \(2, 2\)"),
        ([], np.zeros((0, 2)), None, "one class per source"),
    ],
)
def test_what_would_be_scored_wrongly_is_refused(y, P, classes, words):
    with pytest.raises(InputError, match=words):
        brier(np.array(y), np.array(P), classes)


def test_a_class_without_a_source_has_no_recall_and_is_in_no_mean():
    y, P = [0, 1, 1], np.eye(3)[[0, 1, 1]]
    np.testing.assert_array_equal(precision_recall_f1(y, P), [[1, 1, np.nan]] * 3)
    np.testing.assert_array_equal(confusion_matrix(y, P), [[1, 0, 0], [0, 1, 0], [np.nan] * 3])
    for name in ("macro_precision", "macro_recall", "macro_f1", "macro_auc"):
        assert METRICS[name](y, P) == 1
    taken = np.eye(3)[[0, 1, 2]]  # one is taken for it: no source of it, but a wrong prediction
    np.testing.assert_array_equal(precision_recall_f1(y, taken)[:, 2], [0, np.nan, np.nan])
    assert METRICS["macro_precision"](y, taken) == pytest.approx(2 / 3)
    assert METRICS["macro_recall"](y, taken) == 0.75


def test_numbers_beside_classes_that_are_text_of_digits():
    P = [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(InputError, match="give y as text"):
        error([1, 2], P, classes=["1", "2"])
    assert error(["1", "2"], P, classes=["1", "2"]) == 0
    assert error([0, 1], P, classes=["0", "1"]) == 0  # the same either way


@pytest.mark.parametrize(
    "score",
    [
        entropy,
        class_counts,
        lambda P: expected_nll(P[None]),
        lambda P: coarser(["a", "b", "a"], P, ["a", "b"], {"A": ["a"], "B": ["b"]}),
    ],
)
def test_masked_probabilities_are_no_probabilities(score):
    mask = [[False, False], [False, False], [True, True]]
    P = np.ma.array([[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]], mask=mask)
    with pytest.raises(InputError, match="is masked"):
        score(P)


def test_probabilities_in_a_frame_go_by_their_names():
    P = pd.DataFrame({"psr": [0.9, 0.8, 0.3], "bll": [0.1, 0.2, 0.7]}, index=list("abc"))
    y = pd.Series(["psr", "psr", "bll"], index=list("abc"))
    classes = ["bll", "psr"]
    for score in (negative_log_predictive_density, expected_calibration_error):
        with pytest.raises(InputError, match="P has the columns psr, bll and the classes are bll"):
            score(y, P, classes=classes)
    with pytest.raises(InputError, match="P has the columns psr, bll"):
        coarser(y, P, classes, {"all": classes})
    with pytest.raises(InputError, match="row 0 of P is 'a' and of y 'c'"):
        error(y[::-1], P[classes], classes)
    with pytest.raises(InputError, match="row 0 of P is 'a' and of y 'c'"):
        coarser(y[::-1], P[classes], classes, {"all": classes})
    numbered = pd.DataFrame({7: [0.1, 0.2], 3: [0.9, 0.8]})
    with pytest.raises(InputError, match="P has the columns 7, 3 and the classes are 3, 7"):
        error([3, 3], numbered, classes=[3, 7])
    of_tables = P.rename(columns="p_{}".format)[["p_bll", "p_psr"]]
    assert error(y, of_tables, classes) == error(y, P[classes], classes)
    anew = P[classes].reset_index(drop=True)  # rows that are only numbered say nothing
    shuffled = y.set_axis([2, 0, 1])
    assert error(shuffled, anew, classes) == error(y, P[classes], classes)
    of_others = y.set_axis(list("xyz"))
    expected = -np.mean(np.log([0.9, 0.8, 0.7]))
    for labels in (y, of_others):
        found = negative_log_predictive_density(labels, P[classes], classes)
        assert found == pytest.approx(expected)


def test_the_nll_to_expect_has_the_floor_of_the_nll():
    P, samples = np.tile([1.0, 0.0], (100, 1)), np.full((50, 100, 2), 0.5)
    found = negative_log_predictive_density(np.arange(100) % 2, P)
    expected = expected_nll(samples, P)
    assert expected["lower"] < found < expected["upper"]
    for wrong in (3.0, np.nan):
        with pytest.raises(InputError, match="P holds no probabilities"):
            expected_nll(samples, np.full((100, 2), wrong))


def test_bins_levels_and_members_that_are_none():
    P, y = np.full((4, 2), 0.5), np.array([0, 1, 0, 1])
    for bins in (0, -3, 2.5):
        with pytest.raises(InputError, match="bins is a whole number above 0"):
            expected_calibration_error(y, P, bins=bins)
        with pytest.raises(InputError, match="bins is a whole number above 0"):
            reliability_curve(y == 0, P[:, 0], bins=bins)
    with pytest.raises(InputError, match="confidence_level is between 0 and 1, got 95"):
        reliability_curve(y == 0, P[:, 0], confidence_level=95)
    member = pd.Series([True, None, False, True], dtype="boolean")
    with pytest.raises(InputError, match="row 1 of member is missing"):
        reliability_curve(member, P[:, 0])
