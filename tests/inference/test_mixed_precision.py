"""Gradients by float32 products of whitened rows against float64 throughout."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from dense_reference import Dense, make_data, make_sites
from hypothesis import given, settings
from hypothesis import strategies as st

from gpal import GPClassifier, InputError
from gpal.inference import device, mixed_precision, whitened
from gpal.inference.base import Problem
from gpal.inference.chunks import Chunk
from gpal.inference.full import FullGP
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.psi_rows import PsiRows
from gpal.inference.sites import Schedule, fit_sites
from gpal.inference.sparse import SparseGP
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.site_rules import NaturalGradient

k = gpflow.kernels
D, C = 3, 6


def make_gp(lengthscale=1.3, variance=3.0, m: int = 12, rows=KernelRows, **options):
    Z = np.random.default_rng(5).normal(size=(m, D))
    kernel = k.Sum([k.SquaredExponential(variance, [lengthscale] * D), k.Constant(0.7)])
    return SparseGP(rows([kernel], Z, C, learn_Z=True, **options))


def flat(gradients) -> np.ndarray:
    return np.concatenate([np.ravel(g) for g in gradients])


CASES = {
    "exact": {},
    "streamed": {"stream": True},
    "first order": {"noisy": (0, 2)},
    "nodes": {"nodes": 3},
    "nodes, streamed": {"nodes": 3, "stream": True},
}
PARTS = ("streamed", "nodes")  # of the last


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in PARTS else ()) for name in CASES],
)
def test_it_is_the_gradient_of_float64(name):
    options = dict(CASES[name])
    stream = options.pop("stream", False)
    gp = make_gp(**options)
    if stream:
        gp.rows.chunk, gp.rows.resident_elements = 17, 0
    n = 150
    data, sites = make_data(n, D, C, nodes=gp.nodes), make_sites(n * gp.nodes, C)
    J, gradients, posterior = gp.collapsed(data, sites)
    mixed_J, mixed_gradients, mixed_posterior = gp.collapsed(data, sites, True)
    difference = flat(mixed_gradients) - flat(gradients)
    error = np.linalg.norm(difference) / np.linalg.norm(flat(gradients))
    # Not zero: another computation, and not more than single precision loses.
    assert 1e-9 < error < 1e-5
    assert abs(mixed_J - J) / n < 1e-6
    for got, want in zip(mixed_posterior, posterior, strict=True):
        assert got.dtype == tf.float64
        np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("noisy", [pytest.param((), marks=pytest.mark.slow), (0, 2)])
def test_in_double_precision_the_whitened_way_is_exact(noisy, monkeypatch, fresh_graphs):
    """The same formulas without rounding, against E2 in dense NumPy and the plain gradient."""
    monkeypatch.setattr(mixed_precision, "SINGLE", tf.float64)
    gp = make_gp(noisy=noisy)
    data, sites = make_data(60, D, C), make_sites(60, C)
    J, gradients, posterior = gp.collapsed(data, sites, True)
    np.testing.assert_allclose(
        J, sum(Dense(gp, data, sites, c).collapsed() for c in range(C)), rtol=1e-9
    )
    _, plain, expected = gp.collapsed(data, sites)
    for got, want in zip([*gradients, *posterior], [*plain, *expected], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9 * np.abs(want).max())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(lengthscale=st.floats(0.3, 12.0), variance=st.floats(0.1, 300.0), seed=st.integers(0, 2**16))
def test_nearly_dependent_inducing_points_cost_no_accuracy(lengthscale, variance, seed):
    """A few per mille of the gradient, where K is so near to singular that float64 loses as much
    without whitening."""
    gp = make_gp(lengthscale, variance, m=30)
    data, sites = make_data(200, D, C, seed=seed), make_sites(200, C, seed=seed)
    J, gradients, _ = gp.collapsed(data, sites)
    mixed_J, mixed_gradients, _ = gp.collapsed(data, sites, True)
    assert abs(mixed_J - J) / 200 < 5e-6
    error = np.linalg.norm(flat(mixed_gradients) - flat(gradients))
    assert error < 5e-2 * np.linalg.norm(flat(gradients))


def test_whitened_rows_have_the_kernel_for_a_scalar_product():
    gp = make_gp()
    X = tf.constant(np.random.default_rng(0).normal(size=(20, D)))
    K = gp.rows.kernel_matrices(gp.jitter.value)
    rows = gp.kernels[0](X, gp.Z)
    inverse = whitened.inverse_factor(K)
    diagonal = gp.kernels[0].K_diag(X)
    (H,), (unexplained,), _ = mixed_precision.whiten(Chunk([rows], [diagonal], []), inverse)
    assert (H.dtype, unexplained.dtype) == (tf.float32, tf.float64)
    nystroem = tf.matmul(rows, tf.linalg.solve(K[0], tf.transpose(rows)))
    np.testing.assert_allclose(tf.matmul(H, H, transpose_b=True), nystroem, atol=1e-5)
    np.testing.assert_allclose(
        unexplained, diagonal - tf.linalg.diag_part(nystroem), rtol=1e-6, atol=1e-9
    )
    assert (unexplained.numpy() > 0).all()


@pytest.mark.slow
def test_it_is_left_alone_where_it_would_not_pay():
    """Few latent functions to a kernel, products in float32 anyway, psi statistics, a full GP."""
    kernels = [k.SquaredExponential() for _ in range(C)]
    Z = np.random.default_rng(5).normal(size=(5, D))
    assert make_gp().gains_by_mixing
    plain = [
        SparseGP(KernelRows(kernels, Z, C)),
        SparseGP(KernelRows(kernels[:1], Z, C - 1)),
        make_gp(dtype=tf.float32),
        make_gp(rows=PsiRows, noisy=(1,)),
    ]
    assert not any(gp.gains_by_mixing for gp in plain)
    data, sites = make_data(40, D, C), make_sites(40, C)
    for gp in (plain[0], plain[3], FullGP(KernelRows(kernels[:1], data.X, C))):
        for a, b in zip(
            tf.nest.flatten(gp.collapsed(data, sites, True)[:2]),
            tf.nest.flatten(gp.collapsed(data, sites)[:2]),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def test_it_is_not_used_on_a_gpu_that_rounds_to_three_digits(monkeypatch):
    assert mixed_precision.pays(latents=C, kernels=1)
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])
    experimental = tf.config.experimental
    for asked, capability in ((True, (9, 0)), (False, (9, 0)), (True, (7, 5))):
        monkeypatch.setattr(
            experimental, "tensor_float_32_execution_enabled", lambda asked=asked: asked
        )
        card = {"compute_capability": capability}
        monkeypatch.setattr(experimental, "get_device_details", lambda _, card=card: card)
        rounded = asked and capability >= (8, 0)
        assert mixed_precision.pays(latents=C, kernels=1) is not rounded


def test_single_precision_is_refused_on_a_gpu_that_rounds_to_three_digits(monkeypatch, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    single = GPClassifier(dtype="float32", n_inducing=5, max_rounds=0)
    single.fit(X, X[:, 0] > 0).save(tmp_path / "model.npz")
    monkeypatch.setattr(device, "rounds_single_precision", lambda: True)
    GPClassifier(n_inducing=5, max_rounds=0).fit(X, X[:, 0] > 0)
    refused = pytest.raises(InputError, match=r"^this GPU .* call .*\(False\) first, or take")
    with refused:
        single.fit(X, X[:, 0] > 0)
    with refused:  # and the file is not called damaged
        GPClassifier.load(tmp_path / "model.npz")


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [(), (1,)])
def test_a_fit_ends_where_float64_ends(noisy):
    data, rule = make_data(250, D, C), NaturalGradient()
    fits = []
    for mixed in (True, False, True):
        gp = make_gp(m=15, noisy=noisy)
        likelihood = make_likelihood("softmax", C)
        fit = fit_sites(
            Problem(gp, likelihood, rule, data), Schedule(rounds=4, mixed_precision=mixed)
        )
        fits.append((fit.bound, gp.marginals(fit.posterior, data.X)[0].numpy()))
    assert fits[0][0] == fits[2][0]  # the same seed, the same answer
    assert fits[0][0] != fits[1][0]
    np.testing.assert_allclose(fits[0][0] / 250, fits[1][0] / 250, atol=1e-4)
    np.testing.assert_allclose(fits[0][1], fits[1][1], atol=0.02)
