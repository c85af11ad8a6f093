"""The baselines of the papers learn, and give distributions."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpal.evaluation.baselines import (
    augment,
    cross_validated_kernel_ridge,
    kernel_ridge,
    laplace_gp,
    least_squares_gp,
    one_vs_rest,
    sparse_gp_regression,
)
from gpal.evaluation.sparse_regression import SparseLabelRegression
from gpal.measurements import pack


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    y = np.arange(180) % 3
    X = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])[y] + rng.normal(size=(180, 2))
    return X, np.array(["a", "b", "c"])[y]


MAKERS = {
    "least_squares_gp": least_squares_gp,
    "kernel_ridge": lambda: kernel_ridge(20),
    "cross_validated_kernel_ridge": lambda: cross_validated_kernel_ridge(20),
    "sparse_gp_regression": lambda: sparse_gp_regression(15),
    "laplace_gp": laplace_gp,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("num_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
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


def test_with_every_source_an_inducing_point_sparse_regression_is_the_full_one():
    """Against scikit-learn's at the hyper-parameters that were learned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=40) > 0.8, "b", "a")
    sparse = SparseLabelRegression(40).fit(X, y)
    model = sparse.regressor_
    variance, length = (
        float(p.numpy()) for p in (model.kernel.variance, model.kernel.lengthscales)
    )
    noise = float(model.likelihood.variance.numpy())
    kernel = ConstantKernel(variance) * RBF(length)
    full = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
    target = np.where(y == "b", 1.0, -1.0)
    full.fit(X, target - target.mean())
    new = rng.normal(size=(30, 2))
    expected = full.predict(new) + target.mean()
    np.testing.assert_allclose(sparse.decision_function(new), expected, atol=1e-4)
    assert 0.01 < noise < 0.9 and length > 0.3  # learned: neither where it began nor at an end
    assert set(sparse.predict(new)) == {"a", "b"}


def test_cross_validation_finds_the_scale_of_a_chequered_problem():
    """Squares of .7 of the features' width: a γ of 1/d sees nothing there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 4.0, size=(500, 2))
    y = (np.floor(X).sum(axis=1) % 2).astype(int)
    plain = kernel_ridge(150).fit(X[:350], y[:350]).score(X[350:], y[350:])
    chosen = cross_validated_kernel_ridge(150).fit(X[:350], y[:350])
    assert chosen.score(X[350:], y[350:]) > max(plain + 0.1, 0.8)
    searches = [fold.estimator for fold in chosen[-1].calibrated_classifiers_]
    assert all(search.best_params_["nystroem__gamma"] >= 1.0 for search in searches)


def test_one_candidate_alone_is_kernel_ridge_with_it(blobs):
    X, y = blobs
    one = cross_validated_kernel_ridge(20, gammas=[0.5], alphas=[1.0])  # those of `kernel_ridge`
    expected = kernel_ridge(20).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(one.fit(X, y).predict_proba(X), expected, atol=1e-6)


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
