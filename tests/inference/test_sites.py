"""The loop: its bound is the ELBO, never falls, and ends where GPflow's VGP ends."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import make_data, posterior_moments
from scipy.special import logsumexp
from scipy.stats import norm

from gpal.inference import sites as engine
from gpal.inference import sparse
from gpal.inference.base import Problem
from gpal.inference.batches import BatchFit, fit_batches, in_threads
from gpal.inference.full import FullGP
from gpal.inference.hyper_parameters import fit_likelihood
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.rows import Data, Sites, meet
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods import LIKELIHOODS, make_likelihood
from gpal.likelihoods.quasi_random import QuasiRandomLikelihood
from gpal.likelihoods.site_rules import NaturalGradient, make_site_rule

RULE = NaturalGradient()


def elbo(gp, likelihood, data, posterior) -> float:
    """Expectations by the likelihood, of several nodes on points that they share; KL by GPflow."""
    jitter = 0.0 if isinstance(gp, FullGP) else float(gp.jitter.value)
    mean, var = gp.data_marginals(data, posterior)
    if gp.nodes == 1:
        terms = likelihood.variational_expectations(None, mean, var, data.Y).numpy()
    else:
        points, weights = likelihood.coupling_points
        f = mean + tf.sqrt(var) * points[:, None]
        log_p = likelihood.log_prob(None, f, tf.repeat(data.Y, gp.nodes, axis=0)).numpy()
        terms = weights @ (
            logsumexp(log_p.reshape(len(points), -1, gp.nodes), axis=2) - np.log(gp.nodes)
        )
    kl = 0.0
    for c in range(gp.num_latent):
        kernel = gp.kernels[0] if len(gp.kernels) == 1 else gp.kernels[c]
        mu, Sigma = posterior_moments(gp, posterior, c, jitter)
        K = kernel(gp.Z.numpy()).numpy()
        K += (jitter * np.mean(np.diag(K)) + 1e-12) * np.eye(len(K))
        root = np.linalg.cholesky(0.5 * (Sigma + Sigma.T) + 1e-12 * np.eye(len(K)))
        kl += float(gpflow.kullback_leiblers.gauss_kl(mu[:, None], root[None], K))
    return float(np.sum(terms)) - kl


def fit(gp, likelihood, data, **options):
    posteriors = []
    state = fit_sites(
        Problem(gp, likelihood, RULE, data),
        Schedule(
            callback=lambda posterior, bound: posteriors.append((posterior, bound * len(data.Y))),
            **options,
        ),
    )
    return state, posteriors


def matern() -> list[gpflow.kernels.Kernel]:
    return [gpflow.kernels.Matern32(2.0, 1.5)]


# name -> (classes, likelihood, full, options of SparseGP)
CASES = {
    "softmax, 3 classes, full": (3, "softmax", True, {}),
    "bernoulli, full": (2, "bernoulli_logit", True, {}),
    "softmax, 9 classes": (9, "softmax", False, {}),
    "first order": (3, "softmax", False, {"noisy": (0, 1, 2)}),
    "integrated nodes": (3, "softmax", False, {"nodes": 4}),
    "step: negative precisions": (2, "step", False, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_the_elbo_and_no_accepted_sweep_lowers_it(name):
    classes, likelihood, full, options = CASES[name]
    data = make_data(60, 3, classes, nodes=options.get("nodes", 1))
    likelihood = make_likelihood(likelihood, classes)
    if full:
        gp = FullGP(KernelRows(matern(), data.X.numpy(), likelihood.latent_dim))
    else:
        gp = SparseGP(KernelRows(matern(), data.X.numpy()[::5], likelihood.latent_dim, **options))
    state, posteriors = fit(gp, likelihood, data, rounds=0, final_sweeps=12, tolerance=1e-9)
    bounds = np.array(state.bounds)
    assert len(bounds) > 4 and bounds[-1] > bounds[0] + 1e-3
    assert (np.diff(bounds) >= -1e-8 * np.abs(bounds[:-1])).all()
    assert state.bound == max(state.bounds)
    np.testing.assert_allclose(posteriors[-1][1], state.bound)
    for posterior, bound in (posteriors[0], posteriors[3], posteriors[-1]):
        np.testing.assert_allclose(bound, elbo(gp, likelihood, data, posterior), rtol=1e-6)
    np.testing.assert_allclose(state.bound, elbo(gp, likelihood, data, state.posterior), rtol=1e-6)


class Overshooting(NaturalGradient):
    """Steps several times too far along the mean's gradient."""

    def meet(self, likelihood, Fmu, Fvar, Y):
        precision, natural_mean, bound = super().meet(likelihood, Fmu, Fvar, Y)
        return precision, natural_mean + 6.0 * (natural_mean - precision * Fmu), bound


