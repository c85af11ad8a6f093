"""One wrong value must not decide how wide a feature is."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons

from gpal import GPClassifier
from gpal.model.outliers import without_outliers


def test_one_outlier_costs_little():
    X, y = make_moons(200, noise=0.2, random_state=0)
    X_new, y_new = make_moons(300, noise=0.2, random_state=1)
    wrong = X.copy()
    wrong[0, 0] = 1e6

    def nll(X):
        p = GPClassifier(random_state=0, max_rounds=2).fit(X, y).predict_proba(X_new)
        return -np.log(p[np.arange(300), y_new]).mean()

    assert nll(wrong) < nll(X) + 0.03


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_ordinary_features_are_scaled_by_mean_and_deviation(load):
    X = load(return_X_y=True)[0]
    np.testing.assert_array_equal(without_outliers(X), X)


def test_what_is_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    X[7, 0] = -1e9  # wrong
    X[:50, 1] *= 1e4  # a tail: one in ten
    X[20:, 2] = 0.0  # half the values are equal
    X[3, 3] = np.nan  # not measured
    left_out = np.isnan(without_outliers(X))
    wanted = np.zeros((500, 4), bool)
    wanted[7, 0] = wanted[3, 3] = True
    np.testing.assert_array_equal(left_out, wanted)


def test_one_that_differs_from_all_others_is_what_the_feature_tells():
    X = np.zeros((200, 1))
    X[7] = 5.0
    np.testing.assert_array_equal(without_outliers(X), X)
