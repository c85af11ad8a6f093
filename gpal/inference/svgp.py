"""The gradient path: stochastic variational inference on q(u) (Hensman et al. 2015).

    ELBO ≈ (n/|B|) Σ_{i∈B} E_q[log p(y_i | f_i)] − KL(q(u) ‖ p(u)),  u = L v,  q(v) = N(m, S Sᵀ)

maximised over m, S, kernel, likelihood and (optionally) inducing points by mini-batch gradients. It
is the papers' reference method ("svi"), and the one path for what has no closed-form sites.

    adam      Adam on everything
    adadelta  AdaDelta on everything (the baseline of Izmailov & Kropotov 2016)
    natgrad   natural gradients on (m, S), Adam on the rest (Salimbeni et al. 2018)

Input noise enters as on the engine, by first-order slope variance or S nodes per source, or by
drawing x_i from a q(x_i) that is trained with the rest (`input_noise/drawn.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
import tf_keras
from gpflow.conditionals.util import base_conditional_with_lm
from tqdm import tqdm

from gpal.errors import InputError
from gpal.inference import whitened
from gpal.inference.base import INFERENCES, Fit, Inference, Problem, check_between, make_schedule
from gpal.inference.cholesky import jittered_cholesky
from gpal.inference.chunks import SparsePosterior
from gpal.inference.derivatives import rows_and_slope_variance
from gpal.inference.graph import graph
from gpal.inference.rows import Data, meet
from gpal.inference.sparse import SparseGP
from gpal.inference.streaming import CHUNK
from gpal.input_noise.drawn import Drawn, InputPosterior
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.likelihoods.site_rules import SiteRule

__all__ = [
    "OPTIMIZERS",
    "SVGP",
    "GradientSchedule",
    "SvgpAdadelta",
    "SvgpAdam",
    "SvgpNatgrad",
    "fit_svgp",
    "make_svgp",
    "train",
]

OPTIMIZERS = ("adam", "adadelta", "natgrad")
# Of K(Z, Z), relative: the Cholesky factorisation must not fail while the kernel moves.
JITTER = 1e-6
# Points of the expectation over q(x_i) in the bound that a fit reports.
BOUND_POINTS = 16


class SVGP(tf.Module):
    """All that is trained, and the steps that train it.

    input_posterior  q(x_i) of a treatment that draws its inputs; None where the rows are fixed
    """

    def __init__(
        self,
        gp: SparseGP,
        likelihood: gpflow.likelihoods.Likelihood,
        rule: SiteRule,
        num_data: int,
        *,
        optimizer: str = "adam",
        learning_rate: float | None = None,
        natural_step: float = 0.1,
        input_posterior: InputPosterior | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.gp, self.likelihood, self.rule = gp, likelihood, rule
        self.num_data, self.seed = num_data, seed
        self.input_posterior = input_posterior
        m, P = gp.Z.shape[0], gp.num_latent
        self.q_mean = gpflow.Parameter(np.zeros([m, P]))
        self.q_root = gpflow.Parameter(
            np.tile(np.eye(m), [P, 1, 1]), transform=gpflow.utilities.triangular()
        )
        self.natural = None
        if optimizer == "natgrad":
            self.natural = gpflow.optimizers.NaturalGradient(gamma=natural_step)
            gpflow.set_trainable(self.q_mean, False)
            gpflow.set_trainable(self.q_root, False)
        adadelta = optimizer == "adadelta"
        descent = tf_keras.optimizers.Adadelta if adadelta else tf_keras.optimizers.Adam
        usual = 1.0 if adadelta else 0.01
        self.descent = descent(usual if learning_rate is None else learning_rate)
        self.descent.build(self.trainable_variables)

    @graph
    def step(self, data: Data, sources: tf.Tensor, number: tf.Tensor) -> None:
        """A step up the bound of the sources with these indices; its number seeds its draws."""
        batch = self._batch(data, sources)
        if self.natural is not None:
            self.natural.minimize(
                lambda: -self.bound(batch, sources, number), [(self.q_mean, self.q_root)]
            )
        variables = self.trainable_variables
        with tf.GradientTape() as tape:
            loss = -self.bound(batch, sources, number)
        self.descent.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def _batch(self, data: Data, sources: tf.Tensor) -> Data:
        """`Data.sources` in a graph, where the number of rows is open."""
        nodes = self.gp.nodes if self.gp.rows.inputs is None else 1
        rows = sources[:, None] * nodes + tf.range(nodes, dtype=sources.dtype)
        parts = (data.X, tf.reshape(rows, [-1])), (data.Y, sources), (data.root, sources)
        weight = None if data.weight is None else tf.gather(data.weight, sources)
        X, Y, root = (tf.gather(tensor, index) for tensor, index in parts)
        return Data(X, Y, root, weight)

    def bound(self, batch: Data, sources: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
        """The ELBO as the batch of sources estimates it, x_i drawn once."""
        shape = tf.concat([[1], tf.shape(batch.Y)[:1], tf.shape(batch.X)[1:]], axis=0)
        normal = tf.random.stateless_normal(shape, [self.seed, number], dtype=tf.float64)
        terms = self.terms(batch, sources, normal)
        scale = self.num_data / tf.cast(tf.shape(terms)[0], tf.float64)
        return scale * tf.reduce_sum(terms) - self.kl()

    def terms(self, batch: Data, sources: tf.Tensor, normal: tf.Tensor) -> tf.Tensor:
        """Each source's term [B] of the bound; draws of x_i are made of ε [S, B or 1, d]."""
        X, Y, root, weight = batch
        if self.gp.rows.inputs is not None:
            X, root = self.gp.rows.inputs(X, root)
        if self.input_posterior is None:
            marginals = self.marginals(X, root)
            return meet(self.rule, self.likelihood, *marginals, Y, self.gp.nodes, weight)[1]
        S = tf.shape(normal)[0]
        x, divergence = self.input_posterior.draw(sources, X, root, Y, normal)
        marginals = self.marginals(tf.reshape(x, [-1, x.shape[-1]]), root)
        expected = meet(self.rule, self.likelihood, *marginals, tf.tile(Y, [S, 1]), 1)[1]
        terms = tf.reduce_mean(tf.reshape(expected, [S, -1]), axis=0) - divergence
        return terms if weight is None else weight * terms

    def marginals(self, X: tf.Tensor, root: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f), slope variance included."""
        gp, Z = self.gp, tf.convert_to_tensor(self.gp.Z)
        if not gp.rows.products:
            return gp.rows.marginals(gp.rows.at(X, root, gp.noisy), self.posterior())
        means, variances = [], []
        for j, (kernel, L) in enumerate(zip(gp.kernels, self._factors())):
            latents = slice(None) if len(gp.kernels) == 1 else slice(j, j + 1)
            q_mean, q_root = self.q_mean[:, latents], self.q_root[latents]
            if gp.noisy:
                alpha = tf.linalg.triangular_solve(L, q_mean, adjoint=True)
                rows, slope_variance = rows_and_slope_variance(kernel, X, Z, alpha, root, gp.noisy)
                columns = tf.transpose(rows)
            else:
                columns, slope_variance = kernel(Z, X), 0.0
            mean, variance = base_conditional_with_lm(
                columns, L, kernel(X, full_cov=False), q_mean, q_sqrt=q_root, white=True
            )
            means.append(mean)
            variances.append(variance + slope_variance)
        return tf.concat(means, axis=1), tf.concat(variances, axis=1)

    def kl(self) -> tf.Tensor:
        """KL(q(u) ‖ p(u)) summed over the latent functions."""
        return gpflow.kullback_leiblers.gauss_kl(self.q_mean, self.q_root)

    def _factors(self) -> list[tf.Tensor]:
        return [jittered_cholesky(kernel(self.gp.Z), JITTER) for kernel in self.gp.kernels]

    @graph
    def posterior(self) -> SparsePosterior:
        """q(u) as predictions need it."""
        S = tf.convert_to_tensor(self.q_root)
        q = whitened.WhitenedPosterior(
            tf.transpose(self.q_mean)[..., None], tf.matmul(S, S, transpose_b=True), self.kl()
        )
        return SparsePosterior(*whitened.unwhiten(q, tf.stack(self._factors())), q.kl)

    def bound_of_all(self, data: Data) -> float:
        """The ELBO of all sources, expectations over q(x_i) taken on fixed points."""
        total = -self.kl()
        for first in range(0, self.num_data, CHUNK):
            sources = np.arange(first, min(first + CHUNK, self.num_data))
            total += self.total(data.sources(sources), tf.constant(sources))
        return float(total)

    @graph
    def total(self, batch: Data, sources: tf.Tensor) -> tf.Tensor:
        """The sources' part of the ELBO, expectations over q(x_i) taken on fixed points."""
        normal = antithetic_normal(BOUND_POINTS, batch.X.shape[1])[:, None]
        return tf.reduce_sum(self.terms(batch, sources, tf.constant(normal)))


