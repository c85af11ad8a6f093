"""From measurements to probabilities: limits and symmetries that hold for every treatment."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest

from gpal.arrays import as_measurements
from gpal.classifier import GPClassifier
from gpal.inference import shared_graph
from gpal.inference.shared_graph import forget_graphs
from gpal.inference.streaming import Rows
from gpal.input_noise import INPUT_NOISES
from gpal.model.fit import fit_model
from gpal.model.gaussian_process import inducing_points

# The others, which draw their inputs, are in input_noise/test_drawn_fits.py.
ON_ENGINE = [kind.name for kind in INPUT_NOISES.classes() if not kind.gradient_only]
NOISE_AWARE = sorted(set(ON_ENGINE) - {"none"})
RNG = np.random.default_rng(0)
N, D = 40, 2
X = RNG.normal(size=(N, D))
X_ERR = np.exp(RNG.uniform(-2.5, -0.3, size=(N, D)))
LABELS = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * RNG.normal(size=N) > 0.4).astype(int)
NEW, NEW_ERR = RNG.normal(size=(9, D)), np.exp(RNG.uniform(-2.5, -0.3, size=(9, D)))


def fitted(input_noise, X=X, X_err=X_ERR, labels=LABELS, **options):
    options = {"likelihood": "bernoulli_logit", "kernel": "rbf", "max_rounds": 0, **options}
    options_of = GPClassifier(input_noise=input_noise, **options)
    return fit_model(options_of, as_measurements(X, X_err), labels, seed=0)


def proba(model, X, X_err):
    return model.predict_proba(as_measurements(X, X_err))


@pytest.fixture(scope="module")
def models():
    return {name: fitted(name) for name in ON_ENGINE}


@pytest.fixture(scope="module")
def noise_free():
    return fitted("none", X_err=np.zeros_like(X))


@pytest.mark.parametrize("name", ON_ENGINE)
def test_without_errors_every_treatment_is_the_noise_free_model(name, noise_free):
    exact = np.zeros_like(NEW)
    model = fitted(name, X_err=np.zeros_like(X))
    np.testing.assert_allclose(model.bound, noise_free.bound, rtol=1e-12)
    np.testing.assert_allclose(proba(model, NEW, exact), proba(noise_free, NEW, exact), rtol=1e-12)


@pytest.mark.parametrize("name", ON_ENGINE)
def test_small_errors_lead_to_the_noise_free_model(name, noise_free):
    """Through the treatment's own path, on inducing points at every source."""
    model = fitted(name, X_err=1e-5 * X_ERR)
    np.testing.assert_allclose(model.bound, noise_free.bound, rtol=1e-4)
    np.testing.assert_allclose(
        proba(model, NEW, 1e-5 * NEW_ERR),
        proba(noise_free, NEW, np.zeros_like(NEW)),
        atol=1e-4,
    )


@pytest.mark.parametrize("name", ON_ENGINE)
def test_probabilities_are_normalised_repeatable_and_follow_the_sources(name, models):
    model, order = models[name], np.random.default_rng(1).permutation(len(NEW))
    p = proba(model, NEW, NEW_ERR)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba(model, NEW, NEW_ERR), p)
    np.testing.assert_allclose(proba(model, NEW[order], NEW_ERR[order]), p[order], rtol=1e-9)
    std = model.deviation(as_measurements(NEW, NEW_ERR), np.ones(2))
    assert std.shape == p.shape and (std > 0).all() and (std < 0.5).all()


@pytest.mark.parametrize("name", ON_ENGINE)
def test_order_of_training_sources_does_not_matter_but_whose_error_it_is_does(name, models):
    order = np.random.default_rng(2).permutation(N)
    p = proba(models[name], NEW, NEW_ERR)
    together = fitted(name, X[order], X_ERR[order], LABELS[order])
    np.testing.assert_allclose(proba(together, NEW, NEW_ERR), p, atol=1e-4)
    if name != "none":
        left_behind = fitted(name, X[order], X_ERR, LABELS[order])
        assert np.abs(proba(left_behind, NEW, NEW_ERR) - p).max() > 2e-3


@pytest.mark.parametrize("name", NOISE_AWARE)
def test_a_huge_error_is_no_measurement(name, models):
    huge, missing, values = NEW_ERR.copy(), NEW_ERR.copy(), NEW.copy()
    huge[:, 1], missing[:, 1], values[:, 1] = 1e4, np.inf, np.nan
    np.testing.assert_allclose(
        proba(models[name], NEW, huge),
        proba(models[name], values, missing),
        atol=1e-4,
    )


