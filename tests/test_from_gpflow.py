"""Estimators made from GPflow's SVGP against the SVGP itself, and there and back."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.quadrature import NDiagGHQuadrature
from scipy.special import expit, softmax
from sklearn.base import clone

from gpal import GPClassifier, InputError, NoisyInputGP
from gpal.likelihoods.of_gpflow import own_likelihood

k, gl, gi = gpflow.kernels, gpflow.likelihoods, gpflow.inducing_variables
SCALE, OFFSET = np.array([30.0, 1e-3]), np.array([50.0, -0.002])  # of the SVGP's units


def inputs(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2)) * SCALE + OFFSET


def labels(X: np.ndarray) -> np.ndarray:
    return np.array(["a", "b", "c"])[np.digitize((X - OFFSET) @ (1 / SCALE), [-0.5, 0.6])]


def points(m: int, seed: int) -> gi.InducingPoints:
    return gi.InducingPoints(inputs(m, seed))


def some_kernel(variance: float) -> k.Kernel:
    """In user's units, and not stationary."""
    linear = k.Linear(0.3 / SCALE**2)
    return k.Matern52(variance, 1.5 * SCALE) + linear * k.Constant(0.5) + k.White(0.05)


def svgp(kernel, likelihood, variables, latents=3, *, whiten=True, diagonal=False):
    """An SVGP with a q(u) that nobody fitted; not whitened, it is of functions as smooth."""
    m, rng = variables.num_inducing, np.random.default_rng(5)
    root = np.tril(rng.normal(size=(latents, m, m))) * 0.2 + 0.3 * np.eye(m)
    mean = rng.normal(size=(m, latents))
    if diagonal:
        root = rng.uniform(0.2, 0.8, size=(m, latents))
    if not whiten:
        L = np.linalg.cholesky(kernel(variables.Z) + 1e-6 * np.eye(m))
        mean, root = L @ mean, 1e-4 * root if diagonal else L @ root
    return gpflow.models.SVGP(
        kernel,
        likelihood,
        variables,
        num_latent_gps=latents,
        q_mu=mean,
        q_sqrt=root,
        q_diag=diagonal,
        whiten=whiten,
    )


def shared(whiten, diagonal):
    return svgp(some_kernel(2.0), gl.Softmax(3), points(12, 1), whiten=whiten, diagonal=diagonal)


def multioutput(kernel, variables):
    return svgp(kernel, gl.MultiClass(3), variables)


def each() -> k.SeparateIndependent:
    return k.SeparateIndependent([some_kernel(v) for v in (1.0, 2.0, 3.0)])


def vgp(kernel: k.Kernel | None = None) -> gpflow.models.VGP:
    X, rng = inputs(60, 6), np.random.default_rng(5)
    Y = np.searchsorted(["a", "b", "c"], labels(X))[:, None].astype(float)
    model = gpflow.models.VGP((X, Y), kernel or some_kernel(2.0), gl.Softmax(3), num_latent_gps=3)
    model.q_mu.assign(rng.normal(size=(60, 3)))
    model.q_sqrt.assign(np.tril(rng.normal(size=(3, 60, 60))) * 0.05 + 0.4 * np.eye(60))
    return model


MODELS = {
    "one kernel, whitened": lambda: shared(True, False),
    "one kernel, not whitened": lambda: shared(False, False),
    "diagonal q": lambda: shared(True, True),
    "diagonal q, not whitened": lambda: shared(False, True),
    "one kernel, said to be shared": lambda: multioutput(
        k.SharedIndependent(some_kernel(2.0), 3),
        gi.SharedIndependentInducingVariables(points(12, 1)),
    ),
    "one kernel each": lambda: multioutput(
        each(), gi.SharedIndependentInducingVariables(points(12, 1))
    ),
    "inducing points each": lambda: multioutput(
        each(), gi.SeparateIndependentInducingVariables([points(8, seed) for seed in (1, 2, 3)])
    ),
    "no inducing points": vgp,
}


