"""Single precision for the n × m products of a gradient, at the price of a double-precision start.

Kernel rows k_i = K(x_i, Z) are nearly dependent: what distinguishes them is lost in float32. Rows
that have been whitened in float64, K(Z, Z) = L Lᵀ, are not:

    h_i = L⁻¹ k_i,   |h_i|² ≤ k_ii         S̃ = Σ_i θ_i h_i h_iᵀ         ρ̃ = Σ_i r_i h_i

J of `whitened.py` depends on S̃ and ρ̃, which therefore may be sums of float32 products with an
error of some 1e-7 of their own size; its derivative comes back by ∂J/∂k_i = L⁻ᵀ ∂J/∂h_i, again in
float64. Against float64 throughout, J per source differs by some 1e-7 and its gradient by 1e-6 to
4e-4 of its norm (the more, the closer K is to singular), as measured on satimage, letter and banana
at jitter 1e-8.

Whitening and the way back cost 4 n m² flops in float64 for each kernel, and save as many for each
latent function, which in float32 take about a third of the time.
"""

from __future__ import annotations

import tensorflow as tf

from gpal.inference.chunks import Chunk

__all__ = ["unwhiten_gradient", "whiten"]

SINGLE = tf.float32


def whiten(chunk: Chunk, inverse: tf.Tensor | None) -> Chunk:
    """h_i in float32 in place of k_i, and likewise of the slopes; L⁻¹ [kernels, m, m].

    The chunk as it is where there is no L⁻¹.
    """
    if inverse is None:
        return chunk

    def white(K: tf.Tensor, own: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.matmul(K, own, transpose_b=True), SINGLE)

    inverses = tf.unstack(inverse, len(chunk.rows))
    return chunk._replace(
        rows=[white(K, own) for K, own in zip(chunk.rows, inverses)],
        slopes=[[white(D, own) for D in family] for family, own in zip(chunk.slopes, inverses)],
    )


def unwhiten_gradient(gradient: list, inverse: tf.Tensor | None) -> list:
    """∂J/∂(rows, diagonals, slopes) in float64 from that in the chunk of `whiten`."""
    if inverse is None:
        return gradient

    def plain(G: tf.Tensor, own: tf.Tensor) -> tf.Tensor:
        return tf.matmul(tf.cast(G, tf.float64), own)

    to_rows, to_diagonals, to_slopes = gradient
    inverses = tf.unstack(inverse, len(to_rows))
    return [
        [plain(G, own) for G, own in zip(to_rows, inverses)],
        to_diagonals,
        [[plain(G, own) for G in family] for family, own in zip(to_slopes, inverses)],
    ]
