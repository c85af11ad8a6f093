"""What is learned by leaving one out: where, how, and that all predictions have it."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import log_loss

from gpal import GPClassifier, InputError
from gpal.active.posterior import split_sources

FEW = dict(n_inducing=30, max_rounds=3)
CLASSES = 8


@pytest.fixture(scope="module")
def apart():
    """Eight classes that are well apart in four dimensions: 300 sources, and 600 others."""
    rng = np.random.default_rng(0)
    y = np.arange(900) % CLASSES
    X = 4.0 * rng.normal(size=(CLASSES, 4))[y] + rng.normal(size=(900, 4))
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def surer(apart):
    return GPClassifier(**FEW).fit(*apart[:2])


def at_temperature(classifier: GPClassifier, X: np.ndarray, temperature: float) -> np.ndarray:
    """By q(f) as `predict_latent` gives it with its own temperature."""
    mean, variance = classifier.predict_latent(X)
    mean = tf.constant(mean * classifier.temperature_ / temperature)
    return classifier.model_.likelihood.predict_proba(mean, tf.constant(variance)).numpy()


def test_many_classes_well_apart_are_told_surer_and_better(apart, surer):
    _, _, X, y = apart
    with_it, without = log_loss(y, surer.predict_proba(X)), log_loss(y, at_temperature(surer, X, 1))
    assert surer.temperature_ < 0.8
    assert with_it < 0.8 * without
    np.testing.assert_array_equal(
        surer.predict_proba(X).argmax(axis=1) == y, at_temperature(surer, X, 1).argmax(axis=1) == y
    )


def test_it_foretells_the_nll_of_other_sources(apart, surer):
    _, _, X, y = apart
    chosen = surer.settings_["leave_one_out"]
    losses = -np.log(surer.predict_proba(X)[np.arange(len(y)), y])
    assert chosen["sources"] == 300
    assert abs(chosen["nll"] - losses.mean()) < 3 * losses.std() / np.sqrt(len(y))
    assert chosen["nll"] < chosen["nll_at_temperature_1"]


def test_it_is_the_best_of_a_grid(apart, monkeypatch):
    """With leave-one-out moments replaced by moments that are known."""
    from gpal.model import leaving_out as module

    rng = np.random.default_rng(1)
    f = 3.0 * rng.normal(size=(4000, 3))
    p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    y = (rng.random(4000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    for factor in (0.5, 1.0, 2.0):
        moments = tf.constant(factor * f), tf.constant(np.full_like(f, 1e-6))
        monkeypatch.setattr(module, "SOURCES", len(y))
        monkeypatch.setattr(module, "leave_one_out", lambda *_, moments=moments: moments)
        known = GPClassifier(max_rounds=0, n_inducing=2).fit(f, y)
        assert known.temperature_ == pytest.approx(factor, rel=0.08)


def test_of_two_classes_that_overlap_it_stays_near_one():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    X = rng.normal(size=(600, 3)) + 0.7 * y[:, None]
    assert GPClassifier(**FEW).fit(X, y).temperature_ == pytest.approx(1.0, abs=0.15)


def test_few_sources_leave_it_at_one(monkeypatch):
    """Of twelve, which a prior that says nothing would take far from one."""
    from gpal.model import leaving_out as module

    y = np.arange(12) % 2
    X = 6.0 * y[:, None] + np.random.default_rng(0).normal(size=(12, 2))
    few = dict(max_rounds=1, temperature="leave_one_out")
    assert GPClassifier(**few).fit(X, y).temperature_ == 1.0
    monkeypatch.setattr(module, "PRIOR_SCALE", 1e9)
    assert abs(np.log(GPClassifier(**few).fit(X, y).temperature_)) > 0.2


@pytest.mark.parametrize("weighted", [False, True])
def test_of_many_sources_it_is_chosen_by_some(apart, surer, monkeypatch, weighted):
    from gpal.model import leaving_out as module

    monkeypatch.setattr(module, "SOURCES", 200)
    weight = np.ones(300) if weighted else None
    some = GPClassifier(**FEW).fit(*apart[:2], sample_weight=weight)
    assert some.settings_["leave_one_out"]["sources"] == 200
    assert some.temperature_ == pytest.approx(surer.temperature_, rel=0.15)


# ---- where it applies ----------------------------------------------------------------------------


def test_auto_is_one_unless_likelihood_and_inputs_leave_it_open(apart):
    X, y = apart[0][:60], apart[1][:60] % 3
    few = dict(max_rounds=1)
    for classifier in (
        GPClassifier("softmax", **few).fit(X, y),
        GPClassifier(inference="svgp", inference_options={"steps": 2}).fit(X, y),
        GPClassifier(**few).fit(X, y, X_err=0.1),
        GPClassifier(input_noise="none", **few).fit(X, y, X_err=0.1),
        GPClassifier(temperature=1, **few).fit(X, y),
    ):
        assert classifier.temperature_ == 1.0
        assert classifier.settings_["temperature"] == 1.0
        assert classifier.settings_["leave_one_out"] == {}


@pytest.mark.parametrize(
    "likelihood",
    ["softmax", "dirichlet"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("logistic_softmax", "probit")],
)
def test_asked_for_it_is_chosen_for_any_likelihood(apart, likelihood):
    X, y = apart[0][:60], apart[1][:60] % 3
    classifier = GPClassifier(likelihood, temperature="leave_one_out", max_rounds=1).fit(X, y)
    chosen = classifier.settings_["leave_one_out"]
    assert 0.25 <= classifier.temperature_ <= 4.0
    assert chosen["nll"] <= chosen["nll_at_temperature_1"]


def test_labels_may_be_sets_or_have_weights(apart):
    X, y = apart[0][:80], apart[1][:80] % 4
    labels = np.array([{int(c), 0} if c < 2 else int(c) for c in y], dtype=object)
    classifier = GPClassifier(max_rounds=1).fit(X, labels)
    chosen = classifier.settings_["leave_one_out"]
    assert chosen["nll"] <= chosen["nll_at_temperature_1"]


def test_sources_count_by_their_weight():
    """Labels of half of the sources are noise: if these hardly count, the NLL falls."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = rng.normal(size=(200, 1)) + 4.0 * y[:, None]
    noise = np.arange(200) % 2 == 0
    labels = np.where(noise, rng.integers(2, size=200), y)
    asked = dict(temperature="leave_one_out", max_rounds=1)
    told = GPClassifier(**asked).fit(X, labels, sample_weight=np.where(noise, 1e-3, 1.0))
    assert (
        told.settings_["leave_one_out"]["nll"]
        < 0.5 * GPClassifier(**asked).fit(X, labels).settings_["leave_one_out"]["nll"]
    )


