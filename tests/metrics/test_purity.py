"""Areas under ROC curves, purity and completeness: against counting, one threshold at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpal.errors import InputError
from gpal.metrics import macro_auc, promised_threshold, pure_list, purity_curve, roc_auc


def draw(seed: int, n: int = 80, C: int = 3):
    """Probabilities in steps of a twentieth, so that many tie, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    P = rng.multinomial(20, np.full(C, 1 / C), size=n) / 20
    y = (rng.random(n)[:, None] > P.cumsum(axis=1)).sum(axis=1)
    return np.minimum(y, C - 1), P


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_the_area_is_how_often_a_member_ranks_above_another_source(seed):
    y, P = draw(seed)
    found = roc_auc(y, P)
    for c in range(3):
        members, others = P[y == c, c][:, None], P[y != c, c]
        counted = np.mean((members > others) + 0.5 * (members == others))
        assert found[c] == pytest.approx(counted)
    assert macro_auc(y, P) == pytest.approx(found.mean())
    names = np.array(["psr", "bll", "fsrq"])
    np.testing.assert_array_equal(roc_auc(names[y], P, names), found)


def test_a_class_that_no_source_has_has_no_area():
    y, P = np.array([0, 1, 0, 1]), np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]] * 2)
    assert roc_auc(y, P)[:2].tolist() == [1, 1] and np.isnan(roc_auc(y, P)[2])
    assert macro_auc(y, P) == 1
    assert np.isnan(roc_auc([0, 0], P[:2])).all() and np.isnan(macro_auc([0, 0], P[:2]))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_every_list_is_what_counting_says(seed):
    y, P = draw(seed)
    member, p = y == 1, P[:, 1]
    curve = purity_curve(member, p)
    np.testing.assert_array_equal(curve.threshold, np.unique(p))
    for k, t in enumerate(curve.threshold):
        inside = p >= t
        assert curve.listed[k] == inside.sum()
        assert curve.purity[k] == pytest.approx(member[inside].mean())
        assert curve.completeness[k] == pytest.approx(member[inside].sum() / member.sum())
        assert curve.promised[k] == pytest.approx(p[inside].mean())


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.5, 0.8, 0.9, 1.0]))
def test_the_threshold_reaches_the_purity_and_no_longer_list_does(seed, purity):
    y, P = draw(seed)
    member, p = y == 1, P[:, 1]
    found = pure_list(member, p, purity)
    so_pure = [t for t in np.unique(p) if member[p >= t].mean() >= purity]
    if not so_pure:
        assert found.listed == 0 and np.isnan(found.threshold) and np.isnan(found.completeness)
        assert not (p >= found.threshold).any()
        return
    inside = p >= found.threshold
    assert found.threshold == min(so_pure) and found.listed == inside.sum()
    assert found.purity == pytest.approx(member[inside].mean()) and found.purity >= purity
    assert found.promised == pytest.approx(p[inside].mean())
    assert found.completeness == pytest.approx(member[inside].sum() / member.sum())
    n, k = found.listed, found.purity  # Wilson's interval: where |k − q| = √(q (1 − q) / n)
    for q in (found.lower, found.upper):
        assert abs(k - q) == pytest.approx(np.sqrt(q * (1 - q) / n), rel=1e-4, abs=1e-12)


def test_calibrated_probabilities_promise_the_purity_that_is_found():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, size=200_000)
    found = pure_list(rng.random(len(p)) < p, p, 0.9)
    assert found.purity == pytest.approx(0.9, abs=1e-4)
    assert found.promised == pytest.approx(0.9, abs=0.003)


def test_the_longest_list_that_promises_a_purity():
    p = np.random.default_rng(4).random(50)
    threshold = promised_threshold(p, 0.7)
    assert p[p >= threshold].mean() >= 0.7 > p[p >= p[p < threshold].max()].mean()
    assert np.isnan(promised_threshold(p, 1.0)) and np.isnan(promised_threshold([], 0.5))
    with pytest.raises(InputError, match="purity is a fraction, got 70"):
        promised_threshold(p, 70)


@pytest.mark.parametrize("p, n", [(0.8, 10), (0.95, 20), (0.9, 10), (0.1, 1000)])
def test_equal_probabilities_promise_themselves(p, n):
    """Their sum is rounded."""
    assert promised_threshold(np.full(n, p), p) == p


def test_without_a_member_no_list_is_pure_and_none_complete():
    curve = purity_curve([False, False], [0.2, 0.7])
    assert curve.purity.tolist() == [0, 0] and np.isnan(curve.completeness).all()
    assert pure_list([False, False], [0.2, 0.7]).listed == 0
    assert pure_list([], []).listed == 0 and len(purity_curve([], []).threshold) == 0


@pytest.mark.parametrize(
    ("member", "p", "purity", "words"),
    [
        ([True], [0.5, 0.5], 0.9, "one of each per source"),
        ([[True, False]], [[0.5, 0.5]], 0.9, "a class at a time"),
        ([True, False], [0.5, 1.5], 0.9, "row 1: 1.5 is no probability"),
        ([True], [np.nan], 0.9, "row 0: nan"),
        ([True], [0.5], 90, "purity is a fraction, got 90"),
        ([True], [0.5], 0.0, "purity is a fraction"),
    ],
)
def test_what_cannot_be_listed_is_refused(member, p, purity, words):
    with pytest.raises(InputError, match=words):
        pure_list(member, p, purity)
