"""What is particular to one family: accuracy against quadrature, other libraries, limits."""

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from likelihood_truths import draws
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import digamma, expit, logsumexp, ndtr, polygamma, softmax
from scipy.stats import gamma, norm

from gpal.errors import InputError
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.base import LIKELIHOODS
from gpal.likelihoods.dirichlet import Dirichlet, class_frequency_mean
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.likelihoods.softmax import Softmax

means = st.floats(-30.0, 30.0)
variances = st.floats(-12.0, 6.9).map(np.exp)
FEW = settings(deadline=None, max_examples=25)


def gaussian_expectation(function, m, v):
    """∫ N(f; m, v) function(f) df by adaptive quadrature, f = 0 a break point."""
    s = np.sqrt(v)
    points = sorted({*np.linspace(-10, 10, 9), float(np.clip(-m / s, -11, 11))})

    def integrand(e):
        return function(m + s * e) * norm.pdf(e)

    edges = itertools.pairwise([-12.0, *points, 12.0])
    return sum(
        quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in edges if b - a > 1e-13
    )


def column(x):
    return tf.constant([[float(x)]], tf.float64)


class TestQuasiRandomPoints:
    @pytest.mark.parametrize(("points", "dimension"), [(32, 2), (32, 16), (52, 26), (128, 10)])
    def test_cubics_are_integrated_exactly(self, points, dimension):
        e = antithetic_normal(points, dimension)
        assert e.shape == (points, dimension)
        np.testing.assert_allclose(e.T @ e / points, np.eye(dimension), atol=1e-12)
        np.testing.assert_allclose(np.einsum("si,sj,sk->ijk", e, e, e), 0.0, atol=1e-12)

    def test_too_few_points_for_the_dimension(self):
        e = antithetic_normal(16, 26)
        np.testing.assert_allclose((e**2).mean(axis=0), 1.0, atol=1e-12)
        assert np.all(np.isfinite(e))

    def test_same_seed_same_points(self):
        a = antithetic_normal(32, 5, seed=4).copy()
        antithetic_normal.cache_clear()
        np.testing.assert_array_equal(antithetic_normal(32, 5, seed=4), a)
        assert not np.array_equal(antithetic_normal(32, 5, seed=5), a)

    @pytest.mark.parametrize("points", [0, 7])
    def test_odd_numbers_are_refused(self, points):
        with pytest.raises(ValueError, match="even"):
            antithetic_normal(points, 2)


@pytest.mark.parametrize(
    ("C", "v", "errors"),  # of E, θ and p(y): twice the table in softmax.py
    [
        (2, 0.3, (0.0006, 0.0008, 0.0002)),
        (2, 3.0, (0.018, 0.01, 0.0026)),
        (3, 0.3, (0.001, 0.001, 0.0004)),
        (3, 3.0, (0.03, 0.012, 0.0066)),
        (10, 0.3, (0.0018, 0.0008, 0.0002)),
        (10, 3.0, (0.058, 0.01, 0.005)),
        (26, 0.3, (0.0016, 0.0004, 0.0002)),
        (26, 3.0, (0.072, 0.006, 0.0032)),
    ],
)
def test_softmax_is_as_accurate_as_it_says(C, v, errors):
    rng = np.random.default_rng(1)
    m = 2.0 * rng.standard_normal((12, C))
    variance = v * np.exp(0.5 * rng.standard_normal((12, C)))
    likelihood = make_likelihood("softmax", C)
    Y = np.zeros((12, 1), int)
    found = (
        likelihood.variational_expectations(None, tf.constant(m), tf.constant(variance), Y),
        likelihood.sites(m, variance, Y)[0],
        likelihood.predict_proba(m, variance),
    )
    truth = []
    for mean, spread in zip(m, np.sqrt(variance), strict=True):
        f = mean + spread * draws(C)[: 2**15]
        p = softmax(f, axis=1)
        truth.append((mean[0] - logsumexp(f, axis=1).mean(), (p * (1 - p)).mean(0), p.mean(0)))
    for values, expected, error in zip(found, zip(*truth, strict=True), errors, strict=True):
        assert np.sqrt(np.mean((values.numpy() - np.array(expected)) ** 2)) < error