def test_a_rule_that_overshoots_is_tamed_by_shorter_steps():
    data, likelihood = make_data(40, 3, 3), make_likelihood("softmax", 3)
    met, made = [], []

    class Watched(FullGP):
        def met(self, *arguments):
            met.append(arguments[-1])
            return super().met(*arguments)

        def posterior(self, *arguments):
            made.append(None)
            return super().posterior(*arguments)

    gp = Watched(KernelRows(matern(), data.X.numpy(), 3))
    state = fit_sites(
        Problem(gp, likelihood, Overshooting(), data),
        Schedule(rounds=0, final_sweeps=15, tolerance=1e-12),
    )
    assert (np.diff(state.bounds) >= -1e-8 * np.abs(state.bounds[:-1])).all()
    assert len(met) > len(state.bounds)  # some steps were refused
    # Warm-up and last sweeps each measure what they end with, and make no q(f) from there.
    assert len(made) == 1 + len(met) - 2
    np.testing.assert_allclose(state.bound, elbo(gp, likelihood, data, state.posterior), rtol=1e-6)


@pytest.mark.parametrize("in_batches", [False, True])
def test_expansion_does_not_throw_q_off(in_batches):
    """Three sources in one place, two of one class: from f = 10 Newton's steps go to -870, 2000,
    -1000, 2000 and so on, where the ELBO is -2,500 and -4,000. What it ends with is an ELBO."""
    X, y = np.zeros((3, 1)), np.array([[1.0], [1.0], [0.0]])
    data = Data(tf.constant(X), tf.constant(y), tf.zeros([3, 1, 1], tf.float64))
    likelihood = make_likelihood("bernoulli_logit", 2)
    gp = SparseGP(KernelRows([gpflow.kernels.SquaredExponential(1e3)], np.zeros((1, 1)), 1))
    gp.refresh(data)
    huge = tf.ones([3, 1], tf.float64)
    start = gp.posterior(data, Sites(1e4 * huge, 1e5 * huge))

    problem = Problem(gp, likelihood, make_site_rule("taylor", likelihood), data)
    if in_batches:
        meet = in_threads(problem, lambda: [data])
        fit = fit_batches(problem, meet, BatchFit(start), sweeps=40, tolerance=1e-6)
    else:
        schedule = Schedule(rounds=0, initial_sweeps=0, final_sweeps=40, tolerance=1e-6)
        fit = fit_sites(problem, schedule, start)
    assert (np.diff(fit.bounds) > -1e-6).all()
    assert fit.bounds[0] < -2000 and fit.bounds[-1] > -50
    np.testing.assert_allclose(fit.bounds[-1], elbo(gp, likelihood, data, fit.posterior), rtol=1e-6)


def vgp_optimum(data, likelihood, start=None, kernel=None) -> tuple[float, gpflow.models.VGP]:
    """GPflow's VGP by L-BFGS; `start` is a mean [n, P] and a covariance [P, n, n] of q(f)."""
    kernel = kernel or matern()[0]
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-10)):
        vgp = gpflow.models.VGP(
            (data.X, data.Y), kernel, likelihood, num_latent_gps=likelihood.latent_dim
        )
        gpflow.set_trainable(vgp.kernel, False)
        gpflow.set_trainable(vgp.likelihood, False)
        if start is not None:
            mean, covariance = start
            L = np.linalg.cholesky(kernel(data.X) + 1e-10 * np.eye(len(mean)))
            vgp.q_mu.assign(np.linalg.solve(L, mean))
            white = [np.linalg.solve(L, np.linalg.solve(L, S).T) for S in covariance]
            vgp.q_sqrt.assign(np.stack([np.linalg.cholesky(0.5 * (S + S.T)) for S in white]))
        gpflow.optimizers.Scipy().minimize(
            vgp.training_loss,
            vgp.trainable_variables,
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-14, "gtol": 1e-8},
        )
    return float(vgp.elbo()), vgp


