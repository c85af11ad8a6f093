"""The rows that meet the sites: covariances k_i = K(Z, x_i), and their sums.

n sources, S nodes per source (S = 1 unless the input is integrated over), m inducing points, P
latent functions. Everything that touches n is here, as sums over rows, so that memory is bounded by
the chunk and a partition's statistics add up exactly:

    S_c = Σ_i θ_ic k_i k_iᵀ      ρ_c = Σ_i r_ic k_i      t_c = Σ_i θ_ic k(x_i, x_i)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from gpal.likelihoods import averaged
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["Data", "Sites", "Statistics", "add", "first_sites", "meet"]


class Data(NamedTuple):
    """Training rows, or the measurements that a GP's `inputs` makes them of.

    X     [n·S, d]   nodes of a source stand next to each other; [n, d] measurements
    Y     [n, 1]     label, or [n, C] weights of the classes (`partial_labels`)
    root  [n, d, d]  R with Cov[x] = R Rᵀ, met to first order; of the measurement error where X is
                     the measurement
    weight [n]       how many times each source counts; None: once
    """

    X: tf.Tensor
    Y: tf.Tensor
    root: tf.Tensor
    weight: tf.Tensor | None = None

    @property
    def size(self) -> float:
        """Sources, each as often as it counts."""
        return len(self.Y) if self.weight is None else float(tf.reduce_sum(self.weight))

    def weights(
        self, first: tf.Tensor | None = None, last: tf.Tensor | None = None
    ) -> tf.Tensor | None:
        """Those of the sources first … last − 1."""
        return None if self.weight is None else self.weight[first:last]

    def sources(self, indices: np.ndarray | Sequence[int]) -> Data:
        """The sources `indices` alone, with all their nodes."""
        per_source = self.X.shape[0] // self.Y.shape[0]
        rows = (np.asarray(indices)[:, None] * per_source + np.arange(per_source)).ravel()
        parts = (self.X, rows), (self.Y, indices), (self.root, indices)
        weight = None if self.weight is None else tf.gather(self.weight, indices)
        X, Y, root = (tf.gather(tensor, index) for tensor, index in parts)
        return Data(X, Y, root, weight)


class Statistics(NamedTuple):
    """Sums over rows (pure data: partitions simply add), stacked over the latent functions.

    gram        S_c  [P, m, m]
    projection  ρ_c  [P, m]
    diagonal    t_c  [P]
    slope_gram  [Σ_i θ_ic D_i V_i D_iᵀ] [P, m, m] with D_i = ∂k_i/∂x_i; [] for exact inputs
    """

    gram: tf.Tensor
    projection: tf.Tensor
    diagonal: tf.Tensor
    slope_gram: list[tf.Tensor]

    def mix(self, other: Statistics, step: float) -> Statistics:
        """(1 − step)·self + step·other: exact for mixed sites, the sums being linear in (θ, r)."""
        return tf.nest.map_structure(lambda a, b: (1.0 - step) * a + step * b, self, other)

    def symmetric(self) -> Statistics:
        """(S + Sᵀ)/2: of a derivative in a symmetric matrix, what counts."""
        return self._replace(gram=0.5 * (self.gram + tf.linalg.matrix_transpose(self.gram)))


def add(first: Statistics, second: Statistics) -> Statistics:
    """Statistics of the union of two disjoint sets of rows."""
    return tf.nest.map_structure(tf.add, first, second)


class Sites(NamedTuple):
    """Gaussian sites of all rows: precision θ and natural mean r, each [n·S, P]."""

    precision: tf.Tensor
    natural_mean: tf.Tensor

    def mix(self, other: Sites, step: tf.Tensor | float) -> Sites:
        """(1 − step)·self + step·other: a damped natural-gradient step."""
        return Sites(*((1.0 - step) * a + step * b for a, b in zip(self, other)))

    def weighted(self, weight: tf.Tensor | None, nodes: int) -> Sites:
        """Those of sources that count `weight` [n] times: w θ and w r."""
        if weight is None:
            return self
        of_rows = tf.repeat(weight, nodes)[:, None]
        return Sites(*(tf.cast(of_rows, part.dtype) * part for part in self))


def first_sites(
    rule: SiteRule,
    likelihood: gpflow.likelihoods.Likelihood,
    Y: tf.Tensor,
    nodes: int,
    weight: tf.Tensor | None = None,
) -> Sites:
    """The rule's initial sites, shared out among the nodes of a source; θ > 0."""
    precision, natural_mean = rule.initial_sites(likelihood, Y)
    if nodes > 1:
        precision = tf.repeat(precision / nodes, nodes, axis=0)
        natural_mean = tf.repeat(natural_mean / nodes, nodes, axis=0)
    sites = Sites(tf.cast(precision, tf.float64), tf.cast(natural_mean, tf.float64))
    return sites.weighted(weight, nodes)