def test_softmax_log_probability_is_gpflows():
    f, Y = np.random.default_rng(0).normal(size=(5, 4)), np.arange(5)[:, None] % 4
    np.testing.assert_allclose(
        make_likelihood("softmax", 4).log_prob(None, f, Y),
        gpflow.likelihoods.Softmax(4).log_prob(None, f, Y),
        atol=1e-12,
    )


class TestGumbelBound:
    def test_tight_without_variance(self):
        m, Y = np.random.default_rng(0).normal(size=(6, 4)), np.arange(6)[:, None] % 4
        bound = make_likelihood("gumbel_softmax", 4).variational_expectations(
            None, m, np.zeros_like(m), Y
        )
        np.testing.assert_allclose(bound, np.log(softmax(m, axis=1)[np.arange(6), Y[:, 0]]))

    def test_optimum_over_the_gumbel_scale(self):
        """Paper eq. 24 maximised numerically over θ is the closed form, eq. 25."""
        m, v = np.array([0.3, -0.8, 1.1]), np.array([0.4, 1.2, 0.7])
        P = np.exp(v[1] / 2 - m[1]) * (np.exp(v[0] / 2 + m[0]) + np.exp(v[2] / 2 + m[2]))
        best = -minimize_scalar(
            lambda t: P / np.exp(t) + t + np.exp(-t) - 1.0,
            bounds=(-5, 10),
            method="bounded",
            options={"xatol": 1e-10},
        ).fun
        found = make_likelihood("gumbel_softmax", 3).variational_expectations(
            None, tf.constant(m[None]), tf.constant(v[None]), [[1]]
        )
        assert float(found[0]) == pytest.approx(best, abs=1e-10)

    @FEW
    @given(st.integers(0, 10**6))
    def test_sites_are_convex_weights(self, seed):
        rng = np.random.default_rng(seed)
        m, v = rng.normal(0, 10, (3, 5)), rng.gamma(1.0, 5.0, (3, 5))
        precision, natural_mean = make_likelihood("gumbel_softmax", 5).sites(m, v, [[0], [1], [4]])
        assert np.all(precision.numpy() >= 0) and np.all(precision.numpy() <= 1)
        gradient = natural_mean.numpy() - precision.numpy() * m
        np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-9)


