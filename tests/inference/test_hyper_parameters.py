"""Learning hyper-parameters: the same steps whatever the bijector, priors, and when it stops."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from dense_reference import make_data
from sklearn.exceptions import ConvergenceWarning

from gpal import GPClassifier, InputError, NoisyInputGP
from gpal.inference.base import Problem
from gpal.inference.full import FullGP
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.parameters import Coordinates, maximise
from gpal.inference.sites import Schedule, fit_sites
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.dirichlet import Dirichlet
from gpal.likelihoods.site_rules import NaturalGradient

k = gpflow.kernels


def value(parameter: gpflow.Parameter) -> float:
    return float(parameter.numpy())


def waves():
    """Two classes with a fine boundary: the variance of a kernel that follows it is large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, (np.sin(2.0 * X[:, 0]) + X[:, 1] > 0).astype(int)


@pytest.mark.parametrize(
    "likelihood", ["softmax", Dirichlet(2, 0.01)], ids=["softmax", "dirichlet"]
)
def test_a_kernel_object_ends_where_the_same_kernel_by_name_does(likelihood):
    """The issue's case: a softplus moved by one at most left the variance at 10.54."""
    X, y = waves()
    kernel = k.SquaredExponential(4.0, [2.0**0.5] * 2) + k.Constant(1.0)
    by_name = GPClassifier(likelihood, n_inducing=30, kernel="rbf").fit(X, y)
    given = GPClassifier(likelihood, n_inducing=30, kernel=kernel).fit(X, y)
    assert given.bound_ == pytest.approx(by_name.bound_, abs=1e-3)
    variance = value(by_name.model_.gp.kernels[0].kernels[0].variance)
    assert variance > (20.0 if likelihood == "softmax" else 5.0)
    found = given.model_.gp.kernels[0].kernels[0]
    # The bound is flat there, and the other has started from another lengthscale.
    assert value(found.variance) == pytest.approx(variance, rel=5e-2)
    assert isinstance(found.variance.transform, tfp.bijectors.Softplus)


def test_coordinates_of_any_bijector():
    """Softplus, a lower limit, the exponential, an interval, no bijector: values there and back,
    and gradients by differences."""
    parameters = [
        gpflow.Parameter([0.3, 50.0], transform=gpflow.utilities.positive()),
        gpflow.Parameter(2.0, transform=gpflow.utilities.positive(lower=1e-4)),
        gpflow.Parameter(3.0, transform=tfp.bijectors.Exp()),
        gpflow.Parameter(0.2, transform=tfp.bijectors.Sigmoid()),
        gpflow.Parameter([-1.0, 1.0]),
    ]
    module = tf.Module()
    module.parameters = parameters
    coordinates = Coordinates(module)
    x = coordinates.pack()
    np.testing.assert_allclose(x[:4], np.log([0.3, 50.0, 2.0, 3.0]))
    weights = [1.3, -0.7, 0.4, 2.0, 0.9]

    def total_of() -> tf.Tensor:
        return tf.add_n([w * tf.reduce_sum(p**2) for w, p in zip(weights, parameters, strict=True)])

    with tf.GradientTape() as tape:
        total = total_of()
    found = coordinates.gradient(tape.gradient(total, coordinates.variables))
    for i in range(len(x)):
        ends = []
        for step in (1e-5, -1e-5):
            coordinates.assign(x + step * np.eye(len(x))[i])
            ends.append(float(total_of()))
        assert found[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)
    coordinates.assign(x - 100.0 * (np.arange(len(x)) == 2))
    assert value(parameters[1]) == pytest.approx(1e-4, rel=1e-6)
    coordinates.assign(x)
    np.testing.assert_allclose(coordinates.pack(), x)

    def rising() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            total = tf.math.log(total_of())
        return total, tape.gradient(total, coordinates.variables)

    before = parameters[0].numpy()
    maximise(module, rising, iterations=20, largest_change=1.0)
    np.testing.assert_allclose(parameters[0], before * np.e)  # a factor of e, large or small


