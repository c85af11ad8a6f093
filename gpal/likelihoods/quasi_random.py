"""Fixed quasi-random standard-normal points: the same numbers at every call."""

from __future__ import annotations

import functools

import numpy as np
from scipy.stats import norm, qmc

__all__ = ["antithetic_normal"]


@functools.lru_cache(maxsize=64)
def antithetic_normal(num_points: int, dimension: int, seed: int = 0) -> np.ndarray:
    """Scrambled Sobol points mapped to N(0, I), with their mirror images; shape (num_points, d).

    Antithetic pairs make every odd moment exactly zero. The points are rescaled so that each
    coordinate's second moment is exactly one.
    """
    if num_points < 2 or num_points % 2:
        raise ValueError(f"num_points must be even and at least 2, got {num_points}")
    half = num_points // 2
    sobol = qmc.Sobol(dimension, scramble=True, seed=seed)
    uniform = sobol.random_base2(int(np.ceil(np.log2(half))))[:half]
    normal = norm.ppf(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    normal = np.vstack([normal, -normal])
    normal /= np.sqrt(np.mean(normal**2, axis=0))
    normal.setflags(write=False)
    return normal
