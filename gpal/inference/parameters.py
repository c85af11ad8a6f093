"""Hyper-parameters as one flat vector for SciPy's optimisers, and back; L-BFGS on them.

`Coordinates` are what is optimised: of a positive parameter its logarithm, whatever the bijector
that it has been given (GPflow's own is the softplus, which is linear for large values), so that a
kernel object and the same kernel by name take the same steps; of anything else the unconstrained
variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import gpflow
import numpy as np
import scipy.optimize
import tensorflow as tf
import tensorflow_probability as tfp

__all__ = [
    "Coordinates",
    "LogPrior",
    "Maximum",
    "assign",
    "assign_exactly",
    "log_prior_of",
    "maximise",
    "pack",
]


def pack(variables: Sequence[tf.Variable]) -> np.ndarray:
    """All values, one after another."""
    return np.concatenate([np.zeros(0), *(np.ravel(v.numpy()) for v in variables)])


def assign(variables: Sequence[tf.Variable], x: np.ndarray) -> None:
    """Inverse of `pack`."""
    sizes = [int(np.prod(v.shape)) for v in variables]
    for variable, part in zip(variables, np.split(x, np.cumsum(sizes)[:-1])):
        variable.assign(part.reshape(variable.shape))


# By how many floating-point numbers a bijector's inverse may err, the nearest first: with
# these, of seven million values none was missed.
NEIGHBOURS = sorted({k << j for k in range(-8, 9) for j in range(11)}, key=abs)


def assign_exactly(parameter: gpflow.Parameter | tf.Variable, value: np.ndarray) -> None:
    """Assign a value that a parameter, or a plain variable, once had, to its last bit.

    g(g⁻¹(x)) is x only up to rounding, for the bijector g, and a prediction depends on it. Of
    floating-point numbers about g⁻¹(x) it takes, element by element, that whose g is nearest x.
    """
    parameter.assign(value)
    transform = getattr(parameter, "transform", None)
    if transform is None or transform.forward_min_event_ndims > 0:  # the latter of matrices
        return
    variable = parameter.unconstrained_variable
    inverse = variable.numpy()
    apart = np.maximum(np.spacing(np.abs(inverse)), np.finfo(inverse.dtype).eps / 1024)
    error, best = np.full(inverse.shape, np.inf), inverse
    for step in NEIGHBOURS:
        near = inverse + step * apart
        new = np.abs(transform.forward(tf.constant(near)).numpy() - value)
        error, best = np.minimum(new, error), np.where(new < error, near, best)
        if not error.any():
            break
    variable.assign(best)


class Coordinates:
    """Of the trainable variables of a module, or of some variables that are taken as they are."""

    def __init__(self, trained: tf.Module | Sequence[tf.Variable]) -> None:
        parameters: Sequence[gpflow.Parameter] = ()
        if isinstance(trained, tf.Module):
            parameters, trained = _parameters(trained), trained.trainable_variables
        self.variables = list(trained)
        transforms = {
            id(p.unconstrained_variable): p.transform
            for p in parameters
            if _to_positive_numbers(p.transform)
        }
        # Of each variable the bijector whose logarithm is the coordinate, or None.
        self.bijectors = [transforms.get(id(variable)) for variable in self.variables]
        self.least = [
            0.0 if bijector is None else bijector.forward(tf.constant(LOWEST, variable.dtype))
            for variable, bijector in zip(self.variables, self.bijectors)
        ]

    def pack(self) -> np.ndarray:
        values = [
            variable.numpy() if bijector is None else np.log(bijector.forward(variable).numpy())
            for variable, bijector in zip(self.variables, self.bijectors)
        ]
        return np.concatenate([np.zeros(0), *(np.ravel(value) for value in values)])

    def assign(self, x: np.ndarray) -> None:
        """Inverse of `pack`; a parameter with a lower limit stops there."""
        sizes = [int(np.prod(v.shape)) for v in self.variables]
        parts = np.split(x, np.cumsum(sizes)[:-1])
        for variable, bijector, least, part in zip(
            self.variables, self.bijectors, self.least, parts
        ):
            if bijector is not None:
                part = bijector.inverse(np.maximum(np.exp(part), least)).numpy()
            variable.assign(part.reshape(variable.shape))

    def gradient(self, gradients: Sequence[tf.Tensor]) -> np.ndarray:
        """∂/∂x from ∂/∂(variables) at the present values."""
        values = [tf.convert_to_tensor(variable) for variable in self.variables]
        with tf.GradientTape() as tape:  # each coordinate depends on its variable alone
            tape.watch(values)
            x = [
                value if bijector is None else tf.math.log(bijector.forward(value))
                for value, bijector in zip(values, self.bijectors)
            ]
        slopes = tape.gradient(x, values)
        parts = [np.ravel(np.divide(g, slope)) for g, slope in zip(gradients, slopes, strict=True)]
        return np.concatenate([np.zeros(0), *parts])


# An unconstrained value at which a positive parameter is as small as it can be.
LOWEST = -30.0


def _parameters(module: tf.Module) -> list[gpflow.Parameter]:
    return [part for part in module.submodules if isinstance(part, gpflow.Parameter)]


def _to_positive_numbers(transform: tfp.bijectors.Bijector | None) -> bool:
    """All of them, and not by the exponential already."""
    if transform is None or isinstance(transform, tfp.bijectors.Exp):
        return False
    if transform.forward_min_event_ndims > 0:  # of matrices and the like
        return False
    low, high = transform.forward(tf.constant([LOWEST, 1e6], tf.float64)).numpy()
    return bool(0.0 < low < 1e-3 and high > 1e5)


# A value and its gradient.
LogPrior = Callable[[], tuple[tf.Tensor, list[tf.Tensor]]]


def log_prior_of(module: tf.Module) -> LogPrior:
    """A function of nothing: the sum of the log prior densities of the module's learned parameters,
    as GPflow takes them (with the Jacobian), and the gradient in its trainable variables, at their
    values when it is called. To look for the parameters takes longer than the rest."""
    variables = list(module.trainable_variables)
    with_prior = [p for p in _parameters(module) if p.prior is not None and p.trainable]
    zero = tf.UnconnectedGradients.ZERO
    if not with_prior:
        none = tf.zeros([], tf.float64), [tf.zeros_like(variable) for variable in variables]
        return lambda: none

    def at_present() -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            total = tf.zeros([], tf.float64)
            for parameter in with_prior:
                total += tf.cast(parameter.log_prior_density(), tf.float64)
        return total, tape.gradient(total, variables, unconnected_gradients=zero)

    return at_present


class Maximum(NamedTuple):
    """The value, and whether the search ended there, not because its iterations were over."""

    value: float
    converged: bool


def maximise(
    trained: tf.Module | Sequence[tf.Variable],
    value_and_gradient: Callable[[], tuple[tf.Tensor, Sequence[tf.Tensor]]],
    *,
    iterations: int,
    largest_change: float = np.inf,
    tolerance: float = 2.2e-9,
) -> Maximum:
    """L-BFGS in the `Coordinates` of a module, or of variables; leaves the best values in them.

    value_and_gradient   at the present values, in the trainable variables
    largest_change   that a coordinate may undergo
    tolerance        stop when an iteration raises the value by less, relative to it or to one
    Where a Cholesky factorisation fails or the value is not finite there is a wall.
    """
    wall, coordinates = 1e100, Coordinates(trained)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        coordinates.assign(x)
        try:
            value, gradients = value_and_gradient()
        except tf.errors.InvalidArgumentError:
            return wall, np.zeros_like(x)
        gradient = coordinates.gradient(gradients)
        if not np.isfinite(float(value)) or not np.isfinite(gradient).all():
            return wall, np.zeros_like(x)
        return -float(value), -gradient

    start = coordinates.pack()
    result = scipy.optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([start - largest_change, start + largest_change], axis=1),
        options={"maxiter": iterations, "ftol": tolerance},
    )
    coordinates.assign(result.x)
    return Maximum(-float(result.fun), result.status == 0)