@dataclass(frozen=True, kw_only=True)
class GradientSchedule:
    """How many steps of which optimizer.

    learning_rate   None: 0.01 for Adam and 1 for AdaDelta, which scales its own steps; 0 with
                    natural gradients: q(u) alone is learned
    seed            of the batches and of what is drawn
    progress        False silent, None a bar on a terminal only
    callback        called as callback(posterior, step) every `callback_every` steps
    """

    optimizer: str = "adam"
    steps: int = 2000
    batch_size: int = 256
    learning_rate: float | None = None
    natural_step: float = 0.1
    seed: int = 0
    progress: bool | None = False
    callback: Callable[[SparsePosterior, int], None] | None = None
    callback_every: int = 100

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise InputError(f"no optimizer '{self.optimizer}'; there are: {', '.join(OPTIMIZERS)}")
        check_between("learning_rate", self.learning_rate, 0.0)
        check_between("natural_step", self.natural_step, 0.0, 1.0, open_below=True)


def fit_svgp(problem: Problem, schedule: GradientSchedule | None = None) -> Fit:
    """Fit q(u) and the hyper-parameters of a sparse GP in place, and with them the q(x_i) of a
    treatment of input noise that draws x_i."""
    schedule = schedule or GradientSchedule()
    model = make_svgp(
        problem,
        schedule.seed,
        optimizer=schedule.optimizer,
        learning_rate=schedule.learning_rate,
        natural_step=schedule.natural_step,
    )
    return train(model, problem.data, schedule)


