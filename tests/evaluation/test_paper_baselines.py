"""The baselines of the papers learn, and give distributions."""

import numpy as np
import pytest

from gpal.evaluation.baselines import kernel_ridge, least_squares_gp, one_vs_rest
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


def test_one_against_the_rest_keeps_error_bars(blobs):
    X, y = blobs
    packed = pack(X, np.full(X.shape, 0.3))
    model = one_vs_rest().fit(packed[:100], y[:100])
    P = model.predict_proba(packed[100:])
    nll = -np.log(P[np.arange(80), np.searchsorted(model.classes_, y[100:])]).mean()
    assert nll < 0.8 * np.log(3)
    wider = model.predict_proba(pack(X[100:], np.full((80, 2), 1.5)))
    assert wider.max(axis=1).mean() < P.max(axis=1).mean()
