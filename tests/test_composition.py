"""What a researcher puts into a classifier: kernels, points, likelihoods, weights."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest

from gpal import GPClassifier, InputError
from gpal.likelihoods import make_likelihood

k = gpflow.kernels
EXACT = {"input_noise": "none", "max_rounds": 0}


@pytest.fixture(scope="module")
def three():
    """(X, y, new X): 60 sources of three classes in units far from one."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[y]
    units = np.array([100.0, 1e-3])
    return X * units + [5.0, 0.0], np.array(["a", "b", "c"])[y], X[::7] * units + [4.0, 1e-4]


def three_kernels():
    return [k.Matern32(2.0, 0.7), k.SquaredExponential(1.0, 1.5), k.Linear(0.5) + k.Constant(0.3)]


def test_a_kernel_per_class_is_that_of_its_class(three):
    """Dirichlet regression: of each class the textbook's regression with the kernel of the list."""
    X, y, new = three
    likelihood = make_likelihood("dirichlet", 3, alpha_eps=0.1)
    model = GPClassifier(likelihood, kernel=three_kernels(), **EXACT).fit(X, y)
    mean, variance = model.predict_latent(new)
    scaled, at = ((A - X.mean(axis=0)) / X.std(axis=0) for A in (X, new))
    for c, kernel in enumerate(three_kernels()):
        alpha = np.where(y == "abc"[c], 1.1, 0.1)
        noise = np.log1p(1 / alpha)
        A = kernel(scaled).numpy() + np.diag(noise)
        cross = kernel(at, scaled).numpy()
        want = cross @ np.linalg.solve(A, np.log(alpha) - noise / 2)
        np.testing.assert_allclose(mean[:, c], want, atol=1e-8)
        explained = np.sum(cross * np.linalg.solve(A, cross.T).T, axis=1)
        np.testing.assert_allclose(variance[:, c], kernel(at).numpy().diagonal() - explained)


@pytest.mark.parametrize("n_inducing", [None, 20])
def test_a_list_of_equal_kernels_is_one_kernel_each(three, n_inducing):
    X, y, new = three
    options = {"input_noise": "none", "max_rounds": 2, "n_inducing": n_inducing}
    listed = GPClassifier(kernel=["rbf"] * 3, **options).fit(X, y)
    separate = GPClassifier(kernel="rbf", shared_kernel=False, **options).fit(X, y)
    np.testing.assert_array_equal(listed.predict_proba(new), separate.predict_proba(new))


def test_a_list_is_copied_and_holds_one_for_each_latent_function(three):
    X, y, _ = three
    kernels = three_kernels()
    GPClassifier(kernel=kernels, n_inducing=10, max_rounds=1).fit(X, y)
    assert float(kernels[0].variance.numpy()) == 2.0
    with pytest.raises(InputError, match="list of 3, one is needed for 1"):
        GPClassifier("bernoulli_logit", kernel=kernels, **EXACT).fit(X[:40], y[:40])
    with pytest.raises(InputError, match="list of 2, one is needed for 3"):
        GPClassifier(kernel=kernels[:2], **EXACT).fit(X, y)
    with pytest.raises(InputError, match="list of 2, one is needed for 3"):
        GPClassifier(kernel=kernels[:2]).check_settings(3, 2)


def test_inducing_points_are_taken_in_the_units_of_x(three):
    X, y, new = three
    kernel = k.Matern32(2.0, 0.7)
    full = GPClassifier(kernel=kernel, **EXACT).fit(X, y)
    every = GPClassifier(kernel=kernel, inducing_points=X, **EXACT).fit(X, y)
    assert every.settings_["gp"] == "sparse"
    np.testing.assert_allclose(every.predict_proba(new), full.predict_proba(new), atol=1e-5)
    some = GPClassifier(kernel=kernel, inducing_points=X[::4].tolist(), **EXACT).fit(X, y)
    np.testing.assert_allclose(some.model_.gp.Z * some.width_ + some.offset_, X[::4], rtol=1e-12)
    assert some.settings_["inducing_points"] == 15
    moved = GPClassifier(
        kernel=kernel, inducing_points=X[::4], learn_inducing=True, max_rounds=1
    ).fit(X, y)
    assert moved.bound_ > some.bound_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inducing_points": np.zeros((4, 3))}, r"shape \(4, 3\), not \(m, 2\)"),
        ({"inducing_points": [1.0, 2.0]}, r"shape \(2,\)"),
        ({"inducing_points": np.zeros((0, 2))}, "one row each"),
        ({"inducing_points": [[0.0, 1.0], [np.nan, 0.0]]}, "row 1 of inducing_points"),
        ({"inducing_points": np.eye(2), "n_inducing": 2}, "either n_inducing or"),
        ({"shared_kernel": "yes"}, "shared_kernel must be True or False"),
    ],
)
def test_points_that_are_none_are_refused(three, options, message):
    with pytest.raises(InputError, match=message):
        GPClassifier(**options).check_settings(3, 2)
    if "inducing_points" in options:
        with pytest.raises(InputError, match=message):
            GPClassifier(**options).fit(*three[:2])
