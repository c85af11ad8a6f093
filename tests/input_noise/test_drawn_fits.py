"""Models whose inputs are drawn in training, through the estimator."""

from __future__ import annotations

import numpy as np
import pytest

from gpal import GPClassifier, InputError
from gpal.input_noise import INPUT_NOISES

DRAWN = sorted(name for name in INPUT_NOISES if INPUT_NOISES[name].gradient_only)


def make_data(n: int, seed: int = 0):
    """Two classes on either side of a line, errors that differ between sources."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    X_err = np.exp(rng.uniform(np.log(0.05), np.log(0.8), size=(n, 2)))
    return x + X_err * rng.normal(size=(n, 2)), (x @ [1.0, -1.0] > 0).astype(int), X_err


X, Y, ERR = make_data(90)
NEW, NEW_Y, NEW_ERR = make_data(200, seed=1)


def make_model(name: str, steps: int = 80, **options) -> GPClassifier:
    # By name: "auto" is another one for exact inputs.
    options = {"inference": "svgp", "kernel": "rbf", **options}
    extra = {"steps": steps, "batch_size": 45, "learning_rate": 0.03}
    return GPClassifier(
        input_noise=name, n_inducing=12, inference_options=extra, random_state=3, **options
    )


@pytest.fixture(scope="module", params=DRAWN)
def fitted(request):
    return make_model(request.param).fit(X, Y, ERR)


@pytest.fixture(scope="module")
def without_noise():
    return make_model("none").fit(X, Y)


def test_it_learns_and_uses_the_error_bars_of_new_sources(fitted):
    P = fitted.predict_proba(NEW, NEW_ERR)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert -np.log(P[np.arange(200), NEW_Y]).mean() < 0.9 * np.log(2)
    assert np.abs(fitted.predict_proba(NEW, 2 * NEW_ERR) - P).max() > 0.02


def test_the_same_call_gives_the_same_probabilities_and_follows_the_sources(fitted):
    P = fitted.predict_proba(NEW, NEW_ERR)
    np.testing.assert_array_equal(fitted.predict_proba(NEW, NEW_ERR), P)
    order = np.random.default_rng(2).permutation(200)
    np.testing.assert_allclose(
        fitted.predict_proba(NEW[order], NEW_ERR[order]), P[order], rtol=1e-9
    )
    assert np.abs(fitted.predict_proba(NEW[order], NEW_ERR) - P[order]).max() > 0.02


def test_the_same_seed_gives_the_same_fit(fitted):
    again = make_model(fitted.input_noise).fit(X, Y, ERR)
    np.testing.assert_array_equal(
        again.predict_proba(NEW, NEW_ERR), fitted.predict_proba(NEW, NEW_ERR)
    )
    assert again.bound_ == fitted.bound_


def test_a_huge_error_is_a_missing_feature(fitted):
    huge, missing, X_nan = NEW_ERR.copy(), NEW_ERR.copy(), NEW.copy()
    huge[:, 0], missing[:, 0], X_nan[:, 0] = 1e6, np.inf, np.nan
    np.testing.assert_allclose(
        fitted.predict_proba(NEW, huge), fitted.predict_proba(X_nan, missing), atol=1e-4
    )


def test_a_loaded_model_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        loaded.predict_proba(NEW, NEW_ERR), fitted.predict_proba(NEW, NEW_ERR)
    )
    assert loaded.settings_ == fitted.settings_
    assert loaded.settings_["treatment"] == loaded.model_.input_noise.to_data()


@pytest.mark.parametrize("name", DRAWN)
def test_without_noise_it_is_the_model_without_noise(name, without_noise):
    want = without_noise.predict_proba(NEW)
    tiny = make_model(name).fit(X, Y, np.full(X.shape, 1e-6))
    np.testing.assert_allclose(tiny.predict_proba(NEW, 1e-6), want, atol=1e-4)
    np.testing.assert_allclose(tiny.bound_, without_noise.bound_, atol=2e-4)


@pytest.mark.parametrize("name", ["latent", "amortized"])
def test_labels_move_the_inputs(name):
    """The bound gains over that of q(x) = p(x | x̃), which `resampled` keeps."""
    kept = make_model("resampled", steps=250).fit(X, Y, ERR)
    assert make_model(name, steps=250).fit(X, Y, ERR).bound_ > kept.bound_ + 0.01


@pytest.mark.parametrize("population", [1, "flat"])
def test_errors_are_learned_along(population):
    """Errors told five times too small: V = s² σ² grows across the boundary, where it shows."""
    model = make_model("latent", steps=200, learn_errors="scale", population=population).fit(
        X, Y, 0.2 * ERR
    )
    assert np.mean(np.square(model.settings_["error_scale"])) > 1.5
    P = model.predict_proba(NEW, 0.2 * NEW_ERR)
    assert -np.log(P[np.arange(200), NEW_Y]).mean() < 0.9 * np.log(2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["latent", "amortized"])
def test_the_step_likelihood_learns_a_floor_of_the_errors(name):
    """Of three classes whose inputs were moved by .3, from .1 of the features' width on: in the
    second feature, across which the classes change."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(400, 2))
    y = (np.sin(2.0 * x[:, 0]) > 0.8 * x[:, 1]).astype(int) + (x.sum(axis=1) > 1.5)
    model = GPClassifier(
        "step",
        input_noise=name,
        learn_errors="floor",
        n_inducing=30,
        kernel="rbf",
        inference="svgp",
        inference_options={"steps": 400, "batch_size": 100},
    ).fit(x + 0.3 * rng.normal(size=x.shape), y)
    floor = model.settings_["error_floor"]
    assert 0.2 < floor[1] < 0.6
    assert model.bound_ > -0.7


def test_the_default_inference_is_refused_with_the_remedy():
    remedy = "inferences that work here: svgp, svgp_adadelta, svgp_lbfgs, svgp_natgrad"
    with pytest.raises(InputError, match=remedy):
        make_model("latent", inference="sites").fit(X, Y, ERR)
