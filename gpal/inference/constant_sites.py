"""Sites that depend on the label alone: no sweeps, and one pass over the rows for all classes.

Row i of class y has θ_ic = Θ_yc and r_ic = R_yc whatever q(f) is (Dirichlet regression). So q(f) is
one solve, J is the log evidence up to a constant, and hyper-parameters are learned to convergence
in one go. With one kernel for all latent functions the statistics of `rows` are sums of those of
the classes,

    S_c = Σ_y Θ_yc G_y     ρ_c = Σ_y R_yc g_y     t_c = Σ_y Θ_yc t_y
    G_y = Σ_{i∈y} k_i k_iᵀ     g_y = Σ_{i∈y} k_i     t_y = Σ_{i∈y} k_ii,

2 n m² flops in all instead of 2 n m² C, and the same on the way back: rows of class y carry
Σ_c Θ_yc ∂J/∂S_c.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gpal.inference import whitened
from gpal.inference.base import Fit, Problem
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.fixed_order import WIDE, product, product_of_rows
from gpal.inference.graph import fold
from gpal.inference.parameters import Maximum, log_prior_of, maximise
from gpal.inference.protocol import GaussianProcess
from gpal.inference.rows import Data, Sites, Statistics, add
from gpal.inference.shared_graph import shared_graph
from gpal.inference.sparse import SparseGP
from gpal.inference.streaming import pulled_back
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.site_rules import QuadraticRule

__all__ = ["ConstantSchedule", "LabelSites", "LabelledRows", "fit_constant_sites"]

# Sources in a block where input noise makes their rows many.
BLOCK = 2048


class LabelSites(NamedTuple):
    """Θ and R [C, P], and the constant κ [C] of the bound, of a row of each class."""

    precision: tf.Tensor
    natural_mean: tf.Tensor
    constant: tf.Tensor

    @classmethod
    def of(cls, rule: QuadraticRule, likelihood: ClassificationLikelihood) -> LabelSites:
        labels = tf.range(likelihood.num_classes, dtype=tf.float64)[:, None]
        local = rule.local_parameters(likelihood, tf.zeros_like(labels), None, labels)
        return cls(*rule.quadratic(likelihood, local, labels))

    def of_rows(self, data: Data) -> Sites:
        labels = tf.cast(data.Y[:, 0], tf.int32)
        sites = Sites(tf.gather(self.precision, labels), tf.gather(self.natural_mean, labels))
        return sites.weighted(data.weight, 1)

    def combine(self, per_class: Statistics) -> Statistics:
        """Statistics of the latent functions from those of the classes."""
        theta, r = tf.transpose(self.precision), tf.transpose(self.natural_mean)
        return _weighted(theta, r, per_class)

    def divide(self, back: Statistics) -> Statistics:
        """∂J/∂(statistics of the classes) from ∂J/∂(statistics of the latent functions)."""
        return _weighted(self.precision, self.natural_mean, back)


def _weighted(theta: tf.Tensor, r: tf.Tensor, statistics: Statistics) -> Statistics:
    return Statistics(
        tf.tensordot(theta, statistics.gram, 1),
        tf.matmul(r, statistics.projection),
        tf.linalg.matvec(theta, statistics.diagonal),
        [tf.tensordot(theta, S, 1) for S in statistics.slope_gram],
    )


class Block(NamedTuple):
    """Sources in the order of their labels.

    sizes   [C] how many there are of each class
    edges   [pieces + 1] where they are cut so that a piece is of one class, and no longer than a
            chunk
    labels  [pieces] of the pieces
    """

    data: Data
    sizes: tf.Tensor
    edges: tf.Tensor
    labels: tf.Tensor

    @classmethod
    def of(cls, data: Data, num_classes: int) -> Block:
        """Of sources that are in that order."""
        sizes = np.bincount(data.Y.numpy()[:, 0].astype(int), minlength=num_classes)
        pieces = -(-sizes // WIDE)
        lengths = [len(part) for s, k in zip(sizes, pieces) if k for part in _divided(s, k)]
        edges = np.concatenate([[0], np.cumsum(lengths)])
        labels = np.repeat(np.arange(num_classes), pieces)
        return cls(data, *(tf.constant(array, tf.int32) for array in (sizes, edges, labels)))


def _divided(size: int, pieces: int) -> list[np.ndarray]:
    return np.array_split(np.arange(size), pieces)


class LabelledRows:
    """The data in blocks that stay in memory.

    gp   SparseGP with one kernel, one node per source, and a latent function per class
    """

    def __init__(self, gp: SparseGP, data: Data) -> None:
        self.gp, self.data = gp, data
        labels = data.Y.numpy()[:, 0].astype(int)
        self.blocks = []
        size = gp.rows.resident_sources or BLOCK
        for first in range(0, len(labels), size):
            few = np.arange(first, min(first + size, len(labels)))
            few = few[np.argsort(labels[few], kind="stable")]
            self.blocks.append(Block.of(data.sources(few), gp.num_latent))

    def solver(self) -> Callable[[LabelSites], SparsePosterior]:
        """The posterior as a function of the sites, for the present hyper-parameters.

        Of a single block it is that of `bound_and_gradient`: a pass over the rows for every call,
        yet its graph there is already, and making another takes longer than that.
        """
        if len(self.blocks) == 1:
            return lambda sites: self._at_once(sites)[2]
        statistics = self._statistics()
        return lambda sites: self.gp.solve(sites.combine(statistics))

    def bound_and_gradient(self, sites: LabelSites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """As `SparseGP.bound_and_gradient`."""
        if len(self.blocks) == 1:
            return self._at_once(sites)[:2]
        J, back, gradients, alpha = _bound(self.gp, self._statistics(), sites, self.gp.jitter.value)
        for block in self.blocks:
            part = _carried_back(self.gp, block, back, sites, alpha)
            gradients = [a + b for a, b in zip(gradients, part)]
        return J, gradients

    def _at_once(self, sites: LabelSites) -> tuple[tf.Tensor, list[tf.Tensor], SparsePosterior]:
        J, gradients, q = _bound_and_gradient(self.gp, self.blocks[0], sites, self.gp.jitter.value)
        return J, gradients, SparsePosterior(*q)

    def _statistics(self) -> Statistics:
        return functools.reduce(add, (_statistics(self.gp, block) for block in self.blocks))


class UnsortedRows:
    """The same by the general engine: for a full GP, where every class has its own kernel, and
    where the inputs are distributions."""

    def __init__(self, gp: GaussianProcess, data: Data) -> None:
        self.gp, self.data = gp, data

    def solver(self) -> Callable[[LabelSites], SparsePosterior]:
        self.gp.refresh(self.data)
        return lambda sites: self.gp.posterior(self.data, sites.of_rows(self.data))

    def bound_and_gradient(self, sites: LabelSites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        return self.gp.bound_and_gradient(self.data, sites.of_rows(self.data))


@dataclass(frozen=True, kw_only=True)
class ConstantSchedule:
    """How long `fit_constant_sites` does what.

    rounds       0 keeps the hyper-parameters as they are
    iterations   of L-BFGS at most
    tolerance    stop when the bound per source rises by less than that part of it
    subset       sources, drawn at random, on which hyper-parameters are learned first, where there
                 are more than twice as many; None: all from the start
    seed         of the subset
    callback     called as callback(posterior, bound per source) after each stage
    """

    rounds: int = 1
    iterations: int = 200
    tolerance: float = 1e-5
    subset: int | None = 2000
    seed: int = 0
    callback: Callable[[SparsePosterior, float], None] | None = None

    def stages(self, data: Data) -> list[Data]:
        """The data, after a subset of them where there are many."""
        n = len(data.Y)
        if self.subset is None or self.rounds == 0 or n <= 2 * self.subset:
            return [data]
        few = np.random.default_rng(self.seed).choice(n, self.subset, replace=False)
        return [data.sources(few), data]


def fit_constant_sites(problem: Problem, schedule: ConstantSchedule | None = None) -> Fit:
    """Learn the hyper-parameters of the problem's GP by L-BFGS, and solve."""
    schedule = schedule or ConstantSchedule()
    gp, likelihood, rule = problem.gp, problem.likelihood, problem.rule
    assert isinstance(rule, QuadraticRule)
    iterations = schedule.iterations if schedule.rounds else 0
    for stage in schedule.stages(problem.data):
        last = stage is problem.data
        tolerance = schedule.tolerance if last else 10 * schedule.tolerance
        rows: LabelledRows | UnsortedRows = UnsortedRows(gp, stage)
        if gp.sums_by_label and stage.weight is None:
            rows = LabelledRows(gp.as_sparse(), stage)
        sites = LabelSites.of(rule, likelihood)
        bound, converged = _learn(gp, rows, sites, iterations, tolerance)
        posterior = rows.solver()(sites)
        if schedule.callback is not None:
            schedule.callback(posterior, bound)
    n, of_rows = problem.data.size, sites.of_rows(problem.data)
    return Fit(posterior, [bound * n], of_rows, converged=converged)


