"""NoisyInputGP against GPflow at fixed hyper-parameters, and what it promises about error bars."""

from __future__ import annotations

import functools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from astropy import units as u
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpal import InputError, Measurements, NoisyInputGP
from gpal.arrays import as_measurements
from gpal.input_noise import INPUT_NOISES
from gpal.likelihoods.ordinal import Ordinal

EDGES = np.array([-0.7, 0.2, 1.0])
LIKELIHOODS = {
    "gaussian": lambda: gpflow.likelihoods.Gaussian(0.1),
    "student_t": lambda: gpflow.likelihoods.StudentT(scale=0.3, df=4.0),
    "poisson": gpflow.likelihoods.Poisson,
    "ordinal": lambda: gpflow.likelihoods.Ordinal(EDGES),
}
ENGINE = [kind.name for kind in INPUT_NOISES.classes() if not kind.gradient_only]


def problem(name: str, n: int, seed: int = 0):
    """(X, y, X_err): a smooth function of two features, the second measured with errors."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n, 2))
    f = np.sin(2.0 * x[:, 0]) + 0.7 * x[:, 1]
    y = {
        "gaussian": f + 0.3 * rng.normal(size=n),
        "student_t": f + 0.3 * rng.standard_t(4.0, size=n),
        "poisson": rng.poisson(np.exp(1.0 + f)).astype(float),
        "ordinal": np.digitize(f + rng.normal(size=n), EDGES).astype(float),
    }[name]
    X_err = np.zeros_like(x)
    X_err[:, 1] = rng.uniform(0.05, 0.6, size=n)
    return x + X_err * rng.normal(size=x.shape), y, X_err


def fitted(name: str, input_noise: str, n: int = 70, **options) -> NoisyInputGP:
    X, y, X_err = problem(name, n)
    if input_noise not in ENGINE:
        options = {"inference": "svgp", "inference_options": {"steps": 250}, **options}
    options = {"n_inducing": 15, "max_rounds": 1, **options}
    return NoisyInputGP(LIKELIHOODS[name](), input_noise=input_noise, **options).fit(X, y, X_err)


KERNEL = gpflow.kernels.Sum(
    [gpflow.kernels.SquaredExponential(1.5, lengthscales=[0.8, 1.7]), gpflow.kernels.Constant(0.5)]
)


def exact_fit(name: str, n: int = 40, **options):
    """Fitted to exact inputs with the kernel and the likelihood held, and what GPflow is given."""
    X, y, _ = problem(name, n)
    model = NoisyInputGP(LIKELIHOODS[name](), kernel=KERNEL, max_rounds=0, **options).fit(X, y)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    new = np.random.default_rng(1).normal(size=(9, 2))
    return model, (standardised, y[:, None]), new, new * X.std(axis=0) + X.mean(axis=0)


BY_NAME = {
    "check_dataframe_column_names_consistency": "columns in another order are found by name",
}


@parametrize_with_checks([NoisyInputGP(max_rounds=0)], expected_failed_checks=lambda _: BY_NAME)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_gaussian_is_gpflows_exact_regression():
    model, data, new, X_new = exact_fit("gaussian")
    reference = gpflow.models.GPR(data, KERNEL, noise_variance=0.1)
    np.testing.assert_allclose(40 * model.bound_, reference.log_marginal_likelihood(), rtol=1e-8)
    for got, want in zip(model.predict_f(X_new), reference.predict_f(new), strict=True):
        np.testing.assert_allclose(got, want[:, 0], atol=1e-8)
    for got, want in zip(model.predict_y(X_new), reference.predict_y(new), strict=True):
        np.testing.assert_allclose(got, want[:, 0], atol=1e-8)
    y_new = np.sin(new[:, :1])
    np.testing.assert_allclose(
        model.predict_log_density(X_new, y_new[:, 0]),
        reference.predict_log_density((new, y_new)),
        atol=1e-7,
    )


def test_gaussian_is_gpflows_sparse_regression():
    model, data, new, X_new = exact_fit("gaussian", n_inducing=9)
    jitter = 1e-8 * (1.5 + 0.5)  # relative to the kernel's variance
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        Z = model.model_.gp.Z.numpy()
        reference = gpflow.models.SGPR(data, KERNEL, Z, noise_variance=0.1)
        np.testing.assert_allclose(40 * model.bound_, reference.elbo(), rtol=1e-7)
        for got, want in zip(model.predict_f(X_new), reference.predict_f(new), strict=True):
            np.testing.assert_allclose(got, want[:, 0], atol=1e-6)


@pytest.mark.parametrize("name", ["student_t", "poisson", "ordinal"])
def test_the_others_reach_gpflows_variational_optimum(name):
    """VGP by L-BFGS on q(f), hyper-parameters held; Student-t has sites with θ < 0."""
    model, (X, y), new, X_new = exact_fit(name)
    likelihood = model.likelihood_
    gpflow.set_trainable(likelihood, False)
    reference = gpflow.models.VGP((X, y), gpflow.utilities.deepcopy(KERNEL), likelihood)
    gpflow.set_trainable(reference.kernel, False)
    options = {"maxiter": 3000, "maxfun": 10000}
    gpflow.optimizers.Scipy().minimize(
        reference.training_loss, reference.trainable_variables, options=options
    )
    difference = float(reference.elbo()) / 40 - model.bound_
    assert -1e-6 < difference < 1e-4
    mean, variance = reference.predict_f(new)
    np.testing.assert_allclose(model.predict_f(X_new)[0], mean[:, 0], atol=0.01)
    np.testing.assert_allclose(model.predict_f(X_new)[1], variance[:, 0], atol=0.01)


@functools.lru_cache
def constant_score(name: str) -> float:
    """What the best constant function reaches on the test sources."""
    kernel = gpflow.kernels.Constant()
    model = NoisyInputGP(LIKELIHOODS[name](), input_noise="none", kernel=kernel, max_rounds=1)
    return model.fit(*problem(name, 70)).score(*problem(name, 200, seed=1))


@pytest.mark.parametrize(
    ("name", "input_noise"),
    [
        pytest.param(n, t, marks=() if n == "poisson" or t == "integrated" else pytest.mark.slow)
        for n in LIKELIHOODS
        for t in INPUT_NOISES
        if t in ENGINE or n == "poisson"
    ],
)
def test_every_treatment_learns_from_every_response(name, input_noise):
    """It beats the best constant function, says the same twice, and follows its sources."""
    X, y, X_err = problem(name, 200, seed=1)
    model = fitted(name, input_noise)
    assert model.score(X, y, X_err) > constant_score(name) + 0.05
    first, order = model.predict_y(X, X_err), np.random.default_rng(0).permutation(200)
    assert (first[1] > 0).all()
    for got, again in zip(first, model.predict_y(X, X_err), strict=True):
        np.testing.assert_array_equal(got, again)
    for got, moved in zip(first, model.predict_y(X[order], X_err[order]), strict=True):
        np.testing.assert_allclose(got[order], moved, rtol=1e-9)


@pytest.mark.parametrize("input_noise", sorted(set(ENGINE) - {"none"}))
@pytest.mark.parametrize("name", ["poisson", "student_t"])
def test_vanishing_errors_lead_to_exact_inputs(name, input_noise):
    X, y, X_err = problem(name, 40)
    options = {"max_rounds": 0, "n_inducing": 40}
    exact = NoisyInputGP(LIKELIHOODS[name](), input_noise="none", **options).fit(X, y, 0.0)
    noisy = NoisyInputGP(LIKELIHOODS[name](), input_noise=input_noise, **options)
    noisy.fit(X, y, 1e-6 * X_err)
    np.testing.assert_allclose(noisy.bound_, exact.bound_, rtol=1e-4)
    for got, want in zip(noisy.predict_y(X, 1e-6 * X_err), exact.predict_y(X, 0.0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("input_noise", ["first_order", "analytic", "integrated"])
def test_a_huge_error_is_a_feature_not_measured(input_noise):
    model, (X, _, X_err) = fitted("poisson", input_noise), problem("poisson", 20, seed=2)
    huge, missing, X_nan = X_err.copy(), X_err.copy(), X.copy()
    huge[:, 1], missing[:, 1], X_nan[:, 1] = 1e7, np.inf, np.nan
    for got, want in zip(model.predict_y(X, huge), model.predict_y(X_nan, missing), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4)


def test_predictions_are_those_of_the_mixture_over_nodes():
    """Poisson: E[y] is exp(m + v/2) averaged over the nodes; Gaussian: a mixture of normals."""
    X, y, X_err = problem("gaussian", 12, seed=3)
    for name in ("poisson", "gaussian"):
        model = fitted(name, "integrated")
        scaled = as_measurements(X, X_err).scale(model.offset_, model.width_)
        noise = model.likelihood_.variance.numpy() if name == "gaussian" else 0.0
        mean, square, expected = np.empty((3, 12))
        for rows, block, nodes in model.model_.completed(scaled):
            assert nodes > 1
            m, v = (a.numpy().reshape(-1, nodes) for a in model.model_.marginals(block))
            mean[rows], square[rows] = m.mean(axis=1), (v + m**2).mean(axis=1)
            density = norm.pdf(y[rows, None], m, np.sqrt(v + noise))
            each = np.exp(m + 0.5 * v) if name == "poisson" else density
            expected[rows] = each.mean(axis=1)
        got, variance = model.predict_f(X, X_err)
        np.testing.assert_allclose(got, mean)
        np.testing.assert_allclose(variance, square - mean**2)
        if name == "poisson":
            np.testing.assert_allclose(model.predict(X, X_err), expected, rtol=1e-6)
        else:
            np.testing.assert_allclose(model.predict_y(X, X_err)[1], variance + noise)
            got = model.predict_log_density(X, y, X_err)
            np.testing.assert_allclose(got, np.log(expected))
            assert model.score(X, y, X_err) == pytest.approx(got.mean())


def test_parameters_of_the_likelihood_are_learned_from_a_copy():
    X, y, X_err = problem("gaussian", 70)
    likelihood = gpflow.likelihoods.Gaussian(2.0)
    model = NoisyInputGP(likelihood, n_inducing=15, max_rounds=5).fit(X, y, X_err)
    assert likelihood.variance.numpy() == 2.0
    assert model.likelihood_.variance.numpy() < 1.0
    assert model.settings_["likelihood"]["class"] == "Gaussian"
    assert clone(model).get_params()["likelihood"] is not model.likelihood_


def test_ordinal_is_gpflows_where_that_is_finite():
    F, Y = tf.constant([[-2.0], [0.3], [1.4]], tf.float64), tf.constant([[1.0], [2.0], [1.0]])
    mine, theirs = Ordinal(EDGES), gpflow.likelihoods.Ordinal(EDGES)
    np.testing.assert_allclose(mine.log_prob(None, F, Y), theirs.log_prob(None, F, Y), rtol=1e-12)
    p = [np.exp(mine.log_prob(None, F, tf.fill([3, 1], k))) for k in (0.0, 1.0, 2.0, 3.0)]
    np.testing.assert_allclose(np.sum(p, axis=0), 1.0, atol=3e-3)  # GPflow's inv_probit: 1e-3
    np.testing.assert_allclose(
        mine.conditional_mean(None, F)[:, 0], np.arange(4) @ np.array(p), atol=1e-4
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"likelihood": "softmax"},
            "no single-latent likelihood 'softmax': choose one of",
        ),
        ({"likelihood": "ordinal"}, "needs its bin edges"),
        (
            {"likelihood": gpflow.likelihoods.Gaussian(scale=gpflow.functions.Linear())},
            "the scale of the likelihood Gaussian is a function of X, a Linear: give a number",
        ),
        ({"likelihood": "poisson"}, "row 0 is 0.5, which .* give y that is counts"),
        ({"likelihood": "bernoulli"}, "row 0 is 0.5, which .* give y that is 0 or 1"),
        ({"likelihood": "beta"}, "row 1 is -1, which .* give y that is between 0 and 1"),
        ({"likelihood": "exponential"}, "row 1 is -1, which .* give y that is positive"),
        ({"likelihood": Ordinal(EDGES)}, "row 0 is 0.5, which has no density under Ordinal"),
        ({"inference": "cavi"}, "closed-form sites for logistic_softmax only; inferences that"),
        ({"likelihood": "student_t", "inference": "svgp_natgrad"}, "not log-concave"),
        ({"input_noise": "analytic", "kernel": "matern52"}, "closed forms for sums of linear"),
        ({"learn_errors": "scale", "input_noise": "none"}, "learn_errors needs a treatment"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(options, message):
    X, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([0.5, -1.0, 2.0, 0.0, 1.0, 3.0])
    with pytest.raises(InputError, match=message):
        NoisyInputGP(**options).fit(X, y, 0.1)


def test_what_lies_under_a_mask_is_no_response():
    X, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([0.5, -1.0, 2.0, 0.0, 1.0, 3.0])
    hidden = np.ma.array(y, mask=[False] * 5 + [True])
    model = NoisyInputGP(max_rounds=0).fit(X, y)
    sources = Measurements(X, 0.0, ("a", "b"))
    for use in (
        lambda: NoisyInputGP(max_rounds=0).fit(sources, hidden),
        lambda: NoisyInputGP(max_rounds=0).fit(X, hidden),
        lambda: model.predict_log_density(X, hidden),
        lambda: model.score(X, hidden),
        lambda: model.posterior_.predict_log_density(X, hidden),
    ):
        with pytest.raises(InputError, match="row 5 of y is masked"):
            use()


def test_the_input_side_is_the_classifiers():
    X, y, X_err = problem("gaussian", 20)
    with pytest.raises(InputError, match="column '1', row 3 has negative error"):
        NoisyInputGP().fit(X, y, np.where(np.arange(40).reshape(20, 2) == 7, -1.0, X_err))
    model = NoisyInputGP(max_rounds=0).fit(X, y, X_err)
    with pytest.raises(InputError, match="fitted with error bars: pass X_err, or X_err=0"):
        model.predict(X)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.predict_log_density(X, y[:-1], X_err)


@pytest.mark.parametrize("df", [1.0, 2.0])
def test_a_response_without_variance_is_saved(df, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    model = NoisyInputGP(gpflow.likelihoods.StudentT(0.2, df), max_rounds=1, n_inducing=5)
    model.fit(X, np.sin(X[:, 0]) + 0.2 * rng.standard_t(df, size=30))
    model.save(tmp_path / "model.npz")
    again = NoisyInputGP.load(tmp_path / "model.npz")
    y = np.zeros(30)
    np.testing.assert_array_equal(again.predict_log_density(X, y), model.predict_log_density(X, y))
    if df == 2.0:
        np.testing.assert_array_equal(again.predict_y(X)[1], np.full(30, np.inf))


def test_a_response_with_a_unit_is_refused():
    """The model would not know it: 1 mJy and 1000 µJy were two responses."""
    X = np.random.default_rng(0).normal(size=(30, 1))
    y = X[:, 0] * u.mJy
    with pytest.raises(InputError, match="y has the unit 'mJy'"):
        NoisyInputGP(max_rounds=0, n_inducing=5).fit(X, y)
    model = NoisyInputGP(max_rounds=0, n_inducing=5).fit(X, y.value)
    with pytest.raises(InputError, match="y has the unit 'uJy'"):
        model.predict_log_density(X, y.to(u.uJy))
