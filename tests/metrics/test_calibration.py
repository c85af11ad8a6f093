"""Reliability curves: bins against brute force, intervals against their nominal coverage."""

from __future__ import annotations

import numpy as np
import pytest

from gpal.errors import InputError
from gpal.metrics import reliability_curve


def test_bins_against_brute_force():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    member = rng.random(500) < p
    curve = reliability_curve(member, p, bins=10)
    assert curve.count.sum() == 500
    for b in range(10):
        rows = (p >= b / 10) & (p < (b + 1) / 10)
        assert curve.count[b] == rows.sum()
        assert curve.predicted[b] == pytest.approx(p[rows].mean())
        assert curve.observed[b] == pytest.approx(member[rows].mean())
        assert 0 <= curve.lower[b] <= curve.observed[b] <= curve.upper[b] <= 1


def test_wilson_interval_by_its_formula():
    """Wilson (1927): the roots of (k/n − p)² = z² p(1 − p)/n."""
    member = np.array([True] * 3 + [False] * 7)
    curve = reliability_curve(member, np.full(10, 0.25), bins=1, confidence_level=0.95)
    z, n, k = 1.959963984540054, 10, 3
    roots = np.roots([1 + z**2 / n, -(2 * k / n + z**2 / n), (k / n) ** 2])
    assert [curve.lower[0], curve.upper[0]] == pytest.approx(sorted(roots))


@pytest.mark.parametrize("truth", [0.05, 0.5, 0.9])
def test_intervals_cover_the_true_fraction_as_often_as_they_say(truth):
    rng = np.random.default_rng(1)
    trials, n = 2000, 40
    covered = 0
    for _ in range(trials):
        member = rng.random(n) < truth
        curve = reliability_curve(member, np.full(n, truth), bins=1, confidence_level=0.9)
        covered += curve.lower[0] <= truth <= curve.upper[0]
    assert covered / trials == pytest.approx(0.9, abs=0.06)  # discreteness moves it by a few %


def test_empty_bins_are_nan_and_the_ends_belong_to_the_first_and_last_bin():
    curve = reliability_curve(np.array([False, True]), np.array([0.0, 1.0]), bins=5)
    assert curve.count.tolist() == [1, 0, 0, 0, 1]
    assert np.isnan(curve.observed[1:4]).all() and np.isnan(curve.lower[1:4]).all()
    assert curve.observed[[0, 4]].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("member", "p", "bins", "words"),
    [
        ([True, False], [0.2, np.nan], 5, "row 1: .* is no probability"),
        ([True, False], [0.2, 1.2], 5, "row 1: .* is no probability"),
        ([2, 1], [0.2, 0.3], 5, "member, row 0: 2 does not say whether"),
        ([True], [0.2, 0.3], 5, "give one of each"),
        ([True, False], [0.05, 0.95], np.array([0.2, 0.4, 0.6]), "edges that hold all of them"),
        ([True, False], [0.3, 0.5], np.array([0.6, 0.4, 0.2]), "edges of bins ascend"),
    ],
)
def test_what_is_no_reliability_is_refused(member, p, bins, words):
    with pytest.raises(InputError, match=words):
        reliability_curve(member, p, bins)


def test_a_probability_on_an_edge_is_in_the_bin_above():
    for b in range(1, 5):
        assert reliability_curve([True], [b / 5], bins=5).count[b] == 1
