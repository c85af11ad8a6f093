"""The cases that export.py writes and run.py runs, and what goes into them: NumPy only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

FEATURES, CLASSES = 10, 3
JITTER = 1e-6  # relative, in both precisions
PROGRAMS = ("sweep", "bound")


@dataclass(frozen=True)
class Case:
    """n rows, m inducing points; dtype of the n × m products: float64, float32 or tf32, which is
    float32 whose products keep three digits."""

    program: str
    n: int
    m: int
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.program}_{self.n}_{self.m}_{self.dtype}"

    @classmethod
    def of(cls, name: str) -> Case:
        program, n, m, dtype = name.split("_")
        return cls(program, int(n), int(m), dtype)

    @property
    def seed(self) -> int:
        """Of the inputs."""
        return self.n + self.m

    @property
    def flops(self) -> float:
        """Of the products of rows: k_iᵀ M and θ_i k_i k_iᵀ, once each for a latent function."""
        return 4.0 * self.n * self.m**2 * CLASSES


def _cases(numbers: tuple, points: tuple, dtypes: tuple) -> list[Case]:
    return [Case(*values) for values in product(PROGRAMS, numbers, points, dtypes)]


QUICK = _cases((2_000,), (50,), ("float64", "float32"))
FULL = [
    *_cases((1_000, 10_000, 100_000, 1_000_000), (100, 300, 1000), ("float64", "float32")),
    *_cases((100_000,), (100, 300, 1000), ("tf32",)),
]


def draw(case: Case) -> list[np.ndarray]:
    """Z, X, Y, θ, r, α, M: inputs several lengthscales wide, which keeps K(Z, Z) well conditioned;
    sites and q(u) of the size that a fit has."""
    generator = np.random.default_rng(case.seed)
    n, m = case.n, case.m
    Z, X = 3 * generator.normal(size=(m, FEATURES)), 3 * generator.normal(size=(n, FEATURES))
    Y = generator.integers(CLASSES, size=(n, 1)).astype(float)
    theta = generator.uniform(0.05, 0.25, size=(n, CLASSES))
    r = generator.normal(scale=0.5, size=(n, CLASSES))
    alpha = generator.normal(scale=0.1, size=(CLASSES, m))
    M = np.tile(-0.01 * np.eye(m), (CLASSES, 1, 1))
    return [Z, X, Y, theta, r, alpha, M]
