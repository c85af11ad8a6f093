"""Every likelihood of the registry keeps the contract of `gpal.likelihoods.base`.

The cases are the registry: a new entry is tested as soon as it is listed, and fails until
`likelihood_truths` says independently what it is.
"""

import json

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from likelihood_truths import TRUTHS, assert_finite, samples, slow

from gpal.errors import InputError
from gpal.likelihoods import LIKELIHOODS, likelihood_from_data, make_likelihood
from gpal.likelihoods.additive_noise import Step

CASES = [(name, C) for name, truth in TRUTHS.items() for C in truth.classes]


def make(name, C):
    return make_likelihood(name, C, **TRUTHS[name].options)


def marginals(likelihood, n=3, seed=0):
    """m and v [n, P] of moderate size, and labels [n, 1]."""
    rng = np.random.default_rng(seed)
    shape = (n, likelihood.latent_dim)
    m, v = rng.standard_normal(shape), 0.5 * np.exp(0.5 * rng.standard_normal(shape))
    Y = rng.integers(0, likelihood.num_classes, (n, 1))
    return tf.constant(m), tf.constant(v), tf.constant(Y)


def expectation(likelihood, m, v, Y):
    return likelihood.variational_expectations(None, tf.constant(m), tf.constant(v), Y).numpy()


def central_differences(function, x, step=1e-5):
    """∂/∂x of a function [n, P] → [n], one column at a time."""
    columns = []
    for c in range(x.shape[1]):
        h = np.zeros_like(x)
        h[:, c] = step
        columns.append((function(x + h) - function(x - h)) / (2 * step))
    return np.stack(columns, axis=1)


def test_every_likelihood_has_an_independent_truth():
    own = {name for name, kind in LIKELIHOODS.items() if kind.__module__.startswith("gpal.")}
    assert own <= set(TRUTHS), "add it to TRUTHS in likelihood_truths.py"
    assert set(TRUTHS) <= own, "gone from the register: take it out of likelihood_truths.py"


