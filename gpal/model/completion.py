"""What was not measured, in a prediction: drawn from the population given what was.

    p(y | x̃) = E p(y | x̃, x_m),      x_m ~ p(x_m | x̃)

with x_m the features without a measurement. Each draw of them is a source that has them exactly,
and the treatment of input noise does with its error bars what it always does. The expectation of
x_m alone, or the slope of f there, would stand for an average over the whole population: a source
with nothing measured would get the probabilities of the most ordinary source, not the fractions of
the classes. `integrated` draws all of x from p(x | x̃), where something was not measured with as
many nodes as these draws, and so it does where an error is not small beside the population:
its own nodes are enough within smaller ones. Under a flat prior, which knows nothing of the
correlations of x_m, it is a treatment like the others where something was not measured.

A value below a limit was not measured, and is drawn too, given that it lies there. The slope of f
at its expectation is worse, the more so the less the limit says.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpal.inference.input_rows import InputRows
from gpal.input_noise.base import InputNoise
from gpal.input_noise.censored import with_limits_drawn, with_values
from gpal.input_noise.error_scaling import scaled_errors
from gpal.input_noise.integrated import Integrated, drawn
from gpal.input_noise.true_input import TrueInput
from gpal.measurements import Measurements

__all__ = ["completed_blocks", "drawn_inputs", "is_exact"]

# Quasi-random and fixed; in two and four dimensions probabilities were right to .01, rms, and .03
# at worst: draws of x_m, nodes within errors beyond WIDE deviations of the population, either of
# several Gaussians. There 16 nodes were off by .03 to .1, just below WIDE by .013, .04 at worst.
DRAWS, NODES, MIXED = 64, 128, 256
WIDE = 0.3
BLOCK = 1000  # sources: bounds memory
DRAWN = 8192  # draws: more at a time, as of each less is kept


def completed_blocks(
    sources: Measurements, true_input: TrueInput, treatment: InputNoise
) -> Iterator[tuple[np.ndarray, Measurements, int]]:
    """(indices of some sources, they as they can be predicted, S): S copies of each source next to
    each other, one of a source that needs no draws."""
    inputs = InputRows(true_input, treatment)
    missing = np.any(inputs.not_measured(sources), axis=1)  # values below a limit are not measured
    exact = is_exact(sources, true_input)
    wide = ~missing & _is_wide(sources, true_input, treatment)
    mixed = len(true_input.population.weights) > 1
    draws, nodes = (max(MIXED if mixed else k, treatment.nodes) for k in (DRAWS, NODES))
    for which, copies, made in (
        (exact & ~missing, 1, None),
        (~exact & ~missing & ~wide, 1, None),
        (missing, draws, _drawn),
        (wide, nodes, _at_nodes),
    ):
        indices = np.flatnonzero(which)
        size = BLOCK if made is None else max(1, DRAWN // copies)
        for first in range(0, len(indices), size):
            rows = indices[first : first + size]
            block = sources[rows]
            yield rows, made(block, true_input, treatment, copies) if made else block, copies


def _is_wide(sources: Measurements, true_input: TrueInput, treatment: InputNoise) -> np.ndarray:
    """(n,) bool: sources that are averaged over inputs as far apart as those of the population,
    by a treatment whose nodes are those of `integrated`."""
    if treatment.nodes == 1 or type(treatment).rows is not Integrated.rows:
        return np.zeros(len(sources), dtype=bool)
    population = true_input.population
    away = population.means - population.weights @ population.means
    variance = population.weights @ (np.einsum("jdd->jd", population.covariances) + away**2)
    scale, floor = true_input.scale.numpy(), true_input.floor.numpy()
    error, _ = scaled_errors(sources.X_err, None, scale, floor)
    return np.any(error**2 > WIDE**2 * variance, axis=1)


def is_exact(sources: Measurements, true_input: TrueInput) -> np.ndarray:
    """(n,) bool: sources of which all nodes of a treatment would be the same."""
    return np.all(sources.X_err == true_input.known_error, axis=1)


def _drawn(
    sources: Measurements, true_input: TrueInput, treatment: InputNoise, draws: int
) -> Measurements:
    """Copies of each source, with values for what was not measured, or for everything."""
    values = drawn_inputs(sources, true_input, treatment, draws)
    given = sources[np.repeat(np.arange(len(sources)), draws)]
    all_of_x = treatment.nodes > 1 and not true_input.flat
    where = InputRows(true_input, treatment).not_measured(given) | all_of_x
    return with_values(given, where, values, true_input.known_error)


def _at_nodes(
    sources: Measurements, true_input: TrueInput, treatment: InputNoise, nodes: int
) -> Measurements:
    """Copies of each source, exactly at more nodes of the treatment."""
    inputs = InputRows(true_input, Integrated(nodes, getattr(treatment, "seed", 0)))
    x, _ = inputs.prediction(*inputs.measurement(sources))
    copies = sources[np.repeat(np.arange(len(sources)), nodes)]
    return with_values(copies, np.ones(x.shape, dtype=bool), x.numpy(), true_input.known_error)


def drawn_inputs(
    sources: Measurements, true_input: TrueInput, treatment: InputNoise, draws: int
) -> np.ndarray:
    """[n·S, d] S = `draws` values of x of each source, next to each other, given all that was
    measured of it and its limits."""
    inputs = InputRows(true_input.under_population(), treatment)
    n, d = sources.X.shape
    pick, normal = Integrated(draws).points(d if sources.limits is None else 4 * d)
    copies = with_limits_drawn(
        inputs.as_used(sources),
        true_input.population,
        normal[:, d:],
        scale=true_input.scale.numpy(),
        floor=true_input.floor.numpy(),
    )
    known = (copies.X, copies.X_err, copies.covariance)
    x = inputs.true_input(*inputs.true_input.measurement(*known))
    picks, normals = np.tile(pick, n)[:, None], np.tile(normal[:, :d], (n, 1))[:, None]
    return drawn(x, picks, normals)[:, 0].numpy()
