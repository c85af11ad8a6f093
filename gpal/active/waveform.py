"""Breiman's waveform problem: three classes, 21 features (Breiman et al. 1984, section 2.6.2).

    x_m = u h_a(m) + (1 − u) h_b(m) + ε_m,   u ~ U(0, 1),  ε_m ~ N(0, 1),  m = 1 … 21

with the triangles h_1(m) = max(6 − |m − 11|, 0), h_2(m) = h_1(m − 4), h_3(m) = h_1(m + 4); the
classes 1, 2, 3 take (a, b) = (1, 2), (1, 3), (2, 3). The Bayes error is about 0.14.
"""

from __future__ import annotations

import numpy as np

__all__ = ["waveform"]

PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


def waveform(n: int, random_state: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n sources: X (n, 21) and y (n,) in 0, 1, 2, classes equally likely."""
    rng = np.random.default_rng(random_state)
    m = np.arange(1, 22)
    triangles = np.stack([np.maximum(6.0 - np.abs(m - centre), 0.0) for centre in (11, 15, 7)])
    y = rng.integers(3, size=n)
    u = rng.random(n)[:, None]
    a, b = PAIRS[y].T
    return u * triangles[a] + (1 - u) * triangles[b] + rng.normal(size=(n, 21)), y