class TestAdditiveNoise:
    def test_few_nodes_are_said(self):
        with pytest.warns(UserWarning, match="8 nodes of an integral from -6 to 6 miss"):
            coarse = make_likelihood("probit", 3, num_points=8)
        fine = make_likelihood("probit", 3)
        m, v = np.array([[0.0, 1.0, -1.0]]), np.full((1, 3), 0.2)
        p, q = (one.predict_proba(m, v).numpy() for one in (coarse, fine))
        assert 0.003 < np.abs(p - q).max() < 0.1
        make_likelihood("probit", 2, num_points=8)  # in closed form

    def test_points_are_pairs(self):
        for number in (1, 33):
            with pytest.raises(InputError, match="num_points"):
                make_likelihood("softmax", 3, num_points=number)

    @pytest.mark.parametrize(("name", "a"), [("step", 0.0), ("probit", 1.0), ("logit", 2.897)])
    @FEW
    @given(m=means, v=variances)
    def test_two_classes_against_quadrature(self, name, a, m, v):
        likelihood = make_likelihood(name, 2, delta=0.02)
        p = likelihood.predict_proba(column(m), column(v)).numpy()[0]

        def class_one(f):
            wins = float(f > 0) if a == 0 else ndtr(f / np.sqrt(a))
            return 0.96 * wins + 0.02

        assert p[1] == pytest.approx(gaussian_expectation(class_one, m, v), abs=1e-8)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        E = [
            float(likelihood.variational_expectations(None, column(m), column(v), [[y]])[0])
            for y in (0, 1)
        ]
        wins = ndtr(m / np.sqrt(a + v))
        for value, S in zip(E, (1 - wins, wins), strict=True):
            assert value == pytest.approx(S * np.log(0.98) + (1 - S) * np.log(0.02), abs=1e-10)

    @pytest.mark.parametrize(("C", "a"), [(3, 0.0), (10, 1.0), (26, 0.0), (26, 2.897)])
    def test_winning_probability_against_quadrature(self, C, a):
        name = {0.0: "step", 1.0: "probit", 2.897: "logit"}[a]
        rng = np.random.default_rng(C)
        m, v = 1.5 * rng.standard_normal((4, C)), 0.5 * np.exp(0.5 * rng.standard_normal((4, C)))
        Y = rng.integers(0, C, (4, 1))
        S = make_likelihood(name, C).winning_probability(m, v, Y).numpy()
        for i, y in enumerate(Y[:, 0]):
            others = np.arange(C) != y
            s = np.sqrt(a + v[i])

            def integrand(g, i=i, y=y, others=others, s=s):
                return norm.pdf(g, m[i, y], s[y]) * ndtr((g - m[i, others]) / s[others]).prod()

            edges = np.linspace(m[i, y] - 9 * s[y], m[i, y] + 9 * s[y], 7)
            exact = sum(
                quad(integrand, lo, hi, epsabs=1e-12)[0] for lo, hi in itertools.pairwise(edges)
            )
            assert S[i] == pytest.approx(exact, abs=2e-8)

    def test_very_unequal_variances(self):
        """The stated worst case: at a = 0 and variances a thousandfold apart, .02 on average."""
        rng = np.random.default_rng(8)
        m, v = 1.5 * rng.standard_normal((12, 3)), np.exp(rng.uniform(-6.9, 1.1, (12, 3)))
        Y = np.zeros((12, 1), int)
        S = make_likelihood("step", 3).winning_probability(m, v, Y).numpy()
        exact = []
        for mean, spread in zip(m, np.sqrt(v), strict=True):
            g = mean[0] + spread[0] * np.linspace(-9, 9, 200_001)
            below = ndtr((g[:, None] - mean[1:]) / spread[1:]).prod(axis=1)
            density = norm.pdf(g, mean[0], spread[0])
            exact.append(np.sum(below * density) / np.sum(density))
        assert np.sqrt(np.mean((S - exact) ** 2)) < 0.02

    @pytest.mark.parametrize("C", [3, 7])
    def test_step_is_gpflows_robust_max(self, C):
        rng = np.random.default_rng(C)
        m, v = rng.standard_normal((6, C)), np.exp(0.3 * rng.standard_normal((6, C)))
        Y = np.arange(6)[:, None] % C
        robust_max = gpflow.likelihoods.MultiClass(C, gpflow.likelihoods.RobustMax(C, 0.02))
        robust_max.num_gauss_hermite_points = 100
        ours = make_likelihood("robust_max", C, delta=0.02)
        m, v = tf.constant(m), tf.constant(v)
        np.testing.assert_allclose(
            ours.variational_expectations(None, m, v, Y),
            robust_max.variational_expectations(None, m, v, tf.constant(Y)),
            atol=2e-5,  # GPflow floors and clips its distribution functions
        )
        np.testing.assert_allclose(
            ours.predict_proba(m, v), robust_max.predict_mean_and_var(None, m, v)[0], atol=2e-5
        )

    def test_two_classes_are_the_difference_of_two_latent_functions(self):
        """P(g₀ > g₁) of a C = 3 problem whose third class never wins."""
        m, v = np.array([[0.4, -0.3, -40.0]]), np.array([[0.5, 0.8, 0.1]])
        three = make_likelihood("probit", 3).winning_probability(m, v, [[0]]).numpy()[0]
        assert three == pytest.approx(norm.cdf(0.7 / np.sqrt(2 + 1.3)), abs=1e-8)

    def test_the_logit_error_is_near_the_logistic_one(self):
        f = np.linspace(-12, 12, 2001)[:, None]
        p = make_likelihood("logit", 2, delta=1e-9).conditional_probabilities(f).numpy()[:, 1]
        assert 0.008 < np.abs(p - expit(f[:, 0])).max() < 0.0096

    def test_the_bound_grows_as_the_error_variance_falls(self):
        """Paper 000, Appendix B: for sources whose label wins."""
        m, v = column(0.8), column(0.5)
        E = [
            float(make_likelihood(name, 2).variational_expectations(None, m, v, [[1]])[0])
            for name in ("step", "probit", "logit")
        ]
        assert E[0] > E[1] > E[2]

    @pytest.mark.parametrize("C", [2, 4])
    def test_optimal_delta(self, C):
        rng = np.random.default_rng(C)
        likelihood = make_likelihood("probit", C)
        m = rng.standard_normal((9, likelihood.latent_dim))
        v, Y = np.full_like(m, 0.4), rng.integers(0, C, (9, 1))

        def loss(delta):
            likelihood.delta.assign(delta)
            return -float(
                tf.reduce_sum(
                    likelihood.variational_expectations(None, tf.constant(m), tf.constant(v), Y)
                )
            )

        best = minimize_scalar(loss, bounds=(0.01, 0.99 - 1 / C), method="bounded").x
        found = float(likelihood.optimal_delta(m, v, Y))
        # The bound can want more than chance, where labels would mean their opposite: clipped.
        assert min(found, 0.99 - 1 / C) == pytest.approx(best, abs=1e-4)
        likelihood.delta.assign(found)

    @pytest.mark.parametrize(("label", "expected"), [(1, 1e-6), (0, 0.495)])
    def test_optimal_delta_stays_inside(self, label, expected):
        likelihood = make_likelihood("step", 2)
        found = likelihood.optimal_delta(column(50.0), column(0.1), [[label]])
        assert float(found) == pytest.approx(expected)
        likelihood.delta.assign(found)
        assert np.isfinite(likelihood.delta.unconstrained_variable.numpy())

    @pytest.mark.parametrize("learn", [True, False])
    def test_delta_learned_or_fixed(self, learn):
        likelihood = make_likelihood("logit", 3, learn_delta=learn)
        assert bool(likelihood.trainable_variables) is learn
        m = tf.constant([[0.5, 0.0, -0.5]], tf.float64)
        with tf.GradientTape() as tape:
            variable = likelihood.delta.unconstrained_variable
            tape.watch(variable)
            E = likelihood.variational_expectations(None, m, tf.ones_like(m), [[0]])
        assert float(tape.gradient(E, variable)) != 0.0


