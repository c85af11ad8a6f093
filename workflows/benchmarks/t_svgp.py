"""t-SVGP: SVGP with q(u) in its dual parameters (Adam, Chang, Khan & Solin 2021, NeurIPS 34).

    q(u) ∝ p(u) exp(λᵀu − ½ uᵀΛu)        λ = Σ_i r_i a_i     Λ = Σ_i θ_i a_i a_iᵀ     a_i = K⁻¹k_i

K = K(Z, Z), k_i = K(Z, x_i); one λ [m] and Λ [m, m] for each latent function. With g, h the
derivatives of E_q log p(y_i | f_i) in the mean m_i and the variance of f_i, θ_i = −2h and
r_i = g + θ_i m_i, and a natural-gradient step of length ρ on a batch B of n rows is

    (λ, Λ) ← (1 − ρ)(λ, Λ) + ρ n/|B| Σ_{i in B} (r_i a_i, θ_i a_i a_iᵀ)

Hyper-parameters and Z take a step of Adam on the ELBO of the batch with (λ, Λ) held, so that q(u)
follows them. gpal's sites have the same dual form, and keep (θ_i, r_i) of every row instead of
their sums. Everything is whitened: K = L Lᵀ, v = L⁻¹u, h_i = L⁻¹k_i, and

    A = I + LᵀΛL     q(v) = N(μ, A⁻¹),  μ = A⁻¹Lᵀλ     KL = ½ (tr A⁻¹ − m + |μ|² + log|A|)
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from scoring import BATCH, INDUCING, STEPS, FixedPoints, Recorder, Split, log_softmax

__all__ = ["TSVGP", "t_svgp"]

NATURAL_STEP, ADAM_STEP = 0.03, 0.02  # of the authors' own run on batches of 200 (MNIST)
LEAST = 2e-8  # θ, where the likelihood or its Monte Carlo gradient would have less
JITTER = 1e-6  # GPflow's


class TSVGP(tf.Module):
    """P latent functions with one kernel.

    num_data   n, rows that a batch stands for
    """

    def __init__(
        self,
        kernel: gpflow.kernels.Kernel,
        likelihood: gpflow.likelihoods.Likelihood,
        Z: np.ndarray,
        num_latent: int,
        num_data: int,
    ) -> None:
        super().__init__()
        self.kernel, self.likelihood, self.num_data = kernel, likelihood, num_data
        self.Z = gpflow.Parameter(Z)
        m = len(Z)
        # No hyper-parameters: Adam leaves them alone.
        self.first = tf.Variable(tf.zeros([num_latent, m, 1], tf.float64), trainable=False)
        self.second = tf.Variable(tf.zeros([num_latent, m, m], tf.float64), trainable=False)

    def whitened(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """L [m, m], chol A [P, m, m] and μ [P, m, 1]."""
        eye = tf.eye(self.Z.shape[0], dtype=tf.float64)
        L = tf.linalg.cholesky(self.kernel(self.Z) + JITTER * eye)
        A = eye + tf.matmul(L, tf.matmul(self.second, L), transpose_a=True)
        factor = tf.linalg.cholesky(A)
        return (
            L,
            factor,
            tf.linalg.cholesky_solve(factor, tf.matmul(L, self.first, transpose_a=True)),
        )

    def marginals(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and variance [rows, P] of q(f)."""
        L, factor, mean = self.whitened()
        return self._marginals(X, self._rows(X, L), factor, mean)

    def _rows(self, X: tf.Tensor, L: tf.Tensor) -> tf.Tensor:
        """h_i, as columns [m, rows]."""
        return tf.linalg.triangular_solve(L, self.kernel(self.Z, X))

    def _marginals(
        self, X: tf.Tensor, H: tf.Tensor, factor: tf.Tensor, mean: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        spread = tf.linalg.triangular_solve(factor, tf.tile(H[None], [mean.shape[0], 1, 1]))
        prior = self.kernel(X, full_cov=False) - tf.reduce_sum(H**2, 0)
        variance = prior + tf.reduce_sum(spread**2, 1)
        return tf.matmul(H, tf.squeeze(mean, 2), True, True), tf.transpose(variance)

    def prior_kl(self) -> tf.Tensor:
        """KL(q(u) ‖ p(u)) summed over the latent functions."""
        L, factor, mean = self.whitened()
        return self._kl(L, factor, mean)

    def _kl(self, L: tf.Tensor, factor: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
        eye = tf.eye(L.shape[0], dtype=L.dtype, batch_shape=[mean.shape[0]])
        trace = tf.reduce_sum(tf.linalg.triangular_solve(factor, eye) ** 2)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
        size = tf.cast(tf.size(mean), L.dtype)
        return 0.5 * (trace - size + tf.reduce_sum(mean**2) + log_det)

    def elbo(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """Of all rows, by the batch (X, Y)."""
        L, factor, mean = self.whitened()
        moments = self._marginals(X, self._rows(X, L), factor, mean)
        terms = self.likelihood.variational_expectations(X, *moments, Y)
        return self.num_data / X.shape[0] * tf.reduce_sum(terms) - self._kl(L, factor, mean)

    def natural_step(self, X: tf.Tensor, Y: tf.Tensor, length: float) -> None:
        """Step of (λ, Λ) by the batch (X, Y)."""
        L, factor, mean = self.whitened()
        H = self._rows(X, L)
        m, v = self._marginals(X, H, factor, mean)
        with tf.GradientTape() as tape:
            tape.watch([m, v])
            terms = self.likelihood.variational_expectations(X, m, v, Y)
        to_mean, to_variance = tape.gradient(terms, [m, v])
        theta = tf.maximum(-2.0 * to_variance, LEAST)
        r = to_mean + theta * m
        A = tf.linalg.triangular_solve(L, H, adjoint=True)  # columns a_i
        scale = self.num_data / X.shape[0]
        weighted = A * tf.transpose(theta)[:, None, :]
        to_first = scale * tf.transpose(tf.matmul(A, r))[:, :, None]
        self.first.assign((1.0 - length) * self.first + length * to_first)
        to_second = scale * tf.matmul(weighted, A, transpose_b=True)
        self.second.assign((1.0 - length) * self.second + length * to_second)


def t_svgp(
    split: Split, seed: int, *, kernel: gpflow.kernels.Kernel, likelihood: Callable, every: int
) -> list[dict]:
    """STEPS steps on batches of BATCH rows, each one of q and one of Adam; its trajectory.

    likelihood   called with the number of classes
    every        steps between two points of the trajectory
    """
    from gpflow.keras import tf_keras

    from gpal.model.gaussian_process import inducing_points

    C, n = split.num_classes, len(split.X)
    tf.random.set_seed(seed)
    recorder = Recorder(split)
    P = 1 if C == 2 else C
    model = TSVGP(kernel, likelihood(C), inducing_points(split.X, INDUCING, seed), P, n)
    Y = split.y[:, None].astype(float if C == 2 else int)
    rows = tf.data.Dataset.from_tensor_slices((split.X, Y)).repeat().shuffle(n, seed=seed)
    batches = iter(rows.batch(BATCH, drop_remainder=True))
    optimizer = tf_keras.optimizers.Adam(ADAM_STEP)

    @tf.function
    def step() -> None:
        X, Y = next(batches)
        model.natural_step(X, Y, NATURAL_STEP)
        optimizer.minimize(lambda: -model.elbo(X, Y), model.trainable_variables)

    predict = tf.function(model.marginals, reduce_retracing=True)

    def marginals(X: np.ndarray) -> tuple[np.ndarray, ...]:
        parts = [predict(tf.constant(X[i : i + 1000])) for i in range(0, len(X), 1000)]
        return tuple(np.concatenate(part) for part in zip(*parts))

    fixed = FixedPoints(log_softmax, P)
    for k in range(1, STEPS + 1):
        step()
        if k % every == 0:
            recorder.record_gp(marginals, model.prior_kl(), fixed, k == STEPS)
    return recorder.trajectory