@pytest.mark.parametrize(("name", "C"), [pytest.param(*case, marks=slow(*case)) for case in CASES])
class TestContract:
    def test_expectation_against_draws(self, name, C):
        likelihood, truth = make(name, C), TRUTHS[name]
        m, v, Y = marginals(likelihood)
        values = expectation(likelihood, m, v, Y)
        for i, y in enumerate(Y.numpy()[:, 0]):
            brute = truth.trained(samples(m[i].numpy(), v[i].numpy()), y, C).mean()
            if name == "gumbel_softmax":
                assert brute - 2.0 < values[i] < brute
            else:
                assert values[i] == pytest.approx(brute, abs=truth.tolerance[0])

    def test_expectation_is_below_that_of_the_log_probability(self, name, C):
        likelihood, truth = make(name, C), TRUTHS[name]
        if not truth.is_density_of_y:
            pytest.skip("a density of targets, not of labels")
        m, v, Y = marginals(likelihood, seed=1)
        values = expectation(likelihood, m, v, Y)
        for i, y in enumerate(Y.numpy()[:, 0]):
            f = samples(m[i].numpy(), v[i].numpy())[: 2**13]
            p = likelihood.conditional_probabilities(tf.constant(f)).numpy()
            assert values[i] <= np.log(p[:, y]).mean() + truth.tolerance[0] + 1e-2

    def test_sites_and_expectations_are_those_of_the_separate_calls(self, name, C):
        likelihood = make(name, C)
        m, v, Y = marginals(likelihood, n=7, seed=2)
        for dtype, tolerance in ((tf.float64, 1e-10), (tf.float32, 2e-4)):
            both = likelihood.sites_and_expectations(tf.cast(m, dtype), tf.cast(v, dtype), Y)
            separate = (*likelihood.sites(m, v, Y), expectation(likelihood, m, v, Y))
            for got, want in zip(both, separate):
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

    def test_predictions_against_draws(self, name, C):
        likelihood, truth = make(name, C), TRUTHS[name]
        m, v, _ = marginals(likelihood)
        p = likelihood.predict_proba(m, v).numpy()
        assert p.shape == (3, C)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        for i in range(3):
            f = samples(m[i].numpy(), v[i].numpy())[: 2**19]
            brute = truth.probabilities(f, C).mean(axis=0)
            np.testing.assert_allclose(p[i], brute, atol=max(truth.tolerance[2], 1e-4))

    def test_conditional_probabilities(self, name, C):
        likelihood, truth = make(name, C), TRUTHS[name]
        f = np.random.default_rng(2).standard_normal((4, likelihood.latent_dim))
        p = likelihood.conditional_probabilities(tf.constant(f)).numpy()
        brute = [truth.probabilities(np.tile(row, (2**17, 1)), C).mean(axis=0) for row in f]
        np.testing.assert_allclose(p, brute, atol=5e-3)
        batched = likelihood.conditional_probabilities(tf.constant(np.stack([f, -f]))).numpy()
        np.testing.assert_allclose(batched[0], p, atol=1e-12)
        mean, variance = likelihood.predict_mean_and_var(None, f, np.full_like(f, 0.3))
        np.testing.assert_allclose(variance, mean * (1 - mean), atol=1e-12)

    def test_log_density_and_log_probability_are_at_the_label(self, name, C):
        likelihood, truth = make(name, C), TRUTHS[name]
        m, v, Y = marginals(likelihood)
        labels = Y.numpy()[:, 0]
        density = likelihood.predict_log_density(None, m, v, Y).numpy()
        p = likelihood.predict_proba(m, v).numpy()
        np.testing.assert_allclose(density, np.log(p[np.arange(3), labels]), atol=1e-12)
        log_prob = likelihood.log_prob(None, tf.stack([m, 2.0 * m]), Y).numpy()
        assert log_prob.shape == (2, 3)
        if truth.is_density_of_y:
            p = likelihood.conditional_probabilities(m).numpy()
            expected = np.log(p[np.arange(3), labels])
        else:
            expected = [truth.trained(m.numpy()[[i]], y, C)[0] for i, y in enumerate(labels)]
        np.testing.assert_allclose(log_prob[0], expected, atol=1e-10)

    def test_sites_are_the_gradients_of_the_expectation(self, name, C):
        likelihood, truth = make(name, C), TRUTHS[name]
        m, v, Y = (x.numpy() for x in marginals(likelihood))
        precision, natural_mean = (x.numpy() for x in likelihood.sites(m, v, Y))
        gradient = central_differences(lambda x: expectation(likelihood, x, v, Y), m)
        np.testing.assert_allclose(natural_mean - precision * m, gradient, atol=1e-6)
        # The quasi-random points give θ by Price's identity, so it is compared on more of them.
        fine = likelihood
        if likelihood.expectation == "fixed quasi-random":
            fine = make_likelihood(name, C, **truth.options, num_points=2**14)
        curvature = -2.0 * central_differences(lambda x: expectation(fine, m, x, Y), v)
        np.testing.assert_allclose(precision, curvature, atol=truth.tolerance[1])

    def test_sites_without_variance_are_the_limit(self, name, C):
        """A floor under √v has no gradient below it: by tape θ = 0 there, whatever log p is."""
        likelihood = make(name, C)
        if isinstance(likelihood, Step):
            pytest.skip("a step has no derivatives at v = 0 to go to")
        m, v, Y = marginals(likelihood, n=7, seed=4)
        for at_zero, near in zip(
            likelihood.sites(m, 0.0 * v, Y), likelihood.sites(m, 1e-6 + 0.0 * v, Y), strict=True
        ):
            np.testing.assert_allclose(at_zero, near, atol=1e-4)

    def test_initial_sites(self, name, C):
        likelihood = make(name, C)
        Y = np.arange(C)[:, None]
        precision, natural_mean = likelihood.initial_sites(tf.constant(Y))
        assert precision.dtype == natural_mean.dtype == tf.float64
        assert precision.shape == natural_mean.shape == (C, likelihood.latent_dim)
        assert np.all(precision.numpy() > 0)
        # The label's latent function is pushed above the others, or to its side of zero.
        pseudo_target = (natural_mean / precision).numpy()
        if hasattr(likelihood, "mixed"):
            pseudo_target = likelihood.mixed(pseudo_target).numpy()
        if C == 2 and likelihood.latent_dim == 1:
            assert pseudo_target[0, 0] < 0 < pseudo_target[1, 0]
        else:
            np.testing.assert_array_equal(pseudo_target.argmax(axis=1), Y[:, 0])

    def test_labels_of_any_dtype(self, name, C):
        likelihood = make(name, C)
        m, v, Y = marginals(likelihood)
        for dtype in (tf.float64, tf.float32, tf.int32):
            other = tf.cast(Y, dtype)
            np.testing.assert_array_equal(
                expectation(likelihood, m, v, other), expectation(likelihood, m, v, Y)
            )
            np.testing.assert_array_equal(
                likelihood.sites(m, v, other)[1], likelihood.sites(m, v, Y)[1]
            )

    def test_float32_agrees_with_float64(self, name, C):
        likelihood = make(name, C)
        m, v, Y = marginals(likelihood, n=20)

        def everything(m, v):
            return [
                likelihood.variational_expectations(None, m, v, Y),
                *likelihood.sites(m, v, Y),
                likelihood.predict_proba(m, v),
            ]

        for double, single in zip(
            everything(m, v),
            everything(tf.cast(m, tf.float32), tf.cast(v, tf.float32)),
            strict=True,
        ):
            assert single.dtype == tf.float32
            np.testing.assert_allclose(single.numpy(), double.numpy(), rtol=2e-4, atol=2e-4)

    @pytest.mark.parametrize("dtype", [tf.float64, tf.float32])
    def test_extreme_marginals_stay_finite(self, name, C, dtype):
        likelihood = make(name, C)
        P = likelihood.latent_dim
        corners = [
            (sign * size, v) for size in (0.0, 50.0) for sign in (1, -1) for v in (0.0, 1e-8, 1e3)
        ]
        m = np.array([np.where(np.arange(P) % 2, -a, a) for a, _ in corners] * 2)
        m[len(corners) :] = np.abs(m[len(corners) :]) * np.sign(m[len(corners) :, :1])
        v = np.array([[b] * P for _, b in corners] * 2)
        Y = tf.constant(np.repeat([[0], [C - 1]], len(m), axis=0))
        m, v = (tf.constant(np.tile(x, (2, 1)), dtype) for x in (m, v))
        with tf.GradientTape() as tape:
            tape.watch([m, v])
            values = likelihood.variational_expectations(None, m, v, Y)
        gradient_mean, gradient_variance = tape.gradient(values, [m, v])
        precision, natural_mean = likelihood.sites(m, v, Y)
        results = {
            "E log p": values,
            "its gradient in m": gradient_mean,
            "its gradient in v": gradient_variance,
            "site precision": precision,
            "site natural mean": natural_mean,
            "E p": likelihood.predict_proba(m, v),
            "log E p": likelihood.predict_log_density(None, m, v, Y),
        }
        assert_finite(results, m, v, Y)

    def test_runs_as_a_graph_without_leaving_it(self, name, C):
        likelihood = make(name, C)
        m, v, Y = marginals(likelihood)

        @tf.function
        def everything(m, v, Y):
            return (
                likelihood.variational_expectations(None, m, v, Y),
                *likelihood.sites(m, v, Y),
                likelihood.predict_proba(m, v),
                *likelihood.initial_sites(Y),
            )

        operations = everything.get_concrete_function(m, v, Y).graph.get_operations()
        assert not [op.type for op in operations if "PyFunc" in op.type]
        assert not [op.name for op in operations if op.device]
        eager = likelihood.sites(m, v, Y)
        np.testing.assert_allclose(everything(m, v, Y)[1].numpy(), eager[0].numpy(), atol=1e-12)

    def test_inside_gpflow(self, name, C):
        """VGP and SVGP bounds are expectations at the marginals less a KL written by hand."""
        likelihood = make(name, C)
        rng = np.random.default_rng(3)
        X, P = rng.standard_normal((6, 2)), likelihood.latent_dim
        Y = np.arange(6)[:, None] % C
        vgp = gpflow.models.VGP((X, Y), gpflow.kernels.RBF(), likelihood, num_latent_gps=P)
        svgp = gpflow.models.SVGP(gpflow.kernels.RBF(), likelihood, X[:4], num_latent_gps=P)
        for model, loss in ((vgp, vgp.training_loss), (svgp, lambda: -svgp.elbo((X, Y)))):
            optimizer = tf.keras.optimizers.Adam(0.05)
            with tf.GradientTape() as tape:
                before = loss()
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(before, variables), variables, strict=True))
            assert np.isfinite(before) and loss() < before
            q_mu = model.q_mu.numpy()
            roots = np.reshape(model.q_sqrt.numpy(), (P, len(q_mu), len(q_mu)))
            kl = 0.5 * (np.sum(q_mu**2) + np.sum(roots**2) - q_mu.size)
            kl -= sum(np.log(np.abs(np.diag(root))).sum() for root in roots)
            by_hand = expectation(likelihood, *model.predict_f(X), Y).sum() - kl
            assert float(-loss()) == pytest.approx(by_hand, abs=1e-4)

    def test_to_data_and_back(self, name, C):
        likelihood = make(name, C)
        again = likelihood_from_data(json.loads(json.dumps(likelihood.to_data())))
        assert type(again) is type(likelihood)
        m, v, _ = marginals(likelihood)
        np.testing.assert_array_equal(again.predict_proba(m, v), likelihood.predict_proba(m, v))


def test_make_likelihood():
    ready = make_likelihood("softmax", 3)
    assert make_likelihood(ready, 3) is ready
    assert make_likelihood("robust_max", 4).to_data() == make_likelihood("step", 4).to_data()
    for name, C, words in [
        ("soft-max", 3, "softmax"),
        ("bernoulli_logit", 3, "two classes"),
        ("softmax", 1, "at least two"),
        (ready, 4, "made for 3"),
    ]:
        with pytest.raises(InputError, match=words) as error:
            make_likelihood(name, C)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_a_likelihood_for_two_classes_refuses_three(name):
    if LIKELIHOODS[name].classes == "two":
        with pytest.raises(InputError, match=f"{name} .* two classes, got 3: use softmax"):
            make_likelihood(name, 3)
    else:
        assert make_likelihood(name, 3).num_classes == 3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("step", {"delta": 0.0}),
        ("probit", {"delta": 0.7}),
        ("dirichlet", {"alpha_eps": 0.0}),
        ("dirichlet", {"prior_mean": [0.0, 1.0]}),
    ],
)
def test_bad_options(name, options):
    with pytest.raises(InputError) as error:
        make_likelihood(name, 3, **options)
    assert "\n" not in str(error.value)
