"""Choosing several targets, and what keeps a target off the list."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpal.active.batch import diverse_batch, random_batch, top_batch
from gpal.active.observing import Observing, declination_range, exposure_time
from gpal.errors import InputError


def test_near_duplicates_are_not_asked_for_twice():
    """Five tight groups of near-copies, the best group first: one from each."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(5), 10)
    X = np.column_stack([10.0 * group, group**2.0]) + 1e-3 * rng.normal(size=(50, 2))
    score = 1.0 - 0.05 * group + 1e-3 * rng.random(50)
    assert set(group[top_batch(score, 5)]) == {0}
    chosen = diverse_batch(score, X, 5)
    assert sorted(group[chosen]) == [0, 1, 2, 3, 4]
    for g in range(5):
        assert chosen[group[chosen] == g] == np.flatnonzero(group == g)[score[group == g].argmax()]


def test_copies_of_one_source_still_fill_a_batch():
    score = np.linspace(1, 2, 8)
    assert len(set(diverse_batch(score, np.zeros((8, 2)), 3, beta=2))) == 3


@pytest.mark.parametrize("choose", [top_batch, random_batch])
def test_nan_is_never_taken(choose):
    score = np.array([np.nan, 1.0, np.nan, 3.0, 2.0])
    assert set(choose(score, 3)) == {1, 3, 4}
    with pytest.raises(InputError, match="3 left"):
        choose(score, 4)
    with pytest.raises(InputError, match="a whole number from 1"):
        choose(score, 0)


def test_missing_values_do_not_stop_a_diverse_batch():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[::4, 1] = np.nan
    assert len(set(diverse_batch(np.arange(30.0), X, 4))) == 4


def test_time_and_limits():
    magnitude = np.array([18.0, 19.0, 21.0, np.nan])
    observing = Observing(
        time=np.array([1.0, 2.0, 1.0, 1.0]),
        visible=np.array([True, True, True, True]),
        limits={"mag": (None, 20.0)},
    )
    weighted = observing.weigh(np.ones(4), {"mag": magnitude})
    assert weighted[:2].tolist() == [1.0, 0.5] and np.isnan(weighted[2:]).all()
    with pytest.raises(InputError, match="no quantity 'flux'"):
        Observing(limits={"flux": (0.0, None)}).weigh(np.ones(2), {"mag": magnitude})
    with pytest.raises(InputError, match="row 1"):
        Observing(time=np.array([1.0, 0.0])).weigh(np.ones(2))
    with pytest.raises(InputError, match="visible"):
        Observing(visible=np.array([True])).weigh(np.ones(2))


def test_exposure_time_keeps_signal_to_noise():
    """Sky-limited: S/N ∝ flux √t."""
    magnitude = np.array([17.0, 18.0, 20.0, 25.0])
    time = exposure_time(magnitude, 18.0, limit=22.0)
    assert np.allclose((10 ** (-0.4 * magnitude) * np.sqrt(time))[:3], 10 ** (-0.4 * 18.0))
    assert np.isnan(time[3])


def test_declination_range():
    low, high = declination_range(-30.0, 2.0)
    assert np.isclose(low, -90.0) and np.isclose(high, 30.0)
    with pytest.raises(InputError, match="airmass"):
        declination_range(0.0, 0.5)


@pytest.mark.parametrize(
    ("visible", "said"),
    [
        (["yes", "no"], "column 'visible', row 0 is 'yes'"),
        ([1.0, np.nan], "column 'visible', row 1 is nan"),
        ([True, None], "column 'visible', row 1 is None"),
    ],
)
def test_what_is_not_true_or_false_is_not_visible(visible, said):
    with pytest.raises(InputError, match=said):
        Observing(visible=visible).observable(2)
    assert Observing(visible=[1, 0]).observable(2).tolist() == [True, False]


@pytest.mark.parametrize(
    "limit", [(3.0, 1.0), (np.nan, 1.0), ("low", None), ("-30", "40"), 3.0, (1.0, 2.0, 3.0)]
)
def test_a_limit_that_is_none(limit):
    with pytest.raises(InputError, match="the limit on 'mag' is"):
        Observing(limits={"mag": limit})


def test_times_and_quantities_are_numbers():
    with pytest.raises(InputError, match="column 'time', row 1 is -inf"):
        Observing(time=np.array([1.0, -np.inf])).weigh(np.ones(2))
    with pytest.raises(InputError, match="row 0 of time is 'long'"):
        Observing(time=["long", "short"]).weigh(np.ones(2))
    with pytest.raises(InputError, match="row 1 of mag is 'faint'"):
        Observing(limits={"mag": (1, 2)}).observable(2, {"mag": [1.5, "faint"]})
    assert np.isnan(Observing(time=np.array([1.0, np.nan])).weigh(np.ones(2))[1])


def test_what_is_masked_cannot_be_observed():
    masked = np.ma.array([1.0, 1e-9], mask=[False, True])
    assert np.isnan(Observing(time=masked).weigh(np.ones(2))).tolist() == [False, True]
    limited = Observing(limits={"mag": (-1, 2)})
    assert limited.observable(2, {"mag": masked}).tolist() == [True, False]
    for visible in (np.ma.array([True, True], mask=[0, 1]), pd.array([True, pd.NA], "boolean")):
        with pytest.raises(InputError, match="column 'visible', row 1 is"):
            Observing(visible=visible).observable(2)


def test_scores_below_zero_are_not_divided_by_times():
    """-1 at ten times the cost would be -0.1, and better."""
    score = np.array([-1.0, -1.0])
    with pytest.raises(InputError, match="a score is -1"):
        Observing(time=np.array([1.0, 10.0])).weigh(score)
    assert Observing(time=np.array([2.0, 2.0])).weigh(score).tolist() == [-0.5, -0.5]
    assert Observing(time=np.array([1.0, 10.0])).weigh(np.array([-1e-17, 1.0]))[1] == 0.1


def test_a_source_that_cannot_be_observed_has_no_other_time():
    found = Observing(time=[2.0, 2.0, np.nan]).weigh(np.array([-1.0, -2.0, -3.0]))
    np.testing.assert_array_equal(found, [-0.5, -1.0, np.nan])


def test_a_feature_that_was_measured_nowhere_is_no_reason_to_warn():
    X = np.column_stack([np.arange(40.0), np.full(40, np.nan)])
    score = np.random.default_rng(0).random(40)
    chosen = diverse_batch(score, X, 3)  # a warning is an error here
    np.testing.assert_array_equal(chosen, diverse_batch(score, X[:, :1], 3))


def test_a_batch_is_in_the_order_of_its_scores():
    """Where there are fewer distinct sources than asked for, too."""
    score = np.array([0.9, 0.85, 0.8, 0.3, 0.2, 0.1])
    X = np.array([[0.0], [0.0], [0.0], [5.0], [5.0], [5.0]])
    chosen = diverse_batch(score, X, 4)
    assert (np.diff(score[chosen]) < 0).all()


def test_a_masked_magnitude_has_no_exposure_time():
    magnitude = np.ma.array([15.0, 20.0, 0.0], mask=[False, False, True])
    time = exposure_time(magnitude, 15.0)
    np.testing.assert_allclose(time, [1.0, 1e4, np.nan])
    assert np.isnan(Observing(time=time).weigh(np.array([0.5, 0.9, 0.1]))[2])
