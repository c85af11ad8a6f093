"""What a researcher puts into a classifier: kernels, points, likelihoods, weights."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp

from gpal import GPClassifier, InputError, NoisyInputGP
from gpal.likelihoods import make_likelihood

k = gpflow.kernels
EXACT = {"input_noise": "none", "max_rounds": 0}


@pytest.fixture(scope="module")
def three():
    """(X, y, new X): 60 sources of three classes in units far from one."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[y]
    units = np.array([100.0, 1e-3])
    return X * units + [5.0, 0.0], np.array(["a", "b", "c"])[y], X[::7] * units + [4.0, 1e-4]


def three_kernels():
    return [k.Matern32(2.0, 0.7), k.SquaredExponential(1.0, 1.5), k.Linear(0.5) + k.Constant(0.3)]


def test_a_kernel_per_class_is_that_of_its_class(three):
    """Dirichlet regression: of each class the textbook's regression with the kernel of the list."""
    X, y, new = three
    likelihood = make_likelihood("dirichlet", 3, alpha_eps=0.1)
    model = GPClassifier(likelihood, kernel=three_kernels(), **EXACT).fit(X, y)
    mean, variance = model.predict_latent(new)
    scaled, at = ((A - X.mean(axis=0)) / X.std(axis=0) for A in (X, new))
    for c, kernel in enumerate(three_kernels()):
        alpha = np.where(y == "abc"[c], 1.1, 0.1)
        noise = np.log1p(1 / alpha)
        A = kernel(scaled).numpy() + np.diag(noise)
        cross = kernel(at, scaled).numpy()
        want = cross @ np.linalg.solve(A, np.log(alpha) - noise / 2)
        np.testing.assert_allclose(mean[:, c], want, atol=1e-8)
        explained = np.sum(cross * np.linalg.solve(A, cross.T).T, axis=1)
        np.testing.assert_allclose(variance[:, c], kernel(at).numpy().diagonal() - explained)


@pytest.mark.parametrize("n_inducing", [None, 20])
def test_a_list_of_equal_kernels_is_one_kernel_each(three, n_inducing):
    X, y, new = three
    options = {"input_noise": "none", "max_rounds": 2, "n_inducing": n_inducing}
    listed = GPClassifier(kernel=["rbf"] * 3, **options).fit(X, y)
    separate = GPClassifier(kernel="rbf", shared_kernel=False, **options).fit(X, y)
    np.testing.assert_array_equal(listed.predict_proba(new), separate.predict_proba(new))


def test_a_list_is_copied_and_holds_one_for_each_latent_function(three):
    X, y, _ = three
    kernels = three_kernels()
    GPClassifier(kernel=kernels, n_inducing=10, max_rounds=1).fit(X, y)
    assert float(kernels[0].variance.numpy()) == 2.0
    with pytest.raises(InputError, match="list of 3, one is needed for 1"):
        GPClassifier("bernoulli_logit", kernel=kernels, **EXACT).fit(X[:40], y[:40])
    with pytest.raises(InputError, match="list of 2, one is needed for 3"):
        GPClassifier(kernel=kernels[:2], **EXACT).fit(X, y)
    with pytest.raises(InputError, match="list of 2, one is needed for 3"):
        GPClassifier(kernel=kernels[:2]).check_settings(3, 2)


def test_inducing_points_are_taken_in_the_units_of_x(three):
    X, y, new = three
    kernel = k.Matern32(2.0, 0.7)
    full = GPClassifier(kernel=kernel, **EXACT).fit(X, y)
    every = GPClassifier(kernel=kernel, inducing_points=X, **EXACT).fit(X, y)
    assert every.settings_["gp"] == "sparse"
    np.testing.assert_allclose(every.predict_proba(new), full.predict_proba(new), atol=1e-5)
    some = GPClassifier(kernel=kernel, inducing_points=X[::4].tolist(), **EXACT).fit(X, y)
    np.testing.assert_allclose(some.model_.gp.Z * some.width_ + some.offset_, X[::4], rtol=1e-12)
    assert some.settings_["inducing_points"] == 15
    moved = GPClassifier(
        kernel=kernel, inducing_points=X[::4], learn_inducing=True, max_rounds=1
    ).fit(X, y)
    assert moved.bound_ > some.bound_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inducing_points": np.zeros((4, 3))}, r"shape \(4, 3\), not \(m, 2\)"),
        ({"inducing_points": [1.0, 2.0]}, r"shape \(2,\)"),
        ({"inducing_points": np.zeros((0, 2))}, "one row each"),
        ({"inducing_points": [[0.0, 1.0], [np.nan, 0.0]]}, "row 1 of inducing_points"),
        ({"inducing_points": np.eye(2), "n_inducing": 2}, "either n_inducing or"),
        ({"shared_kernel": "yes"}, "shared_kernel must be True or False"),
    ],
)
def test_points_that_are_none_are_refused(three, options, message):
    with pytest.raises(InputError, match=message):
        GPClassifier(**options).check_settings(3, 2)
    if "inducing_points" in options:
        with pytest.raises(InputError, match=message):
            GPClassifier(**options).fit(*three[:2])