def _learn(
    gp: GaussianProcess,
    rows: LabelledRows | UnsortedRows,
    sites: LabelSites,
    iterations: int,
    tolerance: float,
) -> Maximum:
    """Maximise the bound, with the log prior, in the hyper-parameters; the bound per source."""
    # Before learning: a jitter for which the bound exists.
    gp.jitter.run(lambda: rows.bound_and_gradient(sites), lambda result: result[0])
    n, labels = rows.data.size, tf.cast(rows.data.Y[:, 0], tf.int32)
    constants = tf.gather(sites.constant, labels)
    weight = rows.data.weight
    constant = tf.reduce_sum(constants if weight is None else weight * constants)
    prior_at_present = log_prior_of(gp.rows)

    def per_source() -> tuple[tf.Tensor, list[tf.Tensor]]:
        J, gradients = rows.bound_and_gradient(sites)
        prior, to_prior = prior_at_present()
        total = J + constant + prior
        return total / n, [(g + p) / n for g, p in zip(gradients, to_prior, strict=True)]

    if not iterations or not gp.trainable_variables:
        found = Maximum(float(per_source()[0]), True)
    else:
        found = maximise(gp.rows, per_source, iterations=iterations, tolerance=tolerance)
    return found._replace(value=found.value - float(prior_at_present()[0]) / n)


