"""Overlap, support, weights and calibration in bins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from gpal.arrays import as_measurements
from gpal.errors import InputError
from gpal.evaluation.covariate_shift import (
    calibration_by,
    effective_sample_size,
    error_size,
    importance_weights,
    outside_support,
    overlap,
    overlap_by_feature,
    quantile_bins,
)
from gpal.measurements import Measurements


def test_overlap_of_normals():
    rng = np.random.default_rng(0)
    a, b, far = rng.normal(0, 1, 20000), rng.normal(1, 1, 20000), rng.normal(50, 1, 300)
    # ∫ min of two unit normals at distance 1 is 2 Φ(−1/2); bins can only hide a difference
    exact = 2 * norm.cdf(-0.5)
    assert exact - 0.01 < overlap(a, b)["overlap"] < exact + 0.03
    assert overlap(a, b, bins=100)["overlap"] == pytest.approx(exact, abs=0.01)
    assert overlap(a, far)["overlap"] == 0
    assert overlap(a, far)["ks"] == 1
    assert overlap(a[:10000], a[10000:])["overlap"] > 0.98


def test_overlap_leaves_out_what_was_not_measured():
    a = np.array([1.0, 2.0, 3.0, np.nan])
    assert overlap(a, a[:3]) == overlap(a[:3], a)
    assert np.isnan(overlap(np.full(3, np.nan), a)["overlap"])


def test_measurements_in_place_of_values():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(200, 2)), rng.normal(0.5, 1, size=(150, 2))
    known, asked = (Measurements(v, 0.1, ("a", "b")) for v in (X, Z))
    np.testing.assert_array_equal(outside_support(known, asked), outside_support(X, Z))
    np.testing.assert_array_equal(importance_weights(known, asked), importance_weights(X, Z))
    by_feature = overlap_by_feature(known, asked)
    assert list(by_feature) == ["a", "b"]
    assert by_feature["b"] == overlap(X[:, 1], Z[:, 1])


def test_support_flags_one_in_a_hundred_and_all_that_are_far():
    rng = np.random.default_rng(1)
    labelled, alike = rng.normal(size=(2000, 3)), rng.normal(size=(5000, 3))
    assert 0.004 < outside_support(labelled, alike).mean() < 0.02
    far = alike[:50] + 20
    assert outside_support(labelled, far).all()
    hole = alike[:50].copy()
    hole[:, 0] = np.nan  # not measured: judged by the rest
    assert outside_support(labelled, hole).mean() < 0.1


def test_weights_make_labelled_sources_look_like_targets():
    rng = np.random.default_rng(2)
    labelled, target = rng.normal(0, 1, (4000, 1)), rng.normal(0.7, 1, (3000, 1))
    weights = importance_weights(labelled, target)
    assert weights.mean() == pytest.approx(1)
    # the exact density ratio of the two normals
    exact = norm.pdf(labelled[:, 0], 0.7) / norm.pdf(labelled[:, 0], 0)
    assert np.corrcoef(weights, exact)[0, 1] > 0.98
    assert np.average(labelled[:, 0], weights=weights) == pytest.approx(0.7, abs=0.08)
    assert 0 < effective_sample_size(weights) < 4000
    assert effective_sample_size(np.ones(7)) == pytest.approx(7)


def test_error_size_is_the_rms_of_what_was_measured():
    X_err = np.array([[3.0, 0.0, 4.0], [np.inf, 0.0, 2.0], [np.inf] * 3])
    np.testing.assert_allclose(
        error_size(as_measurements(np.zeros((3, 3)), X_err), np.array([1.0, 1.0, 2.0])),
        [np.sqrt((9 + 4) / 2), 1.0, np.nan],  # of nothing measured nothing is known
    )
    assert error_size(as_measurements(np.zeros((2, 3))), np.ones(3)).tolist() == [0, 0]


def test_quantile_bins_are_equally_filled():
    values = np.r_[np.random.default_rng(0).normal(size=100), np.nan]
    number = quantile_bins(values, 5)
    assert number[-1] == -1
    assert np.bincount(number[:-1]).tolist() == [20] * 5
    assert values[number == 0].max() < values[number == 1].min()


def test_calibration_in_bins_by_hand():
    y = np.array([0, 0, 1, 1])
    P = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]])
    low, high = calibration_by(y, P, np.array([1.0, 2.0, 3.0, 4.0]), bins=2)
    assert (low["from"], low["to"], low["n"], low["accuracy"]) == (1.0, 2.0, 2, 0.5)
    assert low["confidence"] == pytest.approx(0.75)
    assert low["nll"] == pytest.approx(-np.log([0.9, 0.4]).mean())
    assert high["accuracy"] == 1
    assert 0 < high["accuracy_lower"] < 1 and high["accuracy_upper"] == pytest.approx(1)


def test_features_are_found_by_name_in_their_units():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2)) * [1.0, 30.0] + [0.0, 100.0]
    labelled = Measurements(X[:200], 0.1, ("a", "b"), ("", "s"))
    target = Measurements(X[200:], 0.1, ("a", "b"), ("", "s"))
    turned = Measurements(X[200:, ::-1] / [60.0, 1.0], 0.1, ("b", "a"), ("min", ""))
    assert overlap_by_feature(labelled, turned) == overlap_by_feature(labelled, target)
    outside = outside_support(labelled, turned)
    np.testing.assert_array_equal(outside, outside_support(labelled, target))
    weights = importance_weights(labelled, turned)
    np.testing.assert_allclose(weights, importance_weights(labelled, target), rtol=1e-6)
    with pytest.raises(InputError, match="feature 'b', which the sources lack"):
        outside_support(labelled, Measurements(X[200:], 0.1, ("a", "c")))


def test_what_is_masked_is_not_measured():
    masked = np.ma.array([1.0, 2, 3, -999], mask=[0, 0, 0, 1])
    assert overlap(masked, np.array([1.0, 2, 3]))["overlap"] == 1
    X = np.random.default_rng(0).normal(size=(50, 2))
    with_mask, with_nan = np.ma.array(X, mask=False), X.copy()
    with_mask[0, 0], with_nan[0, 0] = -999.0, np.nan
    with_mask.mask[0, 0] = True
    for function in (importance_weights, outside_support):
        np.testing.assert_array_equal(function(with_mask, X), function(with_nan, X))
    values = np.ma.array(np.arange(50.0), mask=np.arange(50) < 10)
    P, y = np.full((50, 2), 0.5), np.arange(50) % 2
    assert calibration_by(y, P, values, bins=2)[0]["from"] == 10