@pytest.mark.parametrize("wrong", [0, -1.0, np.inf, np.nan, True, "cold", None])
def test_what_is_no_temperature_is_refused(wrong):
    with pytest.raises(InputError, match="temperature must be 'auto', 'leave_one_out' or a number"):
        GPClassifier(temperature=wrong).fit([[0.0], [1.0]], [0, 1])


def test_it_cannot_be_chosen_where_a_source_is_spread_or_has_no_site(apart):
    X, y = apart[0][:60], apart[1][:60] % 2
    with pytest.raises(InputError, match="input noise 'integrated' spreads a source"):
        GPClassifier(temperature="leave_one_out", max_rounds=0).fit(X, y, X_err=0.1)
    without = GPClassifier(
        temperature="leave_one_out", inference="svgp", inference_options={"steps": 2}
    )
    with pytest.raises(InputError, match="no sites to leave out: give a number"):
        without.fit(X, y)


# ---- hyper-parameters ----------------------------------------------------------------------------


def crossed(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, (np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]) > 0).astype(int)


def test_the_default_learns_from_many_by_leaving_out_and_tells_others_better():
    X, y = crossed(1500)
    options = dict(n_inducing=20, max_rounds=5)
    by_bound, both = (
        GPClassifier(learn_by=by, **options).fit(X[:500], y[:500]) for by in ("bound", "auto")
    )
    assert by_bound.settings_["learn_by"] == "bound"
    assert both.settings_["learn_by"] == "leave_one_out"
    left_out = [m.settings_["leave_one_out"]["nll_at_temperature_1"] for m in (by_bound, both)]
    losses = [log_loss(y[500:], m.predict_proba(X[500:])) for m in (by_bound, both)]
    assert left_out[1] < 0.95 * left_out[0]
    assert losses[1] < 0.97 * losses[0]


@pytest.mark.slow
def test_auto_learns_by_the_bound_alone_where_something_is_given():
    X, y = crossed(420)
    few = dict(n_inducing=10, max_rounds=1)
    for classifier in (
        GPClassifier("softmax", **few).fit(X, y),
        GPClassifier(kernel=gpflow.kernels.SquaredExponential(), **few).fit(X, y),
        GPClassifier(**few).fit(X, y, X_err=0.1),
        GPClassifier(**few).fit(X[:390], y[:390]),
        GPClassifier(n_inducing=10, max_rounds=0).fit(X, y),
        GPClassifier(inference="stochastic_sites", inference_options={"steps": 2}).fit(X, y),
    ):
        assert classifier.settings_["learn_by"] == "bound"


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["softmax", "dirichlet", "probit"])
def test_any_likelihood_and_a_full_gp_can_be_asked_to(likelihood):
    X, y = crossed(60)
    asked = GPClassifier(likelihood, learn_by="leave_one_out", max_rounds=1).fit(X, y)
    assert asked.settings_["learn_by"] == "leave_one_out" and asked.settings_["gp"] == "full"
    assert np.isfinite(asked.predict_proba(X)).all()


