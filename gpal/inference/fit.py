"""From standardised measurements and labels to a fitted model, and from there to probabilities."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.cluster import KMeans

from gpal.capabilities import INFERENCES, check
from gpal.inference.concentration import choose_alpha_eps
from gpal.inference.full import FullGP
from gpal.inference.kernels import describe_kernel, make_kernel
from gpal.inference.rows import Data
from gpal.inference.sites import SiteFit, fit_sites
from gpal.inference.sparse import SparseGP, SparsePosterior
from gpal.input_noise.population import Population
from gpal.input_noise.treatments import NoInputNoise, make_input_noise
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.quasi_random import antithetic_normal
from gpal.likelihoods.site_rules import SITE_RULES, QuadraticRule

__all__ = ["FittedModel", "fit_model"]

# A full GP costs n³; below this many sources it is as quick as a sparse one, and exact.
FULL_GP_UP_TO = 400
# Above it; on 4FGL twice as many change the cross-validated NLL by less than .0001.
INDUCING_POINTS = 100
# Sources per block of a prediction: bounds memory at nodes × samples × classes per source.
BLOCK = 1000
POSTERIOR_SAMPLES = 256


@dataclass
class FittedModel:
    """q(f) with all that prediction needs, in standardised units."""

    gp: SparseGP
    posterior: SparsePosterior
    likelihood: ClassificationLikelihood
    input_noise: NoInputNoise
    population: Population
    bound: float
    settings: dict[str, Any]

    def marginals(self, X: np.ndarray, X_err: np.ndarray) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v of q(f) at every node: tensors [n·S, P]."""
        rows, variance = self.input_noise.rows(X, X_err, self.population)
        nodes = self.input_noise.nodes
        return self.gp.marginals(self.posterior, rows, np.repeat(variance, nodes, axis=0))

    def predict_proba(self, X: np.ndarray, X_err: np.ndarray) -> np.ndarray:
        """E over q(f) and over the input of p(y | f(x)), [n, C]."""
        blocks = []
        for i in range(0, len(X), BLOCK):
            p = self.likelihood.predict_proba(
                *self.marginals(X[i : i + BLOCK], X_err[i : i + BLOCK])
            )
            p = p.numpy().reshape(-1, self.input_noise.nodes, p.shape[-1]).mean(axis=1)
            blocks.append(p / p.sum(axis=1, keepdims=True))
        return np.concatenate(blocks)

    def predict_proba_std(self, X: np.ndarray, X_err: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        """Deviation of p(y | f(x)), reweighted by `ratio`, over q(f) and the input; [n, C]."""
        blocks = []
        for i in range(0, len(X), BLOCK):
            mean, variance = self.marginals(X[i : i + BLOCK], X_err[i : i + BLOCK])
            points = antithetic_normal(POSTERIOR_SAMPLES, mean.shape[1])[:, None, :]
            p = self.likelihood.conditional_probabilities(mean + tf.sqrt(variance) * points).numpy()
            p = p * ratio
            p /= p.sum(axis=-1, keepdims=True)
            nodes = self.input_noise.nodes
            p = p.reshape(len(points), -1, nodes, p.shape[-1])
            blocks.append(p.std(axis=(0, 2)))
        return np.concatenate(blocks)


def fit_model(
    options, X: np.ndarray, X_err: np.ndarray, labels: np.ndarray, seed: int
) -> FittedModel:
    """Fit a GPClassifier's model to standardised X [n, d], X_err and class indices."""
    n = len(X)
    num_classes = int(labels.max()) + 1
    input_noise = make_input_noise(options.input_noise)
    name = getattr(options.likelihood, "name", options.likelihood)
    check(name, input_noise.name, options.inference, num_classes)
    likelihood = make_likelihood(options.likelihood, num_classes)
    if not (X_err > 0).any():
        input_noise = NoInputNoise()
    population = Population.fit(X, X_err, seed=seed)
    rows, variance = input_noise.rows(X, X_err, population)
    data = Data(
        tf.constant(rows), tf.constant(labels[:, None].astype(float)), tf.constant(variance)
    )
    completed, _ = population.complete(X, X_err)
    noisy = input_noise.noisy_features(X_err)
    gp = make_gp(options, completed, likelihood.latent_dim, input_noise.nodes, noisy, seed)
    fitted = run_inference(options, gp, likelihood, data, seed)
    if options.likelihood == "dirichlet":  # by name; an object keeps its own α_ε
        likelihood = choose_alpha_eps(gp, likelihood, data)
        fitted = run_inference(options, gp, likelihood, data, seed)
    settings = {
        "gp": "full" if isinstance(gp, FullGP) else "sparse",
        "inducing_points": int(gp.Z.shape[0]),
        "relative_jitter": float(gp.jitter.value),
        "input_noise": input_noise.name,
        "likelihood": likelihood.to_data(),
        "kernels": [describe_kernel(kernel) for kernel in gp.kernels],
        "seed": seed,
        "device": tf.config.list_logical_devices()[-1].device_type,
    }
    return FittedModel(
        gp, fitted.posterior, likelihood, input_noise, population, fitted.bound / n, settings
    )


def make_gp(options, X: np.ndarray, num_latent: int, nodes: int, noisy: tuple[int, ...], seed: int):
    """FullGP up to FULL_GP_UP_TO exact sources on the engine, else SparseGP."""
    kernels = [
        make_kernel(options.kernel, X.shape[1])
        for _ in range(1 if options.shared_kernel else num_latent)
    ]
    full = options.n_inducing is None and len(X) <= FULL_GP_UP_TO
    on_engine = INFERENCES[options.inference].path in ("engine", "local_full", "local_hybrid")
    if full and nodes == 1 and not noisy and on_engine:
        return FullGP(kernels, X, num_latent)
    Z = inducing_points(X, len(X) if full else options.n_inducing or INDUCING_POINTS, seed)
    return SparseGP(
        kernels,
        Z,
        num_latent,
        nodes=nodes,
        learn_Z=options.learn_inducing,
        dtype=tf.as_dtype(options.dtype),
        noisy=noisy,
    )


def run_inference(options, gp, likelihood, data: Data, seed: int) -> SiteFit:
    """The function that a name of `capabilities.INFERENCES` stands for."""
    method = INFERENCES[options.inference]
    own = "dirichlet" if likelihood.name == "dirichlet" else "natural_gradient"
    rule = SITE_RULES[method.rule or own]
    progress = None if options.verbose else False
    extra = dict(options.inference_options or {})
    if method.path == "engine":
        extra = {"rounds": options.max_rounds, "progress": progress, **extra}
        return fit_sites(gp, likelihood, rule, data, **extra)
    if method.path == "stochastic":
        from gpal.inference.stochastic import fit_stochastic_sites

        extra = {"seed": seed, "progress": progress, **extra}
        return fit_stochastic_sites(gp, likelihood, rule, data, **extra)
    if method.path.startswith("local_"):
        from gpal.inference.local_parameters import fit_local_parameters

        assert isinstance(rule, QuadraticRule)
        extra = {"hybrid": method.path == "local_hybrid", **extra}
        return fit_local_parameters(gp, likelihood, rule, data, **extra)
    from gpal.inference.svgp import fit_svgp

    extra = {
        "optimizer": method.path.removeprefix("svgp_"),
        "seed": seed,
        "progress": progress,
        **extra,
    }
    return fit_svgp(gp, likelihood, rule, data, **extra)


def inducing_points(X: np.ndarray, number: int, seed: int) -> np.ndarray:
    """k-means centres of X [n, d]; the distinct rows themselves where there are no more of them."""
    distinct = np.unique(X, axis=0)
    if len(distinct) <= number:
        return distinct
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KMeans(number, n_init=1, random_state=seed).fit(X).cluster_centers_
