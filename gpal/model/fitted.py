"""The fitted model: q(f) with all that prediction needs, in standardised units.

    f | x ~ q(f) = N(m(x), v(x))        x | x̃ as the treatment of input noise has it

Sources come as Measurements in the units that the estimator standardised them to; whatever is said
of n sources with C classes and P latent functions is an expectation over q(f) and over the input:

    predict_proba     E[p(y | f(x))]                       [n, C]
    deviation         its standard deviation               [n, C]
    draws             p(y | f_s(x_t)), one by one          [n, T, S, C]

What it says of the latent functions themselves is in `latent.py`, of a second measurement in
`second_measurement.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.files.saved_data import check_arrays, check_fields
from gpal.inference.base import INFERENCES, Problem
from gpal.inference.chunks import SparsePosterior
from gpal.inference.input_rows import InputRows
from gpal.inference.parameters import assign_exactly
from gpal.inference.protocol import GaussianProcess
from gpal.inference.response_distribution import has_variance, response_moments
from gpal.inference.saved_rows import rows_from_data, rows_to_data
from gpal.inference.single_latent import (
    check_response,
    response_likelihood_from_data,
    response_likelihood_to_data,
    site_rule,
)
from gpal.inference.sparse import SparseGP
from gpal.input_noise.base import InputNoise, input_noise_from_data, input_noise_to_data
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.population import Population
from gpal.input_noise.true_input import TrueInput
from gpal.likelihoods import likelihood_from_data, likelihood_to_data
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.partial_labels import PartialLabels
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.measurements import Measurements
from gpal.model.completion import completed_blocks, drawn_inputs, is_exact
from gpal.model.labels import are_weights
from gpal.model.leaving_out import check_temperature
from gpal.model.lost_settings import warn_of_lost_settings
from gpal.model.reweighting import reweighted, systematic

__all__ = ["FittedModel"]

POSTERIOR_SAMPLES = 256  # of a deviation, in quasi-random pairs
NODE_SAMPLES = 64  # the same, at each node of several: within 2 %
SPREAD_ELEMENTS = 1 << 18  # probabilities whose spread is taken at once: they stay in the cache
BLOCK_ELEMENTS = 4_000_000  # numbers of `draws` held at once


# Of a model file: the fields of `data`, and kind and axes of the arrays: P latent functions, m
# inducing points, d features, J Gaussians of the population.
FIELDS = {
    "likelihood": (dict, None),
    "response_likelihood": (dict, None),
    "input_noise": dict,
    "inference": str,
    "bound": float,
    "settings": dict,
    "temperature": float,
    "flat": bool,
    "gp": dict,
}
ARRAYS = {
    "alpha": "float P m",
    "M": "float P m m",
    "kl": "float",
    "Z": "float m d",
    "error_scale": "float d",
    "error_floor": "float d",
    "population_weights": "float J",
    "population_means": "float J d",
    "population_covariances": "float J d d",
}


@dataclass
class FittedModel:
    """q(f), p(y | f) and p(x | x̃).

    posterior  q(f), which meets the likelihood
    inference  name of the method that found it
    bound      evidence lower bound per source
    settings   what was used, as plain data
    temperature  by which predictions divide the means of f (`gpal.model.leaving_out`)
    """

    gp: GaussianProcess
    posterior: SparsePosterior
    likelihood: Any
    input_noise: InputNoise
    true_input: TrueInput
    inference: str
    bound: float
    settings: dict[str, Any]
    temperature: float = 1.0

    @property
    def predictive(self) -> SparsePosterior:
        """q(f) as predictions have it."""
        return self.posterior.tempered(self.temperature)

    @property
    def population(self) -> Population:
        """The prior of x that was fitted, whatever the treatment makes of it."""
        return self.true_input.population

    @property
    def can_refit(self) -> bool:
        """Whether `refit` works for the method that found q(f), and for its kernel: with white
        noise a full GP is of f at its own sources, and a sparse one is not."""
        return INFERENCES[self.inference].can_refit and not self.gp.has_noise_of_its_own

    # ---- at every node ---------------------------------------------------------------------------

    def marginals(self, sources: Measurements) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v of q(f) at every node of the treatment: tensors [n·S, P], nodes of a source next to
        each other."""
        rows, root = self.rows(sources)
        return self.gp.marginals(
            self.predictive, rows, root if self.input_noise.uses_root else None
        )

    def check_response(self, y: np.ndarray) -> None:
        """InputError for a response that the likelihood gives no density."""
        check_response(self.likelihood, y)

    def completed(self, sources: Measurements) -> Iterator[tuple[np.ndarray, Measurements, int]]:
        """(indices of some sources, they with what was not measured drawn, nodes of each)."""
        for rows, block, copies in completed_blocks(sources, self.true_input, self.input_noise):
            yield rows, block, copies * (1 if self._is_exact(block) else self.input_noise.nodes)

    def _is_exact(self, sources: Measurements) -> bool:
        return bool(is_exact(sources, self.true_input).all())

    def over_nodes(
        self, function: Callable[..., Any], sources: Measurements, *more: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """function(m, v, S, ...) of q(f) [rows·S, P] at the S nodes of some sources, which gives
        arrays [rows, ...]; those of all sources.

        more  [n] what the function is given beside, of these sources
        """
        results: list[np.ndarray] = []
        for rows, block, nodes in self.completed(sources):
            parts = function(*self.marginals(block), nodes, *(array[rows] for array in more))
            if not results:
                results = [np.empty((len(sources), *part.shape[1:])) for part in parts]
            for result, part in zip(results, parts, strict=True):
                result[rows] = part
        return tuple(results)

    def rows(self, sources: Measurements) -> tuple[tf.Tensor, tf.Tensor]:
        """Nodes [n·S, d] of every source, and the root of the covariance of its input; of sources
        that are exact one each."""
        if self.input_noise.nodes > 1 and self._is_exact(sources):
            return tf.constant(sources.X), tf.zeros([*sources.X.shape, 0], tf.float64)
        inputs = InputRows(self.true_input, self.input_noise)
        return inputs.prediction(*inputs.measurement(sources))

    # ---- probabilities ---------------------------------------------------------------------------

    def predict_proba(self, sources: Measurements) -> np.ndarray:
        """E over q(f) and over the input of p(y | f(x)), [n, C]."""
        (P,) = self.over_nodes(lambda m, v, nodes: (self._mean(m, v, nodes),), sources)
        return _finite(P)

    def deviation(self, sources: Measurements, ratio: np.ndarray) -> np.ndarray:
        """Deviation of p(y | f(x)), reweighted by `ratio` [C], over q(f) and the input; [n, C]."""

        def spread(m: tf.Tensor, v: tf.Tensor, nodes: int) -> tuple[np.ndarray]:
            return (self._spread(m, v, nodes, ratio),)

        return self.over_nodes(spread, sources)[0]

    def with_deviation(
        self, sources: Measurements, ratio: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`predict_proba` and `deviation`, for which q(f) is taken at every node once."""

        def both(m: tf.Tensor, v: tf.Tensor, nodes: int) -> tuple[np.ndarray, np.ndarray]:
            return self._mean(m, v, nodes), self._spread(m, v, nodes, ratio)

        P, deviation = self.over_nodes(both, sources)
        return _finite(P), deviation

    def _mean(self, m: tf.Tensor, v: tf.Tensor, nodes: int) -> np.ndarray:
        """E p(y | f) [rows, C] over f ~ N(m, v) and the nodes of each source."""
        p = self.likelihood.predict_proba(m, v).numpy()
        p = p.reshape(-1, nodes, p.shape[-1]).mean(axis=1)
        return p / p.sum(axis=1, keepdims=True)

    def _spread(self, m: tf.Tensor, v: tf.Tensor, nodes: int, ratio: np.ndarray) -> np.ndarray:
        """Deviation of p(y | f) [rows, C] over f ~ N(m, v) and the nodes of each source, these as
        they are likely under the class fractions."""
        classes, samples = len(ratio), POSTERIOR_SAMPLES if nodes == 1 else NODE_SAMPLES
        size = nodes * max(1, SPREAD_ELEMENTS // (samples * nodes * classes))
        parts = []
        for first in range(0, m.shape[0], size):
            rows = slice(first, first + size)
            p, weight = self._sampled(m[rows], v[rows], samples), None
            if (ratio != ratio[0]).any():
                weight = (p @ ratio).mean(axis=0).reshape(-1, nodes)
                weight = (weight / weight.sum(axis=1, keepdims=True))[:, :, None]
                p = reweighted(p, ratio)

            def over_nodes(of_rows: np.ndarray, weight: Any = weight) -> np.ndarray:
                of_nodes = of_rows.reshape(-1, nodes, classes)
                return of_nodes.mean(axis=1) if weight is None else (weight * of_nodes).sum(axis=1)

            p = p.reshape(samples, -1)
            p = p - np.repeat(over_nodes(p.mean(axis=0)), nodes, axis=0).ravel()
            parts.append(np.sqrt(over_nodes(np.einsum("si,si->i", p, p) / samples)))
        return np.concatenate(parts)

    def probabilities_of(self, f: np.ndarray) -> np.ndarray:
        """p(y | f) [..., C] of latent functions [..., P]."""
        return self.likelihood.conditional_probabilities(tf.constant(f)).numpy()

    def draws(
        self, sources: Measurements, ratio: np.ndarray, nodes: int, samples: int
    ) -> Iterator[np.ndarray]:
        """p(y | f_s(x_t)) under class fractions `ratio` [C] times those of training, in blocks
        [n, T, S, C] of the sources.

        x_t ~ p(x | x̃) ∝ N(x̃ | x, V) p(x)    T fixed quasi-random nodes under the population
                                              prior, whatever the treatment of input noise; one
                                              where every feature is exact
        f_s(x_t) = m(x_t) + √v(x_t) ε_s       S fixed points, from the marginals of q(f)

        Other class fractions have another population, p(x) Σ_c ratio_c p(c | x): of the nodes,
        those are taken that stand for it, some of them more than once.
        """
        noisy = (sources.X_err > 0).any() or self.true_input.adds_noise
        integrated = Integrated(nodes if noisy else 1)
        inputs = InputRows(self.true_input.under_population(), integrated)
        # At a node: its probabilities or, below a limit, some matrices [d, d].
        numbers = max(samples * len(ratio), 8 * sources.X.shape[1] ** 2)
        size = max(1, BLOCK_ELEMENTS // (integrated.nodes * numbers))
        for first in range(0, len(sources), size):
            block = sources[first : first + size]
            rows, _ = inputs(*inputs.measurement(block))
            if block.limits is not None and (limited := block.limits.given.any(axis=1)).any():
                few = drawn_inputs(block[limited], self.true_input, integrated, integrated.nodes)
                of_limited = np.repeat(limited, integrated.nodes)[:, None]
                rows = tf.tensor_scatter_nd_update(rows, np.argwhere(of_limited)[:, :1], few)
            p = self._sampled(*self.gp.marginals(self.predictive, rows), samples)
            p = p.reshape(samples, -1, integrated.nodes, p.shape[-1]).transpose(1, 2, 0, 3)
            if (ratio != ratio[0]).any():
                chosen = systematic((p @ ratio).mean(axis=2))
                p = reweighted(np.take_along_axis(p, chosen[:, :, None, None], axis=1), ratio)
            yield p

    def _sampled(self, mean: tf.Tensor, variance: tf.Tensor, samples: int) -> np.ndarray:
        """p(y | m + √v ε_s), [samples, rows, C]."""
        points = antithetic_normal(samples, mean.shape[1])[:, None, :]
        f = mean + tf.sqrt(variance) * points
        return self.likelihood.conditional_probabilities(f).numpy()

    # ---- more labels -----------------------------------------------------------------------------

    def refit(
        self,
        sources: Measurements,
        labels: np.ndarray,
        options: Mapping[str, Any] | None = None,
        weight: np.ndarray | None = None,
    ) -> FittedModel:
        """The model of other sources, labels and weights (as of `fit_model`) with these
        hyper-parameters.

        Only q(f) is found anew, by site updates that start at the present posterior; `options` of
        the inference say how far (`Schedule.of_posterior`).
        """
        from gpal.inference.sites import Schedule, fit_sites

        inputs = InputRows(self.true_input, self.input_noise)
        data = inputs.data(sources, labels, weight)
        gp = self.gp.as_sparse()
        likelihood = PartialLabels(self.likelihood) if are_weights(labels) else self.likelihood
        rule = site_rule(INFERENCES[self.inference].rule, likelihood)
        schedule = Schedule.of_posterior(options)
        fit = fit_sites(Problem(gp, likelihood, rule, data), schedule, self.posterior)
        return replace(self, gp=gp, posterior=fit.posterior, bound=fit.bound / data.size)

    # ---- model files -----------------------------------------------------------------------------

    def to_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(JSON-able data, arrays) from which `from_data` makes the model again."""
        rows, Z = rows_to_data(self.gp.rows)
        of_classes = isinstance(self.likelihood, ClassificationLikelihood)
        to_data = likelihood_to_data if of_classes else response_likelihood_to_data
        again = likelihood_from_data if of_classes else response_likelihood_from_data
        likelihood = to_data(self.likelihood)
        warn_of_lost_settings(self.likelihood, again(likelihood), stacklevel=4)
        data = {
            "likelihood": likelihood if of_classes else None,
            "response_likelihood": None if of_classes else likelihood,
            "input_noise": input_noise_to_data(self.input_noise),
            "inference": self.inference,
            "bound": self.bound,
            "settings": self.settings,
            "temperature": self.temperature,
            "flat": self.true_input.flat,
            "gp": rows,
        }
        arrays = {
            "alpha": self.posterior.alpha.numpy(),
            "M": self.posterior.M.numpy(),
            "kl": self.posterior.kl.numpy(),
            "Z": Z,
            "error_scale": self.true_input.scale.numpy(),
            "error_floor": self.true_input.floor.numpy(),
            "population_weights": self.population.weights,
            "population_means": self.population.means,
            "population_covariances": self.population.covariances,
        }
        if of_classes:
            for name, parameter in gpflow.utilities.parameter_dict(self.likelihood).items():
                arrays[f"likelihood{name}"] = np.asarray(parameter)
        return data, arrays

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FittedModel:
        """Inverse of `to_data`; InputError for data or arrays that are not as it makes them."""
        check_fields(data, FIELDS, "the model")
        INFERENCES.find(data["inference"])
        check_temperature(data["temperature"])
        input_noise = input_noise_from_data(data["input_noise"])
        likelihood: Any
        learned: dict[str, gpflow.Parameter | tf.Variable] = {}
        if data["likelihood"] is None:
            likelihood = response_likelihood_from_data(data["response_likelihood"])
        else:
            likelihood = likelihood_from_data(data["likelihood"])
            for name, parameter in gpflow.utilities.parameter_dict(likelihood).items():
                learned[f"likelihood{name}"] = parameter
        sizes = {"P": likelihood.latent_dim or 1}
        shapes = {name: " ".join(["float", *map(str, p.shape)]) for name, p in learned.items()}
        check_arrays(arrays, {**ARRAYS, **shapes}, sizes)
        for name, parameter in learned.items():
            assign_exactly(parameter, arrays[name])
        gp = SparseGP(rows_from_data(data["gp"], arrays["Z"]))
        if gp.num_latent != sizes["P"] or gp.nodes not in (1, input_noise.training_nodes):
            raise InputError("the likelihood, the input noise and the Gaussian process disagree")
        posterior = SparsePosterior(*(tf.constant(arrays[name]) for name in ("alpha", "M", "kl")))
        weights, covariances = arrays["population_weights"], arrays["population_covariances"]
        if not (weights > 0).all() or not np.isclose(weights.sum(), 1):
            raise InputError("the array 'population_weights' does not hold fractions")
        if not np.allclose(covariances, np.swapaxes(covariances, 1, 2)):
            raise InputError("the array 'population_covariances' is not symmetric")
        for name in ("error_scale", "error_floor"):
            if (arrays[name] < 0).any():
                raise InputError(f"the array '{name}' holds a value below 0")
        population = Population(
            arrays["population_weights"],
            arrays["population_means"],
            arrays["population_covariances"],
        )
        true_input = TrueInput(
            population,
            flat=data["flat"],
            scale=arrays["error_scale"],
            floor=arrays["error_floor"],
        )
        model = cls(
            gp,
            posterior,
            likelihood,
            input_noise,
            true_input,
            data["inference"],
            data["bound"],
            data["settings"],
            float(data["temperature"]),
        )
        model._try_out()
        return model

    def _try_out(self) -> None:
        """InputError unless what it predicts is finite: of sources that were measured exactly,
        with errors of a feature's width, and not at all."""
        d = self.population.means.shape[1]
        errors = np.array([np.zeros(d), np.ones(d), np.full(d, np.inf)])
        names, units = tuple(f"x{i}" for i in range(d)), ("",) * d
        sources = Measurements(np.zeros((3, d)), errors, names, units)
        try:
            finite = self._predicts_finite(sources)
        except InputError:  # what was not measured, drawn, is no number
            finite = False
        if not finite:
            raise InputError("what it predicts is not finite")

    def _predicts_finite(self, sources: Measurements) -> bool:
        if isinstance(self.likelihood, ClassificationLikelihood):
            finite = np.isfinite(self.predict_proba(sources))
        else:

            def moments(m: tf.Tensor, v: tf.Tensor, nodes: int) -> list[np.ndarray]:
                if has_variance(self.likelihood):
                    m, v = response_moments(self.likelihood, m, v)
                return [np.reshape(part, [-1, nodes]).mean(axis=1) for part in (m, v)]

            finite = np.isfinite(self.over_nodes(moments, sources))
        return bool(finite.all())


def _finite(probabilities: np.ndarray) -> np.ndarray:
    if not np.isfinite(probabilities).all():
        i = int(np.argmin(np.isfinite(probabilities).all(axis=1)))
        raise FloatingPointError(
            f"the probabilities of row {i} are not finite: look for a value or an error far"
            " from all others"
        )
    return probabilities