# The rest is conjugate: an exact regression, compared with GPflow's in test_constant_sites.py.
OPTIMA = [
    pytest.param(name, classes, marks=pytest.mark.slow if classes == 2 and several else ())
    for name in sorted(set(LIKELIHOODS) - {"dirichlet", "robust_max"})  # another name of step
    for several in [LIKELIHOODS[name].classes != "two"]
    for classes in (2, 3)
    if classes == 2 or several
]


@pytest.mark.parametrize("name, classes", OPTIMA)
def test_the_optimum_is_that_of_gpflow_vgp(name, classes):
    """Every likelihood, those too that are not log-concave and have sites with θ < 0 there, by the
    full GP and by the sparse one with a point at every input.

    Sites on quasi-random points take Price's identity on them, VGP the tape: equal for many points.
    The step has more than one optimum: VGP stays at the one found here, and its own is no higher.
    """
    data, options = make_data(30, 3, classes, seed=4), {}
    if issubclass(LIKELIHOODS[name], QuasiRandomLikelihood):
        options = {"num_points": 1024}
    likelihood = make_likelihood(name, classes, **options)
    P = likelihood.latent_dim
    full, sparse = (KernelRows(matern(), data.X.numpy(), P) for _ in range(2))
    highest, optimum = vgp_optimum(data, likelihood)
    new = np.random.default_rng(0).normal(size=(8, 3))
    for gp in (FullGP(full), SparseGP(sparse, jitter=1e-10)):
        state = fit_sites(
            Problem(gp, likelihood, RULE, data),
            Schedule(rounds=0, final_sweeps=60, tolerance=1e-10),
        )
        best, vgp = highest, optimum
        assert state.bound > best - 1e-4
        if state.bound > best + 1e-4:
            assert name == "step"
            moments = [posterior_moments(gp, state.posterior, c, 0.0) for c in range(P)]
            start = np.stack([m for m, _ in moments], axis=1), np.stack([S for _, S in moments])
            best, vgp = vgp_optimum(data, likelihood, start)
            np.testing.assert_allclose(state.bound, best, atol=1e-4)
        for got, want in zip(gp.marginals(state.posterior, new), vgp.predict_f(new), strict=True):
            np.testing.assert_allclose(got, want, atol=5e-3)


def test_white_noise_is_a_part_of_f_at_the_training_inputs():
    """The bound of GPflow's VGP; a prediction at a training input has fresh noise, as there."""
    data, likelihood = make_data(30, 3, 2, seed=4), make_likelihood("bernoulli_logit", 2)
    kernel = gpflow.kernels.SquaredExponential(4.0, 1.5) + gpflow.kernels.White(3.0)
    gp = FullGP(KernelRows([kernel], data.X.numpy(), 1))
    state = fit_sites(
        Problem(gp, likelihood, RULE, data), Schedule(rounds=0, final_sweeps=60, tolerance=1e-12)
    )
    best, vgp = vgp_optimum(data, likelihood, kernel=kernel)
    np.testing.assert_allclose(state.bound, best, atol=1e-4)
    for X in (data.X, np.random.default_rng(0).normal(size=(8, 3))):
        for got, want in zip(gp.marginals(state.posterior, X), vgp.predict_f(X), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-3)
    at_data = gp.data_marginals(data, state.posterior)[1]
    assert (at_data.numpy() < gp.marginals(state.posterior, data.X)[1].numpy() - 0.1).all()


def blurred_boundaries(classes: int):
    """Classes in a row, with nodes further apart than a source is from the next class."""
    centre = np.linspace(-3.0, 3.0, 60)[:, None]
    X = np.repeat(centre, 4, axis=0) + np.random.default_rng(0).normal(size=(240, 1))
    labels = np.floor((centre + 3.0) / 6.001 * classes)
    data = Data(tf.constant(X), tf.constant(labels), tf.zeros([60, 1, 0], tf.float64))
    kernel, Z = gpflow.kernels.SquaredExponential(25.0), np.linspace(-5.0, 5.0, 15)[:, None]
    return data, lambda num_latent: SparseGP(KernelRows([kernel], Z, num_latent, nodes=4))