class TestBernoulliLogit:
    @FEW
    @given(m=means, v=variances, y=st.sampled_from([0, 1]))
    def test_against_quadrature(self, m, v, y):
        likelihood, sign = make_likelihood("bernoulli_logit", 2), 2 * y - 1
        E = float(likelihood.variational_expectations(None, column(m), column(v), [[y]])[0])
        exact = gaussian_expectation(lambda f: -np.logaddexp(0, -sign * f), m, v)
        assert pytest.approx(exact, abs=1e-9) == E
        p = likelihood.predict_proba(column(m), column(v)).numpy()[0]
        assert p[y] == pytest.approx(
            gaussian_expectation(lambda f: expit(sign * f), m, v), abs=1e-9
        )
        precision, natural_mean = (
            float(x[0, 0]) for x in likelihood.sites(column(m), column(v), [[y]])
        )
        curvature = gaussian_expectation(lambda f: expit(f) * expit(-f), m, v)
        assert precision == pytest.approx(curvature, abs=1e-8)
        slope = gaussian_expectation(lambda f: sign * expit(-sign * f), m, v)
        assert natural_mean - precision * m == pytest.approx(slope, abs=1e-8)

    def test_log_probability_is_gpflows(self):
        f, Y = np.linspace(-4, 4, 7)[:, None], np.arange(7)[:, None] % 2
        bernoulli = gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
        np.testing.assert_allclose(
            make_likelihood("bernoulli_logit", 2).log_prob(None, f, Y),
            bernoulli.log_prob(None, f, Y.astype(float)),
            atol=1e-10,
        )


class TestLogisticSoftmax:
    def test_curvature_is_at_most_a_quarter(self):
        likelihood = make_likelihood("logistic_softmax", 4)
        rng = np.random.default_rng(0)
        m = rng.normal(0, 4, (2000, 4))
        precision, _ = likelihood.sites(m, np.full_like(m, 1e-8), rng.integers(0, 4, (2000, 1)))
        assert 0.24 < precision.numpy().max() <= 0.25 + 1e-12
        assert precision.numpy().min() < 0  # the engine has to clip


