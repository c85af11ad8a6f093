"""Variables as one flat vector, for SciPy's optimisers, and back; L-BFGS on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.optimize
import tensorflow as tf

__all__ = ["assign", "maximise", "pack"]


def pack(variables: Sequence[tf.Variable]) -> np.ndarray:
    """All values, one after another."""
    return np.concatenate([np.zeros(0), *(np.ravel(v.numpy()) for v in variables)])


def assign(variables: Sequence[tf.Variable], x: np.ndarray) -> None:
    """Inverse of `pack`."""
    sizes = [int(np.prod(v.shape)) for v in variables]
    for variable, part in zip(variables, np.split(x, np.cumsum(sizes)[:-1])):
        variable.assign(part.reshape(variable.shape))


def maximise(
    variables: Sequence[tf.Variable],
    value_and_gradient: Callable[[], tuple[tf.Tensor, Sequence[tf.Tensor]]],
    *,
    iterations: int,
    largest_change: float = np.inf,
    tolerance: float = 2.2e-9,
) -> float:
    """L-BFGS; leaves the best values in the variables and returns the maximum.

    largest_change   that a coordinate may undergo
    tolerance        stop when an iteration raises the value by less, relative to it or to one
    Where a Cholesky factorisation fails or the value is not finite there is a wall.
    """
    wall = 1e100

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        assign(variables, x)
        try:
            value, gradients = value_and_gradient()
        except tf.errors.InvalidArgumentError:
            return wall, np.zeros_like(x)
        gradient = np.concatenate([np.ravel(g) for g in gradients])
        if not np.isfinite(float(value)) or not np.isfinite(gradient).all():
            return wall, np.zeros_like(x)
        return -float(value), -gradient

    start = pack(variables)
    result = scipy.optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([start - largest_change, start + largest_change], axis=1),
        options={"maxiter": iterations, "ftol": tolerance},
    )
    assign(variables, result.x)
    return -float(result.fun)
