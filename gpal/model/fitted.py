"""The fitted model: q(f) with all that prediction needs, in standardised units.

    f | x ~ q(f) = N(m(x), v(x))        x | x̃ as the treatment of input noise has it

Sources come as Measurements in the units that the estimator standardised them to; whatever is said
of n sources with C classes and P latent functions is an expectation over q(f) and over the input:

    predict_proba     E[p(y | f(x))]                       [n, C]
    deviation         its standard deviation               [n, C]
    draws             p(y | f_s(x_t)), one by one          [n, T, S, C]
    latent            E[f(x)] and Var[f(x)]                [n, P]
    latent_samples    joint draws of f at all sources      [samples, n, P]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.base import INFERENCES
from gpal.inference.input_rows import InputRows
from gpal.inference.kernels import kernel_from_data, kernel_to_data
from gpal.inference.single_latent import (
    check_response,
    response_likelihood_from_data,
    response_likelihood_to_data,
    site_rule,
)
from gpal.inference.sparse import SparseGP, SparsePosterior
from gpal.input_noise.base import InputNoise, input_noise_from_data
from gpal.input_noise.conditional import error_root
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.population import Population
from gpal.input_noise.true_input import TrueInput
from gpal.likelihoods import likelihood_from_data
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.measurements import Measurements

__all__ = ["FittedModel"]

# Sources per block of a prediction: bounds memory at nodes × samples × classes per source.
BLOCK = 1000
POSTERIOR_SAMPLES = 256
BLOCK_ELEMENTS = 4_000_000  # numbers of `draws` held at once
REFIT_SWEEPS = 20


@dataclass
class FittedModel:
    """q(f), p(y | f) and p(x | x̃).

    inference  name of the method that found q(f)
    bound      evidence lower bound per source
    settings   what was used, as plain data
    """

    gp: SparseGP
    posterior: SparsePosterior
    likelihood: Any
    input_noise: InputNoise
    true_input: TrueInput
    inference: str
    bound: float
    settings: dict[str, Any]

    @property
    def population(self) -> Population:
        """The prior of x that was fitted, whatever the treatment makes of it."""
        return self.true_input.population

    @property
    def can_refit(self) -> bool:
        """Whether `refit` works for the method that found q(f)."""
        return INFERENCES[self.inference].can_refit

    @property
    def nodes(self) -> int:
        """Inputs per source that a prediction averages over."""
        return self.input_noise.nodes

    # ---- at every node ---------------------------------------------------------------------------

    def marginals(self, sources: Measurements) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v of q(f) at every node: tensors [n·S, P], nodes of a source next to each other."""
        rows, root = self._rows(sources)
        return self.gp.marginals(self.posterior, rows, root if self.input_noise.uses_root else None)

    def check_response(self, y: np.ndarray) -> None:
        """InputError for a response that the likelihood gives no density."""
        check_response(self.likelihood, y)

    def at_nodes(
        self, function: Callable[..., Any], sources: Measurements, *more: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """function(m, v, ...) at every node, in blocks of sources: arrays [n, S].

        more  [n] what the function is given beside m and v, of each block's sources
        """
        parts = []
        for block, rows in _blocks(sources, BLOCK):
            results = function(*self.marginals(block), *(array[rows] for array in more))
            parts.append([np.reshape(result, [len(block), -1]) for result in results])
        return tuple(np.concatenate(results) for results in zip(*parts, strict=True))

    def _rows(self, sources: Measurements) -> tuple[tf.Tensor, tf.Tensor]:
        inputs = InputRows(self.true_input, self.input_noise)
        return inputs.prediction(*inputs.measurement(*_arrays(sources)))

    # ---- probabilities ---------------------------------------------------------------------------

    def predict_proba(self, sources: Measurements) -> np.ndarray:
        """E over q(f) and over the input of p(y | f(x)), [n, C]."""
        parts = []
        for block, _ in _blocks(sources, BLOCK):
            p = self.likelihood.predict_proba(*self.marginals(block))
            p = p.numpy().reshape(-1, self.nodes, p.shape[-1]).mean(axis=1)
            parts.append(p / p.sum(axis=1, keepdims=True))
        return np.concatenate(parts)

    def deviation(self, sources: Measurements, ratio: np.ndarray) -> np.ndarray:
        """Deviation of p(y | f(x)), reweighted by `ratio` [C], over q(f) and the input; [n, C]."""
        parts = []
        for block, _ in _blocks(sources, BLOCK):
            p = self._sampled(*self.marginals(block), POSTERIOR_SAMPLES, ratio)
            p = p.reshape(POSTERIOR_SAMPLES, -1, self.nodes, p.shape[-1])
            parts.append(p.std(axis=(0, 2)))
        return np.concatenate(parts)

    def draws(
        self, sources: Measurements, ratio: np.ndarray, nodes: int, samples: int
    ) -> Iterator[np.ndarray]:
        """p(y | f_s(x_t)) reweighted by `ratio` [C], in blocks [n, T, S, C] of the sources.

        x_t ~ p(x | x̃) ∝ N(x̃ | x, V) p(x)    T fixed quasi-random nodes under the population
                                              prior, whatever the treatment of input noise; one
                                              where every feature is exact
        f_s(x_t) = m(x_t) + √v(x_t) ε_s       S fixed points, from the marginals of q(f)
        """
        noisy = (sources.X_err > 0).any() or self.true_input.adds_noise
        integrated = Integrated(nodes if noisy else 1)
        inputs = InputRows(self.true_input.under_population(), integrated)
        per_source = integrated.nodes * samples * len(ratio)
        for block, _ in _blocks(sources, max(1, BLOCK_ELEMENTS // per_source)):
            rows, _ = inputs(*inputs.measurement(*_arrays(block)))
            p = self._sampled(*self.gp.marginals(self.posterior, rows), samples, ratio)
            p = p.reshape(samples, -1, integrated.nodes, p.shape[-1])
            yield p.transpose(1, 2, 0, 3)

    def _sampled(
        self, mean: tf.Tensor, variance: tf.Tensor, samples: int, ratio: np.ndarray
    ) -> np.ndarray:
        """p(y | m + √v ε_s) reweighted, [samples, rows, C]."""
        points = antithetic_normal(samples, mean.shape[1])[:, None, :]
        f = mean + tf.sqrt(variance) * points
        p = self.likelihood.conditional_probabilities(f).numpy() * ratio
        return p / p.sum(axis=-1, keepdims=True)

    # ---- latent functions ------------------------------------------------------------------------

    def latent(self, sources: Measurements) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance [n, P] of f(x) over q(f) and the input: moments of the mixture."""
        means, variances = self._latent_at_nodes(sources)
        return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)

    def latent_covariance(self, sources: Measurements) -> np.ndarray:
        """Cov[f(x_i), f(x_j)] [P, n, n] over q(f) and the inputs, which are independent.

        i ≠ j   mean over the nodes s, t of k(x_is, x_jt) + k(x_is, Z) M k(Z, x_jt)
        i = j   the variance of `latent`
        """
        n, S = len(sources), self.nodes
        joint = self._covariance_at_nodes(sources).reshape(-1, n, S, n, S).mean(axis=(2, 4))
        _, variance = self.latent(sources)
        i = np.arange(n)
        joint[:, i, i] = variance.T
        return joint

    def latent_samples(self, sources: Measurements, number: int, seed: int) -> np.ndarray:
        """[number, n, P] draws of f, joint over the sources, at an input drawn for each.

        Costs (n·S)³: for some thousand nodes at most.
        """
        n, S = len(sources), self.nodes
        rng = np.random.default_rng(seed)
        means, variances = self._latent_at_nodes(sources)
        covariances = self._covariance_at_nodes(sources)
        picked = np.arange(n) * S + rng.integers(S, size=(number, n))
        samples = np.empty((number, n, means.shape[2]))
        for c, covariance in enumerate(covariances):
            mean, variance = means[:, :, c].ravel(), variances[:, :, c].ravel()
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            f = mean + rng.normal(size=(number, n * S)) @ root.T
            # What the slope of f adds to the variance has nothing to do with other sources.
            slope = np.sqrt(np.maximum(variance - np.diagonal(covariance), 0.0))
            f += slope * rng.normal(size=f.shape)
            samples[:, :, c] = np.take_along_axis(f, picked, axis=1)
        return samples

    def _latent_at_nodes(self, sources: Measurements) -> tuple[np.ndarray, np.ndarray]:
        """m, v [n, S, P]."""
        parts = [self.marginals(block) for block, _ in _blocks(sources, BLOCK)]
        mean, variance = (np.concatenate(moments) for moments in zip(*parts, strict=True))
        return tuple(m.reshape(len(sources), self.nodes, -1) for m in (mean, variance))

    def _covariance_at_nodes(self, sources: Measurements) -> np.ndarray:
        """Cov_q[f(x_a), f(x_b)] [P, n·S, n·S] at the nodes themselves."""
        if self.input_noise.closed_form_moments and self.gp.noisy:
            raise InputError(
                f"input noise '{self.input_noise.name}' has no covariance between sources;"
                " use 'integrated'"
            )
        rows, _ = self._rows(sources)
        covariances = []
        for c in range(self.gp.num_latent):
            kernel = self.gp.kernels[0 if len(self.gp.kernels) == 1 else c]
            K = kernel(rows, self.gp.Z)
            explained = tf.matmul(K, tf.matmul(self.posterior.M[c], K, transpose_b=True))
            covariances.append((kernel(rows) + explained).numpy())
        return np.stack(covariances)

    # ---- another measurement ---------------------------------------------------------------------

    def remeasured(
        self, sources: Measurements, shrink: float, outcomes: int
    ) -> Iterator[Measurements]:
        """The sources as a second measurement may leave them, one outcome after another.

        It is such that errors shrink from σ to κ σ: their variance falls from v = s² σ² + τ² to
        v₊ = s² κ² σ² + τ², so that the second measurement has 1/v' = 1/v₊ − 1/v. With
        x ~ p(x | x̃) and ε on fixed quasi-random points,

            x̃_new = (1 − v₊/v) (x + √v' ε) + (v₊/v) x̃,

        ε correlated as the errors are. Features not measured stay so.
        """
        from scipy.stats import norm, qmc

        n, d = sources.X.shape
        rows = InputRows(self.true_input.under_population(), Integrated(outcomes, seed=1))
        inputs = rows(*rows.measurement(*_arrays(sources)))[0].numpy().reshape(n, outcomes, d)
        uniform = qmc.Sobol(d, scramble=True, seed=2).random(outcomes)
        normal = norm.ppf(np.clip(uniform, 1e-9, 1 - 1e-9))
        measured = sources.measured
        variance = (self.true_input.scale.numpy() * np.where(measured, sources.X_err, 0.0)) ** 2
        floor = self.true_input.floor.numpy() ** 2
        before, after = variance + floor, shrink**2 * variance + floor
        learns = before > after
        kept = np.where(learns, after / np.where(learns, before, 1.0), 1.0)
        deviation = np.sqrt(np.where(learns, after / np.where(learns, 1.0 - kept, 1.0), 0.0))
        correlated = _correlation_root(sources)
        for t in range(outcomes):
            epsilon = normal[t] if correlated is None else correlated @ normal[t]
            again = inputs[:, t] + deviation * epsilon
            combined = (1.0 - kept) * again + kept * np.where(measured, sources.X, 0.0)
            covariance = sources.covariance
            yield replace(
                sources,
                X=np.where(measured, combined, sources.X),
                X_err=np.where(measured, shrink * sources.X_err, sources.X_err),
                covariance=None if covariance is None else _shrunk(covariance, shrink),
            )

    # ---- more labels -----------------------------------------------------------------------------

    def refit(self, sources: Measurements, labels: np.ndarray) -> FittedModel:
        """The model of other sources and labels (class indices) with these hyper-parameters.

        Only q(f) is found anew, by site updates that start at the present posterior.
        """
        from gpal.inference.full import FullGP
        from gpal.inference.sites import fit_sites

        inputs = InputRows(self.true_input, self.input_noise)
        data = inputs.data(*_arrays(sources), labels)
        gp = self.gp
        if isinstance(gp, FullGP):  # its sources become the inducing points
            gp = SparseGP(gp.kernels, gp.Z.numpy(), gp.num_latent, nodes=gp.nodes)
        rule = site_rule(INFERENCES[self.inference].rule, self.likelihood)
        fit = fit_sites(
            gp,
            self.likelihood,
            rule,
            data,
            start=self.posterior,
            rounds=0,
            initial_sweeps=0,
            final_sweeps=REFIT_SWEEPS,
        )
        return replace(self, gp=gp, posterior=fit.posterior, bound=fit.bound / len(labels))

    # ---- model files -----------------------------------------------------------------------------

    def to_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(JSON-able data, arrays) from which `from_data` makes the model again."""
        from gpal.inference.analytic import AnalyticGP

        gaussian = isinstance(self.likelihood, ClassificationLikelihood)
        data = {
            "likelihood": self.likelihood.to_data() if gaussian else None,
            "response_likelihood": None
            if gaussian
            else response_likelihood_to_data(self.likelihood),
            "input_noise": self.input_noise.to_data(),
            "inference": self.inference,
            "bound": self.bound,
            "settings": self.settings,
            "flat": self.true_input.flat,
            "gp": {
                "kernels": [kernel_to_data(kernel) for kernel in self.gp.kernels],
                "num_latent": self.gp.num_latent,
                "nodes": self.gp.nodes,
                "dtype": self.gp.dtype.name,
                "noisy": list(self.gp.noisy),
                "psi": isinstance(self.gp, AnalyticGP),
            },
        }
        arrays = {
            "alpha": self.posterior.alpha.numpy(),
            "M": self.posterior.M.numpy(),
            "kl": self.posterior.kl.numpy(),
            "Z": np.asarray(self.gp.Z),
            "error_scale": self.true_input.scale.numpy(),
            "error_floor": self.true_input.floor.numpy(),
            "population_weights": self.population.weights,
            "population_means": self.population.means,
            "population_covariances": self.population.covariances,
        }
        if gaussian:
            for name, parameter in gpflow.utilities.parameter_dict(self.likelihood).items():
                arrays[f"likelihood{name}"] = np.asarray(parameter)
        return data, arrays

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FittedModel:
        """Inverse of `to_data`."""
        from gpal.inference.analytic import AnalyticGP

        if data["likelihood"] is None:
            likelihood = response_likelihood_from_data(data["response_likelihood"])
        else:
            likelihood = likelihood_from_data(data["likelihood"])
            learned = {
                name.removeprefix("likelihood"): value
                for name, value in arrays.items()
                if name.startswith("likelihood.")
            }
            gpflow.utilities.multiple_assign(likelihood, learned)
        about = data["gp"]
        gp = (AnalyticGP if about["psi"] else SparseGP)(
            [kernel_from_data(kernel) for kernel in about["kernels"]],
            arrays["Z"],
            about["num_latent"],
            nodes=about["nodes"],
            dtype=tf.as_dtype(about["dtype"]),
            noisy=tuple(about["noisy"]),
        )
        posterior = SparsePosterior(*(tf.constant(arrays[name]) for name in ("alpha", "M", "kl")))
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
        return cls(
            gp,
            posterior,
            likelihood,
            input_noise_from_data(data["input_noise"]),
            true_input,
            data["inference"],
            data["bound"],
            data["settings"],
        )


def _arrays(sources: Measurements) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """X, X_err and the covariance, as the input model takes them."""
    return sources.X, sources.X_err, sources.covariance


def _blocks(sources: Measurements, size: int) -> Iterator[tuple[Measurements, slice]]:
    """Slices of `size` sources, and which they are."""
    for i in range(0, len(sources), size):
        rows = slice(i, i + size)
        yield sources[rows], rows


def _correlation_root(sources: Measurements) -> np.ndarray | None:
    """[n, d, d] C with C Cᵀ the correlation of the errors; None where there is none."""
    if sources.covariance is None:
        return None
    noisy = sources.measured & (sources.X_err > 0)
    root = error_root(sources.X_err, sources.covariance)
    direction = root / np.where(noisy, sources.X_err, 1.0)[:, :, None]
    return np.where(noisy[:, :, None], direction, np.eye(sources.X.shape[1]))


def _shrunk(covariance: np.ndarray, shrink: float) -> np.ndarray:
    """κ² times the covariance; what was not measured stays so, also for κ = 0."""
    with np.errstate(invalid="ignore"):
        shrunk = shrink**2 * covariance
    return np.where(np.isinf(covariance), covariance, shrunk)
