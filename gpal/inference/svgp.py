"""The gradient path: stochastic variational inference on q(u) (Hensman et al. 2015).

    ELBO ≈ (n/|B|) Σ_{i∈B} E_q[log p(y_i | f_i)] − KL(q(u) ‖ p(u)),  u = L v,  q(v) = N(m, S Sᵀ)

maximised over m, S, kernel, likelihood and (optionally) inducing points by mini-batch gradients. It
is the papers' reference method ("svi"), and the one path for what has no closed-form sites.

    adam      Adam on everything
    adadelta  AdaDelta on everything (the baseline of Izmailov & Kropotov 2016)
    natgrad   natural gradients on (m, S), Adam on the rest (Salimbeni et al. 2018)

Input noise enters as on the engine: first-order slope variance, or S nodes per source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tf_keras
from tqdm import tqdm

from gpal.errors import InputError
from gpal.inference.rows import Data, Sites, derivative_rows, kernel_of, meet
from gpal.inference.sites import SiteFit
from gpal.inference.sparse import SparseGP, SparsePosterior

__all__ = ["OPTIMIZERS", "fit_svgp"]

OPTIMIZERS = ("adam", "adadelta", "natgrad")


def fit_svgp(
    gp: SparseGP,
    likelihood,
    rule,
    data: Data,
    *,
    optimizer: str = "adam",
    steps: int = 2000,
    batch_size: int = 256,
    learning_rate: float | None = None,
    natural_step: float = 0.1,
    seed: int = 0,
    progress: bool | None = False,
    callback: Callable[[Any, int], None] | None = None,
    callback_every: int = 100,
) -> SiteFit:
    """Fit q(u) and the hyper-parameters of `gp` in place; returns its posterior and bound.

    learning_rate None is 0.01 for Adam and 1 for AdaDelta, which scales its own steps.
    callback(posterior, step) is called every `callback_every` steps. The bound in the result is
    that of all the data at the end, the one the engine reports.
    """
    if optimizer not in OPTIMIZERS:
        raise InputError(f"no optimizer '{optimizer}'; there are: {', '.join(OPTIMIZERS)}")
    P, n, nodes = gp.num_latent, int(data.Y.shape[0]), gp.nodes
    if len(gp.kernels) == 1:
        kernel = gpflow.kernels.SharedIndependent(gp.kernels[0], P)
    else:
        kernel = gpflow.kernels.SeparateIndependent(gp.kernels)
    inducing = gpflow.inducing_variables.InducingPoints(np.asarray(gp.Z))
    inducing.Z = gp.Z
    model = gpflow.models.SVGP(
        kernel,
        likelihood,
        gpflow.inducing_variables.SharedIndependentInducingVariables(inducing),
        num_latent_gps=P,
        num_data=n,
    )

    def slope_variance(X, root):
        """(∂m_c/∂x)ᵀ R Rᵀ (∂m_c/∂x), [rows, P]."""
        posterior = whitened_posterior(gp, model)
        Z, tangents = tf.convert_to_tensor(gp.Z), [root[:, :, d] for d in gp.noisy]
        columns = []
        for c in range(P):
            rows = derivative_rows(gp.kernels[kernel_of(gp.kernels, c)], X, Z, tangents)
            slopes = [tf.linalg.matvec(D, posterior.alpha[c]) for D in rows]
            columns.append(tf.add_n([s**2 for s in slopes]))
        return tf.stack(columns, axis=1)

    def elbo(X, Y, root):
        if gp.inputs is not None:
            X, root = gp.inputs(X, root)
        mean, spread = model.predict_f(X)
        if gp.noisy:
            spread += slope_variance(X, root)
        terms = meet(rule, likelihood, mean, spread, Y, nodes)[1]
        scale = n / tf.cast(tf.shape(Y)[0], tf.float64)
        return scale * tf.reduce_sum(terms) - model.prior_kl()

    natural = optimizer == "natgrad"
    if natural:
        gpflow.set_trainable(model.q_mu, False)
        gpflow.set_trainable(model.q_sqrt, False)
        natural_gradient = gpflow.optimizers.NaturalGradient(gamma=natural_step)
    variables = [*model.trainable_variables]
    if gp.inputs is not None:
        variables += gp.inputs.trainable_variables
    if optimizer == "adadelta":
        descent = tf_keras.optimizers.Adadelta(learning_rate or 1.0)
    else:
        descent = tf_keras.optimizers.Adam(learning_rate or 0.01)

    @tf.function(autograph=False)
    def step(rows, sources):
        batch = (
            tf.gather(data.X, rows),
            tf.gather(data.Y, sources),
            tf.gather(data.root, sources),
        )
        if natural:
            natural_gradient.minimize(lambda: -elbo(*batch), [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape() as tape:
            loss = -elbo(*batch)
        descent.apply_gradients(zip(tape.gradient(loss, variables), variables))

    generator = np.random.default_rng(seed)
    per_source = data.X.shape[0] // n
    batch_size = min(batch_size, n)
    bar = tqdm(range(steps), desc="svgp", leave=False, disable=True if progress is False else None)
    for k in bar:
        sources = generator.choice(n, batch_size, replace=False)
        rows = (sources[:, None] * per_source + np.arange(per_source)).ravel()
        step(tf.constant(rows), tf.constant(sources))
        if callback is not None and (k + 1) % callback_every == 0:
            callback(whitened_posterior(gp, model), k + 1)

    posterior = whitened_posterior(gp, model)
    gp.refresh(data)
    nothing = Sites(*(tf.zeros([n * nodes, P], tf.float64),) * 2)
    sites, _, terms = gp.met_statistics(rule, likelihood, data, posterior, nothing, 1.0)
    return SiteFit(posterior, sites, [float(terms - posterior.kl)])


def whitened_posterior(gp: SparseGP, model: gpflow.models.SVGP) -> SparsePosterior:
    """GPflow's whitened (m, S) as α = L⁻ᵀ m and M = L⁻ᵀ (S Sᵀ − I) L⁻¹."""
    eye = tf.eye(gp.Z.shape[0], dtype=tf.float64)
    jitter = gpflow.config.default_jitter() * eye
    inverses = [
        tf.linalg.triangular_solve(tf.linalg.cholesky(kernel(gp.Z) + jitter), eye)
        for kernel in gp.kernels
    ]
    alphas, Ms = [], []
    for c in range(gp.num_latent):
        L_inverse, S = inverses[kernel_of(gp.kernels, c)], model.q_sqrt[c]
        alphas.append(tf.linalg.matvec(L_inverse, model.q_mu[:, c], transpose_a=True))
        middle = tf.matmul(S, S, transpose_b=True) - eye
        Ms.append(tf.matmul(L_inverse, tf.matmul(middle, L_inverse), transpose_a=True))
    return SparsePosterior(tf.stack(alphas), tf.stack(Ms), model.prior_kl())