# ---- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"kernel": "rbf"}, marks=pytest.mark.slow),
        {"n_inducing": 12},
        {"likelihood": "step", "n_inducing": 12},
        {"likelihood": make_likelihood("dirichlet", 3, alpha_eps=0.1), "input_noise": "none"},
        pytest.param({"input_noise": "first_order", "n_inducing": 12}, marks=pytest.mark.slow),
        {"population": 2, "n_inducing": 12},
    ],
    ids=["integrated", "sparse", "step", "dirichlet", "first order", "two Gaussians"],
)
def test_a_weight_of_two_is_the_source_twice_and_zero_is_none(three, options):
    """With points of one's own: k-means would start from other draws."""
    X, y, new = three
    X_err = np.full(X.shape, [30.0, 1e-4])
    times = np.random.default_rng(2).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    options = {"max_rounds": 1, **options}
    if "n_inducing" in options:
        options |= {"n_inducing": None, "inducing_points": X[:: 60 // options["n_inducing"]]}
    weighted = GPClassifier(**options).fit(X, y, X_err, sample_weight=times)
    repeated = GPClassifier(**options).fit(X[rows], y[rows], X_err[rows])
    np.testing.assert_allclose(weighted.offset_, repeated.offset_, rtol=1e-12)
    np.testing.assert_allclose(weighted.class_fractions_, repeated.class_fractions_)
    np.testing.assert_allclose(weighted.bound_, repeated.bound_, atol=1e-4)
    p = weighted.predict_proba(new, X_err[:9])
    np.testing.assert_allclose(p, repeated.predict_proba(new, X_err[:9]), atol=1e-3)
    plain = GPClassifier(**options).fit(X, y, X_err)
    assert np.abs(p - plain.predict_proba(new, X_err[:9])).max() > 0.02


def test_a_refit_counts_weights_as_a_fit_does(three):
    X, y, new = three
    X_err = np.full(X.shape, [30.0, 1e-4])
    times = np.random.default_rng(3).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    start = GPClassifier(max_rounds=0, inducing_points=X[::5]).fit(X, y, X_err)
    weighted = start.refit(X, y, X_err, sample_weight=times)
    repeated = start.refit(X[rows], y[rows], X_err[rows])
    np.testing.assert_allclose(weighted.class_fractions_, repeated.class_fractions_)
    np.testing.assert_allclose(weighted.bound_, repeated.bound_, atol=1e-4)
    p, q = (model.predict_proba(new, X_err[:9]) for model in (weighted, repeated))
    np.testing.assert_allclose(p, q, atol=1e-3)
    once = start.refit(X, y, X_err).predict_proba(new, X_err[:9])
    assert np.abs(p - once).max() > 0.02
    # What was weighted goes on weighted.
    more = (X[:12], y[:12], None, X_err[:12])
    np.testing.assert_allclose(
        weighted.partial_fit(*more).predict_proba(new, X_err[:9]),
        repeated.partial_fit(*more).predict_proba(new, X_err[:9]),
        atol=1e-3,
    )
    with pytest.raises(InputError, match="sample_weight of row 0 is -"):
        start.refit(X, y, X_err, sample_weight=-times - 1.0)


@pytest.mark.slow
def test_weights_of_responses_and_of_gradient_steps(three):
    X, y, new = three
    rows = np.repeat(np.arange(60), 2)
    response = np.sin(X[:, 0] / 50.0)
    options = {"inducing_points": X[::5], "max_rounds": 2}
    weighted = NoisyInputGP(**options).fit(X, response, sample_weight=np.full(60, 2.0))
    repeated = NoisyInputGP(**options).fit(X[rows], response[rows])
    np.testing.assert_allclose(weighted.predict(new), repeated.predict(new), atol=1e-6)
    options = {"inference": "svgp", "inference_options": {"steps": 300}, "kernel": k.Matern32(2.0)}
    options |= {"inducing_points": X[::5], "input_noise": "none"}
    weighted = GPClassifier(**options).fit(X, y, sample_weight=np.full(60, 2.0))
    repeated = GPClassifier(**options).fit(X[rows], y[rows])
    p, q = weighted.predict_proba(new), repeated.predict_proba(new)
    np.testing.assert_allclose(p, q, atol=1e-6)  # 120 rows are one batch


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[-1.0, np.ones(59)], "row 0 is -1"),
        (np.r_[np.ones(3), np.nan, np.ones(56)], "row 3 is nan; it must be a number"),
        (np.zeros(60), "zero for all"),
        (np.r_[np.ones(20), np.zeros(40)], "one class only"),
    ],
)
def test_weights_that_are_none_are_refused(three, weight, message):
    X, y, _ = three
    with pytest.raises(InputError, match=message):
        GPClassifier(**EXACT).fit(X, y, sample_weight=weight)


