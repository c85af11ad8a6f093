"""V = s² σ² + τ² wherever errors are scaled: with covariances, limits, and what is known."""

from __future__ import annotations

import numpy as np
import pytest

from gpal import GPClassifier, Measurements
from gpal.errors import InputError
from gpal.inference.input_rows import InputRows
from gpal.input_noise import make_input_noise
from gpal.input_noise.conditional import error_root
from gpal.input_noise.error_scaling import KNOWN, scaled_errors
from gpal.input_noise.population import Population
from gpal.input_noise.true_input import TrueInput
from gpal.limits import Limits
from gpal.model.completion import completed_blocks

POPULATION = Population(np.ones(1), np.zeros((1, 2)), np.array([[[1.0, 0.6], [0.6, 1.0]]]))
NOT_MEASURED = np.array([[0.3, np.nan]]), np.array([[0.2, np.inf]])


def test_a_covariance_keeps_its_correlation():
    X_err = np.array([[0.3, 0.1], [0.0, 0.2], [np.inf, 0.4], [KNOWN, 0.1]])
    cov = np.einsum("nd,de->nde", X_err**2, np.eye(2))
    cov[0] = [[0.09, 0.027], [0.027, 0.01]]
    found, scaled = scaled_errors(X_err, cov, 2.0, np.array([0.5, 0.0]))
    expected = [[np.hypot(0.6, 0.5), 0.2], [0.5, 0.4], [np.inf, 0.8], [0.0, 0.2]]
    np.testing.assert_allclose(found, expected)
    assert scaled[0, 0, 1] == pytest.approx(0.9 * found[0, 0] * found[0, 1])
    assert scaled_errors(X_err, None, 2.0, 0.0)[1] is None


@pytest.mark.parametrize("input_noise", ["integrated", "first_order"])
@pytest.mark.parametrize("scale", [2.0, 0.6])
def test_one_covariance_in_two_scales_beside_a_limit(input_noise, scale):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2))
    y = np.where(x.sum(axis=1) > 0, "a", "b")
    cov = np.tile([[0.09, 0.081], [0.081, 0.09]], (60, 1, 1))
    X = x + rng.multivariate_normal([0, 0], cov[0], size=60)
    X[:8, 1], cov[:8, 1, :], cov[:8, :, 1] = np.nan, 0.0, 0.0
    cov[:8, 1, 1] = np.inf
    value, confidence = np.zeros((60, 2)), np.zeros((60, 2))
    value[:8, 1], confidence[:8, 1] = 0.5, -0.95
    of = []
    for s in (1.0, scale):
        V = cov / s**2
        errors = np.sqrt(np.einsum("ndd->nd", V))
        limits = Limits(value, confidence, np.zeros((60, 2)))
        sources = Measurements(X, errors, ("a", "b"), covariance=V, limits=limits)
        model = GPClassifier(
            "softmax", input_noise=input_noise, n_inducing=10, max_rounds=0, error_scale=s
        )
        of.append(model.fit(sources, y).predict_proba(sources))
    np.testing.assert_allclose(*of, atol=1e-6)


def test_no_limit_is_left_where_errors_are_scaled_to_nothing():
    X = np.array([[0.1, np.nan], [0.4, 0.5], [0.2, 0.1], [0.9, 0.3]])
    limits = Limits(
        np.where(np.isnan(X), 1.0, 0.0), np.where(np.isnan(X), -0.9, 0.0), np.zeros(X.shape)
    )
    sources = Measurements(X, np.where(np.isnan(X), np.inf, 0.1), ("a", "b"), limits=limits)
    with pytest.raises(InputError, match="error_scale=0 leaves no limits"):
        GPClassifier(error_scale=0.0, n_inducing=2, max_rounds=0).fit(sources, [0, 1, 0, 1])


def test_ignored_errors_have_no_floor_whatever_else_is_missing():
    X = np.random.default_rng(0).normal(size=(5, 2))
    X_err = np.full((5, 2), 0.3)
    x = TrueInput(POPULATION, floor=1.0)
    inputs = InputRows(x, make_input_noise("none"))
    whole = Measurements(X, X_err, ("a", "b"))
    X_err[0, 1] = np.inf
    part = Measurements(np.where(np.isinf(X_err), np.nan, X), X_err, ("a", "b"))
    rows = [inputs(*inputs.measurement(sources))[0].numpy() for sources in (whole, part)]
    np.testing.assert_array_equal(rows[0], X)
    np.testing.assert_allclose(rows[1][1:], X[1:], atol=1e-12)
    assert rows[1][0, 0] == pytest.approx(X[0, 0])
    assert rows[1][0, 1] == pytest.approx(0.6 * X[0, 0])  # of the population, given what was


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("floor", [0.0, 0.7])
def test_what_was_drawn_is_known_whatever_the_floor_is(flat, floor):
    """The spread of the draws is what is not known: no floor comes on top."""
    sources = Measurements(*NOT_MEASURED, ("a", "b"))
    x = TrueInput(POPULATION, flat=flat, floor=floor)
    treatment = make_input_noise("first_order")
    [(_, copies, S)] = [b for b in completed_blocks(sources, x, treatment) if len(b[0])]
    inputs = InputRows(x, treatment)
    mean, root = (part.numpy() for part in inputs.prediction(*inputs.measurement(copies)))
    assert len(mean) == S and np.abs(root[:, 1]).max() < 1e-12
    V = 0.04 + floor**2
    conditional = 1 - 0.36 / (1 + V)
    assert mean[:, 1].var() == pytest.approx(conditional, rel=0.15)


@pytest.mark.parametrize(
    ("scale", "floor"),
    [(1.0, 0.0), (3.0, 0.0), (1.0, 0.5), (3.0, 0.5), (1.0, 0.95), (1.0, 2.0), (0.0, 0.0)],
)
def test_a_flat_population_completes_with_its_own_spread(scale, floor):
    x = TrueInput(POPULATION, flat=True, scale=scale, floor=floor)
    mean, root = (part.numpy() for part in x(*x.measurement(*NOT_MEASURED)).moments())
    V = (scale * 0.2) ** 2 + floor**2
    variance = np.sum(root**2, axis=2)[0]
    assert variance[0] == pytest.approx(V)
    assert variance[1] == pytest.approx(1 - 0.36 / (1 + V))
    assert mean[0, 1] == pytest.approx(0.6 * 0.3 / (1 + V))


def test_the_root_of_what_is_known_is_nothing():
    x = TrueInput(POPULATION, scale=2.0, floor=0.5)
    root = x.scaled(error_root(np.array([[KNOWN, 0.1]]))).numpy()
    np.testing.assert_allclose(root[0], [[0, 0], [0, np.hypot(0.2, 0.5)]])
