"""Every treatment of input noise; a new one fails the walk until it has its checks here."""

from __future__ import annotations

import numpy as np
import pytest

from gpal.arrays import as_measurements
from gpal.errors import InputError
from gpal.inference.input_rows import InputRows
from gpal.input_noise import INPUT_NOISES, make_input_noise
from gpal.input_noise.first_order import FirstOrder
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.population import Population
from gpal.input_noise.true_input import TrueInput

POPULATION = Population(
    np.array([0.4, 0.6]),
    np.array([[1.5, 0.0, 0.5], [-1.0, 0.3, 0.0]]),
    np.array([np.diag([0.6, 1.0, 0.8]) + 0.3, np.diag([0.4, 0.7, 1.5]) - 0.2]),
)
SINGLE = Population(np.ones(1), POPULATION.means[:1], POPULATION.covariances[:1])


def measurements(n: int = 12, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), np.exp(rng.uniform(-3.0, 0.0, size=(n, 3)))


def make_rows(treatment, X, X_err, population=POPULATION, **options):
    """(rows, R) of a prediction, as arrays."""
    inputs = InputRows(TrueInput(population, **options), treatment)
    rows, root = (
        part.numpy() for part in inputs.prediction(*inputs.measurement(as_measurements(X, X_err)))
    )
    return rows, root if root.shape[2] else np.zeros((*X.shape, X.shape[1]))  # exact: no columns


def check_none(treatment, X, X_err):
    rows, root = make_rows(treatment, X, X_err)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(root, 0.0)


def check_first_order(treatment, X, X_err):
    """Moments of the mixture p(x | x̃); under a flat prior the measurement itself."""
    rows, root = make_rows(treatment, X, X_err)
    share, mean, covariance = POPULATION.posterior(X, X_err)
    overall = np.einsum("ij,ijd->id", share, mean)
    away = mean - overall[:, None]
    total = np.einsum("ij,ijde->ide", share, covariance + away[..., None] * away[..., None, :])
    np.testing.assert_allclose(rows, overall, rtol=1e-10)
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), total, rtol=1e-8, atol=1e-12)
    rows, root = make_rows(treatment, X, X_err, flat=True)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(root, X_err[:, :, None] * np.eye(3))


def check_integrated(treatment, X, X_err):
    """Moments of many nodes are those of p(x | x̃); 512 nodes: a few per cent."""
    many = Integrated(nodes=512)
    rows, root = make_rows(many, X, X_err)
    nodes = rows.reshape(len(X), 512, 3)
    np.testing.assert_array_equal(root, 0.0)
    share, mean, covariance = POPULATION.posterior(X, X_err)
    overall = np.einsum("ij,ijd->id", share, mean)
    spread = mean - overall[:, None]
    total = np.einsum("ij,ijde->ide", share, covariance + spread[..., None] * spread[..., None, :])
    deviation = np.sqrt(np.diagonal(total, axis1=1, axis2=2))
    error = (nodes.mean(axis=1) - overall) / deviation
    assert np.abs(error).max() < 0.05
    got = np.einsum("isd,ise->ide", nodes - overall[:, None], nodes - overall[:, None]) / 512
    assert np.abs((got - total) / (deviation[:, :, None] * deviation[:, None, :])).max() < 0.08
    assert treatment.nodes > 1