def test_parts_with_active_dims_under_several_outputs_are_said():
    """GPflow hands their K_diag all features; gpal's variances are k(x, x), there and back."""
    both = k.Matern32(1.0, SCALE, active_dims=[0, 1])
    one = k.Linear(1.0 / SCALE[1] ** 2, active_dims=[1])
    kernels = [one + k.Constant(0.5), one, both]
    model = multioutput(
        k.SeparateIndependent(kernels), gi.SharedIndependentInducingVariables(points(12, 1))
    )
    X = inputs(60, 6)
    with pytest.warns(UserWarning, match="holds a kernel with active_dims"):
        classifier = GPClassifier.from_gpflow(model, X, labels(X))
    at = inputs(25, 7)
    found, theirs = classifier.posterior_.predict_f(at)[1], model.predict_f(at)[1].numpy()
    assert (np.abs(found - theirs).max(axis=0) > 0.1).tolist() == [True, True, False]
    back = classifier.posterior_.to_gpflow()  # refuses what predicts otherwise
    for got, want in zip(back.predict_f(at), classifier.posterior_.predict_f(at), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_predictions_are_those_of_the_svgp(make):
    X, at, model = inputs(60, 6), inputs(25, 7), make()
    classifier = GPClassifier.from_gpflow(model, X, labels(X))
    posterior = classifier.posterior_
    for full_cov in (False, True):
        got = posterior.predict_f(at, full_cov=full_cov)
        for mine, theirs in zip(got, model.predict_f(at, full_cov=full_cov), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-6)
    mean, variance = (part.numpy() for part in model.predict_f(at))
    f = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(20_000, 1, 3))
    if isinstance(model.likelihood, gl.Softmax):
        p = softmax(f, axis=2).mean(axis=0)
    else:
        wins = np.eye(3)[f.argmax(axis=2)].mean(axis=0)
        p = (1 - 1e-3) * wins + (1 - wins) * 1e-3 / 2
    np.testing.assert_allclose(classifier.predict_proba(at), p, atol=0.02)
    assert classifier.classes_.tolist() == ["a", "b", "c"]
    back = posterior.to_gpflow(whiten=getattr(model, "whiten", True))
    for mine, theirs in zip(back.predict_f(at), model.predict_f(at), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_there_and_back_is_the_same_classifier(temperature):
    """The kernels too: the one that standardises is taken off again."""
    X, options = inputs(120, 8), {"n_inducing": 20, "max_rounds": 2, "kernel": "rbf+linear"}
    first = GPClassifier(**options, temperature=temperature).fit(X, labels(X))
    again = GPClassifier.from_gpflow(first.posterior_.to_gpflow(), X, labels(X))
    at = inputs(30, 9)
    np.testing.assert_allclose(again.predict_proba(at), first.predict_proba(at), atol=1e-6)
    assert type(again.model_.gp.kernels[0]) is k.Sum
    # The bound of what came back is that of q(f) as predictions have it.
    assert (abs(again.bound_ - first.bound_) < 1e-5) == (temperature == 1.0)
    for mine, theirs in zip(
        again.model_.gp.kernels[0].parameters, first.model_.gp.kernels[0].parameters, strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("make", [MODELS["one kernel, whitened"], MODELS["one kernel each"]])
def test_what_came_from_gpflow_is_saved(make, tmp_path):
    X, at = inputs(60, 6), inputs(25, 7)
    classifier = GPClassifier.from_gpflow(make(), X, labels(X))
    classifier.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_allclose(
        loaded.predict_proba(at), classifier.predict_proba(at), rtol=1e-12, atol=1e-15
    )
    assert loaded.can_refit(X, labels(X))
    data, arrays = classifier.to_data()
    affine = data["model"]["gp"]["kernels"][0]
    assert affine["class"] == "AffineInput"
    for width in ([1.0], [1.0, 0.0], [1.0, float("nan")]):
        affine["options"]["width"] = width
        with pytest.raises(InputError, match="AffineInput"):
            GPClassifier.from_data(data, arrays)


def test_the_engine_goes_on_from_an_svgp():
    """Refit finds the optimum of q(u) that GPflow approaches from below; a clone learns anew."""
    X = inputs(150, 10)
    Y = np.searchsorted(["a", "b", "c"], labels(X))[:, None].astype(float)
    start = svgp(some_kernel(2.0), own_likelihood(gl.Softmax(3)), points(15, 1))
    gpflow.set_trainable(start.kernel, False)
    gpflow.set_trainable(start.inducing_variable, False)
    gpflow.optimizers.Scipy().minimize(
        start.training_loss_closure((X, Y)), start.trainable_variables, options={"maxiter": 300}
    )
    gpflow.set_trainable(start.kernel, True)
    given = GPClassifier.from_gpflow(start, X, labels(X))
    bound = float(start.elbo((X, Y))) / 150
    assert abs(given.bound_ - bound) < 1e-5
    met = given.refit(X, labels(X))
    assert -1e-4 < met.bound_ - bound < 0.01
    np.testing.assert_allclose(met.predict_proba(X), given.predict_proba(X), atol=0.03)
    learned = clone(given).set_params(max_rounds=2).fit(X, labels(X))
    assert learned.bound_ > met.bound_


def test_error_bars_are_met_after_an_svgp():
    """Small errors change little, large ones much; without X_err none are taken."""
    X, at, model = inputs(60, 6), inputs(25, 7), shared(True, False)
    classifier = GPClassifier.from_gpflow(model, X, labels(X), 0.1 * SCALE)
    exact, small, large = (classifier.predict_proba(at, s * SCALE) for s in (0.0, 1e-3, 1.0))
    np.testing.assert_allclose(small, exact, atol=0.01)
    assert np.abs(large - exact).max() > 0.05
    # what was not measured: the fractions that the population has under this posterior
    nothing = classifier.predict_proba(np.full((1, 2), np.nan), np.full((1, 2), np.inf))
    np.testing.assert_allclose(nothing[0], classifier.predict_proba(X, 0.0).mean(axis=0), atol=0.08)
    with pytest.raises(InputError, match="fitted to exact inputs"):
        GPClassifier.from_gpflow(model, X, labels(X)).predict_proba(at, SCALE)


@pytest.mark.parametrize("likelihood", [gl.Poisson(), gl.Gaussian(0.3), gl.StudentT()])
def test_a_response(likelihood):
    X, at = inputs(40, 6), inputs(25, 7)
    y = np.random.default_rng(3).poisson(2.0, size=40).astype(float)
    model = svgp(some_kernel(0.5), likelihood, points(12, 1), 1)
    process = NoisyInputGP.from_gpflow(model, X, y)
    for mine, theirs in zip(process.predict_y(at), model.predict_y(at), strict=True):
        np.testing.assert_allclose(mine, theirs[:, 0], rtol=1e-6, atol=1e-6)
    if not isinstance(likelihood, gl.Gaussian):
        model.likelihood.quadrature = NDiagGHQuadrature(1, 150)  # its 20 points are .0002 off
    log_p = model.predict_log_density((at, y[:25, None]))
    np.testing.assert_allclose(process.predict_log_density(at, y[:25]), log_p, atol=1e-6)
    assert abs(process.bound_ - float(model.elbo((X, y[:, None]))) / 40) < 1e-6


def test_likelihoods_of_classes_are_the_same_function():
    f = np.random.default_rng(0).normal(size=(50, 3)) * 3
    one = f[:, :1]
    cases = [
        (gl.Softmax(3), f, softmax(f, axis=1)),
        (gl.MultiClass(3), f, np.where(f == f.max(axis=1, keepdims=True), 1 - 1e-3, 5e-4)),
        (gl.Bernoulli(tf.sigmoid), one, np.hstack([expit(-one), expit(one)])),
    ]
    bernoulli = gl.Bernoulli()
    p = bernoulli.conditional_mean(None, one).numpy()
    cases.append((bernoulli, one, np.hstack([1 - p, p])))
    for likelihood, F, want in cases:
        np.testing.assert_allclose(
            own_likelihood(likelihood).conditional_probabilities(F), want, atol=1e-9
        )
    variance = np.random.default_rng(1).uniform(0.1, 4, size=one.shape)
    np.testing.assert_allclose(
        own_likelihood(bernoulli).predict_proba(one, variance)[:, 1:],
        bernoulli.predict_mean_and_var(None, one, variance)[0],
        atol=1e-9,
    )


def test_the_bound_is_that_of_a_vgp():
    model = vgp(k.Matern52(2.0, 1.5 * SCALE))
    model.likelihood = own_likelihood(model.likelihood)  # GPflow's draws at random
    X = inputs(60, 6)
    bound = GPClassifier.from_gpflow(model, X, labels(X)).bound_
    assert abs(bound - float(model.elbo()) / 60) < 1e-5


def test_two_classes():
    X, at = inputs(40, 6), inputs(25, 7)
    y = labels(X) > "a"
    model = svgp(some_kernel(2.0), gl.Bernoulli(), points(12, 1), 1)
    classifier = GPClassifier.from_gpflow(model, X, y)
    p = model.predict_y(at)[0][:, 0]
    np.testing.assert_allclose(classifier.predict_proba(at)[:, 1], p, atol=1e-6)


def test_latent_functions_that_are_mixed():
    """f = W g: moments of f are GPflow's, probabilities those of f with its correlations."""
    X, at = inputs(60, 6), inputs(25, 7)
    W = np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -1.2]])
    mixing = k.LinearCoregionalization([some_kernel(1.0), some_kernel(2.0)], W=W)
    together = gi.SharedIndependentInducingVariables(points(12, 1))
    model = svgp(mixing, gl.Softmax(3), together, 2)
    classifier = GPClassifier.from_gpflow(model, X, labels(X))
    posterior = classifier.posterior_
    mean, variance = posterior.predict_f(at)
    for mine, theirs in zip((mean @ W.T, variance @ (W**2).T), model.predict_f(at), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    covariance = model.predict_f(at, full_output_cov=True)[1].numpy()
    rng = np.random.default_rng(0)
    for i in range(25):
        f = rng.multivariate_normal(mean[i] @ W.T, covariance[i], size=20_000, method="svd")
        p = softmax(f, axis=1).mean(axis=0)
        np.testing.assert_allclose(classifier.predict_proba(at)[i], p, atol=0.02)


def test_a_response_of_a_mixed_function_is_refused():
    """W would be lost: means and variances of the function inside."""
    mixed = k.LinearCoregionalization([some_kernel(1.0)], W=[[3.0]])
    together = gi.SharedIndependentInducingVariables(points(5, 1))
    model = gpflow.models.SVGP(mixed, gl.Gaussian(), together, num_latent_gps=1)
    X = inputs(30, 6)
    with pytest.raises(InputError, match="times W squared"):
        NoisyInputGP.from_gpflow(model, X, X[:, 0])


def test_what_has_no_counterpart_is_refused():
    X = inputs(30, 6)
    y = labels(X)

    def refused(match, model, **parameters):
        with pytest.raises(InputError, match=match):
            GPClassifier.from_gpflow(model, X, y, **parameters)

    kernel, Z = some_kernel(1.0), points(5, 1)
    refused("is a GPR", gpflow.models.GPR((X, X[:, :1]), kernel))
    mixed = k.LinearCoregionalization([kernel, some_kernel(2.0)], W=np.ones((3, 2)))
    together = gi.SharedIndependentInducingVariables(Z)
    refused("under the softmax only", svgp(mixed, gl.MultiClass(3), together, 2))
    refused("2 classes", svgp(kernel, gl.Softmax(2), Z, 2))
    refused("MultiClass has no counterpart", svgp(kernel, gl.MultiClass(2), Z, 2))
    refused("Poisson has no counterpart", svgp(kernel, gl.Poisson(), Z, 1))
    refused("class Multiscale", svgp(kernel, gl.Softmax(3), gi.Multiscale(X[:5], 0 * X[:5] + 1)))
    refused("kernel is the SVGP's", svgp(kernel, gl.Softmax(3), Z), kernel="rbf")
    for name, value in {
        "learn_errors": "floor",
        "learn_by": "leave_one_out",
        "learn_inducing": True,
        "inference_options": {"tolerance": 1e-3},
    }.items():
        refused(f"{name}=.* is of learning", svgp(kernel, gl.Softmax(3), Z), **{name: value})
    refused("4 latent functions", svgp(kernel, gl.Softmax(3), Z, 4))
    with_mean = svgp(kernel, gl.Softmax(3), Z)
    with_mean.mean_function = gpflow.functions.Constant(np.ones(3))
    refused("mean function Constant", with_mean)
