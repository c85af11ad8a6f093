"""`posterior_` against GPflow's exact regression, finite differences, many samples and an SVGP."""

from __future__ import annotations

from functools import partial

import gpflow
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gpal import GPClassifier, InputError, NoisyInputGP
from gpal.arrays import as_measurements

k = gpflow.kernels
SCALE, OFFSET = np.array([30.0, 1e-3]), np.array([500.0, -0.2])  # of the user's units


def inputs(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2)) * SCALE + OFFSET


def labels(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Three classes along the first feature, with some noise."""
    x = (X - OFFSET) / SCALE
    noisy = x[:, 0] + np.sin(2 * x[:, 1]) + 0.7 * np.random.default_rng(seed).normal(size=len(X))
    return np.array(["low", "mid", "up"])[np.digitize(noisy, [-0.5, 0.6])]


@pytest.fixture(scope="module")
def regression():
    """A fitted process, and GPflow's exact regression with its hyper-parameters."""
    X = inputs(60, 1)
    x = (X - OFFSET) / SCALE
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.2 * np.random.default_rng(2).normal(size=60)
    process = NoisyInputGP("gaussian", kernel="rbf+linear", max_rounds=3).fit(X, y)
    inner = (X - process.offset_) / process.width_
    exact = gpflow.models.GPR(
        (inner, y[:, None]),
        process.model_.gp.kernels[0],
        noise_variance=process.likelihood_.variance.numpy(),
    )
    return process, exact, y


@pytest.fixture(scope="module")
def classifier():
    X = inputs(150, 3)
    return GPClassifier(max_rounds=3, kernel="matern52").fit(X, labels(X))


def test_moments_are_those_of_exact_regression(regression):
    process, exact, _ = regression
    X = inputs(20, 4)
    inner = process.posterior_.standardised(X)
    np.testing.assert_allclose(inner, (X - process.offset_) / process.width_, rtol=1e-12)
    mean, variance = process.posterior_.predict_f(X)
    _, covariance = process.posterior_.predict_f(X, full_cov=True)
    for got, want in zip((mean, variance), exact.predict_f(inner), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-7)
    np.testing.assert_allclose(covariance, exact.predict_f(inner, full_cov=True)[1], atol=1e-7)
    y = np.linspace(-1, 1, 20)
    np.testing.assert_allclose(
        process.posterior_.predict_log_density(X, y),
        exact.predict_log_density((inner, y[:, None])),
        atol=1e-6,
    )


def test_samples_are_joint_over_the_rows(regression):
    process, exact, _ = regression
    X = inputs(6, 5)
    f = process.posterior_.sample_f(X, 40_000, seed=1)[:, :, 0]
    mean, covariance = exact.predict_f(process.posterior_.standardised(X), full_cov=True)
    se = np.sqrt(np.diagonal(covariance[0]) / len(f))
    assert (np.abs(f.mean(axis=0) - mean[:, 0]) < 5 * se).all()
    deviation = np.sqrt(np.diagonal(covariance[0]))
    off = np.abs(np.cov(f.T) - covariance[0]) / np.outer(deviation, deviation)
    assert off.max() < 5 * np.sqrt(2 / len(f))
    np.testing.assert_array_equal(f, process.posterior_.sample_f(X, 40_000, seed=1)[:, :, 0])


def test_probabilities_are_the_average_of_their_samples(classifier):
    X = inputs(12, 6)
    posterior = classifier.posterior_
    p = posterior.sample_proba(X, 20_000)
    np.testing.assert_allclose(p.sum(axis=2), 1.0, atol=1e-12)
    np.testing.assert_allclose(posterior.predict_proba(X), classifier.predict_proba(X), atol=1e-12)
    spread = p.std(axis=0) / np.sqrt(len(p))
    off = np.abs(p.mean(axis=0) - posterior.predict_proba(X))
    assert (off < 5 * spread + 1e-3).all()  # 1e-3: of the integral
    y = labels(X)
    column = np.searchsorted(classifier.classes_, y)
    np.testing.assert_allclose(
        posterior.predict_log_density(X, y), np.log(posterior.predict_proba(X)[range(12), column])
    )


CASES = {
    "matern, one kernel each": {"kernel": "matern52+linear", "shared_kernel": False},
    "first order": {"input_noise": "first_order", "likelihood": "probit"},
    "integrated, inducing points": {"input_noise": "integrated", "n_inducing": 25},
    "closed form of errors": {
        "input_noise": "analytic",
        "likelihood": "dirichlet",
        "n_inducing": 20,
    },
    "active dimensions": {
        "kernel": k.SquaredExponential(active_dims=[0]) * k.Matern32(active_dims=[1]) + k.White(0.1)
    },
    "linear in one feature": {"kernel": k.Linear(2.0, active_dims=[1]), "n_inducing": 10},
    "coregionalized": {"likelihood": "coregionalized", "shared_kernel": False},
    "logistic softmax": {"likelihood": "logistic_softmax", "inference": "cavi"},
    "step, gradient path": {
        "likelihood": "step",
        "inference": "svgp",
        "inference_options": {"steps": 50},
        "n_inducing": 20,
    },
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def fitted(request):
    """Classifiers of all kinds, those of input noise fitted with error bars."""
    X = inputs(90, 7)
    X_err = 0.3 * SCALE if "input_noise" in request.param else None
    return GPClassifier(**{"max_rounds": 1, **request.param}).fit(X, labels(X), X_err)


def test_beyond_a_hundred_widths_nothing_changes_and_no_gradient_says_so():
    X = inputs(60, 1)
    model = GPClassifier(kernel="linear", max_rounds=0).fit(X, labels(X))
    far = np.array([[150.0, 0.0], [0.0, -150.0], [50.0, 0.0]]) * SCALE + OFFSET
    gradient = model.posterior_.predict_f_gradient(far)[0]
    assert (gradient[0, :, 0] == 0).all() and (gradient[1, :, 1] == 0).all()
    assert (gradient[2] != 0).all() and (gradient[0, :, 1] != 0).all()
    step = np.array([1.0, 0.0]) * SCALE
    p, q = (model.posterior_.predict_f(far + k * step)[0] for k in (0, 1))
    np.testing.assert_array_equal(p[0], q[0])


def test_what_lies_under_a_mask_has_no_score(classifier):
    X = inputs(20, 4)
    y = np.ma.array(labels(X), mask=np.arange(20) == 3)
    weight = np.ma.array(np.ones(20), mask=np.arange(20) == 4)
    with pytest.raises(InputError, match="row 3 of y is masked"):
        classifier.posterior_.predict_log_density(X, y)
    with pytest.raises(InputError, match="row 3 of y is masked"):
        classifier.score(X, y)
    with pytest.raises(InputError, match="row 4 of sample_weight is masked"):
        classifier.score(X, y.data, sample_weight=weight)


def test_gradients_are_finite_differences(fitted):
    X, posterior = inputs(8, 8), fitted.posterior_
    of_mean, of_variance = posterior.predict_f_gradient(X)
    of_proba = posterior.predict_proba_gradient(X)
    assert of_mean.shape == of_variance.shape == of_proba.shape == (8, 3, 2)
    for j, step in enumerate(1e-4 * SCALE):
        to = step * np.eye(2)[j]

        def slope(predict):
            return (predict(X + to) - predict(X - to)) / (2 * step)  # noqa: B023

        for got, want in (
            (of_mean, slope(lambda X: posterior.predict_f(X)[0])),
            (of_variance, slope(lambda X: posterior.predict_f(X)[1])),
            (of_proba, slope(posterior.predict_proba)),
        ):
            size = np.abs(got[:, :, j]).max()
            np.testing.assert_allclose(got[:, :, j], want, atol=2e-5 * size)


@pytest.mark.parametrize(("whiten", "standardised"), [(True, False), (False, True)])
def test_an_svgp_predicts_the_same(fitted, whiten, standardised):
    X, posterior = inputs(40, 9), fitted.posterior_
    svgp = posterior.to_gpflow(whiten=whiten, standardised=standardised)
    assert type(svgp) is gpflow.models.SVGP and svgp.whiten == whiten
    x = posterior.standardised(X) if standardised else X
    for got, want in zip(svgp.predict_f(x), posterior.predict_f(X), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)
    covariance = svgp.predict_f(x, full_cov=True)[1]
    np.testing.assert_allclose(covariance, posterior.predict_f(X, full_cov=True)[1], atol=1e-6)
    p = posterior.predict_proba(X)
    np.testing.assert_allclose(svgp.predict_y(x)[0], p, atol=1e-6)
    column = np.arange(40) % 3
    log_p = svgp.predict_log_density((x, column[:, None].astype(float)))
    np.testing.assert_allclose(log_p, np.log(p[range(40), column]), atol=1e-6)


def test_an_svgp_has_the_same_bound_and_goes_on_learning(classifier):
    X = inputs(150, 3)
    Y = np.searchsorted(classifier.classes_, labels(X))[:, None].astype(float)
    svgp = classifier.posterior_.to_gpflow()
    bound = float(svgp.elbo((X, Y)))
    assert abs(bound / 150 - classifier.bound_) < 1e-5
    gpflow.set_trainable(svgp.inducing_variable, False)
    before = classifier.posterior_.predict_proba(X)
    gpflow.optimizers.Scipy().minimize(
        svgp.training_loss_closure((X, Y), compile=False),
        svgp.trainable_variables,
        options={"maxiter": 2},
    )
    assert float(svgp.elbo((X, Y))) > bound
    np.testing.assert_array_equal(classifier.posterior_.predict_proba(X), before)


def test_a_response_has_an_svgp_too(regression):
    process, exact, _ = regression
    X = inputs(20, 10)
    svgp = process.posterior_.to_gpflow()
    inner = process.posterior_.standardised(X)
    for got, want in zip(svgp.predict_y(X), exact.predict_y(inner), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_labels_that_say_more_than_the_jitter_allows_are_refused():
    """A scatter of 10⁻⁵ is less noise than GPflow's jitter of 10⁻⁶ adds to K(Z, Z)."""
    X = inputs(40, 11)
    y = np.sin((X - OFFSET) / SCALE).sum(axis=1)
    likelihood = gpflow.likelihoods.Gaussian(1e-10, variance_lower_bound=1e-12)
    process = NoisyInputGP(likelihood, kernel="matern32", max_rounds=0).fit(X, y)
    with pytest.raises(InputError, match="lower the jitter"):
        process.posterior_.to_gpflow()
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-12)):
        svgp = process.posterior_.to_gpflow()
        for got, want in zip(svgp.predict_f(X), process.posterior_.predict_f(X), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-6)


def test_exact_sources_come_in_every_form(classifier):
    X = inputs(10, 12)
    p = classifier.posterior_.predict_proba(X)
    exact = as_measurements(X, np.zeros_like(X))
    np.testing.assert_array_equal(classifier.posterior_.predict_proba(exact), p)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = clone(classifier).set_params(max_rounds=0).fit(frame, labels(X))
    assert named.posterior_.predict_f(frame)[0].shape == (10, 3)
    packed = clone(named).set_params(packed=True).fit(np.hstack([X, 0 * X]), labels(X))
    np.testing.assert_allclose(
        packed.posterior_.predict_proba(np.hstack([X, 0 * X])),
        named.posterior_.predict_proba(frame),
    )


def test_what_is_not_exact_is_refused(classifier):
    posterior, X = classifier.posterior_, inputs(5, 13)
    noisy = as_measurements(X, np.where(np.arange(10).reshape(5, 2) == 3, 1.0, 0.0))
    with pytest.raises(InputError, match="'1' of row 1 has an error bar, or was not measured"):
        posterior.predict_f(noisy)
    for draw in (posterior.sample_f, partial(classifier.sample_latent, X_err=0.0)):
        for options in ({"num_samples": -1}, {"num_samples": 2.5}, {"seed": -1}):
            with pytest.raises(InputError, match="a whole number from"):
                draw(X, **options)
    X_err = np.full(2, 0.1) * SCALE
    with_errors = clone(classifier).set_params(max_rounds=0).fit(X, labels(X), X_err)
    with pytest.raises(InputError, match="'1' of row 1 has an error bar"):
        with_errors.posterior_.predict_f(noisy)
    X[2, 1] = np.nan
    for model in (classifier, with_errors):
        with pytest.raises(InputError, match="'1' of row 2 has an error bar, or was not measured"):
            model.posterior_.predict_f(X)
    with pytest.raises(ValueError, match="features"):
        posterior.predict_f(inputs(5, 13)[:, :1])
    frame = pd.DataFrame(inputs(5, 13), columns=["a", "b"])
    named = clone(classifier).set_params(max_rounds=0).fit(frame, labels(frame.to_numpy()))
    beside = frame.assign(note="text", other=np.nan)  # of which the model knows nothing
    np.testing.assert_array_equal(
        named.posterior_.predict_f(beside)[0], named.posterior_.predict_f(frame)[0]
    )
    with pytest.raises(InputError, match="'none of them' is not one of"):
        posterior.predict_log_density(inputs(2, 1), ["low", "none of them"])
    with pytest.raises(InputError, match="one value for each of 2 rows"):
        posterior.predict_log_density(inputs(2, 1), ["low"])
    with pytest.raises(NotFittedError):
        _ = GPClassifier().posterior_


def test_a_saved_model_has_its_posterior(classifier, tmp_path):
    classifier.save(tmp_path / "model.npz")
    X = inputs(10, 14)
    again = GPClassifier.load(tmp_path / "model.npz").posterior_.to_gpflow()
    got, want = again.predict_y(X)[0], classifier.predict_proba(X)
    np.testing.assert_allclose(got, want, atol=1e-6)