def check_drawn(treatment, X, X_err):
    """Prediction on the nodes of p(x | x̃), training from its moments."""
    for got, want in zip(
        make_rows(treatment, X, X_err), make_rows(Integrated(), X, X_err), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    check_training_moments(treatment, X, X_err)


def check_resampled(treatment, X, X_err):
    """Prediction at the moments' mean: under a flat prior the measurement itself."""
    rows, root = make_rows(treatment, X, X_err)
    np.testing.assert_array_equal(rows, make_rows(FirstOrder(), X, X_err)[0])
    np.testing.assert_array_equal(root, 0.0)
    np.testing.assert_array_equal(make_rows(treatment, X, X_err, flat=True)[0], X)
    check_training_moments(treatment, X, X_err)


def check_training_moments(treatment, X, X_err):
    inputs = InputRows(TrueInput(POPULATION), treatment)
    assert inputs.nodes == 1 and treatment.gradient_only
    for got, want in zip(
        inputs(*inputs.measurement(as_measurements(X, X_err))),
        make_rows(FirstOrder(), X, X_err),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)


CHECKS = {
    "none": check_none,
    "first_order": check_first_order,
    "analytic": check_first_order,
    "integrated": check_integrated,
    "latent": check_drawn,
    "amortized": check_drawn,
    "resampled": check_resampled,
}


def test_every_treatment_is_checked():
    own = {name for name, kind in INPUT_NOISES.items() if kind.__module__.startswith("gpal.")}
    assert set(CHECKS) == own


@pytest.mark.parametrize("name", INPUT_NOISES)
def test_rows_are_what_the_treatment_says(name):
    CHECKS[name](make_input_noise(name), *measurements())


@pytest.mark.parametrize("name", INPUT_NOISES)
def test_without_errors_the_rows_are_the_measurements_exactly(name):
    X, X_err = measurements()
    treatment = make_input_noise(name)
    rows, root = make_rows(treatment, X, np.zeros_like(X_err))
    np.testing.assert_array_equal(rows, np.repeat(X, treatment.nodes, axis=0))
    np.testing.assert_array_equal(root, 0.0)


@pytest.mark.parametrize("name", INPUT_NOISES)
def test_an_exact_feature_stays_exact_beside_noisy_ones(name):
    X, X_err = measurements()
    X_err[:, 1] = 0.0
    treatment = make_input_noise(name)
    rows, root = make_rows(treatment, X, X_err)
    np.testing.assert_array_equal(rows[:, 1], np.repeat(X[:, 1], treatment.nodes))
    np.testing.assert_array_equal(root[:, 1], 0.0)
    np.testing.assert_array_equal(root[:, :, 1], 0.0)


@pytest.mark.parametrize("name", INPUT_NOISES)
def test_vanishing_errors_lead_to_the_measurements(name):
    X, X_err = measurements()
    treatment = make_input_noise(name)
    rows, root = make_rows(treatment, X, 1e-4 * X_err)
    np.testing.assert_allclose(rows, np.repeat(X, treatment.nodes, axis=0), atol=1e-3)
    assert np.abs(root).max() < 2e-4


@pytest.mark.parametrize("name", INPUT_NOISES)
def test_shapes_and_determinism(name):
    X, X_err = measurements()
    first, second = make_input_noise(name), make_input_noise(name)
    rows, root = make_rows(first, X, X_err)
    assert rows.shape == (len(X) * first.nodes, 3) and root.shape == (len(X), 3, 3)
    for treatment in (first, second):
        again, _ = make_rows(treatment, X, X_err)
        np.testing.assert_array_equal(again, rows)


@pytest.mark.parametrize("name", INPUT_NOISES)
def test_permuting_sources_permutes_everything_error_bars_included(name):
    X, X_err = measurements()
    X[3, 1], X_err[3, 1] = np.nan, np.inf
    order = np.random.default_rng(1).permutation(len(X))
    treatment = make_input_noise(name)
    rows, root = make_rows(treatment, X, X_err)
    moved, moved_root = make_rows(treatment, X[order], X_err[order])
    shape = (len(X), treatment.nodes, 3)
    np.testing.assert_allclose(moved.reshape(shape), rows.reshape(shape)[order], atol=1e-12)
    np.testing.assert_allclose(moved_root, root[order], atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(INPUT_NOISES) - {"none"}))
def test_error_bars_left_behind_are_another_problem(name):
    X, X_err = measurements()
    order = np.random.default_rng(1).permutation(len(X))
    right = make_rows(make_input_noise(name), X[order], X_err[order])
    wrong = make_rows(make_input_noise(name), X[order], X_err)
    assert max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)) > 1e-2


@pytest.mark.parametrize("name", INPUT_NOISES)
@pytest.mark.parametrize("flat", [False, True])
def test_what_was_not_measured_is_completed(name, flat):
    X, X_err = measurements()
    X[2, 0], X_err[2, 0] = np.nan, np.inf
    treatment = make_input_noise(name)
    rows, root = make_rows(treatment, X, X_err, SINGLE, flat=flat)
    assert np.isfinite(rows).all() and np.isfinite(root).all()
    nodes = rows.reshape(len(X), treatment.nodes, 3)[2]
    known = X_err.copy()
    if name == "none":
        known = np.where(np.isinf(X_err), np.inf, 0.0)
    _, mean, covariance = SINGLE.posterior(X, known)
    spread = np.sqrt(covariance[2, 0, 0, 0])
    np.testing.assert_allclose(nodes[:, 0].mean(), mean[2, 0, 0], atol=0.15 * spread)
    if name in ("first_order", "analytic"):
        np.testing.assert_allclose(np.sum(root[2, 0] ** 2), spread**2, rtol=1e-6)
    if name == "integrated":
        np.testing.assert_allclose(nodes[:, 0].std(), spread, rtol=0.3)


@pytest.mark.parametrize("name", sorted(set(INPUT_NOISES) - {"none"}))
@pytest.mark.parametrize("population", [SINGLE, POPULATION])
def test_a_huge_error_is_no_measurement(name, population):
    X, X_err = measurements()
    huge, missing, X_nan = X_err.copy(), X_err.copy(), X.copy()
    huge[:, 2], missing[:, 2], X_nan[:, 2] = 3e3, np.inf, np.nan
    for got, want in zip(
        make_rows(make_input_noise(name), X, huge, population),
        make_rows(make_input_noise(name), X_nan, missing, population),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("nodes", [1, 2, 16])
def test_integrated_nodes_are_balanced_about_the_posterior_mean(nodes):
    X, X_err = measurements()
    rows, _ = make_rows(Integrated(nodes=nodes), X, X_err, SINGLE)
    _, mean, _ = SINGLE.posterior(X, X_err)
    centred = rows.reshape(len(X), nodes, 3).mean(axis=1)
    np.testing.assert_allclose(centred, mean[:, 0], atol=1e-12)


def test_names():
    treatment = Integrated(nodes=3)
    assert make_input_noise(treatment) is treatment
    with pytest.raises(
        InputError, match="no input noise 'fo'; there are: amortized, analytic, first_order"
    ):
        make_input_noise("fo")
