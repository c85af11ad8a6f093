"""The bound by some classes has that of all classes as its mean, and its gradient too."""

from __future__ import annotations

from itertools import combinations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal import GPClassifier, InputError
from gpal.inference.class_sampling import ClassSampledSVGP
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.rows import Data
from gpal.inference.sparse import SparseGP
from gpal.likelihoods.gumbel_softmax import ClassSampled, GumbelSoftmax
from gpal.likelihoods.site_rules import make_site_rule

C, DRAWN = 5, 2


def make(kernels: int = 1) -> tuple[ClassSampledSVGP, Data]:
    """Six sources and q(u) anywhere."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 0.0])
    each = [gpflow.kernels.SquaredExponential(0.7 + 0.1 * c) for c in range(kernels)]
    gp = SparseGP(KernelRows(each, rng.normal(size=(4, 2)), C))
    likelihood = GumbelSoftmax(C)
    rule = make_site_rule("class_sampled", likelihood)
    model = ClassSampledSVGP(gp, likelihood, rule, 6, num_drawn=DRAWN, rate=0.5)
    model.q_mean.assign(rng.normal(size=(4, C)))
    model.q_root.assign(np.tril(0.3 * rng.normal(size=(C, 4, 4))) + 0.8 * np.eye(4))
    data = Data(tf.constant(X), tf.constant(y[:, None]), tf.zeros([6, 2, 2], tf.float64))
    return model, data


@pytest.mark.parametrize("kernels", [1, C])
def test_its_mean_over_all_draws_is_the_bound_of_all_classes_and_so_is_the_gradient(kernels):
    model, data = make(kernels)
    Fmu, Fvar = (part.numpy() for part in model.marginals(data.X, data.root))
    y = data.Y.numpy()[:, 0].astype(int)
    i, others = np.arange(6), np.arange(C)[None] != y[:, None]
    u = Fmu + Fvar / 2 - (Fmu[i, y] - Fvar[i, y] / 2)[:, None]
    odds = np.sum(np.where(others, np.exp(u), 0.0), axis=1)  # eq. 24, written down anew
    theta = tf.constant(1.0 + np.random.default_rng(1).uniform(0.2, 3.0, size=6))
    bounds, gradients = [], []
    for drawn in combinations(range(C), DRAWN):
        with tf.GradientTape() as tape:
            terms = model.estimates(data, theta, tf.constant(drawn))[0]
        bounds.append(terms.numpy())
        gradients.append(tape.gradient(terms, model.trainable_variables[:2]))
        np.testing.assert_array_less(terms, 1.0 - np.log(theta) - 1.0 / theta + 1e-12)
    exact = 1.0 - np.log(theta) - (1.0 + odds) / theta
    np.testing.assert_allclose(np.mean(bounds, axis=0), exact, rtol=1e-10)
    assert np.ptp(bounds, axis=0).min() > 1e-3  # the draws differ
    with tf.GradientTape() as tape:
        m, v = model.marginals(data.X, data.root)
        mask = tf.constant(others)
        label = tf.gather(m - v / 2, tf.constant(y), batch_dims=1)[:, None]
        P = tf.reduce_sum(tf.where(mask, tf.exp(m + v / 2 - label), tf.zeros_like(m)), axis=1)
        whole = 1.0 - tf.math.log(theta) - (1.0 + P) / theta
    expected = tape.gradient(whole, model.trainable_variables[:2])
    for k, want in enumerate(expected):
        got = np.mean([tf.convert_to_tensor(g[k]) for g in gradients], axis=0)
        np.testing.assert_allclose(got, tf.convert_to_tensor(want), rtol=1e-8, atol=1e-10)


def test_at_the_optimal_theta_all_classes_give_the_bound_of_the_likelihood():
    model, data = make()
    every = tf.range(C)
    odds = model.estimates(data, tf.ones(6, tf.float64), every)[1]
    terms = model.estimates(data, 1.0 + odds, every)[0]
    m, v = model.marginals(data.X, data.root)
    wanted = model.likelihood.variational_expectations(None, m, v, data.Y)
    np.testing.assert_allclose(terms, wanted, rtol=1e-10)
    for other in (0.5, 2.0):  # and it is a maximum
        assert np.all(ClassSampled().bound_at(odds, other * (1.0 + odds)) < wanted)


def test_classes_are_drawn_alike():
    model, _ = make()
    drawn = np.array([model.draw_classes(tf.constant(i)).numpy() for i in range(500)])
    assert all(len(set(row)) == DRAWN for row in drawn)
    share = np.bincount(drawn.ravel(), minlength=C) / 500
    np.testing.assert_allclose(share, DRAWN / C, atol=0.09)


def test_a_fit_ends_near_that_of_all_classes():
    """Twelve classes on a ring, three drawn a step."""
    rng = np.random.default_rng(3)
    y = np.arange(360) % 12
    angle = 2.0 * np.pi * y / 12
    X = 3.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.4 * rng.normal(size=(360, 2))
    options = {"steps": 600, "batch_size": 60, "learning_rate": 0.03}
    bounds = {}
    for inference, more in (("svgp", {}), ("class_sampled", {"classes": 3})):
        classifier = GPClassifier(
            "gumbel_softmax",
            inference=inference,
            kernel="rbf",
            n_inducing=20,
            inference_options={**options, **more},
        ).fit(X, y)
        bounds[inference] = classifier.bound_
        assert (classifier.predict(X) == y).mean() > 0.9
    assert bounds["class_sampled"] > bounds["svgp"] - 0.2
    assert bounds["class_sampled"] > -0.7 * np.log(12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 0}, "classes must be at least 1"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"optimizer": "natgrad"}, "has Adam only"),
    ],
)
def test_bad_options_are_refused(options, message):
    X = np.random.default_rng(0).normal(size=(20, 2))
    classifier = GPClassifier(
        "gumbel_softmax", inference="class_sampled", n_inducing=5, inference_options=options
    )
    with pytest.raises(InputError, match=message):
        classifier.fit(X, np.arange(20) % 3)
