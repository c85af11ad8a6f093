"""Learning starts from a lengthscale that the bound chooses."""

from types import SimpleNamespace

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal import GPClassifier
from gpal.inference import first_lengthscale
from gpal.inference.base import Fit, Problem
from gpal.inference.cholesky import Jitter
from gpal.inference.rows import Data

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(300, 2))
FINE = (np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1]) > 0).astype(int)
PLAIN = (X[:, 0] > 0.5 * X[:, 1] + 0.3 * rng.normal(size=300)).astype(int)


def lengthscales(model: GPClassifier) -> np.ndarray:
    return np.array(model.settings_["kernels"][0]["parameters"]["kernels[0].lengthscales"])


@pytest.fixture
def chosen(monkeypatch):
    """Factors, as they are chosen; learning starts from so many times the lengthscales given."""
    found = []
    choose = first_lengthscale.choose_lengthscale

    def of_kernels(problem):
        parts = [part for kernel in problem.gp.kernels for part in getattr(kernel, "kernels", [])]
        return [part.lengthscales.numpy() for part in parts if hasattr(part, "lengthscales")]

    def remembered(problem, seed):
        given = of_kernels(problem)
        found.append(choose(problem, seed))
        np.testing.assert_allclose(of_kernels(problem), found[-1] * np.array(given))
        return found[-1]

    monkeypatch.setattr("gpal.model.fit.choose_lengthscale", remembered)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"n_inducing": 60}, {"likelihood": "softmax", "kernel": "rbf"}, {"shared_kernel": False}],
)
def test_fine_boundaries_are_learned(options):
    """From the kernel's own lengthscale learning ends at log 2, where nothing has been learned."""
    model = GPClassifier(**{"likelihood": "bernoulli_logit", **options}).fit(X, FINE)
    assert model.bound_ > -0.66
    assert (lengthscales(model) < 0.7).all()


def test_with_error_bars_as_well(chosen):
    model = GPClassifier("bernoulli_logit", input_noise="first_order", n_inducing=60)
    assert model.fit(X, FINE, X_err=0.05).bound_ > -0.66
    assert chosen == [0.25]


def test_plain_boundaries_are_learned_from_the_kernel_as_it_is(chosen):
    GPClassifier("bernoulli_logit", kernel="rbf").fit(X, PLAIN)
    assert chosen == [1.0]


def test_the_highest_bound_is_chosen():
    def bound(factor):
        kernel = gpflow.kernels.SquaredExponential(
            variance=4.0, lengthscales=np.full(2, factor * np.sqrt(2))
        ) + gpflow.kernels.Constant(1.0)
        return GPClassifier("bernoulli_logit", kernel=kernel, max_rounds=0).fit(X, FINE).bound_

    bounds = [bound(factor) for factor in first_lengthscale.FACTORS]
    assert np.argmax(bounds) == first_lengthscale.FACTORS.index(0.25)


LABELS = np.arange(first_lengthscale.SOURCES + 7)[:, None] % 2.0  # of SOURCES ones log 2 is 346.6


@pytest.mark.parametrize(
    ("bounds", "best", "Y", "weight"),
    [
        ((-3.0, -1.0, -2.0), 0.5, LABELS, None),
        ((None, -1.0, -2.0), 0.5, LABELS, None),
        ((None, None, None), 1.0, LABELS, None),
        pytest.param((-340.0, -341.0), 1.0, LABELS, None, id="learned"),
        pytest.param((-347.0, -348.0, -300.0), 0.25, LABELS, None, id="less than class fractions"),
        pytest.param((-340.0, -341.0, -300.0), 0.25, LABELS, 0.5, id="of half the weight"),
        pytest.param((-3.0, -4.0, -2.0), 0.25, LABELS, 1.0 * (LABELS[:, 0] > 0), id="of one class"),
        pytest.param((-3.0, -4.0, -2.0), 0.25, np.arange(507.0)[:, None], None, id="numbers"),
        pytest.param((-3.0, -4.0, -2.0), 0.25, np.hstack([LABELS, 1 - LABELS]), None, id="sets"),
    ],
)
def test_what_is_tried_and_what_is_chosen(monkeypatch, bounds, best, Y, weight):
    """Of more sources than SOURCES so many are looked at; a jitter that it needed is its own."""
    found, looked_at = iter(bounds), []

    def fit(trial, schedule):
        looked_at.append(len(trial.data.Y))
        assert trial.gp.jitter.relative == 1e-8
        trial.gp.jitter.relative *= 10.0
        bound = next(found)
        if bound is None:
            raise FloatingPointError
        return Fit(None, [bound])

    monkeypatch.setattr(first_lengthscale, "fit_sites", fit)
    kernel = gpflow.kernels.RBF(lengthscales=[2.0, 3.0])
    gp = SimpleNamespace(kind="sparse", kernels=[kernel], jitter=Jitter(1e-8))
    data = Data(tf.zeros([len(Y), 2]), tf.constant(Y), tf.zeros([len(Y), 2, 0]))
    if weight is not None:
        data = data._replace(weight=tf.constant(weight * np.ones(len(Y))))
    problem = Problem(gp, None, None, data)
    assert first_lengthscale.choose_lengthscale(problem, 0) == best
    np.testing.assert_allclose(kernel.lengthscales, best * np.array([2.0, 3.0]))
    assert looked_at == [first_lengthscale.SOURCES] * len(bounds) and gp.jitter.relative == 1e-8


@pytest.mark.parametrize("options", [{"max_rounds": 0}, {"kernel": gpflow.kernels.RBF()}])
def test_a_lengthscale_that_was_given_is_kept(chosen, options):
    GPClassifier("bernoulli_logit", **options).fit(X[:60], FINE[:60])
    assert not chosen
    GPClassifier("bernoulli_logit", kernel="linear").fit(X[:60], FINE[:60])
    assert chosen == [1.0]