def test_a_frozen_kernel_stays_as_it_is():
    X, y = crossed(60)
    kernel = gpflow.kernels.SquaredExponential()
    gpflow.set_trainable(kernel, False)
    asked = dict(kernel=kernel, learn_by="leave_one_out", n_inducing=10, max_rounds=1)
    fitted = GPClassifier(**asked).fit(X, y)
    assert fitted.settings_["learn_by"] == "bound"
    [learned] = fitted.model_.gp.kernels
    assert learned.variance.numpy() == 1.0 and learned.lengthscales.numpy() == 1.0


def test_it_refuses_what_it_cannot_leave_out():
    X, y = crossed(60)
    with pytest.raises(InputError, match="learn_by must be 'auto', 'bound' or 'leave_one_out'"):
        GPClassifier(learn_by="labels").fit(X, y)
    with pytest.raises(InputError, match="max_rounds=0 keeps the kernel as it is: take 'bound'"):
        GPClassifier(learn_by="leave_one_out", max_rounds=0).fit(X, y)
    with pytest.raises(InputError, match="input noise 'integrated' spreads a source: take 'bound'"):
        GPClassifier(learn_by="leave_one_out").fit(X, y, X_err=0.1)


# ---- all predictions have it ---------------------------------------------------------------------


def test_a_number_divides_the_mean_and_nothing_else(apart):
    X, y, new, _ = apart
    plain, halved = (GPClassifier("softmax", temperature=t, **FEW).fit(X, y) for t in (1.0, 2))
    for one, two, factor in zip(plain.predict_latent(new), halved.predict_latent(new), (2.0, 1.0)):
        np.testing.assert_allclose(one, factor * two, rtol=1e-10)
    assert halved.bound_ == plain.bound_


def test_every_prediction_has_the_same_temperature(apart, surer):
    X = apart[2][:20]
    p, posterior = surer.predict_proba(X), surer.posterior_
    np.testing.assert_allclose(posterior.predict_proba(X), p, rtol=1e-10)
    np.testing.assert_allclose(surer.predict_proba_with_std(X)[0], p, rtol=1e-10)
    np.testing.assert_allclose(
        np.exp(posterior.predict_log_density(X, np.repeat(surer.classes_[3], 20))), p[:, 3]
    )
    np.testing.assert_allclose(posterior.predict_f(X)[0], surer.predict_latent(X)[0], rtol=1e-10)
    drawn = surer.sample_proba(X, num_samples=4000)
    np.testing.assert_allclose(drawn.mean(axis=0), p, atol=0.03)
    svgp = posterior.to_gpflow()
    np.testing.assert_allclose(svgp.predict_y(X)[0], p, atol=1e-4)
    entropy = -(p * np.log(p)).sum(axis=1)
    np.testing.assert_allclose(split_sources(surer, X).total, entropy, atol=0.05)


def test_gradients_are_those_of_the_predictions(apart, surer):
    x, step = apart[2][:1], 1e-4
    slope = surer.posterior_.predict_proba_gradient(x)[0]
    for j in (0, 3):
        ahead, behind = (x + s * step * np.eye(x.shape[1])[j] for s in (1, -1))
        difference = (surer.predict_proba(ahead) - surer.predict_proba(behind)) / (2 * step)
        np.testing.assert_allclose(slope[:, j], difference[0], atol=1e-5)


def test_it_stays_with_refits_batches_and_files(apart, surer, tmp_path):
    X, y, new, _ = apart
    p = surer.predict_proba(new)
    refitted = surer.refit(X, y)
    assert refitted.temperature_ == surer.temperature_
    np.testing.assert_allclose(refitted.predict_proba(new), p, atol=0.01)
    in_batches = surer.refit_batches([(X[:100], y[:100]), (X[100:], y[100:])])
    np.testing.assert_allclose(in_batches.predict_proba(new), p, atol=0.01)
    surer.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    assert loaded.temperature_ == surer.temperature_
    np.testing.assert_array_equal(loaded.predict_proba(new), p)
    np.testing.assert_allclose(loaded.refit(X, y).predict_proba(new), p, atol=0.01)


@pytest.mark.slow
def test_a_fit_to_a_sample_keeps_that_of_the_sample(apart):
    X, y = np.concatenate(apart[::2]), np.concatenate(apart[1::2])
    sampled = GPClassifier(learn_from=100, **FEW).fit(X, y)
    assert sampled.settings_["leave_one_out"]["sources"] < len(y) and sampled.temperature_ < 1.0
    p = at_temperature(sampled, X, sampled.temperature_)
    np.testing.assert_allclose(sampled.predict_proba(X), p, rtol=1e-8)
    in_batches = GPClassifier(learn_from=100, **FEW).fit_batches([(X, y)])
    assert in_batches.temperature_ == sampled.temperature_


def test_the_summary_says_which_it_is(apart, surer):
    assert surer.summary().facts["temperature"] == f"{surer.temperature_:.2f}"
    assert "temperature" not in GPClassifier("softmax", **FEW).fit(*apart[:2]).summary().facts
