"""The number of inducing points: traces by solving from scratch; a kernel without a tail."""

import gpflow
import numpy as np
import pytest

from gpal.inference.conditional_variance import half_trace, points_needed

rng = np.random.default_rng(3)
X, theta = rng.normal(size=(40, 2)), rng.uniform(size=40)
kernel = gpflow.kernels.Matern32(variance=2.0, lengthscales=[0.7, 1.5])


def open_variance(K, chosen):
    """k_ii − k_iᵀ K⁻¹ k_i given the points `chosen`."""
    if not chosen:
        return np.diag(K)
    rows = K[chosen]
    return np.diag(K) - (rows * np.linalg.solve(K[np.ix_(chosen, chosen)], rows)).sum(axis=0)


def test_half_trace_is_that_of_the_greedy_points_among_every_second_source():
    K, chosen, expected = kernel(X).numpy(), [], []
    for _ in range(16):
        variance = open_variance(K, chosen)
        expected.append(0.5 * np.mean(theta * variance))
        score = theta * variance
        chosen.append(2 * int(np.argmax(score[::2])))
    np.testing.assert_allclose(half_trace(K, theta, 15), expected, rtol=1e-9)


def test_points_needed_is_the_first_number_that_leaves_the_tolerance():
    left = half_trace(kernel(X).numpy(), theta, 20)
    found = points_needed([kernel], X, theta[:, None], left[7], 20)
    assert found == 7
    assert points_needed([kernel], X, theta[:, None], 0.999 * left[7], 20) == 8
    assert points_needed([kernel], X, theta[:, None], 0.0, 12) == 12


def test_no_more_points_than_every_second_source():
    assert points_needed([kernel], X[:5], theta[:5, None], 0.0, 12) == 3


def test_precisions_add_over_latent_functions_and_kernels():
    half = np.stack([theta / 2, theta / 2], axis=1)
    tolerance = half_trace(kernel(X).numpy(), theta, 20)[9]
    assert points_needed([kernel], X, half, tolerance * 1.0001, 20) == 9
    assert points_needed([kernel, kernel], X, half, tolerance * 1.0001, 20) == 9


@pytest.mark.parametrize("d", [1, 3])
def test_a_linear_kernel_needs_as_many_points_as_it_has_features(d):
    inputs = rng.normal(size=(50, d))
    assert points_needed([gpflow.kernels.Linear()], inputs, np.ones((50, 1)), 1e-9, 20) == d


def test_negative_precisions_ask_for_nothing():
    assert points_needed([kernel], X, -theta[:, None], 1e-9, 20) == 0
