"""What GPClassifier() takes where nothing is said: likelihood, kernel and inducing points."""

import gpflow
import numpy as np
import pytest
from scipy.special import log_expit, logsumexp

from gpal import GPClassifier
from gpal.model import fit, trial

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(600, 2))
FINE = (np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1]) > 0).astype(int)
PLAIN = (X[:, 0] > 0.5 * X[:, 1] + 0.3 * rng.normal(size=600)).astype(int)


def shapes(model):
    return {
        path: np.shape(value) for path, value in model.settings_["kernels"][0]["parameters"].items()
    }


def test_two_classes_have_one_latent_function_and_more_of_them_one_each():
    def likelihood_of(y, **options):
        model = GPClassifier(max_rounds=0, **options).fit(X[:60], y)
        return model.settings_["likelihood"]["name"], model.posterior_.num_latent

    assert likelihood_of(PLAIN[:60]) == ("bernoulli_logit", 1)
    assert likelihood_of(np.arange(60) % 3) == ("softmax", 3)
    assert likelihood_of(PLAIN[:60], kernel=["rbf", "linear"]) == ("softmax", 2)
    doubtful = PLAIN[:60].astype(object)
    doubtful[0] = {0: 0.7, 1: 0.3}  # the logit takes no such labels
    assert likelihood_of(doubtful) == ("softmax", 2)


def test_one_latent_function_of_twice_the_kernel_is_the_softmax_with_a_tighter_bound():
    """Both bounds are below log p(y), which is that of either; against draws of the prior."""

    def kernel(variance):
        return gpflow.kernels.SquaredExponential(variance=variance, lengthscales=1.0)

    x, y = X[:12], PLAIN[:12]
    softmax = GPClassifier("softmax", kernel=kernel(2.0), max_rounds=0).fit(x, y)
    logit = GPClassifier(kernel=kernel(4.0), max_rounds=0).fit(x, y)
    assert logit.settings_["likelihood"]["name"] == "bernoulli_logit"
    K = kernel(4.0)(logit.posterior_.standardised(x)).numpy() + 1e-9 * np.eye(len(x))
    draws = np.random.default_rng(2).normal(size=(200_000, len(x)))
    log_p = log_expit((2 * y - 1) * (draws @ np.linalg.cholesky(K).T)).sum(axis=1)
    evidence = (logsumexp(log_p) - np.log(len(log_p))) / len(x)
    assert softmax.bound_ + 0.005 < logit.bound_ < evidence + 1e-3
    assert logit.bound_ == pytest.approx(evidence, abs=0.02)


def test_a_variance_and_a_lengthscale_for_each_feature_where_labels_can_tell_them():
    found = shapes(GPClassifier(max_rounds=0).fit(X[:60], PLAIN[:60]))
    assert found == {
        "kernels[0].variance": (),
        "kernels[0].lengthscales": (2,),
        "kernels[1].variance": (2,),
        "kernels[2].variance": (),
    }


def test_one_for_all_features_where_they_have_few_labels():
    wide = np.random.default_rng(1).normal(size=(60, 5))  # 12 labels for each feature
    found = shapes(GPClassifier(max_rounds=0).fit(wide, PLAIN[:60]))
    assert set(found.values()) == {()} and len(found) == 4
    # 60 sources of four classes tell three times as much as of two.
    of_four = shapes(GPClassifier(max_rounds=0).fit(wide, np.arange(60) % 4))
    assert of_four["kernels[1].variance"] == (5,)


@pytest.mark.parametrize("input_noise", ["none", "first_order", "integrated"])
def test_with_error_bars_the_kernel_has_no_linear_part(input_noise):
    model = GPClassifier(input_noise=input_noise, max_rounds=0)
    model.fit(X[:60], PLAIN[:60], X_err=0.1)
    assert len(shapes(model)) == 3


@pytest.mark.slow
def test_fine_boundaries_are_given_more_inducing_points_and_plain_ones_are_not():
    fine = GPClassifier("bernoulli_logit").fit(X, FINE)
    plain = GPClassifier("bernoulli_logit").fit(X, PLAIN)
    assert plain.settings_["inducing_points"] == trial.INDUCING_POINTS
    assert fine.settings_["inducing_points"] > 1.5 * trial.INDUCING_POINTS


@pytest.mark.parametrize("options, errors", [({"n_inducing": 40}, None), ({}, 0.1)])
def test_the_number_is_fixed_where_it_is_given_or_inputs_have_errors(options, errors):
    model = GPClassifier("bernoulli_logit", input_noise="first_order", max_rounds=1, **options)
    found = model.fit(X, FINE, X_err=errors).settings_["inducing_points"]
    assert found == options.get("n_inducing", trial.INDUCING_POINTS)


@pytest.mark.parametrize(
    "options, above, moved",
    [
        ({}, 500, True),
        ({}, 600, False),
        ({"learn_inducing": False}, 500, False),
        ({"n_inducing": 100}, 500, False),
    ],
)
def test_where_points_are_is_learned_from_many_sources(monkeypatch, options, above, moved):
    monkeypatch.setattr(fit, "LEARNED_ABOVE", above)
    monkeypatch.setattr(trial, "UNEXPLAINED", 10.0)  # so that 100 points are enough
    points, fixed = (
        GPClassifier("bernoulli_logit", max_rounds=1, **given).fit(X, FINE).model_.gp.Z.numpy()
        for given in (options, options | {"learn_inducing": False})
    )
    assert (np.abs(points - fixed).max() > 1e-3) == moved


@pytest.mark.parametrize(("sources", "anew"), [(599, True), (600, False)])
def test_a_kernel_is_learned_from_where_some_sources_have_taken_it_if_those_were_all(
    monkeypatch, sources, anew
):
    """Features that do not matter have the first lengthscale, the same for all, or another."""
    starts, run = [], fit.run_inference

    def noted(options, problem, seed):
        starts.append(problem.gp.kernels[0].kernels[0].lengthscales.numpy())
        return run(options, problem, seed)

    monkeypatch.setattr(fit, "TRIAL_SOURCES", sources)
    monkeypatch.setattr(fit, "run_inference", noted)
    GPClassifier(max_rounds=2).fit(X, PLAIN)
    assert (np.ptp(starts[0]) == 0) == anew


def test_no_more_than_the_cost_of_a_sweep_allows(monkeypatch):
    monkeypatch.setattr(trial, "PRODUCTS", 120.5**2 * len(X))
    model = GPClassifier("bernoulli_logit").fit(X, FINE)
    assert model.settings_["inducing_points"] == 120


def test_more_points_raise_the_bound_of_fine_boundaries():
    few = GPClassifier("bernoulli_logit", n_inducing=100, max_rounds=20).fit(X, FINE)
    assert GPClassifier("bernoulli_logit").fit(X, FINE).bound_ > few.bound_ + 0.01


@pytest.mark.parametrize("name", ["isotropic_rbf+dot_product", "auto"])
def test_a_saved_model_of_these_kernels_predicts_the_same(name, tmp_path):
    model = GPClassifier(kernel=name, max_rounds=1).fit(X[:60], PLAIN[:60])
    model.save(tmp_path / "model.npz")
    again = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert again.kernel == name