# ---- the passes over the rows, and the m × m algebra between them --------------------------------


def _of_classes(chunk: Chunk, block: Block, C: int) -> Statistics:
    """Sums over the rows of each of the C classes."""
    (K,), (diagonal,) = chunk.rows, chunk.diagonals
    factors = [K, *(chunk.slopes[0] if chunk.slopes else [])]

    def body(i: tf.Tensor, arrays: list[tf.TensorArray]) -> list[tf.TensorArray]:
        piece = slice(block.edges[i], block.edges[i + 1])
        squares = [product_of_rows(A[piece], A[piece]) for A in factors]
        sums = [tf.reduce_sum(A[piece], axis=0) for A in (K, diagonal)]
        parts = [squares[0], *sums, *([tf.add_n(squares[1:])] if chunk.slopes else [])]
        return [array.write(i, tf.cast(p, tf.float64)) for array, p in zip(arrays, parts)]

    count = tf.shape(block.labels)[0]
    arrays = [tf.TensorArray(tf.float64, count) for _ in range(4 if chunk.slopes else 3)]
    gram, projection, trace, *slope_gram = (
        tf.math.unsorted_segment_sum(array.stack(), block.labels, C)
        for array in fold(body, arrays, count)
    )
    return Statistics(gram, projection, trace, slope_gram)


def _to_chunk(chunk: Chunk, block: Block, back: Statistics, sites: LabelSites) -> Chunk:
    """∂J/∂(a chunk that is `Rows.differentiable`) from back = ∂J/∂(statistics of the classes)."""
    (K,) = chunk.rows
    labels = tf.cast(block.data.Y[:, 0], tf.int32)

    def to_factors(A: tf.Tensor, S: tf.Tensor) -> tf.Tensor:
        S = tf.cast(S + tf.linalg.matrix_transpose(S), A.dtype)
        C = sites.precision.shape[1]  # a latent function for each class
        parts = zip(tf.split(A, block.sizes, num=C), tf.unstack(S, C))
        return tf.concat([product(B, own) for B, own in parts], axis=0)

    to_K = to_factors(K, back.gram) + tf.gather(tf.cast(back.projection, K.dtype), labels)
    to_slopes = [[-0.5 * tf.gather(sites.precision, labels)] for _ in chunk.slopes]
    return Chunk([to_K], [tf.gather(back.diagonal, labels)], to_slopes)


@shared_graph
def _statistics(gp: SparseGP, block: Block) -> Statistics:
    return _of_classes(gp.rows.all_of(block.data), block, gp.num_latent)


@shared_graph
def _bound(
    gp: SparseGP, per_class: Statistics, sites: LabelSites, jitter: tf.Tensor
) -> tuple[tf.Tensor, Statistics, list[tf.Tensor], tf.Tensor]:
    with tf.GradientTape() as tape:
        K = gp.rows.kernel_matrices(jitter)
    found = whitened.collapsed_bound(sites.combine(per_class), K)
    back = sites.divide(found.to_statistics)
    return found.bound, back, pulled_back(gp.rows, tape, K, found.to_K), found.alpha


@shared_graph
def _carried_back(
    gp: SparseGP, block: Block, back: Statistics, sites: LabelSites, alpha: tf.Tensor
) -> list[tf.Tensor]:
    nothing = [tf.zeros(v.shape, v.dtype) for v in gp.rows.trainable_variables]
    chunk = gp.rows.all_of(block.data)
    return _to_variables(gp, block, _to_chunk(chunk, block, back, sites), nothing, alpha)


@shared_graph
def _bound_and_gradient(
    gp: SparseGP, block: Block, sites: LabelSites, jitter: tf.Tensor
) -> tuple[tf.Tensor, list[tf.Tensor], Any]:
    with tf.GradientTape() as tape:
        K = gp.rows.kernel_matrices(jitter)
    chunk = gp.rows.all_of(block.data)
    found = whitened.collapsed_bound(sites.combine(_of_classes(chunk, block, gp.num_latent)), K)
    to_all = _to_chunk(chunk, block, sites.divide(found.to_statistics), sites)
    to_Z = pulled_back(gp.rows, tape, K, found.to_K)
    gradients = _to_variables(gp, block, to_all, to_Z, found.alpha)
    return found.bound, gradients, found.posterior


def _to_variables(
    gp: SparseGP, block: Block, to_all: Chunk, start: list[tf.Tensor], alpha: tf.Tensor
) -> list[tf.Tensor]:
    def own(first: tf.Tensor, last: tf.Tensor, _: Chunk) -> Chunk:
        return tf.nest.map_structure(lambda part: gp.rows.part(first, last, part)[0], to_all)

    return gp.rows.to_variables(block.data, own, start, alpha)