def test_what_ignores_weights_refuses_them(three):
    X, y, _ = three
    model = GPClassifier("bernoulli_logit", inference="jaakkola_jordan_full", input_noise="none")
    with pytest.raises(InputError, match="takes no sample_weight: choose inference='sites'"):
        model.fit(X[:40], y[:40], sample_weight=np.full(40, 2.0))


# ---- likelihoods ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (gpflow.likelihoods.Softmax(3), "softmax"),
        (
            gpflow.likelihoods.MultiClass(3, gpflow.likelihoods.RobustMax(3, 0.03)),
            make_likelihood("step", 3, delta=0.03, learn_delta=False),
        ),
    ],
)
def test_a_likelihood_of_gpflow_is_the_one_that_says_the_same(three, tmp_path, theirs, mine):
    X, y, new = three
    options = {"kernel": k.Matern32(2.0), "inducing_points": X[::5], **EXACT}
    model = GPClassifier(theirs, **options).fit(X, y)
    p = model.predict_proba(new)
    np.testing.assert_array_equal(p, GPClassifier(mine, **options).fit(X, y).predict_proba(new))
    F = np.random.default_rng(0).normal(size=(20, 3))
    said = model.model_.likelihood.conditional_probabilities(F)
    np.testing.assert_allclose(said, theirs.conditional_mean(None, F), atol=1e-12)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.predict_proba(new), p, atol=1e-10)
    np.testing.assert_allclose(loaded.fit(X, y).predict_proba(new), p, atol=1e-8)


@pytest.mark.slow
def test_a_trained_epsilon_is_learned_under_its_prior(three):
    X, y, _ = three
    flips = np.random.default_rng(1).choice(60, 12, replace=False)
    y = np.where(np.isin(np.arange(60), flips), np.roll(y, 20), y)
    fitted = {}
    for strength in (None, 1e4):
        robust = gpflow.likelihoods.RobustMax(3, 0.01)
        gpflow.set_trainable(robust.epsilon, True)
        robust.epsilon.prior = strength and tfp.distributions.Beta(
            np.float64(strength * 0.01), np.float64(strength)
        )
        likelihood = gpflow.likelihoods.MultiClass(3, robust)
        model = GPClassifier(likelihood, max_rounds=3, input_noise="none").fit(X, y)
        fitted[strength] = float(model.model_.likelihood.delta.numpy())
    assert fitted[None] > 0.05 and abs(fitted[1e4] - 0.01) < 0.003


def test_a_likelihood_of_gpflow_without_classes_is_refused():
    for other in (gpflow.likelihoods.Poisson(), gpflow.likelihoods.StudentT()):
        with pytest.raises(InputError, match="has no counterpart among gpal's of classes"):
            GPClassifier(other).check_settings(2, 2)
    with pytest.raises(InputError, match="made for 4 classes"):
        GPClassifier(gpflow.likelihoods.Softmax(4)).check_settings(3, 2)


# ---- coregionalisation ---------------------------------------------------------------------------