def meet(
    rule: SiteRule,
    likelihood: gpflow.likelihoods.Likelihood,
    Fmu: tf.Tensor,
    Fvar: tf.Tensor,
    Y: tf.Tensor,
    nodes: int,
    weight: tf.Tensor | None = None,
) -> tuple[Sites, tf.Tensor]:
    """Sites that meet the likelihood at q(f), and each source's term of the bound, both as often as
    the source counts.

    With S nodes per source the term is a bound of `gpal.likelihoods.averaged`: the coupled one
    where rule and likelihood have it, and it is one (`monotone`), else the separate one.
    Returns Sites [n·S, P] and terms [n]. The Gaussian that meets a likelihood that is not
    log-concave, or several nodes, may have θ < 0, which far from the optimum can leave no q: unless
    the rule is `signed`, precisions are clipped at zero.
    """
    if weight is not None:
        sites, terms = meet(rule, likelihood, Fmu, Fvar, Y, nodes)
        return sites.weighted(weight, nodes), tf.cast(weight, terms.dtype) * terms
    rows_of_Y = Y if nodes == 1 else tf.repeat(Y, nodes, axis=0)
    if nodes > 1 and rule.couples(likelihood):
        *site, terms = averaged.coupled(likelihood, Fmu, Fvar, rows_of_Y, nodes)
        together = _clipped(rule, Fmu, *site), terms
        if (monotone := likelihood.monotone(Y)) is None:
            return together

        def chosen() -> tuple[Sites, tf.Tensor]:
            apart = _met_apart(rule, likelihood, Fmu, Fvar, rows_of_Y, nodes)
            of_rows = tf.repeat(monotone, nodes)[:, None]
            sites = (tf.where(of_rows, a, b) for a, b in zip(together[0], apart[0]))
            return Sites(*sites), tf.where(monotone, together[1], apart[1])

        return tf.cond(tf.reduce_all(monotone), lambda: together, chosen)
    return _met_apart(rule, likelihood, Fmu, Fvar, rows_of_Y, nodes)


def _met_apart(
    rule: SiteRule,
    likelihood: gpflow.likelihoods.Likelihood,
    Fmu: tf.Tensor,
    Fvar: tf.Tensor,
    rows_of_Y: tf.Tensor,
    nodes: int,
) -> tuple[Sites, tf.Tensor]:
    """`meet` with every node by itself, of sources that count once."""
    *site, expectations = rule.meet(likelihood, Fmu, Fvar, rows_of_Y)
    sites = _clipped(rule, Fmu, *site)
    if nodes == 1:
        return sites, expectations
    *site, terms = averaged.separate(*sites, expectations, nodes)
    return Sites(*site), terms


def _clipped(
    rule: SiteRule, Fmu: tf.Tensor, precision: tf.Tensor, natural_mean: tf.Tensor
) -> Sites:
    if rule.signed:
        return Sites(precision, natural_mean)
    clipped = tf.maximum(precision, tf.cast(1e-10, precision.dtype))
    return Sites(clipped, natural_mean + (clipped - precision) * Fmu)
