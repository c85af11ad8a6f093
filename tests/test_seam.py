"""The verbs of the estimators above which nobody knows what a model is made of."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpal import GPClassifier, InputError, Measurements, NoisyInputGP


@pytest.fixture(scope="module")
def sources():
    """80 sources of three classes with units and correlated errors, different for each."""
    rng = np.random.default_rng(2)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=80)]
    centre = np.array([[0.0, 0.0], [20.0, 0.3], [0.0, 2.0]])[np.searchsorted(["a", "b", "c"], y)]
    factor = rng.normal(size=(80, 2, 2)) * [[1.5], [0.15]]
    covariance = factor @ factor.transpose(0, 2, 1)
    X = centre + rng.normal(size=(80, 2)) * [7.0, 0.6]
    X_err = np.sqrt(np.einsum("ndd->nd", covariance))
    return Measurements(X, X_err, ("index", "flux"), ("", "ph"), covariance=covariance), y


@pytest.fixture(scope="module")
def fitted(sources):
    return GPClassifier(input_noise="first_order", max_rounds=2).fit(*sources)


def without_covariance(sources: Measurements) -> Measurements:
    return replace(sources, covariance=None)


# ---- the door ------------------------------------------------------------------------------------


def test_measurements_are_what_arrays_with_a_covariance_are(sources, fitted):
    X, y = sources
    frame = pd.DataFrame(X.X, columns=list(X.names))
    arrays = clone(fitted).fit(frame, y, X_cov=X.covariance)
    np.testing.assert_allclose(
        arrays.predict_proba(frame, X_cov=X.covariance), fitted.predict_proba(X), atol=1e-10
    )
    diagonal = clone(fitted).fit(without_covariance(X), y)
    plain = clone(fitted).fit(frame, y, X_err=X.X_err)
    np.testing.assert_array_equal(
        diagonal.predict_proba(without_covariance(X)), plain.predict_proba(frame, X.X_err)
    )
    assert np.abs(diagonal.predict_proba(without_covariance(X)) - fitted.predict_proba(X)).max() > (
        0.01
    )


@pytest.mark.parametrize("population", [1, "flat"])
@pytest.mark.parametrize("input_noise", ["none", "first_order", "integrated", "analytic"])
def test_a_covariance_and_a_value_not_measured_go_together(sources, input_noise, population):
    """What was not measured has no correlations: the rest of the covariance is as it was."""
    X, y = sources
    X_err, covariance = X.X_err.copy(), X.covariance.copy()
    X_err[:8, 0] = np.inf
    covariance[:8, 0, :] = covariance[:8, :, 0] = 0.0
    covariance[:8, 0, 0] = np.inf
    missing = Measurements(X.X, X_err, X.names, X.units, covariance=covariance)
    options = {"input_noise": input_noise, "population": population, "max_rounds": 1}
    model = GPClassifier(n_inducing=15, **options).fit(missing, y)
    P = model.predict_proba(missing)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    assert np.isfinite(model.predict_proba_std(missing)).all()
    measured = missing[8:]
    np.testing.assert_allclose(model.predict_proba(measured), P[8:], atol=1e-12)
    alone = replace(missing[:8], covariance=None)
    np.testing.assert_allclose(model.predict_proba(alone), P[:8], atol=1e-8)


def test_features_are_found_by_name_and_units_must_agree(sources, fitted):
    X, _ = sources
    P = fitted.predict_proba(X)
    swapped = X.select(["flux", "index"])
    np.testing.assert_array_equal(fitted.predict_proba(swapped), P)
    more = Measurements(
        np.column_stack([X.X, X.X[:, 0]]), np.column_stack([X.X_err, X.X_err[:, 0]]),
        ("index", "flux", "further"), ("", "ph", ""),
    )  # fmt: skip
    np.testing.assert_array_equal(
        fitted.predict_proba(more), fitted.predict_proba(without_covariance(X))
    )
    with pytest.raises(InputError, match="fitted with the feature 'index', which the sources lack"):
        fitted.predict_proba(X.select(["flux"]))
    with pytest.raises(InputError, match="'flux' is in 'erg', the model was fitted to 'ph'"):
        fitted.predict_proba(replace(X, units=("", "erg")))
    with pytest.raises(InputError, match="carry their errors"):
        fitted.predict_proba(X, X_err=0.1)
    with pytest.raises(InputError, match="Measurements need no packing"):
        GPClassifier(packed=True).fit(X, sources[1])


# ---- probabilities -------------------------------------------------------------------------------


def test_other_class_fractions_for_one_call_are_those_of_the_constructor(sources, fitted):
    X, y = sources
    prior = {"a": 0.1, "b": 0.2, "c": 0.7}
    there = clone(fitted).set_params(prior=prior).fit(X, y)
    np.testing.assert_allclose(
        fitted.predict_proba(X, prior=prior), there.predict_proba(X), atol=1e-12
    )
    np.testing.assert_allclose(
        fitted.predict_proba_std(X, prior=prior), there.predict_proba_std(X), atol=1e-12
    )
    P, deviation = fitted.predict_proba_with_std(X, prior=prior)
    np.testing.assert_allclose(P, there.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(deviation, there.predict_proba_std(X), atol=1e-12)
    np.testing.assert_array_equal(there.predict_proba(X, prior="train"), fitted.predict_proba(X))
    assert fitted.prior == "train"
    with pytest.raises(InputError, match="prior must be 'train' or give a fraction"):
        fitted.predict_proba(X, prior={"a": 1.0})


@pytest.mark.parametrize("input_noise", ["none", "integrated"])
def test_draws_average_to_the_probabilities_where_inputs_are_integrated(sources, input_noise):
    X, y = sources
    exact = replace(without_covariance(X), X_err=np.zeros_like(X.X))
    given = exact if input_noise == "none" else X
    model = GPClassifier(input_noise=input_noise, max_rounds=1).fit(given, y)
    blocks = list(model.probability_draws(given, nodes=64, samples=256))
    draws = np.concatenate(blocks)
    assert draws.shape == (80, 1 if input_noise == "none" else 64, 256, 3)
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(
        draws.mean(axis=(1, 2)), model.predict_proba(given), atol=0.02 if given is X else 0.01
    )


# ---- latent functions ----------------------------------------------------------------------------


def test_latent_moments_and_samples_are_those_of_gaussian_regression():
    rng = np.random.default_rng(5)
    X, new = rng.normal(size=(30, 1)), np.linspace(-2, 2, 7)[:, None]
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=30)
    kernel = gpflow.kernels.SquaredExponential(1.3, lengthscales=[0.7])
    model = NoisyInputGP(gpflow.likelihoods.Gaussian(0.01), kernel=kernel, max_rounds=0).fit(X, y)
    scale = lambda x: (x - X.mean(axis=0)) / X.std(axis=0)  # noqa: E731
    reference = gpflow.models.GPR((scale(X), y[:, None]), kernel, noise_variance=0.01)
    mean, covariance = reference.predict_f(scale(new), full_cov=True)
    got_mean, got = model.predict_latent(new, full_cov=True)
    np.testing.assert_allclose(got_mean, mean, atol=1e-8)
    np.testing.assert_allclose(got, covariance, atol=1e-8)
    np.testing.assert_allclose(
        model.predict_latent(new)[1][:, 0], np.diag(covariance[0]), atol=1e-8
    )
    f = model.sample_latent(new, num_samples=20_000, seed=1)[:, :, 0]
    np.testing.assert_allclose(f.mean(axis=0), mean[:, 0], atol=0.02)
    np.testing.assert_allclose(np.cov(f.T), covariance[0], atol=0.02)
    np.testing.assert_array_equal(
        f[:5], model.sample_latent(new, num_samples=20_000, seed=1)[:5, :, 0]
    )


@pytest.mark.parametrize("input_noise", ["first_order", "integrated"])
def test_latent_samples_have_the_latent_moments_of_noisy_inputs(sources, input_noise):
    X, y = sources
    model = GPClassifier(input_noise=input_noise, n_inducing=15, max_rounds=1).fit(X, y)
    few = X[:6]
    mean, covariance = model.predict_latent(few, full_cov=True)
    _, variance = model.predict_latent(few)
    assert covariance.shape == (3, 6, 6)
    np.testing.assert_allclose(np.einsum("pnn->np", covariance), variance, rtol=1e-10)
    f = model.sample_latent(few, num_samples=40_000, seed=0)
    scale = np.sqrt(variance)
    np.testing.assert_allclose((f.mean(axis=0) - mean) / scale, 0.0, atol=0.03)
    for c in range(3):
        outer = np.multiply.outer(scale[:, c], scale[:, c])
        np.testing.assert_allclose(np.cov(f[:, :, c].T) / outer, covariance[c] / outer, atol=0.04)


# ---- another measurement -------------------------------------------------------------------------


def test_outcomes_of_a_second_measurement_have_its_errors_and_the_sources_identity(sources, fitted):
    X, _ = sources
    outcomes = list(fitted.remeasured(X, shrink=0.5, outcomes=8))
    assert len(outcomes) == 8
    for again in outcomes:
        assert (again.names, again.units) == (X.names, X.units)
        np.testing.assert_array_equal(again.ids, X.ids)
        np.testing.assert_allclose(again.X_err, 0.5 * X.X_err, rtol=1e-12)
        np.testing.assert_allclose(again.covariance, 0.25 * X.covariance, rtol=1e-9)


@pytest.mark.parametrize("wrong", [{"shrink": 2.0}, {"shrink": -0.1}, {"outcomes": 0}])
def test_a_second_measurement_is_no_worse_than_the_first(sources, fitted, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        next(iter(fitted.remeasured(sources[0], **wrong)))


@pytest.mark.parametrize("kappa", [0.05, 0.5, 0.995])
def test_a_second_measurement_moves_as_its_mathematics_says(sources, kappa):
    """Var[x̃_new | x̃] = (1 − κ²)² (Cov[x | x̃] + V'), V' = V κ²/(1 − κ²), correlated as V is."""
    X, y = sources
    model = GPClassifier(input_noise="integrated", max_rounds=0).fit(X, y)
    one = X[:1]
    drawn = np.concatenate([m.X for m in model.remeasured(one, shrink=kappa, outcomes=1024)])
    population, width = model.model_.population, model.width_
    V = one.covariance[0]
    P = population.covariances[0] * np.outer(width, width)
    posterior = np.linalg.inv(np.linalg.inv(P) + np.linalg.inv(V))
    expected = (1 - kappa**2) ** 2 * (posterior + V * kappa**2 / (1 - kappa**2))
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(expected / scale)[0, 1] > 0.5
    np.testing.assert_allclose(np.cov(drawn.T) / scale, expected / scale, atol=0.001)


# ---- refits and settings -------------------------------------------------------------------------


def test_a_refit_leaves_the_classifier_as_it_was_and_names_what_it_cannot_do(sources):
    X, y = sources
    known = GPClassifier(max_rounds=1).fit(X[:60], y[:60])
    before = known.predict_proba(X)
    more = known.refit(X, y)
    np.testing.assert_array_equal(known.predict_proba(X), before)
    assert np.abs(more.predict_proba(X) - before).max() > 1e-3
    cold = GPClassifier(max_rounds=0, kernel=known.model_.gp.kernels[0]).fit(X, y)
    assert np.abs(more.predict_proba(X) - cold.predict_proba(X)).max() < 0.1
    assert not known.can_refit(X, np.where(y == "a", "d", y))
    with pytest.raises(InputError, match="class 'd' is not one of"):
        known.refit(X, np.where(y == "a", "d", y))
    exact = GPClassifier(max_rounds=0).fit(X.X, y)
    assert exact.can_refit(X.X, y) and not exact.can_refit(X, y)
    gradient = GPClassifier(inference="svgp", inference_options={"steps": 2}).fit(X, y)
    assert not gradient.can_refit(X, y)
    with pytest.raises(InputError, match="cannot be refitted"):
        gradient.refit(X, y)


WRONG_SETTINGS = [
    ({"likelihood": "sofmax"}, "sofmax"),
    ({"input_noise": "integrate"}, "integrate"),
    ({"inference": "site"}, "site"),
    ({"inference_options": 3}, "inference_options must be a mapping"),
    ({"kernel": "rbff"}, "no kernel 'rbff'"),
    ({"inference": "cavi"}, "logistic_softmax"),
    ({"likelihood": "bernoulli_logit"}, "two classes"),
    ({"error_scale": [1.0, 1.0, 1.0]}, "error_scale must be one number"),
    ({"population": 0}, "population must be"),
    ({"dtype": "float16"}, "dtype must be"),
    ({"max_rounds": -1}, "max_rounds"),
    ({"n_inducing": 0}, "n_inducing"),
    ({"learn_inducing": "yes"}, "learn_inducing must be"),
    ({"verbose": "yes"}, "verbose must be"),
    ({"packed": 1}, "packed must be"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_SETTINGS)
def test_settings_are_checked_before_there_is_data(options, message):
    with pytest.raises(InputError, match=message) as caught:
        GPClassifier(**options).check_settings(num_classes=3, num_features=2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("options", "message"), WRONG_SETTINGS)
def test_fit_takes_no_such_settings_either(options, message):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InputError, match=message):
        GPClassifier(**options).fit(X, np.arange(30) % 3)


def test_settings_that_some_data_fit_pass():
    GPClassifier().check_settings()
    GPClassifier("bernoulli_logit").check_settings()
    GPClassifier("bernoulli_logit").check_settings(num_classes=2, num_features=5)
    NoisyInputGP("poisson").check_settings(num_features=1)
    with pytest.raises(InputError, match="needs its bin edges"):
        NoisyInputGP("ordinal").check_settings()
