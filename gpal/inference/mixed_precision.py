"""Single precision for the n × m products of a gradient, at the price of a double-precision start.

Kernel rows k_i = K(x_i, Z) are nearly dependent: what distinguishes them is lost in float32. Rows
that have been whitened in float64, K(Z, Z) = L Lᵀ, are not:

    h_i = L⁻¹ k_i,   |h_i|² ≤ k_ii         S̃ = Σ_i θ_i h_i h_iᵀ         ρ̃ = Σ_i r_i h_i

J of `whitened.py` depends on S̃ and ρ̃, which may therefore be sums of float32 products, and on what
the inducing points leave unexplained, Σ_i θ_i (k_ii − |h_i|²): a small difference of large sums, so
that is made in float64. The derivative comes back by ∂J/∂k_i = L⁻ᵀ ∂J/∂h_i, again in float64.

J per source is then right to 1e-6 and its gradient to 1e-5 of its norm; to some 5e-3 where K is so
near to singular that float64 without whitening is off by as much.

Whitening and the way back are a float64 product of n m² each, as much as two products for a latent
function; those are then float32, in about a third of the time. Fits of three and of five latent
functions gain nothing by that, of ten a tenth, of twelve a quarter; float64 has the same
probabilities on any build of TensorFlow.
"""

from __future__ import annotations

import tensorflow as tf

from gpal.inference.chunks import Chunk
from gpal.inference.device import rounds_single_precision
from gpal.inference.fixed_order import product

__all__ = ["pays", "unwhiten_gradient", "whiten"]

SINGLE = tf.float32
FEWEST_LATENTS = 6


def pays(latents: int, kernels: int) -> bool:
    """Whether there are products enough, and float32 is what it says."""
    return kernels == 1 and latents >= FEWEST_LATENTS and not rounds_single_precision()


def whiten(chunk: Chunk, inverse: tf.Tensor | None) -> Chunk:
    """h_i in float32 in place of k_i, k_ii − |h_i|² of k_ii, and the slopes whitened as the rows.

    inverse   L⁻¹ [1, m, m] of the only kernel; None leaves the chunk as it is
    """
    if inverse is None:
        return chunk
    (K,), (k,), slopes = chunk

    transposed = tf.transpose(inverse[0])

    def white(K: tf.Tensor) -> tf.Tensor:
        return product(K, transposed)

    H = white(K)
    unexplained = k - tf.reduce_sum(H**2, axis=1)
    single = [[tf.cast(white(D), SINGLE) for D in part] for part in slopes]
    return Chunk([tf.cast(H, SINGLE)], [unexplained], single)


def unwhiten_gradient(gradient: Chunk, inverse: tf.Tensor | None) -> Chunk:
    """∂J/∂(k_i, k_ii, slope variances) in float64 from that in k_i of the chunk of `whiten`.

    The derivative by way of |h_i|² is part of ∂J/∂h_i: see `whitened.whitened_bound`.
    """
    if inverse is None:
        return gradient
    (to_H,) = gradient.rows
    return gradient._replace(rows=[product(tf.cast(to_H, tf.float64), inverse[0])])
