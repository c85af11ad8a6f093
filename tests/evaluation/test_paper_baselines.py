"""The baselines of the papers learn, and give distributions."""

import numpy as np
import pytest

from gpal.evaluation.baselines import augment, kernel_ridge, least_squares_gp, one_vs_rest
from gpal.measurements import pack


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    y = np.arange(180) % 3
    X = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])[y] + rng.normal(size=(180, 2))
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("make", [least_squares_gp, lambda: kernel_ridge(20)])
@pytest.mark.parametrize("num_classes", [2, 3])
def test_platt_scaled_scores(blobs, make, num_classes):
    X, y = blobs
    rows = y < "d" if num_classes == 3 else y < "c"
    X, y = X[rows], y[rows]
    X[0, 0] = np.nan  # not measured
    model = make().fit(X[:90], y[:90])
    P = model.predict_proba(X[90:])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    nll = -np.log(P[np.arange(len(P)), np.searchsorted(model.classes_, y[90:])]).mean()
    assert nll < 0.8 * np.log(num_classes)


@pytest.mark.slow
def test_one_against_the_rest_keeps_error_bars(blobs):
    X, y = blobs
    packed = pack(X, np.full(X.shape, 0.3))
    model = one_vs_rest().fit(packed[:100], y[:100])
    P = model.predict_proba(packed[100:])
    nll = -np.log(P[np.arange(80), np.searchsorted(model.classes_, y[100:])]).mean()
    assert nll < 0.8 * np.log(3)
    wider = model.predict_proba(pack(X[100:], np.full((80, 2), 1.5)))
    assert wider.max(axis=1).mean() < P.max(axis=1).mean()


def test_augmentation_adds_copies_moved_by_the_error_of_each_value():
    X, y = np.zeros((2000, 3)), np.arange(2000)
    X_err = np.tile([0.0, 0.3, 2.0], (2000, 1))
    X[:5, 1], X_err[:5, 1] = np.nan, np.inf
    got, labels = augment(X, X_err, y, copies=2, random_state=1)
    np.testing.assert_array_equal(got[:2000], X)
    np.testing.assert_array_equal(labels, np.tile(y, 3))
    drawn = got[2000:]
    assert np.isnan(drawn[:5, 1]).all() and np.isnan(drawn).sum() == 10
    np.testing.assert_allclose(np.nanstd(drawn, axis=0), [0.0, 0.3, 2.0], rtol=0.05)
    assert abs(np.corrcoef(drawn[:2000, 2], drawn[2000:, 2])[0, 1]) < 0.1
    np.testing.assert_array_equal(got, augment(X, X_err, y, copies=2, random_state=1)[0])
