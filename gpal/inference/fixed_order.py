"""Products whose sums have one order, whatever the number of threads.

A fit is dozens of steps of L-BFGS, each of which depends on the last bits of those before: two
orders of one sum were seen to end at probabilities that differ by .01. TensorFlow's products of
float64 matrices on a CPU (Eigen) choose the order by the number of threads where the inner
dimension is long: one thread and several cut it at different places, and where an outer dimension
is small the threads share it out. So the inner dimension is cut here before, at WIDE, NARROW or
between, by the outer ones, and what is narrow is filled up with zeros. Where these limits are was
measured, with one to eight threads. Products of float32 have one order already, and so have those
with a vector and sums along an axis; so has one over a whole tensor of at most WIDE² elements.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import tensorflow as tf

__all__ = ["WIDE", "inner_products", "product", "product_of_rows"]

WIDE, NARROW = 240, 64  # longest inner dimensions
FULL = 100  # an outer dimension is wide from here on
MULTIPLE = 8


def product(A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """A B for A [..., rows, k] and B [..., k, b]; k and b are known when the graph is made.

    There are as many rows as in a chunk, or k."""
    k, b = B.shape[-2], B.shape[-1]
    number = _cuts(k, b, k)
    if A.dtype != tf.float64 or b == 1 or (number == 1 and k <= NARROW):
        return tf.matmul(A, B)
    B = _filled(B)
    if number == 1:
        return tf.matmul(A, B)[..., :b]
    edges = [k * i // number for i in range(number + 1)]
    lengths = [j - i for i, j in pairwise(edges)]
    pairs = zip(tf.split(A, lengths, axis=-1), tf.split(B, lengths, axis=-2), strict=True)
    return tf.add_n([tf.matmul(*pair) for pair in pairs])[..., :b]


def product_of_rows(A: tf.Tensor, B: tf.Tensor) -> tf.Tensor:
    """Aᵀ B, a sum over the rows, as many as in a chunk, of A [rows, a] and B [rows, b]."""
    a, b = A.shape[-1], B.shape[-1]
    if A.dtype != tf.float64 or a == 1:
        return tf.matmul(A, B, transpose_a=True)
    number = _cuts(WIDE, a, b)
    A, B = _filled(A), _filled(B)
    if number == 1:
        return tf.matmul(A, B, transpose_a=True)[:a, :b]
    edges = tf.shape(A)[0] * np.arange(number + 1, dtype=np.int32) // number
    lengths = edges[1:] - edges[:-1]
    pairs = zip(tf.split(A, lengths, num=number), tf.split(B, lengths, num=number), strict=True)
    return tf.add_n([tf.matmul(*pair, transpose_a=True) for pair in pairs])[:a, :b]


@tf.custom_gradient
def inner_products(X: tf.Tensor, Z: tf.Tensor) -> tuple:
    """X Zᵀ for X [rows, d], as many as in a chunk or in Z, and Z [m, d]; so is its derivative."""

    def gradient(G: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return product(G, Z), product_of_rows(G, X)

    return product(X, tf.transpose(Z)), gradient


def _cuts(k: int, a: int, b: int) -> int:
    """Into how many parts an inner dimension k is cut between outer ones a and b."""
    narrow, wide = min(a, b), max(a, b)
    longest = WIDE if narrow >= FULL else FULL if wide <= FULL else NARROW
    return -(-k // longest)


def _filled(B: tf.Tensor) -> tf.Tensor:
    """With columns of zeros up to a multiple of MULTIPLE, where there are few, but not one."""
    columns = B.shape[-1]
    missing = -columns % MULTIPLE
    if columns == 1 or columns >= FULL or not missing:
        return B
    return tf.pad(B, [[0, 0]] * (len(B.shape) - 1) + [[0, missing]])
