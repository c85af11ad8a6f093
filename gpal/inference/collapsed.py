"""The collapsed bound J (E2) of sums over rows, and its gradient in the hyper-parameters.

Two passes over the rows: one for the statistics, one that carries ∂J/∂S, ∂J/∂ρ, ∂J/∂t back to the
rows, 2 n m² flops each; memory stays bounded by a chunk. Few rows are a single chunk that is kept
from the first pass to the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from gpal.inference import mixed_precision, whitened
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.graph import fold
from gpal.inference.rows import Data, Sites, Statistics, add
from gpal.inference.shared_graph import shared_graph
from gpal.inference.streaming import Rows

__all__ = ["bound_and_gradient", "to_variables"]


def bound_and_gradient(
    rows: Rows,
    data: Data,
    sites: Sites,
    jitter: tf.Tensor,
    *,
    held: Statistics | None = None,
    mixed: bool = False,
) -> tuple[tf.Tensor, list[tf.Tensor], SparsePosterior | None]:
    """J up to a constant of the sites, ∂J/∂(trainable variables of the rows), and q(u).

    held    whitened statistics whose q(v) is held while the rows are a batch of all: F, and no q
    mixed   in mixed precision
    """
    resident = data.Y.shape[0] <= rows.resident_sources
    J, gradients, q = _bound_and_gradient(rows, data, sites, held, jitter, resident, mixed)
    return J, gradients, None if q is None else SparsePosterior(*q)


@shared_graph
def _bound_and_gradient(
    rows: Rows,
    data: Data,
    sites: Sites,
    held: Statistics | None,
    jitter: tf.Tensor,
    resident: bool,
    mixed: bool,
) -> tuple[tf.Tensor, list[tf.Tensor], tuple | None]:
    with tf.GradientTape() as tape:
        K = rows.kernel_matrices(jitter)
        chunk = rows.all_of(data) if resident else Chunk([], [], [])
    inverse = whitened.inverse_factor(K) if mixed else None

    def bound(statistics: Statistics, K: tf.Tensor) -> whitened.BoundGradient:
        if held is not None:
            return whitened.held_bound(statistics, K, whitened.posterior(held))
        if inverse is not None:
            return whitened.whitened_bound(statistics, inverse)
        return whitened.collapsed_bound(statistics, K)

    def carried_back(white: Chunk, sites: Sites, back: Statistics) -> Chunk:
        to_white = rows.gradient(white, sites, back)
        return mixed_precision.unwhiten_gradient(to_white, inverse)

    if resident:
        white = mixed_precision.whiten(chunk, inverse)
        J, back, to_K, q = bound(rows.statistics(white, sites), K)
        to_chunk = carried_back(white, sites, back)
        return J, to_variables(rows, tape, [K, *chunk], [to_K, *to_chunk]), q
    J, back, to_K, q = bound(_statistics(rows, data, sites, inverse), K)

    def body(i: tf.Tensor, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        where = rows.bounds(i, data)
        with tf.GradientTape() as tape:
            chunk = rows.chunk_of(*where, data)
        own = Sites(*rows.part(*where, *sites))
        to_chunk = carried_back(mixed_precision.whiten(chunk, inverse), own, back)
        part = to_variables(rows, tape, list(chunk), list(to_chunk))
        return [a + b for a, b in zip(gradients, part)]

    gradients = fold(body, to_variables(rows, tape, K, to_K), rows.number(data))
    return J, gradients, q


def _statistics(rows: Rows, data: Data, sites: Sites, inverse: tf.Tensor | None) -> Statistics:
    """Of whitened rows where L⁻¹ is given."""

    def body(i: tf.Tensor, total: Statistics) -> Statistics:
        where = rows.bounds(i, data)
        chunk = mixed_precision.whiten(rows.chunk_of(*where, data), inverse)
        return add(total, rows.statistics(chunk, Sites(*rows.part(*where, *sites))))

    return fold(body, rows.no_statistics(), rows.number(data))


def to_variables(
    rows: Rows, tape: tf.GradientTape, results: Any, gradients: Sequence | tf.Tensor
) -> list[tf.Tensor]:
    """∂J/∂(trainable variables) from ∂J/∂results."""
    found = tape.gradient(
        results,
        list(rows.trainable_variables),
        output_gradients=gradients,
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return [tf.convert_to_tensor(g) for g in found]
