"""A problem whose truth is known: x ~ N(0, 1) per feature, the class follows from the first."""

from __future__ import annotations

import numpy as np

SLOPE = 3.0


def draw(n, sigma, seed, d=2):
    """x̃, σ, x and y with p(y = 'b' | x) = 1 / (1 + exp(−SLOPE x_0)); x ~ N(0, I), x̃ = x + σ ε."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    X_err = np.broadcast_to(np.asarray(sigma, float), (n, d))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-SLOPE * x[:, 0])), "b", "a")
    return x + X_err * rng.normal(size=(n, d)), np.array(X_err), x, y