def test_with_the_identity_for_mixing_it_is_softmax(three):
    X, y, new = three
    W = make_likelihood("coregionalized", 3, learn_mixing=False)
    options = {"kernel": three_kernels(), "inference_options": {"tolerance": 1e-9}, **EXACT}
    mixed = GPClassifier(W, **options).fit(X, y)
    plain = GPClassifier("softmax", **options).fit(X, y)
    np.testing.assert_allclose(mixed.bound_, plain.bound_, atol=1e-6)
    p = mixed.predict_latent(new)[0]
    np.testing.assert_allclose(p, plain.predict_latent(new)[0], atol=1e-3)


@pytest.mark.slow
def test_two_functions_for_three_classes_end_where_gpflow_ends(three):
    """The bound of GPflow's SVGP with the same likelihood, maximised by L-BFGS over q(u)."""
    X, y, new = three
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    kernels, Z = three_kernels()[:2], scaled[::6]
    likelihood = make_likelihood("coregionalized", 3, latents=2, learn_mixing=False, num_points=512)
    options = {"kernel": kernels, "inducing_points": X[::6], **EXACT}
    options["inference_options"] = {"tolerance": 1e-9, "final_sweeps": 100}
    model = GPClassifier(likelihood, **options).fit(X, y)
    svgp = gpflow.models.SVGP(
        k.SeparateIndependent(three_kernels()[:2]),
        likelihood,
        gpflow.inducing_variables.SharedIndependentInducingVariables(
            gpflow.inducing_variables.InducingPoints(Z)
        ),
        num_latent_gps=2,
    )
    for part in (svgp.kernel, svgp.inducing_variable):
        gpflow.set_trainable(part, False)
    data = scaled, np.searchsorted(model.classes_, y)[:, None].astype(float)
    loss = svgp.training_loss_closure(data)
    gpflow.optimizers.Scipy().minimize(loss, svgp.trainable_variables, options={"maxiter": 500})
    np.testing.assert_allclose(model.bound_, -float(loss()) / 60, atol=2e-4)
    got, want = model.predict_latent(new)[0], svgp.predict_f((new - X.mean(0)) / X.std(0))[0]
    np.testing.assert_allclose(got, want, atol=0.03)


def test_mixing_is_learned_and_kept(three, tmp_path):
    X, y, new = three
    options = {"inducing_points": X[::5], "input_noise": "none", "max_rounds": 3}
    fixed = make_likelihood("coregionalized", 3, latents=1, learn_mixing=False)
    fixed = GPClassifier(fixed, **options).fit(X, y)
    model = GPClassifier(make_likelihood("coregionalized", 3, latents=1), **options).fit(X, y)
    assert model.predict_latent(new)[0].shape == (len(new), 1)
    assert model.bound_ > fixed.bound_ + 1e-3
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.predict_proba(new), model.predict_proba(new), atol=1e-10)


def test_mixing_that_is_none_is_refused():
    for options, message in (
        ({"mixing": np.eye(2)}, r"shape \(2, 2\), not \(3, Q\)"),
        ({"latents": 4}, "latents must be"),
        ({"latents": 1, "mixing": np.eye(3)}, r"not \(3, 1\)"),
        ({"mixing": np.full((3, 2), np.nan)}, "finite"),
    ):
        with pytest.raises(InputError, match=message):
            make_likelihood("coregionalized", 3, **options)
    kernel = k.LinearCoregionalization([k.RBF(), k.RBF()], np.ones((3, 2)))
    with pytest.raises(InputError, match="coregionalisation is a likelihood here"):
        GPClassifier(kernel=kernel).check_settings(3, 2)


# ---- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"likelihood": "step"}, marks=pytest.mark.slow),
        pytest.param({"input_noise": "first_order"}, marks=pytest.mark.slow),
        pytest.param({"likelihood": "dirichlet"}, marks=pytest.mark.slow),
    ],
    ids=["integrated", "step", "first order", "dirichlet"],
)
def test_batches_are_the_refit_of_all_of_them(three, options):
    X, y, new = three
    X_err = np.full(X.shape, [30.0, 1e-4])
    order = np.random.default_rng(0).permutation(60)
    few = np.r_[0:60:3]
    options = {"inducing_points": X[::5], "max_rounds": 1, **options}
    start = GPClassifier(**options).fit(X[few], y[few], X_err[few])
    batches = [(X[part], y[part], X_err[part]) for part in np.split(order, [7, 30, 31])]
    got, want = start.refit_batches(batches), start.refit(X, y, X_err)
    np.testing.assert_allclose(got.bound_, want.bound_, atol=1e-7)
    p, q = (c.predict_proba(new, X_err[:9]) for c in (got, want))
    np.testing.assert_allclose(p, q, atol=1e-6)
    assert np.abs(p - start.predict_proba(new, X_err[:9])).max() > 0.02
    np.testing.assert_allclose(got.class_fractions_, want.class_fractions_)
    again = start.refit_batches(lambda: iter(batches))
    np.testing.assert_array_equal(again.predict_proba(new, X_err[:9]), p)