@pytest.mark.parametrize("name", NOISE_AWARE)
def test_errors_make_predictions_less_certain(name, models):
    sharp = proba(models[name], NEW, 1e-6 * NEW_ERR).max(axis=1)
    blurred = proba(models[name], NEW, 3.0 * NEW_ERR).max(axis=1)
    assert blurred.mean() < sharp.mean() - 0.01


def test_any_gpflow_kernel_fits():
    model = fitted("none", kernel=gpflow.kernels.Polynomial(degree=2))
    assert np.isfinite(proba(model, NEW, NEW_ERR)).all()


def test_inducing_points_are_distinct_rows_or_their_centres():
    repeated = np.repeat(X[:7], 3, axis=0)
    np.testing.assert_array_equal(inducing_points(repeated, 10, 0), np.unique(X[:7], axis=0))
    centres = inducing_points(X, 5, 0)
    assert centres.shape == (5, D)
    np.testing.assert_array_equal(centres, inducing_points(X, 5, 0))
    assert (centres >= X.min(axis=0)).all() and (centres <= X.max(axis=0)).all()


def test_inducing_points_of_many_rows_are_centres_of_some():
    generator = np.random.default_rng(0)
    # Four clusters: the centres of 5,000 rows of 20,000 are those of all, to their standard error.
    clusters = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
    many = np.repeat(clusters, 5000, axis=0) + generator.normal(size=(20_000, 2))
    centres = inducing_points(many, 4, 0)
    np.testing.assert_array_equal(centres, inducing_points(many, 4, 0))
    nearest = np.abs(centres[:, None] - clusters).max(axis=2)
    assert sorted(nearest.argmin(axis=1)) == [0, 1, 2, 3]
    assert nearest.min(axis=1).max() < 0.15


@pytest.mark.parametrize(
    "likelihood, engine", [("softmax", "fit_sites"), ("dirichlet", "fit_constant_sites")]
)
def test_the_engine_is_given_the_seed_of_the_estimator(likelihood, engine, monkeypatch):
    class Reached(Exception):
        pass

    def stop(problem, schedule):
        raise Reached(schedule.seed)

    monkeypatch.setattr(f"gpal.inference.sites.{engine}", stop)
    X = np.random.default_rng(0).normal(size=(30, 2))
    classifier = GPClassifier(likelihood, n_inducing=5, random_state=7)
    with pytest.raises(Reached, match="7"):
        classifier.fit(X, np.arange(30) % 3)


def test_folds_that_lack_one_source_with_errors_share_its_graphs():
    """One source has an error in the second feature: a fit without it is the same whether or
    not the feature counts as having errors, but needs no other graphs if it does."""
    X_err = X_ERR * [1.0, 0.0]
    X_err[0, 1] = 0.5
    whole = as_measurements(X, X_err)
    options = GPClassifier(input_noise="first_order", kernel="rbf", max_rounds=0)
    forget_graphs()
    fit_model(options, whole, LABELS, seed=0)
    alike = fit_model(options, whole.with_parts_alike()[1:], LABELS[1:], seed=0)
    made = len(shared_graph._STAND_INS)
    apart = fit_model(options, whole[1:], LABELS[1:], seed=0)
    assert len(shared_graph._STAND_INS) > made
    assert (alike.gp.noisy, apart.gp.noisy) == ((0, 1), (0,))
    np.testing.assert_allclose(
        proba(alike, NEW, NEW_ERR), proba(apart, NEW, NEW_ERR), rtol=0, atol=1e-8
    )


def test_predictions_for_sources_with_fewer_errors_share_a_graph(monkeypatch):
    model, graphs = fitted("first_order"), []
    predict = Rows._predict

    def seen(self, posterior, X, root, noisy):
        graphs.append(noisy)
        return predict(self, posterior, X, root, noisy)

    monkeypatch.setattr(Rows, "_predict", seen)
    proba(model, NEW, NEW_ERR)
    some = proba(model, NEW, NEW_ERR * [1.0, 0.0])
    tiny = proba(model, NEW, NEW_ERR * [1.0, 1e-9])
    proba(model, NEW, 0.0 * NEW_ERR)
    assert graphs == [(0, 1), (0, 1), (0, 1), ()]
    np.testing.assert_allclose(some, tiny, rtol=1e-7)
