"""The capability table is complete, true, and every row of it runs."""

from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal import GPClassifier, InputError, capabilities
from gpal.inference.single_latent import make_single_latent
from gpal.input_noise.treatments import TREATMENTS
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.likelihoods.base import natural_gradient_sites
from gpal.likelihoods.quasi_random import QuasiRandomLikelihood
from gpal.likelihoods.site_rules import SITE_RULES, site_rules_for


@pytest.fixture(scope="module")
def problem():
    """120 sources of three (or, merged, two) classes in two features, with error bars."""
    rng = np.random.default_rng(5)
    y = np.arange(120) % 3
    X = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])[y] + rng.normal(size=(120, 2)) * 0.8
    return X, y, rng.uniform(0.05, 0.4, size=X.shape)


def test_the_tables_name_what_the_code_has():
    assert set(capabilities.LIKELIHOODS) == set(LIKELIHOODS)
    assert set(capabilities.INPUT_NOISES) == set(TREATMENTS)
    drawn = {name for name, treatment in TREATMENTS.items() if treatment.gradient_only}
    assert set(capabilities.GRADIENT_ONLY) == drawn
    for name, row in capabilities.LIKELIHOODS.items():
        assert set(row.rules) == set(site_rules_for(make_likelihood(name, 2)))
    rules = {method.rule for method in capabilities.INFERENCES.values()} - {None}
    assert rules <= set(SITE_RULES)


FAST = {"stochastic": {"steps": 60, "batch_size": 60}, "svgp": {"steps": 150}}


def supported():
    """Each likelihood on the default inference, each inference on its first likelihood, each noise
    on every path: every row is run, the products of rows by sampling."""
    for likelihood, row in capabilities.LIKELIHOODS.items():
        yield likelihood, "none", "sites", 2 if row.classes == "two" else 3
    for inference in capabilities.INFERENCES:
        for noise in capabilities.INPUT_NOISES:
            for likelihood, row in capabilities.LIKELIHOODS.items():
                C = 2 if row.classes == "two" else 3
                if not capabilities.why_not(likelihood, noise, inference, C):
                    yield likelihood, noise, inference, C
                    break


@pytest.mark.parametrize(("likelihood", "noise", "inference", "C"), sorted(set(supported())))
def test_a_supported_combination_learns(problem, likelihood, noise, inference, C):
    X, y, X_err = problem
    y = np.minimum(y, C - 1)
    options = next((v for k, v in FAST.items() if inference.startswith(k)), None)
    model = GPClassifier(
        likelihood,
        input_noise=noise,
        inference=inference,
        n_inducing=15,
        max_rounds=1,
        inference_options=options,
    ).fit(X[:80], y[:80], X_err[:80])
    P = model.predict_proba(X[80:], X_err[80:])
    nll = -np.log(P[np.arange(40), y[80:]]).mean()
    fractions = np.bincount(y) / len(y)
    assert nll < -np.sum(fractions * np.log(fractions)) - 0.1


def test_every_gap_is_refused_with_its_reason(problem):
    X, y, X_err = problem
    gaps = 0
    for likelihood in capabilities.LIKELIHOODS:
        for noise in capabilities.INPUT_NOISES:
            for inference in capabilities.INFERENCES:
                reason = capabilities.why_not(likelihood, noise, inference, 3)
                if reason:
                    gaps += 1
                    with pytest.raises(InputError) as caught:
                        capabilities.check(likelihood, noise, inference, 3)
                    assert reason in str(caught.value)
    assert gaps > 0
    with pytest.raises(InputError, match="tells two classes apart"):
        GPClassifier("bernoulli_logit").fit(X, y, X_err)


@pytest.mark.parametrize("argument", ["likelihood", "input_noise", "inference", "kernel"])
def test_an_unknown_name_lists_the_known_ones(problem, argument):
    X, y, X_err = problem
    with pytest.raises(InputError, match=r"nonsense.*(softmax|none|sites|rbf)"):
        GPClassifier(**{argument: "nonsense"}).fit(X, y, X_err)


def test_the_documentation_page_is_generated_from_the_tables():
    page = Path(__file__).parents[1] / "docs" / "capabilities.md"
    assert page.read_text() == capabilities.markdown()


@pytest.mark.parametrize("name", sorted({**capabilities.LIKELIHOODS, **capabilities.SINGLE_LATENT}))
def test_log_concave_likelihoods_are_those_whose_sites_have_no_negative_precision(name):
    """θ = −2 ∂E/∂v over a grid of marginals and labels."""
    if name == "other":
        pytest.skip("stands for any likelihood")
    rng, one = np.random.default_rng(0), np.ones((400, 1))
    if name in capabilities.LIKELIHOODS:
        likelihood = make_likelihood(name, 2 if name == "bernoulli_logit" else 3)
        row, labels = capabilities.LIKELIHOODS[name], likelihood.num_classes
        assert likelihood.log_concave == row.log_concave
        Y = rng.integers(labels, size=(400, 1)).astype(float)
    else:
        edges = gpflow.likelihoods.Ordinal(np.array([-1.0, 0.0, 1.0]))
        likelihood = make_single_latent(edges if name == "ordinal" else name)
        row = capabilities.SINGLE_LATENT[name]
        Y = {"bernoulli": rng.integers(2, size=(400, 1)), "ordinal": rng.integers(4, size=(400, 1))}
        Y = Y.get(name, rng.uniform(0.05, 0.95, size=(400, 1))).astype(float)
        if name == "poisson":
            Y = rng.poisson(2.0, size=(400, 1)).astype(float)
    P = likelihood.latent_dim or 1
    mean = tf.constant(rng.uniform(-6.0, 6.0, size=(400, P)))
    lowest = min(
        float(tf.reduce_min(natural_gradient_sites(likelihood, mean, v * one * np.ones(P), Y)[0]))
        for v in (0.1, 1.0)
    )
    # On quasi-random points the tape's θ is off by the sampling error, with either sign.
    sampled = isinstance(likelihood, QuasiRandomLikelihood)
    assert (lowest > (-0.02 if sampled else -1e-6)) == row.log_concave, lowest
