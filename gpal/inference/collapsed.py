"""The collapsed bound J (E2) of sums over rows, and its gradient in the hyper-parameters.

Two passes over the rows: one for the statistics, one that carries ∂J/∂S, ∂J/∂ρ, ∂J/∂t back to the
rows, 2 n m² flops each, and ∂J/∂S' to their slope variances; memory stays bounded by a chunk. Where
there are few rows, they are kept from the first pass to the second.
"""

from __future__ import annotations

import tensorflow as tf

from gpal.inference import mixed_precision, whitened
from gpal.inference.chunks import Chunk, SparsePosterior
from gpal.inference.graph import fold
from gpal.inference.rows import Data, Sites, Statistics, add
from gpal.inference.shared_graph import shared_graph
from gpal.inference.streaming import Rows, pulled_back

__all__ = ["bound_and_gradient"]


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
    inverse = whitened.inverse_factor(K) if mixed else None
    kept = mixed_precision.whiten(rows.all_of(data), inverse) if resident else None

    def white(first: tf.Tensor, last: tf.Tensor, chunk: Chunk | None = None) -> Chunk:
        if kept is not None:
            return tf.nest.map_structure(lambda part: rows.part(first, last, part)[0], kept)
        return mixed_precision.whiten(chunk or rows.chunk_of(first, last, data), inverse)

    def own(first: tf.Tensor, last: tf.Tensor) -> Sites:
        return Sites(*rows.part(first, last, *sites))

    def sums(i: tf.Tensor, total: Statistics) -> Statistics:
        where = rows.bounds(i, data)
        return add(total, rows.statistics(white(*where), own(*where)))

    statistics = fold(sums, rows.no_statistics(), rows.number(data))
    if held is not None:
        found = whitened.held_bound(statistics, K, whitened.posterior(held))
    elif inverse is not None:
        found = whitened.whitened_bound(statistics, inverse)
    else:
        found = whitened.collapsed_bound(statistics, K)
    # Before the loop over the chunks: with a single inducing point TensorFlow's optimiser (2.21)
    # folds such a transpose into a constant outside the loop, and the graph returns nothing.
    back = found.to_statistics.symmetric()

    def to_chunk(first: tf.Tensor, last: tf.Tensor, chunk: Chunk) -> Chunk:
        as_summed = white(first, last, chunk._replace(slopes=[]))._replace(slopes=chunk.slopes)
        to_white = rows.gradient(as_summed, own(first, last), back)
        return mixed_precision.unwhiten_gradient(to_white, inverse)

    start = pulled_back(rows, tape, K, found.to_K)
    return found.bound, rows.to_variables(data, to_chunk, start, found.alpha), found.posterior