def test_a_prior_is_honoured():
    """MAP: with the sites at their optimum the gradient of bound and log prior vanishes, as in
    GPflow's own objective, and differs from the fit without it."""
    data, likelihood = make_data(60, 3, 2), make_likelihood("bernoulli_logit", 2)
    found = {}
    for prior in (None, tfp.distributions.LogNormal(np.log(0.5), np.float64(0.1))):
        kernel = k.SquaredExponential(4.0, [1.5] * 3)
        kernel.variance.prior = prior
        gp = FullGP(KernelRows([kernel], data.X.numpy(), 1))
        problem = Problem(gp, likelihood, NaturalGradient(), data)
        fit = fit_sites(problem, Schedule(rounds=20, iterations=20, tolerance=1e-7))
        found[prior is None] = value(kernel.variance)
    _, gradients = gp.bound_and_gradient(data, fit.sites)
    with tf.GradientTape() as tape:
        log_prior = kernel.variance.log_prior_density()
    zero = tf.UnconnectedGradients.ZERO
    to_prior = tape.gradient(log_prior, gp.trainable_variables, unconnected_gradients=zero)
    largest = max(np.abs(p).max() for p in to_prior)
    assert largest > 0.2
    for of_bound, of_prior in zip(gradients, to_prior, strict=True):
        np.testing.assert_allclose(of_bound, -of_prior, atol=0.1 * largest)
    assert found[False] == pytest.approx(0.5, rel=0.5)
    assert found[True] > 2.0 * found[False]


def test_every_way_of_learning_honours_a_prior_or_refuses_it():
    X, y = waves()
    prior = tfp.distributions.LogNormal(np.log(0.5), np.float64(0.05))

    def kernel():
        kernel = k.SquaredExponential(4.0, [1.0, 1.0])
        kernel.variance.prior = prior
        return kernel

    model = GPClassifier(Dirichlet(2, 0.1), kernel=kernel(), n_inducing=15).fit(X, y)
    assert value(model.model_.gp.kernels[0].variance) == pytest.approx(0.5, rel=0.3)
    noise = gpflow.likelihoods.Gaussian(1.0)
    noise.variance.prior = tfp.distributions.LogNormal(np.float64(0.0), np.float64(1e-3))
    response = NoisyInputGP(noise, n_inducing=15).fit(X, y - 0.5)
    assert value(response.likelihood_.variance) == pytest.approx(1.0, rel=0.02)
    for inference in ("svgp", "stochastic_sites"):
        with pytest.raises(InputError, match="would ignore the prior on 'variance'"):
            GPClassifier(inference=inference, kernel=kernel()).fit(X, y)


def test_it_is_said_whether_learning_converged():
    X, y = waves()
    y = y ^ (np.arange(200) % 7 == 0)  # some labels wrong: the kernel need not grow for long
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {"n_inducing": 30, "kernel": "rbf"}
        done = GPClassifier(**options).fit(X, y)
        short = GPClassifier(**options, max_rounds=2).fit(X, y)  # a choice: no warning
        none = GPClassifier(**options, max_rounds=0).fit(X, y)
    assert done.converged_ and 2 < done.n_rounds_ < 20
    assert len(done.bounds_per_round_) == done.n_rounds_ + 1
    assert (np.diff(done.bounds_per_round_) > -1e-6).all()
    assert done.bound_ == pytest.approx(done.bounds_per_round_[-1], abs=1e-3)
    assert short.converged_ is False and short.n_rounds_ == 2
    assert none.converged_ is None and none.n_rounds_ == 0
    for name in ("svgp", "stochastic_sites"):
        by_steps = GPClassifier(inference=name, n_inducing=15, inference_options={"steps": 5})
        assert by_steps.fit(X, y).converged_ is None and by_steps.bounds_per_round_ == []


def test_learning_that_the_default_rounds_did_not_finish_warns_once():
    class Hasty(GPClassifier):
        def __init__(self, *, max_rounds=2):
            super().__init__(n_inducing=30, kernel="rbf", max_rounds=max_rounds)

    X, y = waves()
    model = Hasty()
    with pytest.warns(ConvergenceWarning, match="after 2 rounds.*raise max_rounds") as caught:
        model.fit(X, y)
    assert len(caught) == 1 and model.converged_ is False
