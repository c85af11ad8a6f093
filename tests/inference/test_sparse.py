"""SparseGP against E1 and E2 in dense NumPy, finite differences, and GPflow's SGPR."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import Dense, make_data, make_sites, posterior_moments, take

from gpal.inference.collapsed import bound_and_gradient
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.rows import Data, Sites, add
from gpal.inference.sparse import SparseGP
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.site_rules import NaturalGradient

k = gpflow.kernels
D = 3


def rbf(seed: int = 0):
    rng = np.random.default_rng(seed)
    return k.SquaredExponential(rng.uniform(0.5, 2.0), rng.uniform(0.8, 2.0, size=D))


def mixed(seed: int = 0):
    return k.Sum([rbf(seed), k.Linear([0.3, 0.5, 0.2]), k.Constant(0.7)])


def inducing(m: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(m, D))


# name -> (kernels, latent functions, options of the rows; `points` of them instead of 5)
CASES = {
    "shared kernel, learned Z": (lambda: [mixed()], 2, {"learn_Z": True}),
    "kernel per class": (lambda: [rbf(0), mixed(1)], 2, {}),
    "first order": (lambda: [mixed()], 2, {"noisy": (0, 2), "learn_Z": True}),
    "first order, per class, forward mode": (
        lambda: [k.Matern52(lengthscales=[0.8, 1.3, 2.0]), rbf(2)],
        2,
        {"noisy": (2,)},
    ),
    "nodes": (lambda: [rbf()], 2, {"nodes": 3, "learn_Z": True}),
    "one inducing point": (lambda: [rbf()], 2, {"points": 1, "learn_Z": True}),
    "one inducing point, first order": (
        lambda: [rbf(0), mixed(1)],
        2,
        {"points": 1, "noisy": (0, 2)},
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    kernels, num_latent, options = CASES[request.param]
    options = dict(options)
    points = inducing(options.pop("points", 5))
    gp = SparseGP(KernelRows(kernels(), points, num_latent, **options))
    gp.rows.chunk = 7  # so that the rows come in three chunks, the last one shorter
    data = make_data(17, D, 2, nodes=gp.nodes)
    return gp, data, make_sites(17 * gp.nodes, num_latent)


def test_solution_equals_the_dense_one(case):
    gp, data, sites = case
    posterior = gp.posterior(data, sites)
    jitter, kl = float(gp.jitter.value), 0.0
    only_noisy = np.repeat(data.root, gp.nodes, axis=0) * np.isin(np.arange(D), gp.noisy)
    mean, marginal_variance = gp.marginals(posterior, data.X, only_noisy)
    for c in range(gp.num_latent):
        dense = Dense(gp, data, sites, c)
        mu, Sigma = dense.solution()
        got_mu, got_Sigma = posterior_moments(gp, posterior, c, jitter)
        np.testing.assert_allclose(got_mu, mu, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(got_Sigma, Sigma, rtol=1e-6, atol=1e-8)
        m, v = dense.marginals(mu, Sigma)
        np.testing.assert_allclose(mean[:, c], m, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(marginal_variance[:, c], v, rtol=1e-6, atol=1e-8)
        kl += dense.kl(mu, Sigma)
        root = np.linalg.cholesky(Sigma)
        by_gpflow = gpflow.kullback_leiblers.gauss_kl(mu[:, None], root[None], dense.K)
        np.testing.assert_allclose(dense.kl(mu, Sigma), by_gpflow, rtol=1e-6)
    np.testing.assert_allclose(posterior.kl, kl, rtol=1e-6)


def test_solution_maximises_the_explicit_bound_and_the_maximum_is_the_collapsed_one(case):
    """Perturbing μ or Σ either way never raises Σ (r m − ½ θ (m² + v)) − KL, slopes included."""
    gp, data, sites = case
    posterior = gp.posterior(data, sites)
    rng = np.random.default_rng(0)
    for c in range(gp.num_latent):
        dense = Dense(gp, data, sites, c)
        mu, Sigma = posterior_moments(gp, posterior, c, float(gp.jitter.value))
        best = dense.explicit(mu, Sigma)
        for _ in range(5):
            step = 1e-3 * dense.K @ rng.normal(size=len(mu))
            stretch = np.eye(len(mu)) + 1e-3 * rng.normal(size=(len(mu), len(mu)))
            for sign in (-1.0, 1.0):
                assert dense.explicit(mu + sign * step, Sigma) < best
            assert dense.explicit(mu, stretch @ Sigma @ stretch.T) < best
        if not gp.noisy:
            np.testing.assert_allclose(dense.collapsed(), best, rtol=1e-8)


def slope(function, variable, direction: np.ndarray, step: float = 1e-5) -> float:
    """Derivative of function() along a direction of a variable, by central differences."""
    start, values = variable.numpy(), []
    for sign in (1.0, -1.0):
        variable.assign(start + sign * step * direction)
        values.append(function())
    variable.assign(start)
    return (values[0] - values[1]) / (2 * step)


def test_collapsed_bound_and_gradient(case):
    gp, data, sites = case

    def dense_bound():
        return sum(Dense(gp, data, sites, c).collapsed() for c in range(gp.num_latent))

    J, gradients = gp.bound_and_gradient(data, sites)
    np.testing.assert_allclose(J, dense_bound(), rtol=1e-8)
    rng = np.random.default_rng(0)
    for variable, gradient in zip(gp.trainable_variables, gradients, strict=True):
        for _ in range(min(2, np.size(gradient))):
            direction = rng.normal(size=variable.shape)
            want = slope(dense_bound, variable, direction)
            np.testing.assert_allclose(np.sum(gradient * direction), want, rtol=1e-5, atol=1e-5)
        assert np.abs(gradient).max() > 1e-3


def test_the_collapsed_bound_brings_its_posterior(case):
    gp, data, sites = case
    _, _, found = gp.collapsed(data, sites)
    for got, want in zip(found, gp.posterior(data, sites), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8 * np.abs(want).max())


def test_with_the_optimal_q_held_the_gradient_is_that_of_the_collapsed_bound(case):
    """Envelope theorem: what mini-batches have is the gradient of the whole."""
    gp, data, sites = case
    held = gp.whitened(gp.statistics(data, sites))
    F, found, _ = bound_and_gradient(gp.rows, data, sites, gp.jitter.value, held=held)
    J, gradients = gp.bound_and_gradient(data, sites)
    assert abs(F - J) > 1e-3  # F is without the KL divergence
    for got, want in zip(found, gradients, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9 * np.abs(want).max())


def test_sites_met_with_their_statistics_are_those_met_without(case):
    gp, data, sites = case
    rule, likelihood = NaturalGradient(), make_likelihood("softmax", 2)
    posterior = gp.posterior(data, sites)
    met, terms = gp.met(rule, likelihood, data, posterior)
    again, statistics, same = gp.met_statistics(rule, likelihood, data, posterior)
    for got, want in zip((*again, same), (*met, terms), strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(gp.solve(statistics), gp.posterior(data, met), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12 * np.abs(want).max())


@pytest.fixture(scope="module")
def large():
    n = 203
    gp = SparseGP(KernelRows([mixed()], inducing(8), 3, nodes=2, noisy=(0, 1, 2)))
    return gp, make_data(n, D, 3, nodes=2), make_sites(2 * n, 3), n


def test_chunk_size_does_not_matter(large):
    gp, data, sites, n = large
    other = SparseGP(KernelRows(gp.kernels, gp.Z.numpy(), 3, nodes=2, noisy=gp.noisy))
    other.rows.chunk = 23
    assert other.rows.chunk < gp.rows.chunk < n
    whole, chunked = gp.statistics(data, sites), other.statistics(data, sites)
    for got, want in zip(tf.nest.flatten(chunked), tf.nest.flatten(whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("count", [1, 7, 50])
def test_statistics_of_partitions_add_up(large, count):
    gp, data, sites, n = large
    whole = gp.statistics(data, sites)
    total = None
    for sources in np.array_split(np.random.default_rng(count).permutation(n), count):
        part = gp.statistics(*take(data, sites, sources, gp.nodes))
        total = part if total is None else add(total, part)
    for got, want in zip(tf.nest.flatten(total), tf.nest.flatten(whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * np.abs(want).max())


def test_kept_rows_are_used_for_their_own_data_only(large):
    gp, data, sites, _ = large
    part = take(data, sites, np.arange(50, 90), gp.nodes)
    whole, expected = gp.statistics(data, sites), gp.statistics(*part)
    gp.refresh(data)
    try:
        for got, want in zip(gp.statistics(data, sites).gram, whole.gram, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        for got, want in zip(gp.statistics(*part).gram, expected.gram, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    finally:
        gp.rows.forget()


def test_each_thread_keeps_rows_of_its_own(large):
    gp, data, sites, _ = large
    other = take(data, sites, np.arange(50, 90), gp.nodes)[0]
    gp.refresh(data)
    try:
        kept = gp.rows.kept(data)

        def elsewhere():
            assert gp.rows.kept(data) == []
            gp.refresh(other)
            return len(gp.rows.kept(other))

        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(elsewhere).result() == len(kept) > 0
        assert all(a is b for a, b in zip(gp.rows.kept(data), kept, strict=True))
        assert gp.rows.kept(other) == []
        again = pickle.loads(pickle.dumps(gp.rows._kept))
        assert (again.of, again.rows) == (None, ())  # what is kept is no part of a copy
    finally:
        gp.rows.forget()


def test_float32_products_agree_with_float64():
    """Well conditioned (points two lengthscales apart): marginals to 2e-4, KL and J to 1e-4."""
    data, sites = make_data(200, D, 3), make_sites(200, 3)
    results = []
    for dtype in (tf.float64, tf.float32):
        kernels = [k.Sum([k.SquaredExponential(lengthscales=[0.7] * D), k.Constant(0.5)])]
        gp = SparseGP(KernelRows(kernels, inducing(20), 3, dtype=dtype, noisy=(1,)), jitter=1e-4)
        posterior = gp.posterior(data, sites)
        J, gradients = gp.bound_and_gradient(data, sites)
        mean, variance = gp.marginals(posterior, data.X, data.root)
        assert mean.dtype == variance.dtype == posterior.kl.dtype == J.dtype == tf.float64
        slopes = np.concatenate([np.ravel(g) for g in gradients])
        results.append((mean, variance, posterior.kl, J, slopes))
    exact, single = results
    for got, want, tolerance in zip(single, exact, (2e-4, 2e-4, 1e-4, 1e-4, 1e-3), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_gaussian_sites_are_sparse_gp_regression():
    """θ = 1/σ², r = y/σ²: J + Σ log N(y | 0, σ²) and the predictions are those of SGPR."""
    rng = np.random.default_rng(0)
    X, noise, jitter = rng.normal(size=(40, D)), 0.3, 1e-8
    y = np.sin(X[:, :1]) + np.sqrt(noise) * rng.normal(size=(40, 1))
    kernel, Z = k.Matern52(lengthscales=1.3), inducing(9)  # unit variance: jitters agree
    gp = SparseGP(KernelRows([kernel], Z, 1), jitter=jitter)
    data = Data(tf.constant(X), tf.constant(y), tf.zeros([40, D, D], tf.float64))
    sites = Sites(tf.fill([40, 1], tf.constant(1.0 / noise, tf.float64)), tf.constant(y / noise))
    constant = np.sum(-0.5 * np.log(2 * np.pi * noise) - 0.5 * y**2 / noise)
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        sgpr = gpflow.models.SGPR((X, y), kernel, Z, noise_variance=noise)
        elbo, new = sgpr.elbo(), rng.normal(size=(11, D))
        mean, variance = sgpr.predict_f(new)
    J, _ = gp.bound_and_gradient(data, sites)
    np.testing.assert_allclose(J + constant, elbo, rtol=1e-8)
    got_mean, got_variance = gp.marginals(gp.posterior(data, sites), new)
    np.testing.assert_allclose(got_mean, mean, atol=1e-7)
    np.testing.assert_allclose(got_variance, variance, atol=1e-7)


def test_first_order_variance_is_the_spread_of_the_mean_function():
    """Slope variance against Monte Carlo of m(x + R ε) for small R."""
    rng = np.random.default_rng(0)
    gp = SparseGP(KernelRows([mixed()], inducing(12), 2, noisy=(0, 1, 2)))
    data, sites = make_data(60, D, 2), make_sites(60, 2)
    posterior = gp.posterior(data, sites)
    X, root = data.X.numpy()[:6], 1e-2 * data.root.numpy()[:6]
    _, without = gp.marginals(posterior, X)
    _, variance = gp.marginals(posterior, X, root)
    epsilon = rng.normal(size=(4000, 6, D))
    samples = X + np.einsum("nde,sne->snd", root, np.concatenate([epsilon, -epsilon]))
    mean, _ = gp.marginals(posterior, samples.reshape(-1, D))
    spread = mean.numpy().reshape(8000, 6, 2).var(axis=0)
    np.testing.assert_allclose(variance - without, spread, rtol=0.08, atol=1e-3 * spread.max())


def test_exact_inputs_leave_no_slope_variance():
    data, sites = make_data(30, D, 2), make_sites(30, 2)
    exact = data._replace(root=tf.zeros_like(data.root))
    noisy = SparseGP(KernelRows([mixed()], inducing(6), 2, noisy=(0, 1, 2)))
    plain = SparseGP(KernelRows([mixed()], inducing(6), 2))
    a, b = noisy.posterior(exact, sites), plain.posterior(exact, sites)
    np.testing.assert_allclose(a.alpha, b.alpha, rtol=1e-9)
    np.testing.assert_allclose(
        noisy.marginals(a, data.X)[1], plain.marginals(b, data.X)[1], rtol=1e-9
    )


def test_duplicate_inducing_points_only_raise_the_jitter(caplog):
    Z = np.repeat(inducing(6), 3, axis=0)
    gp = SparseGP(KernelRows([k.SquaredExponential(lengthscales=[3.0] * D)], Z, 1), jitter=1e-18)
    data, sites = make_data(30, D, 2), make_sites(30, 1)
    posterior = gp.posterior(data, sites)
    assert np.isfinite(posterior.alpha.numpy()).all() and float(gp.jitter.value) > 1e-18
    assert "jitter raised" in caplog.text


def test_rows_that_stay_in_memory_and_rows_in_chunks_give_the_same_gradient(case):
    gp, data, sites = case
    kept = gp.bound_and_gradient(data, sites)
    gp.rows.resident_elements = 0
    streamed = gp.bound_and_gradient(data, sites)
    gp.rows.resident_elements = 1 << 21
    for a, b in zip(tf.nest.flatten(kept), tf.nest.flatten(streamed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