def test_sweeps_end_where_the_user_asked():
    """Of a refit, of batches, and of all sources after those that the kernel is learned from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2))
    y = (X[:, 0] + rng.normal(size=250) > 0).astype(int)
    options = {"likelihood": "softmax", "n_inducing": 8, "max_rounds": 0}

    def bounds(sweeps: int) -> np.ndarray:
        asked = {"final_sweeps": sweeps, "tolerance": 0.0}
        classifier = GPClassifier(**options, inference_options=asked, learn_from=100)
        of_all = classifier.fit(X, y)
        start = GPClassifier(**options, inference_options=asked).fit(X[:50], y[:50])
        refitted = start.refit(X, y), start.refit_batches([(X[:70], y[:70]), (X[70:], y[70:])])
        return np.array([fitted.bound_ for fitted in (of_all, *refitted)])

    one, some, many = bounds(1), bounds(20), bounds(60)
    assert (one < some - 1e-4).all()
    np.testing.assert_allclose(some, many, atol=1e-6)


def test_partial_fit_is_exact_where_sites_depend_on_the_label_alone(three):
    X, y, new = three
    order = np.random.default_rng(3).permutation(60)
    parts = np.split(order, [25, 40, 41])
    likelihood = make_likelihood("dirichlet", 3, alpha_eps=0.1)
    model = GPClassifier(likelihood, inducing_points=X[::5], input_noise="none", max_rounds=1)
    times = np.random.default_rng(4).integers(1, 3, 60)
    for part in parts:
        model.partial_fit(X[part], y[part], np.unique(y), sample_weight=times[part])
    rows = np.repeat(np.arange(60), times)
    want = model.refit(X[rows], y[rows])
    for got, expected in zip(model.predict_latent(new), want.predict_latent(new), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-8)
    np.testing.assert_allclose(model.bound_, want.bound_, atol=1e-8)
    np.testing.assert_allclose(model.class_fractions_, want.class_fractions_)


def test_partial_fit_of_a_softmax_is_near_the_refit_of_all(three):
    X, y, new = three
    order = np.random.default_rng(3).permutation(60)
    model = GPClassifier(inducing_points=X[::5], input_noise="none", max_rounds=2)
    before = None
    for part in np.split(order, [20, 40]):
        model.partial_fit(X[part], y[part])
        before = model.predict_proba(new) if before is None else before
    want = model.refit(X, y)
    near, far = (
        np.abs(p - want.predict_proba(new)).max() for p in (model.predict_proba(new), before)
    )
    assert near < 0.1 and far > 2 * near
    assert abs(model.bound_ - want.bound_) < 0.02


def test_partial_fit_goes_on_after_fit_and_refit(three):
    X, y, new = three
    first, second = np.split(np.random.default_rng(3).permutation(60), [40])
    options = {"inducing_points": X[::5], "input_noise": "none", "max_rounds": 1}
    likelihood = make_likelihood("dirichlet", 3, alpha_eps=0.1)
    for fitted in (
        GPClassifier(likelihood, **options).fit(X[first], y[first]),
        GPClassifier(likelihood, **options).fit(X, y).refit(X[first], y[first]),
    ):
        want = fitted.refit(X, y).predict_proba(new)
        fitted.partial_fit(X[second], y[second])
        np.testing.assert_allclose(fitted.predict_proba(new), want, atol=1e-8)
        np.testing.assert_allclose(
            fitted.class_fractions_, np.bincount(np.unique(y, return_inverse=True)[1]) / 60
        )


@pytest.mark.parametrize("likelihood", ["softmax", "dirichlet"])
def test_a_full_gp_with_white_noise_is_not_refitted_as_another_model(three, likelihood):
    """White noise of f at the sources would become that of inducing points."""
    X, y, _ = three
    noisy = GPClassifier(likelihood, kernel=k.RBF() + k.White(), max_rounds=0).fit(X, y)
    assert noisy.settings_["gp"] == "full" and not noisy.can_refit(X, y)
    for go_on in (noisy.refit, noisy.partial_fit, lambda X, y: noisy.refit_batches([(X, y)])):
        with pytest.raises(InputError, match="with this kernel and these error bars cannot be"):
            go_on(X, y)
    sparse = GPClassifier(
        likelihood, kernel=k.RBF() + k.White(), max_rounds=0, inducing_points=X[::2]
    )
    assert sparse.fit(X, y).can_refit(X, y)
    assert GPClassifier(likelihood, kernel=k.RBF(), max_rounds=0).fit(X, y).can_refit(X, y)


@pytest.mark.parametrize(
    ("inference", "option", "said"),
    [
        ("svgp", {"steps": -1}, "'steps' must be a whole number from 0"),
        ("svgp", {"batch_size": 0}, "'batch_size' must be a whole number from 1"),
        ("stochastic_sites", {"steps": 1.5}, "'steps' must be a whole number from 0"),
        ("sites", {"rounds": "a"}, "'rounds' must be a whole number from 0"),
        ("sites", {"tolerance": "a"}, "'tolerance' must be a number, got 'a'"),
        ("sites", {"tolerance": np.nan}, "'tolerance' must be a number, got nan"),
        ("sites", {"final_sweeps": -1}, "'final_sweeps' must be a whole number from 0"),
        ("sites", {"subset": 0}, "'subset' must be a whole number from 1"),
    ],
)
def test_an_option_that_is_no_number_of_its_kind_is_refused(three, inference, option, said):
    X, y, _ = three
    model = GPClassifier("softmax", inference=inference, inference_options=option)
    with pytest.raises(InputError, match=f"inference option {said}"):
        model.fit(X, y)


def test_a_learning_rate_of_zero_keeps_the_kernel(three):
    X, y, _ = three
    options = {"steps": 20, "learning_rate": 0.0}
    kernel = k.RBF(1.3, [0.7, 0.9])
    model = GPClassifier(
        "softmax", kernel=kernel, inference="svgp_natgrad", inference_options=options
    ).fit(X, y)
    fitted = model.model_.gp.kernels[0]
    np.testing.assert_allclose(fitted.lengthscales, [0.7, 0.9], rtol=1e-12)
    assert np.ptp(model.predict_proba(X)) > 0.1  # q(u) was learned


def test_rounds_of_local_parameters_are_those_asked_for(three):
    X, y, _ = three
    y, options = y == "a", {"input_noise": "none", "inference": "jaakkola_jordan_hybrid"}
    few, many, named = (
        GPClassifier("bernoulli_logit", **options, **more).fit(X, y).bound_
        for more in ({"max_rounds": 1}, {}, {"inference_options": {"rounds": 1}})
    )
    assert few == named < many


def test_weights_that_are_no_numbers_are_named(three):
    X, y, _ = three
    for weight, said in ((["a"] * 60, "row 0 of sample_weight is 'a'"), (np.ones(5), r"\(5,\)")):
        with pytest.raises(InputError, match=said):
            GPClassifier(**EXACT).fit(X, y, sample_weight=weight)


def test_what_batches_cannot_be_is_refused(three, tmp_path):
    X, y, _ = three
    options = {"inducing_points": X[::5], **EXACT}
    model = GPClassifier(**options).fit(X, y)
    with pytest.raises(InputError, match="can be gone through once only"):
        model.refit_batches(iter([(X, y)]))
    with pytest.raises(InputError, match="there are no batches"):
        model.refit_batches([])
    with pytest.raises(InputError, match="class 'd' is not one of"):
        model.refit_batches([(X, np.full(60, "d"))])
    with pytest.raises(InputError, match="class 'd' must be in `classes` and among the labels"):
        GPClassifier(**options).partial_fit(X, y, ["a", "b", "c", "d"])
    model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match="not after load or refit_batches"):
        GPClassifier.load(tmp_path / "model.npz").partial_fit(X, y)
    options |= {"inference": "svgp", "inference_options": {"steps": 3}, "max_rounds": 1}
    svgp = GPClassifier(**options).fit(X, y)
    with pytest.raises(InputError, match="cannot be refitted"):
        svgp.refit_batches([(X, y)])
