"""AnalyticGP against E1 and E2 in dense NumPy with moments by quadrature, and its two limits."""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import make_data, make_sites, posterior_moments, take

from gpal.errors import InputError
from gpal.inference.base import Problem
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.psi_rows import PsiRows
from gpal.inference.rows import Sites, add
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.inference.svgp import GradientSchedule, fit_svgp
from gpal.likelihoods.bernoulli_logit import BernoulliLogit
from gpal.likelihoods.site_rules import NaturalGradient
from gpal.likelihoods.softmax import Softmax

k = gpflow.kernels
D, N = 3, 17
NOISY = (0, 2)


def rbf(seed: int = 0):
    rng = np.random.default_rng(seed)
    return k.SquaredExponential(rng.uniform(0.5, 2.0), rng.uniform(0.8, 2.0, size=D))


def mixed(seed: int = 0):
    return k.Sum([rbf(seed), k.Linear([0.3, 0.5, 0.2]), k.Constant(0.7)])


def inducing(m: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(m, D))


def data_with(scale: float, n: int = N):
    """Noise along the columns NOISY of R only."""
    data = make_data(n, D, 2)
    columns = scale * np.isin(np.arange(D), NOISY)
    return data._replace(root=data.root * columns)


CASES = {
    "shared kernel, learned Z": (lambda: [mixed()], {"learn_Z": True}),
    "kernel per class": (lambda: [rbf(0), mixed(1)], {}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    kernels, options = CASES[request.param]
    gp = SparseGP(PsiRows(kernels(), inducing(5), 2, noisy=NOISY, **options))
    gp.rows.chunk = 7  # three chunks, the last one shorter
    return gp, data_with(1.0), make_sites(N, 2)


class Quadrature:
    """ψ0, ψ1, Ψ2 of one latent function on a grid of inputs, and what E1 and E2 make of them."""

    def __init__(self, gp, data, sites, latent: int, points: int = 24):
        kernel = gp.kernels[0] if len(gp.kernels) == 1 else gp.kernels[latent]
        Z, jitter = gp.Z.numpy(), float(gp.jitter.value)
        K = kernel(Z).numpy()
        self.K = K + jitter * np.mean(np.diag(K)) * np.eye(len(K))
        nodes, weights = np.polynomial.hermite_e.hermegauss(points)
        grid = np.array(list(itertools.product(nodes, repeat=len(NOISY))))
        self.weight = np.array([np.prod(w) for w in itertools.product(weights, repeat=2)])
        self.weight /= self.weight.sum()
        columns = data.root.numpy()[:, :, list(NOISY)]
        self.k, self.k_diag, self.second = [], [], []
        for b, R in zip(data.X.numpy(), columns, strict=True):
            x = b + grid @ R.T
            rows = kernel(x, Z).numpy()
            self.k.append(self.weight @ rows)
            self.k_diag.append(self.weight @ kernel(x, full_cov=False).numpy())
            self.second.append(rows.T @ (self.weight[:, None] * rows))
        self.k, self.second = np.array(self.k), np.array(self.second)
        self.theta = sites.precision.numpy()[:, latent]
        self.r = sites.natural_mean.numpy()[:, latent]
        self.K_inverse = np.linalg.inv(self.K)
        self.B = self.K + np.einsum("n,njk->jk", self.theta, self.second)

    def solution(self):
        """(μ, Σ) of E1."""
        mu = self.K @ np.linalg.solve(self.B, self.k.T @ self.r)
        return mu, self.K @ np.linalg.solve(self.B, self.K)

    def marginals(self, mu, Sigma):
        """Mean and variance of f(x_i) over x_i and q(f)."""
        alpha = self.K_inverse @ mu
        inner = self.K_inverse @ (Sigma - self.K) @ self.K_inverse + np.outer(alpha, alpha)
        mean = self.k @ alpha
        return mean, self.k_diag + np.einsum("njk,jk->n", self.second, inner) - mean**2

    def collapsed(self) -> float:
        """J of E2."""
        rho = self.k.T @ self.r
        unexplained = self.k_diag - np.einsum("njk,jk->n", self.second, self.K_inverse)
        return (
            0.5 * rho @ np.linalg.solve(self.B, rho)
            + 0.5 * np.linalg.slogdet(self.K)[1]
            - 0.5 * np.linalg.slogdet(self.B)[1]
            - 0.5 * np.sum(self.theta * unexplained)
        )

    def kl(self, mu, Sigma) -> float:
        root = np.linalg.cholesky(Sigma)
        return float(gpflow.kullback_leiblers.gauss_kl(mu[:, None], root[None], self.K))

    def explicit(self, mu, Sigma) -> float:
        """Σ_i E_x E_q (r_i f − ½ θ_i f²) − KL: what (μ, Σ) should maximise."""
        m, v = self.marginals(mu, Sigma)
        return np.sum(self.r * m - 0.5 * self.theta * (m**2 + v)) - self.kl(mu, Sigma)


def test_solution_and_marginals_equal_those_by_quadrature(case):
    gp, data, sites = case
    posterior = gp.posterior(data, sites)
    gp.refresh(data)
    kept = gp.posterior(data, sites)
    gp.rows.forget()
    np.testing.assert_allclose(kept.alpha, posterior.alpha, rtol=1e-12)
    mean, variance = gp.marginals(posterior, data.X, data.root)
    again = gp.data_marginals(data, posterior)
    np.testing.assert_array_equal(again[1], variance)
    kl = 0.0
    for c in range(2):
        dense = Quadrature(gp, data, sites, c)
        mu, Sigma = dense.solution()
        got_mu, got_Sigma = posterior_moments(gp, posterior, c, float(gp.jitter.value))
        np.testing.assert_allclose(got_mu, mu, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(got_Sigma, Sigma, rtol=1e-6, atol=1e-7)
        m, v = dense.marginals(mu, Sigma)
        np.testing.assert_allclose(mean[:, c], m, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(variance[:, c], v, rtol=1e-6, atol=1e-7)
        kl += dense.kl(mu, Sigma)
    np.testing.assert_allclose(posterior.kl, kl, rtol=1e-6)


def test_solution_maximises_the_explicit_bound_and_the_maximum_is_the_collapsed_one(case):
    gp, data, sites = case
    posterior, rng = gp.posterior(data, sites), np.random.default_rng(0)
    for c in range(2):
        dense = Quadrature(gp, data, sites, c)
        mu, Sigma = posterior_moments(gp, posterior, c, float(gp.jitter.value))
        best = dense.explicit(mu, Sigma)
        for _ in range(5):
            step = 1e-3 * dense.K @ rng.normal(size=len(mu))
            stretch = np.eye(len(mu)) + 1e-3 * rng.normal(size=(len(mu), len(mu)))
            for sign in (-1.0, 1.0):
                assert dense.explicit(mu + sign * step, Sigma) < best
            assert dense.explicit(mu, stretch @ Sigma @ stretch.T) < best
        np.testing.assert_allclose(dense.collapsed(), best, rtol=1e-7)


def test_collapsed_bound_and_gradient(case):
    gp, data, sites = case
    J, gradients = gp.bound_and_gradient(data, sites)
    np.testing.assert_allclose(
        J, sum(Quadrature(gp, data, sites, c).collapsed() for c in range(2)), rtol=1e-7
    )
    rng = np.random.default_rng(0)
    for variable, gradient in zip(gp.trainable_variables, gradients, strict=True):
        direction, start, values = rng.normal(size=np.shape(gradient)), variable.numpy(), []
        for step in (1e-5, -1e-5):
            variable.assign(start + step * direction)
            values.append(float(gp.bound_and_gradient(data, sites)[0]))
        variable.assign(start)
        difference = (values[0] - values[1]) / 2e-5
        np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("features", [NOISY, ()])
def test_exact_inputs_give_the_exact_engine(case, features):
    noisy, _, sites = case
    data = data_with(0.0)
    plain = SparseGP(KernelRows(noisy.kernels, noisy.Z.numpy(), 2, learn_Z=noisy.Z.trainable))
    gp = SparseGP(
        PsiRows(noisy.kernels, noisy.Z.numpy(), 2, learn_Z=noisy.Z.trainable, noisy=features)
    )
    gp.refresh(data)
    mine, theirs = gp.posterior(data, sites), plain.posterior(data, sites)
    np.testing.assert_allclose(mine.kl, theirs.kl, rtol=1e-10)
    np.testing.assert_allclose(mine.alpha, theirs.alpha, rtol=1e-9)
    new = np.random.default_rng(2).normal(size=(9, D))
    for got, want in zip(
        gp.marginals(mine, new, np.zeros((9, D, D))), plain.marginals(theirs, new), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-10)
    (J, gradient), (K, expected) = (g.bound_and_gradient(data, sites) for g in (gp, plain))
    np.testing.assert_allclose(J, K, rtol=1e-10)
    for got, want in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


def test_small_errors_give_the_slope_variance():
    """What the spread of the mean function adds to the variance, M = 0, is that of first order."""
    data, sites, kernel = data_with(1e-3), make_sites(N, 1), rbf()
    first = SparseGP(KernelRows([kernel], inducing(5), 1, noisy=NOISY))
    analytic = SparseGP(PsiRows([kernel], inducing(5), 1, noisy=NOISY))
    posterior = first.posterior(data, sites)
    posterior = posterior._replace(M=tf.zeros_like(posterior.M))
    exact, exact_variance = first.marginals(posterior, data.X)
    _, slope = first.marginals(posterior, data.X, data.root)
    mean, variance = analytic.marginals(posterior, data.X, data.root)
    np.testing.assert_allclose(mean, exact, rtol=1e-5)
    np.testing.assert_allclose(variance - exact_variance, slope - exact_variance, rtol=1e-3)


def test_partitions_add_up(case):
    gp, data, sites = case
    whole, total = gp.statistics(data, sites), None
    for sources in np.array_split(np.random.default_rng(0).permutation(N), 4):
        part = gp.statistics(*take(data, sites, sources))
        total = part if total is None else add(total, part)
    for got, want in zip(tf.nest.flatten(total), tf.nest.flatten(whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_gaussian_sites_are_gpflows_bayesian_gplvm():
    """θ = 1/σ², r = y/σ²: J + Σ log N(y | 0, σ²) is its bound if the prior of x is q(x)."""
    rng, noise, jitter = np.random.default_rng(0), 0.3, 1e-8
    data, y = make_data(30, D, 2), rng.normal(size=(30, 1))
    deviation = rng.uniform(0.05, 0.6, size=(30, D))
    data = data._replace(root=tf.constant(deviation[:, :, None] * np.eye(D)))
    kernel, Z = k.SquaredExponential(lengthscales=[0.9, 1.2, 1.5]), inducing(8)
    X, V = data.X, tf.constant(deviation**2)
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        model = gpflow.models.BayesianGPLVM(
            y, X, V, kernel, inducing_variable=Z, X_prior_mean=X, X_prior_var=V
        )
        model.likelihood.variance.assign(noise)
        elbo = model.elbo()
    gp = SparseGP(PsiRows([kernel], Z, 1, noisy=(0, 1, 2)), jitter=jitter)
    sites = Sites(tf.fill([30, 1], tf.constant(1.0 / noise, tf.float64)), tf.constant(y / noise))
    J, _ = gp.bound_and_gradient(data, sites)
    constant = np.sum(-0.5 * np.log(2 * np.pi * noise) - 0.5 * y**2 / noise)
    np.testing.assert_allclose(J + constant, elbo, rtol=1e-7)


def test_fit_raises_the_bound_and_memory_is_bounded_by_a_chunk():
    data, likelihood = data_with(1.0, 60), Softmax(2)
    gp = SparseGP(PsiRows([mixed()], inducing(10), 2, noisy=NOISY))
    fit = fit_sites(Problem(gp, likelihood, NaturalGradient(), data), Schedule(rounds=2))
    assert (np.diff(fit.bounds) > -1e-6).all() and fit.bounds[-1] > fit.bounds[0] + 1.0
    large = SparseGP(PsiRows([mixed()], inducing(1000), 2, noisy=NOISY))
    assert large.rows.chunk * 1000**2 <= 1 << 21


def test_gradient_path_climbs_to_the_engines_bound():
    """Natural gradients on q(u) over all rows, the kernel held."""
    data, likelihood = data_with(1.0, 40), BernoulliLogit()
    gp = SparseGP(PsiRows([mixed()], inducing(6), 1, noisy=NOISY), jitter=1e-6)
    rule = NaturalGradient()
    engine = fit_sites(
        Problem(gp, likelihood, rule, data), Schedule(rounds=0, final_sweeps=30, tolerance=1e-9)
    )
    options = {"optimizer": "natgrad", "natural_step": 0.3, "learning_rate": 1e-12}
    gradient = fit_svgp(
        Problem(gp, likelihood, rule, data), GradientSchedule(steps=40, batch_size=40, **options)
    )
    np.testing.assert_allclose(gradient.bound, engine.bound, rtol=1e-6)
    for a, b in zip(
        gp.data_marginals(data, gradient.posterior),
        gp.data_marginals(data, engine.posterior),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-3)


def test_kernels_without_closed_forms_are_refused():
    with pytest.raises(InputError, match="choose kernel='rbf'"):
        SparseGP(PsiRows([k.Matern52()], inducing(3), 1))
