"""Reference posteriors against brute force at tiny n, and against closed forms."""

from __future__ import annotations

import sys

import gpflow
import numpy as np
import pytest

from gpal import GPClassifier, InputError
from gpal.inference.capabilities import markdown
from gpal.inference.reference import REFERENCES, ChainSchedule
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.model.reference import reference_posterior

X = np.array([[-1.5], [-0.4], [0.1], [0.9], [1.6]])
NEW = np.array([[-2.0], [0.3], [3.5]])
BLOCK = 20_000  # draws of the prior at once
LABELS = {2: [0, 1, 0, 1, 1], 3: [0, 2, 1, 1, 2]}


def classes_of(likelihood: str) -> int:
    return 2 if LIKELIHOODS[likelihood].classes == "two" else 3


def fitted(likelihood: str, **options) -> GPClassifier:
    """With the kernel as it is given: nothing is learned but q(f)."""
    kernel = gpflow.kernels.SquaredExponential(variance=3.0, lengthscales=0.8)
    given = make_likelihood(likelihood, classes_of(likelihood), **options)
    classifier = GPClassifier(given, kernel=kernel, input_noise="none", max_rounds=0)
    return classifier.fit(X, np.array(LABELS[given.num_classes]))


def by_importance(classifier: GPClassifier, number: int = 400_000) -> np.ndarray:
    """E[p(y = c | f(x)) | y] at NEW: draws of the prior, weighted by the likelihood."""
    model, rng = classifier.model_, np.random.default_rng(0)
    x = classifier.posterior_.standardised(np.concatenate([X, NEW]))
    K = model.gp.kernels[0](x).numpy() + 1e-9 * np.eye(len(x))
    root, labels = np.linalg.cholesky(K), np.array(LABELS[model.likelihood.num_classes])
    total = np.zeros((len(NEW), model.likelihood.num_classes))
    weights = 0.0
    for _ in range(0, number, BLOCK):  # a probit takes p by quadrature, gigabytes for all at once
        f = rng.normal(size=(BLOCK, model.gp.num_latent, len(x))) @ root.T
        p = model.likelihood.conditional_probabilities(np.swapaxes(f, 1, 2)).numpy()
        weight = p[:, np.arange(len(X)), labels].prod(axis=1)
        total += np.einsum("s,snc->nc", weight, p[:, len(X) :])
        weights += weight.sum()
    return total / weights


CASES = [
    ("gibbs", "logistic_softmax", 3000),
    ("gibbs", "bernoulli_logit", 3000),
    pytest.param("hmc", "logistic_softmax", 800, marks=pytest.mark.slow),
    ("hmc", "softmax", 800),
    pytest.param("hmc", "bernoulli_logit", 800, marks=pytest.mark.slow),
    pytest.param("hmc", "probit", 400, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("method", "likelihood", "draws"), CASES)
def test_class_probabilities_are_those_of_brute_force(method, likelihood, draws):
    if method == "gibbs":
        pytest.importorskip("polyagamma", reason="pip install 'gpal[gibbs]'")
    classifier = fitted(likelihood)
    reference = reference_posterior(classifier, method, draws=draws, burn_in=200, seed=1)
    p, error = reference.predict_proba_with_error(NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    assert error.max() < 0.015
    np.testing.assert_allclose(p, by_importance(classifier), atol=4.0 * error.max() + 0.002)
    np.testing.assert_array_equal(p, reference.predict_proba(NEW))


@pytest.mark.slow
def test_with_the_dirichlet_likelihood_the_sites_are_exact():
    """Its p(y | f) is Gaussian: moments of f, and probabilities, are in closed form."""
    classifier = fitted("dirichlet", alpha_eps=0.1)
    reference = reference_posterior(classifier, "hmc", draws=800, burn_in=200, seed=2)
    mean, variance = classifier.posterior_.predict_f(X)
    drawn = reference.f.reshape(-1, *mean.shape)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.1)
    p, error = reference.predict_proba_with_error(NEW)
    np.testing.assert_allclose(p, classifier.predict_proba(NEW), atol=4.0 * error.max() + 0.002)


def test_separate_kernels_and_inducing_points_are_those_of_the_full_gp():
    """Each latent function has the draws of its own kernel; q(u) of few points plays no part."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 1))
    y = np.arange(12) % 3
    kernels = [gpflow.kernels.SquaredExponential(variance=v) for v in (0.01, 1.0, 9.0)]
    classifier = GPClassifier(
        "softmax", kernel=kernels, input_noise="none", max_rounds=0, n_inducing=3
    ).fit(x, y)
    reference = reference_posterior(classifier, "hmc", draws=200, burn_in=200, seed=0)
    assert reference.f.shape == (200, 4, 12, 3)
    spread = reference.f.std(axis=(0, 1)).mean(axis=0)
    assert spread[0] < 0.12 and 0.3 < spread[1] < 1.1 and spread[2] > 1.1


def test_chains_that_have_not_mixed_are_warned_of():
    classifier = fitted("softmax")
    with pytest.warns(UserWarning, match="R-hat of some f is .*; give more draws"):
        reference_posterior(classifier, "hmc", draws=4, burn_in=0)


@pytest.mark.parametrize("method", sorted(REFERENCES))
def test_the_same_seed_gives_the_same_draws(method):
    if method == "gibbs":
        pytest.importorskip("polyagamma", reason="pip install 'gpal[gibbs]'")
    root, y = np.linalg.cholesky(np.exp(-0.5 * (X - X.T) ** 2))[None], np.array(LABELS[3])
    sampler, likelihood = REFERENCES[method](), make_likelihood("logistic_softmax", 3)
    first, again, other = (
        sampler.sample(root, likelihood, y, ChainSchedule(draws=4, burn_in=4, seed=seed))
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_a_reference_does_not_take_is_refused_with_the_remedy(tmp_path):
    y = np.array(LABELS[3])
    with pytest.raises(InputError, match=r"'gibbs' draws the augmented .* logistic_softmax only"):
        reference_posterior(fitted("softmax"), "gibbs")
    with pytest.raises(InputError, match=r"log p.* of 'step' has steps"):
        reference_posterior(fitted("step"), "hmc")
    with pytest.raises(InputError, match="'nuts'"):
        reference_posterior(fitted("softmax"), "nuts")
    for options, said in (
        ({"draws": 1}, "draws must be a whole number from 4 .* got 1"),
        ({"draws": 10.5}, "draws must be a whole number"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"steps": 5}, "no option 'steps' of chains; there are: draws, chains, burn_in, thin"),
    ):
        with pytest.raises(InputError, match=said):
            reference_posterior(fitted("softmax"), "hmc", **options)
    noisy = GPClassifier(max_rounds=0).fit(X, y, X_err=0.1)
    with pytest.raises(InputError, match="fit without error bars"):
        reference_posterior(noisy)
    weighted = GPClassifier(max_rounds=0).fit(X, y, sample_weight=[1, 2, 1, 1, 1])
    with pytest.raises(InputError, match="fit without"):
        reference_posterior(weighted)
    fitted("softmax").save(tmp_path / "model.npz")
    with pytest.raises(InputError, match="does not hold the sources"):
        reference_posterior(GPClassifier.load(tmp_path / "model.npz"))


def test_without_polyagamma_one_line_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "polyagamma", None)
    with pytest.raises(InputError, match="type `pip install polyagamma`"):
        reference_posterior(fitted("logistic_softmax"), "gibbs")


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_every_method_is_on_the_page(name):
    method = REFERENCES[name]
    assert f"| `{name}` | {method.summary} |" in markdown()
