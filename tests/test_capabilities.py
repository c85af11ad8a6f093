"""What works with what is derived from facts on the classes; they are true, and every row runs."""

import logging
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal import GPClassifier, InputError
from gpal.inference import capabilities
from gpal.inference.base import INFERENCES
from gpal.inference.single_latent import SINGLE_LATENT, facts_of, make_single_latent
from gpal.input_noise import INPUT_NOISES, make_input_noise
from gpal.input_noise.integrated import Integrated
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.likelihoods.quasi_random import QuasiRandomLikelihood
from gpal.likelihoods.site_rules import natural_gradient_sites


def own(register):
    """The classes of gpal itself, by name."""
    return {k.name: k for k in register.classes() if k.__module__.startswith("gpal.")}


METHODS, NOISES, FAMILIES = own(INFERENCES), own(INPUT_NOISES), own(LIKELIHOODS)


def number_of_classes(likelihood: str) -> int:
    return 2 if FAMILIES[likelihood].classes == "two" else 3


def why_not(likelihood: str, noise: str, inference: str, num_classes: int) -> str:
    return capabilities.why_not(
        FAMILIES[likelihood], make_input_noise(noise), METHODS[inference], num_classes
    )


@pytest.fixture(scope="module")
def problem():
    """120 sources of three (or, merged, two) classes in two features, with error bars."""
    rng = np.random.default_rng(5)
    y = np.arange(120) % 3
    X = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])[y] + rng.normal(size=(120, 2)) * 0.8
    return X, y, rng.uniform(0.05, 0.4, size=X.shape)


@pytest.mark.parametrize("kind", [*METHODS.values(), *NOISES.values(), *FAMILIES.values()])
def test_every_class_says_what_the_page_needs(kind):
    facts = ("expectation", "prediction") if kind in FAMILIES.values() else ("summary",)
    assert all(getattr(kind, fact) for fact in facts)
    assert kind.source or kind.name == "integrated"


def test_every_rule_that_an_inference_asks_for_is_one_of_some_likelihood():
    rules = {rule.name for kind in FAMILIES.values() for rule in kind.site_rules}
    assert {method.rule for method in METHODS.values()} - {None} <= rules


FAST = {
    "class_sampled": {"steps": 150},
    "stochastic": {"steps": 60, "batch_size": 60},
    "svgp_lbfgs": {"iterations": 60},
    "svgp": {"steps": 150},
}


def supported():
    """Each likelihood on the default inference, each inference on its first likelihood, each noise
    on every path: every row is run, the products of rows by sampling."""
    for likelihood in FAMILIES:
        yield likelihood, "none", "sites", number_of_classes(likelihood)
    for inference in METHODS:
        for noise in NOISES:
            for likelihood in FAMILIES:
                C = number_of_classes(likelihood)
                if not why_not(likelihood, noise, inference, C):
                    yield likelihood, noise, inference, C
                    break


def quick_ones_first():
    """Every row once in `make test`, the products of noise and inference in `make test-slow`."""
    for likelihood, noise, inference, C in sorted(set(supported())):
        once = noise == "none" or inference in ("sites", "svgp")
        marks = () if once else pytest.mark.slow
        yield pytest.param(likelihood, noise, inference, C, marks=marks)


@pytest.fixture
def logged_by_tensorflow():
    """What it warns of, autograph's complaints among them: no warnings of Python."""
    records = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.mark.parametrize(("likelihood", "noise", "inference", "C"), list(quick_ones_first()))
def test_a_supported_combination_learns(
    problem, likelihood, noise, inference, C, logged_by_tensorflow
):
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
    assert not [record.getMessage() for record in logged_by_tensorflow]


# Said a second time, so that a fact that is lost on a class is noticed here.
DRAWN = {"latent", "amortized", "resampled"}
ONE_NODE = {"cavi", "stochastic_cavi", "class_sampled"}
LOCAL = {"jaakkola_jordan_full", "jaakkola_jordan_hybrid"}
RULES = {
    "jaakkola_jordan": {"bernoulli_logit"},
    "jaakkola_jordan_full": {"bernoulli_logit"},
    "jaakkola_jordan_hybrid": {"bernoulli_logit"},
    "taylor": {"bernoulli_logit"},
    "cavi": {"logistic_softmax"},
    "stochastic_cavi": {"logistic_softmax"},
    "class_sampled": {"gumbel_softmax"},
}
LOG_CONCAVE = {"softmax", "coregionalized", "gumbel_softmax", "bernoulli_logit", "dirichlet"}
COUPLED = {"softmax", "logistic_softmax", "bernoulli_logit"}


