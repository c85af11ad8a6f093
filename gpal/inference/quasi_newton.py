"""A few quasi-Newton steps at a time, whose knowledge of the curvature is kept for the next few.

    x ← x + t H g        H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ,  ρ = 1 / yᵀs        (BFGS)

g is the gradient, s a step and y the fall of the gradient along it, of the latest `MEMORY` steps; H
starts from γ I, γ = sᵀy / yᵀy of the newest (Nocedal & Wright 2006, eq. 7.20); t is halved until
the value rises by a part of what the slope promises. An optimiser that starts anew after every
change of the objective, as the engine's rounds change it, spends most of its evaluations on finding
that curvature again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from scipy.optimize import LbfgsInvHessProduct

from gpal.inference.parameters import Coordinates

__all__ = ["Curvature", "ascend"]

MEMORY = 30
# γ before the first step, for bounds per source: the longest step limits it.
FIRST_SCALE = 30.0
SUFFICIENT = 1e-4  # part of the rise that the slope promises
SHORTEST = 1e-3


class Curvature:
    """Steps s and falls y of the gradient along them, as pairs with sᵀy > 0."""

    def __init__(self) -> None:
        self.steps: list[np.ndarray] = []
        self.falls: list[np.ndarray] = []

    def forget(self) -> None:
        self.steps.clear()
        self.falls.clear()

    def learn(self, step: np.ndarray, fall: np.ndarray) -> None:
        """Take a pair in, unless the objective is convex along it."""
        if step @ fall > 1e-8 * np.linalg.norm(step) * np.linalg.norm(fall):
            self.steps.append(step)
            self.falls.append(fall)

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """H g, always one of ascent."""
        if not self.steps:
            return FIRST_SCALE * gradient
        steps, falls = np.array(self.steps[-MEMORY:]), np.array(self.falls[-MEMORY:])
        # SciPy's H starts from I: that of (s, γ y) is H / γ.
        scale = (steps[-1] @ falls[-1]) / (falls[-1] @ falls[-1])
        return scale * LbfgsInvHessProduct(steps, scale * falls).matvec(gradient)


def ascend(
    trained: Coordinates | Sequence[tf.Variable],
    value_and_gradient: Callable[[], tuple[tf.Tensor, Sequence[tf.Tensor]]],
    curvature: Curvature,
    *,
    iterations: int,
    longest: float,
    tolerance: float,
) -> None:
    """So many steps in these coordinates, or those of variables.

    value_and_gradient   at the present values, in the trainable variables
    curvature   of the steps before, which learns from these
    longest     change of a coordinate in one step
    tolerance   stop when a step raises the value by less; also the noise that it may have
    Where a Cholesky factorisation fails or the value is not finite a step is too long.
    """
    coordinates = trained if isinstance(trained, Coordinates) else Coordinates(trained)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        coordinates.assign(x)
        try:
            value, gradients = value_and_gradient()
        except tf.errors.InvalidArgumentError:
            return -np.inf, np.zeros_like(x)
        gradient = coordinates.gradient(gradients)
        finite = np.isfinite(float(value)) and np.isfinite(gradient).all()
        return (float(value), gradient) if finite else (-np.inf, np.zeros_like(x))

    x = coordinates.pack()
    value, gradient = evaluate(x)
    for _ in range(iterations):
        direction = curvature.direction(gradient)
        direction /= max(1.0, np.abs(direction).max() / longest)
        promised, t = direction @ gradient, 1.0
        while t >= SHORTEST:
            new_value, new_gradient = evaluate(x + t * direction)
            if new_value >= value + SUFFICIENT * t * promised - tolerance:
                break
            t *= 0.5
        else:
            coordinates.assign(x)
            curvature.forget()
            return
        curvature.learn(t * direction, gradient - new_gradient)
        rise, x, value, gradient = new_value - value, x + t * direction, new_value, new_gradient
        if rise < tolerance:
            return