@pytest.mark.parametrize("name, classes", [("softmax", 3), ("bernoulli_logit", 2)])
def test_nodes_on_both_sides_of_a_boundary_get_sites_without_a_sign(name, classes, monkeypatch):
    """The last sweeps follow θ < 0 to a fixed point, above the best with θ ≥ 0."""
    data, make_gp = blurred_boundaries(classes)
    likelihood, states = make_likelihood(name, classes), {}
    for signed in (True, False):
        with monkeypatch.context() as patch:
            if not signed:
                patch.setattr(engine, "_signed", lambda rule: rule)
            gp = make_gp(likelihood.latent_dim)
            states[signed] = fit_sites(
                Problem(gp, likelihood, RULE, data),
                Schedule(rounds=0, final_sweeps=100, tolerance=1e-9),
            )
    found = states[True]
    assert float(tf.reduce_min(found.sites.precision)) < -1e-3
    assert float(tf.reduce_min(states[False].sites.precision)) >= 0.0
    assert found.bound > states[False].bound + 1e-4
    assert np.diff(found.bounds).min() > -1e-8
    rule = engine._signed(RULE)
    again, _ = gp.met(rule, likelihood, data, found.posterior)
    for got, want in zip(again, found.sites, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-3)


def test_a_second_fit_makes_no_new_graph(monkeypatch, fresh_graphs):
    data, make_gp = blurred_boundaries(2)
    gp, likelihood, traced = make_gp(1), make_likelihood("bernoulli_logit", 2), []
    monkeypatch.setattr(sparse, "meet", lambda *args: traced.append(args[0].signed) or meet(*args))
    fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=2))
    assert set(traced) == {False, True}
    count = len(traced)
    fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=2))
    assert len(traced) == count


@pytest.mark.parametrize("full", [True, False], ids=["full", "sparse"])
def test_sites_that_leave_no_posterior_say_so(full):
    """θ = −c on all rows: Σ⁻¹ = K⁻¹ − cI is positive definite up to c = 1/λ_max(K)."""
    data = make_data(20, 3, 2)
    X = data.X.numpy()
    rows = KernelRows(matern(), X, 1)
    gp = FullGP(rows) if full else SparseGP(rows, jitter=1e-10)
    gp.refresh(data)
    limit = 1.0 / np.linalg.eigvalsh(matern()[0](X)).max()
    r = tf.ones((20, 1), tf.float64)
    for share, exists in [(0.9, True), (1.1, False)]:
        q = gp.posterior(data, Sites(tf.fill((20, 1), -share * limit), r))
        assert np.isfinite(q.kl) == exists
        if exists:
            _, Sigma = posterior_moments(gp, q, 0, 0.0)
            want = np.linalg.inv(np.linalg.inv(matern()[0](X)) - share * limit * np.eye(20))
            np.testing.assert_allclose(Sigma, want, rtol=1e-5)
    assert gp.jitter.relative <= 1e-8  # not taken for a kernel matrix that needs more of it


def learning_problem():
    data = make_data(60, 3, 2, seed=2)
    kernel = make_kernel("rbf+linear", 3)
    gp = SparseGP(KernelRows([kernel], data.X.numpy()[::6], 1))
    return data, gp, make_likelihood("probit", 2, delta=0.1)


def test_learning_hyper_parameters_raises_the_bound_and_the_same_fit_is_the_same_answer():
    results = []
    for _ in range(2):
        data, gp, likelihood = learning_problem()
        before = [v.numpy() for v in gp.trainable_variables]
        state = fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=2, tolerance=1e-9))
        pairs = zip(gp.trainable_variables, before, strict=True)
        moved = max(np.abs(v.numpy() - b).max() for v, b in pairs)
        assert 1e-3 < moved <= 2.0 + 1e-9  # a factor of e per round
        results.append(state.bounds)
    assert results[0] == results[1]
    assert state.bound > max(state.bounds[:5]) + 0.1  # the five of the first four sweeps
    np.testing.assert_allclose(state.bound, elbo(gp, likelihood, data, state.posterior), rtol=1e-6)


def ruin(gp, *_):
    """White noise of a huge amplitude."""
    rbf = gp.kernels[0].kernels[0]
    rbf.lengthscales.assign([0.01, 0.01, 0.01])
    rbf.variance.assign(1e4)


