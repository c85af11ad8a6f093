"""The Gumbel bound by mini-batches of sources and of classes, for many classes (paper 000, eq. 24).

    ELBO ≈ (n/|B|) Σ_{i∈B} [1 − log θ_i − (1 + P_i)/θ_i] − KL(q(u) ‖ p(u))
    P_i  ≈ (C/k) Σ_{c∈K, c≠y_i} e^{u_ic},     K: k of the C classes, drawn anew for every step

has the bound of all sources and classes at these θ as its expectation, and so has its gradient. A
step needs q(f) of k classes and of each source's label, (k + 1)/C of the products of |B| rows. The
optimum θ_i = 1 + P_i is followed by a moving average of the estimates of P_i, taken before the
classes are drawn: any θ gives a bound. The bound that a fit reports is that of all classes at the
optimum (eq. 25).

The KL divergence, and Adam, are of all classes: with 100 inducing points, 256 sources and 8 classes
drawn a step takes as long as one of all 26 classes, and .44 of one of all 100 (CPU seconds of 20
steps, one thread).

With several kernels, slopes or psi statistics q(f) of all classes is found and k of them taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.base import INFERENCES, Fit, Problem, make_schedule
from gpal.inference.graph import graph
from gpal.inference.rows import Data
from gpal.inference.sparse import SparseGP
from gpal.inference.svgp import SVGP, GradientSchedule, SvgpAdam, train
from gpal.likelihoods.gumbel_softmax import ClassSampled

__all__ = ["ClassSampledSVGP", "ClassSampledSchedule", "ClassSampling"]


class ClassSampledSVGP(SVGP):
    """SVGP with the classes of a step drawn; arguments as there.

    num_drawn  k
    rate       of the moving average of P
    """

    def __init__(self, *arguments: Any, num_drawn: int, rate: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.num_drawn, self.rate = num_drawn, rate
        C = self.gp.num_latent
        prior = self.gp.kernels[0].K_diag(tf.convert_to_tensor(self.gp.Z)[:1])[0]
        self.odds = tf.Variable(tf.fill([self.num_data], (C - 1) * tf.exp(prior)), trainable=False)

    @graph
    def step(self, data: Data, sources: tf.Tensor, number: tf.Tensor) -> None:
        """A step up the estimate, and the odds of these sources after it."""
        batch, variables = self._batch(data, sources), self.trainable_variables
        theta = 1.0 + tf.gather(self.odds, sources)
        drawn = self.draw_classes(number)
        with tf.GradientTape() as tape:
            terms, odds = self.estimates(batch, theta, drawn)
            scale = self.num_data / tf.cast(tf.shape(terms)[0], tf.float64)
            loss = self.kl() - scale * tf.reduce_sum(terms)
        self.descent.apply_gradients(zip(tape.gradient(loss, variables), variables))
        change = tf.IndexedSlices(self.rate * (odds - theta + 1.0), sources)
        self.odds.scatter_add(change)

    def draw_classes(self, number: tf.Tensor) -> tf.Tensor:
        """K [k]: of the step of that number."""
        classes = tf.range(self.gp.num_latent)
        seed = tf.stack([self.seed, tf.cast(number, tf.int32)])
        return tf.random.experimental.stateless_shuffle(classes, seed)[: self.num_drawn]

    def estimates(
        self, batch: Data, theta: tf.Tensor, drawn: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Each source's term [B] of the bound at θ [B] by the classes drawn [k], and its P [B]."""
        assert isinstance(self.rule, ClassSampled)
        X, Y, root, weight = batch
        if self.gp.rows.inputs is not None:
            X, root = self.gp.rows.inputs(X, root)
        label = tf.cast(Y[:, 0], tf.int32)
        label_moments, moments = self._moments(X, root, label, drawn)
        is_label = drawn == label[:, None]
        odds = self.rule.odds(*label_moments, *moments, is_label, self.gp.num_latent)
        terms = self.rule.bound_at(odds, theta)
        return (terms if weight is None else weight * terms), odds

    def _moments(
        self, X: tf.Tensor, root: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
        """m, v of each source's label [B], and of the classes drawn [B, k]."""
        gp = self.gp
        if len(gp.kernels) > 1 or gp.noisy or not gp.rows.products:
            mean, variance = self.marginals(X, root)
            of_label = [tf.gather(part, label, batch_dims=1) for part in (mean, variance)]
            return tuple(of_label), (
                tf.gather(mean, drawn, axis=1),
                tf.gather(variance, drawn, axis=1),
            )
        (kernel,) = gp.kernels
        A = tf.linalg.triangular_solve(self._factors()[0], kernel(gp.Z, X))  # [m, B]
        rest = kernel(X, full_cov=False) - tf.reduce_sum(A**2, axis=0)
        q_mean, q_root = tf.transpose(self.q_mean), tf.convert_to_tensor(self.q_root)
        columns = tf.transpose(A)[:, None]  # [B, 1, m]
        of_labels = tf.matmul(columns, tf.gather(q_root, label))[:, 0]
        label_mean = tf.reduce_sum(columns[:, 0] * tf.gather(q_mean, label), axis=1)
        mean = tf.matmul(A, tf.gather(q_mean, drawn), transpose_a=True, transpose_b=True)
        spread = tf.matmul(tf.gather(q_root, drawn), A, transpose_a=True)  # [k, m, B]
        variance = rest[:, None] + tf.transpose(tf.reduce_sum(spread**2, axis=1))
        return (label_mean, rest + tf.reduce_sum(of_labels**2, axis=1)), (mean, variance)


@dataclass(frozen=True, kw_only=True)
class ClassSampledSchedule(GradientSchedule):
    """A schedule of Adam, with `classes` drawn for each step and the `rate` at which P follows."""

    classes: int = 16
    rate: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimizer != "adam":
            raise InputError("inference 'class_sampled' has Adam only: leave out `optimizer`")
        if self.classes < 1:
            raise InputError(f"classes must be at least 1, got {self.classes}: try 16")
        if not 0.0 < self.rate <= 1.0:
            raise InputError(f"rate must be above 0 and at most 1, got {self.rate:g}: try 0.3")


@INFERENCES.register
class ClassSampling(SvgpAdam):
    """The gradient path with some classes a step."""

    name = "class_sampled"
    summary = "mini-batch SVGP with Adam, some of many classes a step"
    source = "Liu et al. 2019"
    rule = "class_sampled"
    one_node = "draws classes for one node per source"
    draws_inputs = False

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        given = {"seed": seed, "progress": None if verbose else False}
        schedule = make_schedule(ClassSampledSchedule, self.name, options, given)
        assert isinstance(problem.gp, SparseGP)
        model = ClassSampledSVGP(
            problem.gp,
            problem.likelihood,
            problem.rule,
            int(problem.data.Y.shape[0]),
            learning_rate=schedule.learning_rate,
            num_drawn=min(schedule.classes, problem.gp.num_latent),
            rate=schedule.rate,
            seed=schedule.seed,
        )
        return train(model, problem.data, schedule)