def test_the_facts_of_the_likelihoods_are_those_said_here():
    log_concave = {name for name, kind in FAMILIES.items() if kind.log_concave}
    assert log_concave == LOG_CONCAVE, "say in LOG_CONCAVE above which are"
    coupled = {name for name, kind in FAMILIES.items() if kind.is_coupled()}
    assert coupled == COUPLED, "say in COUPLED above which have coupling_points"


def works(likelihood: str, noise: str, inference: str) -> bool:
    if likelihood not in RULES.get(inference, FAMILIES):
        return False
    if noise in DRAWN and not inference.startswith("svgp"):
        return False
    if inference in ONE_NODE and noise == "integrated":
        return False
    if inference in LOCAL and noise in ("integrated", "first_order"):
        return False
    log_concave = likelihood in LOG_CONCAVE - (COUPLED if noise == "integrated" else set())
    return log_concave or inference != "svgp_natgrad"


@pytest.mark.parametrize("likelihood", sorted(FAMILIES))
def test_every_gap_is_one_that_is_known_and_refused_with_its_reason(likelihood):
    C = number_of_classes(likelihood)
    for noise in NOISES:
        for inference in METHODS:
            reason = why_not(likelihood, noise, inference, C)
            assert (reason == "") == works(likelihood, noise, inference), (noise, inference, reason)
            if reason:
                with pytest.raises(InputError) as caught:
                    capabilities.check(likelihood, noise, inference, C)
                assert reason in str(caught.value)
                assert "inferences that work here: " in str(caught.value)


def test_facts_are_those_of_the_object_that_is_given(problem):
    """One node per source is no more than a local parameter per source can take, or cavi."""
    capabilities.check("logistic_softmax", Integrated(nodes=1), "cavi", 3)
    for inference in ("cavi", "stochastic_cavi"):
        with pytest.raises(InputError, match="highest at the uniform distribution"):
            capabilities.check("logistic_softmax", "integrated", inference, 3)
    X, y, X_err = problem
    with pytest.raises(InputError, match="tells two classes apart"):
        GPClassifier("bernoulli_logit").fit(X, y, X_err)
    capabilities.check("bernoulli_logit", Integrated(nodes=1), "jaakkola_jordan_full", 2)
    with pytest.raises(InputError, match="one local parameter per source"):
        capabilities.check("bernoulli_logit", Integrated(nodes=2), "jaakkola_jordan_full", 2)


@pytest.mark.parametrize("argument", ["likelihood", "input_noise", "inference", "kernel"])
def test_an_unknown_name_lists_the_known_ones(problem, argument):
    X, y, X_err = problem
    with pytest.raises(InputError, match=r"nonsense.*(softmax|none|sites|rbf)"):
        GPClassifier(**{argument: "nonsense"}).fit(X, y, X_err)


def test_the_documentation_page_is_generated_from_the_classes(monkeypatch):
    for register in (INFERENCES, INPUT_NOISES, LIKELIHOODS):  # other tests may have added to them
        names = {n: k for n, k in register.items() if k.__module__.startswith("gpal.")}
        monkeypatch.setattr(register, "_classes", names)
    page = Path(__file__).parents[1] / "docs" / "capabilities.md"
    assert page.read_text() == capabilities.markdown(), (
        "run: python -m gpal.inference.capabilities > docs/capabilities.md"
    )


@pytest.mark.parametrize("name", sorted({**FAMILIES, **SINGLE_LATENT}))
def test_log_concave_likelihoods_are_those_whose_sites_have_no_negative_precision(name):
    """θ = −2 ∂E/∂v over a grid of marginals and labels."""
    rng, one = np.random.default_rng(0), np.ones((400, 1))
    if name in FAMILIES:
        likelihood = make_likelihood(name, number_of_classes(name))
        log_concave = likelihood.log_concave
        Y = rng.integers(likelihood.num_classes, size=(400, 1)).astype(float)
    else:
        edges = gpflow.likelihoods.Ordinal(np.array([-1.0, 0.0, 1.0]))
        likelihood = make_single_latent(edges if name == "ordinal" else name)
        assert facts_of(likelihood) is SINGLE_LATENT[name]
        log_concave = SINGLE_LATENT[name].log_concave
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
    assert (lowest > (-0.02 if sampled else -1e-6)) == log_concave, lowest


def test_exact_inputs_need_no_treatment():
    """The default treatment is refused with error bars, and left out where there are none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    classifier = GPClassifier("logistic_softmax", inference="cavi", max_rounds=1)
    with pytest.raises(InputError, match="uniform distribution"):
        classifier.fit(X, y, X_err=0.3)
    assert (classifier.fit(X, y).predict(X) == y).mean() > 0.6