def test_a_harmful_hyper_parameter_step_is_taken_back(monkeypatch, caplog):
    data, gp, likelihood = learning_problem()
    before = [v.numpy() for v in (*gp.trainable_variables, *likelihood.trainable_variables)]
    monkeypatch.setattr(engine, "fit_hyper_parameters", ruin)
    with caplog.at_level("INFO", logger="gpal"):
        state = fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=3, tolerance=1e-9))
    assert "taken back" in caplog.text
    after = [v.numpy() for v in (*gp.trainable_variables, *likelihood.trainable_variables)]
    for got, want in zip(after, before, strict=True):
        np.testing.assert_array_equal(got, want)
    assert (np.diff(state.bounds) >= -1e-8 * np.abs(state.bounds[:-1])).all()
    np.testing.assert_allclose(state.bound, elbo(gp, likelihood, data, state.posterior), rtol=1e-6)


def test_learning_goes_on_after_a_step_that_was_taken_back(monkeypatch, caplog):
    """On letter the first step after a subset was learned from sites that hardly met the rest."""
    data, gp, likelihood = learning_problem()
    learn, calls = engine.fit_hyper_parameters, []

    def ruin_first(gp, *rest):
        calls.append(None)
        return ruin(gp) if len(calls) == 1 else learn(gp, *rest)

    def fit(**options):
        return fit_sites(
            Problem(gp, likelihood, RULE, data), Schedule(tolerance=1e-5, **options)
        ).bound

    without = fit(rounds=0)
    monkeypatch.setattr(engine, "fit_hyper_parameters", ruin_first)
    with caplog.at_level("INFO", logger="gpal"):
        bound = fit(rounds=6, initial_sweeps=3)
    assert caplog.text.count("taken back") == 1 and len(calls) > 2
    assert bound > without + 0.1


def test_label_noise_for_fixed_q_is_one_minus_the_mean_winning_probability():
    """Paper 000, eq. 27: δ* = 1 − mean_i Φ(± m/√(1 + v))."""
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(80, 1)), rng.uniform(0.1, 1.0, size=(80, 1))
    Y = (mean + rng.normal(size=mean.shape) > 0).astype(float)
    likelihood = make_likelihood("probit", 2)
    fit_likelihood(RULE, likelihood, *(tf.constant(a) for a in (mean, variance, Y)), iterations=50)
    best = 1.0 - np.mean(norm.cdf((2 * Y - 1) * mean / np.sqrt(1.0 + variance)))
    np.testing.assert_allclose(float(likelihood.delta.numpy()), best, rtol=1e-3)


def test_learning_that_starts_on_a_subset_ends_where_learning_on_all_ends():
    data = make_data(300, 3, 2)
    fits = []
    for subset in (None, 60):
        gp = SparseGP(KernelRows(matern(), data.X.numpy()[::15], 3))
        likelihood = make_likelihood("softmax", 3)
        fits.append(
            fit_sites(
                Problem(gp, likelihood, RULE, data),
                Schedule(rounds=15, subset=subset, tolerance=1e-7),
            )
        )
    # Both are local optima of the hyper-parameters: compared per source.
    np.testing.assert_allclose(fits[0].bound / 300, fits[1].bound / 300, atol=0.01)
    assert len(fits[1].sites.precision) == 300


@pytest.mark.parametrize("far", [np.inf, 0.0])
def test_sites_are_met_before_learning_where_the_subset_has_taught_too_little(far, monkeypatch):
    data, steps, learn = make_data(120, 3, 2), [], engine.fit_hyper_parameters
    gp = SparseGP(KernelRows(matern(), data.X.numpy()[::15], 1))
    likelihood = make_likelihood("probit", 2)
    met = gp.met

    def seen(gp, some, *rest):
        steps.append(("learn", len(some.Y)))
        return learn(gp, some, *rest)

    def counted(rule, likelihood, some, *rest):
        steps.append(("meet", len(some.Y)))
        return met(rule, likelihood, some, *rest)

    monkeypatch.setattr(engine, "FAR", far)
    monkeypatch.setattr(engine, "fit_hyper_parameters", seen)
    gp.met = counted
    fit_sites(Problem(gp, likelihood, RULE, data), Schedule(rounds=1, subset=30, tolerance=0.0))
    before = steps[: steps.index(("learn", 120))]
    # One meets the sites and one measures the bound; then those of `initial_sweeps`.
    count = before.count(("meet", 120))
    assert count == 2 if far else count >= 2 + 4