def make_svgp(problem: Problem, seed: int, **options: Any) -> SVGP:
    """All that is to be trained of a problem."""
    gp, likelihood, data = problem.gp, problem.likelihood, problem.data
    assert isinstance(gp, SparseGP)
    n, d = int(data.Y.shape[0]), int(data.X.shape[1])
    input_posterior = None
    if isinstance(problem.treatment, Drawn):
        num_classes = getattr(likelihood, "num_classes", None)
        input_posterior = problem.treatment.posterior(n, d, num_classes, seed)
    return SVGP(
        gp, likelihood, problem.rule, n, input_posterior=input_posterior, seed=seed, **options
    )


def train(model: SVGP, data: Data, schedule: GradientSchedule) -> Fit:
    """The steps of the schedule, and the bound of all the data at their end."""
    n = model.num_data
    generator = np.random.default_rng(schedule.seed)
    hidden = True if schedule.progress is False else None
    bar = tqdm(range(schedule.steps), desc="svgp", leave=False, disable=hidden)
    for k in bar:
        sources = generator.choice(n, min(schedule.batch_size, n), replace=False)
        model.step(data, tf.constant(sources), tf.constant(k))
        if schedule.callback is not None and (k + 1) % schedule.callback_every == 0:
            schedule.callback(model.posterior(), k + 1)
    return Fit(model.posterior(), [model.bound_of_all(data)])


@INFERENCES.register
class SvgpAdam(Inference):
    """The gradient path by Adam."""

    name: ClassVar[str] = "svgp"
    summary: ClassVar[str] = "mini-batch SVGP with Adam"
    source: ClassVar[str] = "Hensman et al. 2015"
    draws_inputs = True
    optimizer: ClassVar[str] = "adam"

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        if options.get("optimizer", self.optimizer) != self.optimizer:
            raise InputError(
                f"inference '{self.name}' is by {self.optimizer}: choose another inference, as"
                f" 'svgp', 'svgp_adadelta' or 'svgp_natgrad', in place of the option 'optimizer'"
            )
        progress = None if verbose else False
        given = {"optimizer": self.optimizer, "seed": seed, "progress": progress}
        return fit_svgp(problem, make_schedule(GradientSchedule, self.name, options, given))


@INFERENCES.register
class SvgpAdadelta(SvgpAdam):
    """The gradient path by AdaDelta."""

    name = "svgp_adadelta"
    summary = "mini-batch SVGP with AdaDelta"
    source = "Izmailov & Kropotov 2016"
    optimizer = "adadelta"


@INFERENCES.register
class SvgpNatgrad(SvgpAdam):
    """Natural gradients on q(u), which need E_q log p(y|f) to be concave in v."""

    name = "svgp_natgrad"
    summary = "mini-batch SVGP, natural gradients on q(u), Adam on the rest"
    source = "Salimbeni et al. 2018"
    optimizer = "natgrad"
    log_concave = True