class TestDirichlet:
    @pytest.mark.parametrize("alpha_eps", [1e-3, 0.01, 0.1])
    def test_targets_match_the_gammas_moments(self, alpha_eps):
        likelihood = make_likelihood("dirichlet", 3, alpha_eps=alpha_eps)
        target, variance = (
            x.numpy()[0] for x in likelihood.targets(tf.constant([[1]]), tf.float64)
        )
        for c, alpha in enumerate([alpha_eps, 1 + alpha_eps, alpha_eps]):
            mean = np.exp(target[c] + variance[c] / 2)
            assert mean == pytest.approx(gamma.mean(alpha))
            assert (np.exp(variance[c]) - 1) * mean**2 == pytest.approx(gamma.var(alpha))

    def test_prior_mean_moves_targets_and_predictions(self):
        shift = np.array([1.0, -0.5, 0.2])
        m, v, Y = (
            np.random.default_rng(0).normal(size=(4, 3)),
            np.full((4, 3), 0.6),
            [[0], [1], [2], [0]],
        )
        plain = make_likelihood("dirichlet", 3)
        moved = make_likelihood("dirichlet", 3, prior_mean=shift)
        np.testing.assert_allclose(moved.predict_proba(m - shift, v), plain.predict_proba(m, v))
        np.testing.assert_allclose(
            moved.variational_expectations(None, m - shift, v, tf.constant(Y)),
            plain.variational_expectations(None, m, v, tf.constant(Y)),
        )
        np.testing.assert_allclose(
            moved.targets(tf.constant(Y), tf.float64)[0],
            plain.targets(tf.constant(Y), tf.float64)[0] - shift,
        )

    def test_class_frequency_mean(self):
        Y = np.repeat([0, 1, 2], [5, 3, 12])[:, None]
        mean = class_frequency_mean([5, 3, 12], 0.02)
        np.testing.assert_allclose(softmax(mean), [0.25, 0.15, 0.6])
        likelihood = make_likelihood("dirichlet", 3, alpha_eps=0.02, prior_mean=mean)
        assert likelihood.targets(tf.constant(Y), tf.float64)[0].numpy().mean() == pytest.approx(0)

    def test_log_normal_is_near_the_log_gamma_for_the_label(self):
        """The approximation the method rests on is fair at α ≈ 1, as the paper says."""
        target, variance = make_likelihood("dirichlet", 2).targets(tf.constant([[0]]), tf.float64)
        assert float(target[0, 0]) == pytest.approx(digamma(1.01), abs=0.3)
        assert float(variance[0, 0]) < polygamma(1, 1.01)

    def test_an_open_concentration_is_the_candidate_of_least_nll_and_then_closed(self):
        likelihood, asked = make_likelihood("dirichlet", 2), []

        def held_out_nll():
            asked.append(float(likelihood.alpha_eps))
            return abs(np.log(asked[-1] / 0.02))

        assert likelihood.to_data()["alpha_eps"] is None  # a file keeps that it is open
        assert likelihood.select_settings(held_out_nll)
        assert asked == [0.3, 0.1, 0.03, 0.01]  # down until it rises
        assert float(likelihood.alpha_eps) == likelihood.to_data()["alpha_eps"] == 0.03
        assert not likelihood.select_settings(held_out_nll)
        for closed in (make_likelihood("dirichlet", 2, alpha_eps=0.02), make_likelihood("step", 2)):
            assert not closed.select_settings(held_out_nll)
        assert len(asked) == 4


def test_derivatives_of_a_dirichlet_likelihood_know_its_mean():
    likelihood = Dirichlet(3, prior_mean=[-3.0, 0.0, 3.0])
    F, labels = tf.zeros((2, 3), tf.float64), tf.constant([[0.0], [2.0]], tf.float64)
    expected = [np.log(softmax([-3.0, 0.0, 3.0]))[c] for c in (0, 2)]
    for axis in (-1, -2):
        of = (F, likelihood.one_hot(labels, F.dtype))
        f, one_hot = of if axis == -1 else map(tf.transpose, of)
        np.testing.assert_allclose(likelihood.log_derivatives(f, one_hot, axis)[0], expected)


def test_a_likelihood_of_others_may_take_any_option():
    class Mine(Softmax):
        def __init__(self, num_classes, **options):
            super().__init__(num_classes, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LIKELIHOODS, "find", lambda name: Mine)
        assert make_likelihood("mine", 3, num_points=50).num_points == 50
