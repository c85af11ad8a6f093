"""GPflow's SVGP, or VGP, as a fitted model, whose predictions at exact inputs are the same.

Of q(u) = N(μ, S) under p(u) = N(0, K), K = K(Z, Z) + GPflow's jitter = L Lᵀ, or of the whitened
q(v) = N(L⁻¹μ, L⁻¹ S L⁻ᵀ), a prediction needs

    α = L⁻ᵀ E[v],      M = L⁻ᵀ (Cov[v] − I) L⁻¹.

Where latent functions have inducing points of their own, gpal takes all of them for each, with
zeros in α and M for those of the others: the predictions are the same.

GPflow's VGP is the same with Z = X, whitened. (Under a White kernel its bound has the noise that
was drawn at X, and this one noise drawn anew.)

The kernel of X becomes one of (X − offset)/width, as gpal's models are, wrapped in an `AffineInput`
unless it is one that undoes exactly that.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import scipy.linalg
import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.affine_input import of_affine_input
from gpal.inference.base import Fit, Problem
from gpal.inference.chunks import SparsePosterior
from gpal.inference.kernels import has_active_dims
from gpal.inference.rows import meet
from gpal.inference.single_latent import make_single_latent
from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.coregionalized import Coregionalized
from gpal.likelihoods.of_gpflow import own_likelihood
from gpal.likelihoods.softmax import Softmax
from gpal.measurements import Measurements
from gpal.model.fit import FitModel
from gpal.model.fitted import FittedModel

__all__ = [
    "GivenPosterior",
    "likelihood_of_classes",
    "likelihood_of_response",
    "own_parameters",
]

gk, gi = gpflow.kernels, gpflow.inducing_variables


@dataclass
class GivenPosterior:
    """What an SVGP has learned.

    kernels    1 or P, of X
    Z          [m, d] in units of X
    posterior  α, M and KL(q(u) ‖ p(u)), which are the same in any units
    """

    kernels: list[gk.Kernel]
    Z: np.ndarray
    posterior: SparsePosterior

    @classmethod
    def of(cls, svgp: Any) -> GivenPosterior:
        """InputError for what gpal has no counterpart of."""
        if not isinstance(svgp, gpflow.models.SVGP | gpflow.models.VGP):
            raise InputError(
                f"the model is a {type(svgp).__name__}: give a gpflow.models.SVGP or VGP"
            )
        mean = svgp.mean_function
        if not isinstance(mean, gpflow.functions.Zero):
            raise InputError(
                f"the SVGP has the mean function {type(mean).__name__}, gpal's latent functions"
                " have none: add a Constant, Linear or Polynomial to its kernel instead"
            )
        kernels = _latent_kernels(svgp.kernel)
        if isinstance(svgp, gpflow.models.VGP):  # whitened, at the training inputs
            whiten, points = True, [np.asarray(svgp.data[0], dtype=float)]
            kl = gpflow.kullback_leiblers.gauss_kl(svgp.q_mu, svgp.q_sqrt)
        else:
            whiten, points = svgp.whiten, _inducing_points(svgp.inducing_variable)
            kl = svgp.prior_kl()
        P = int(svgp.num_latent_gps)
        if len(kernels) not in (1, P) or len(points) not in (1, P):
            raise InputError(
                f"the SVGP has {len(kernels)} kernels and {len(points)} sets of inducing points"
                f" for {P} latent functions"
            )
        alphas, Ms = [], []
        for c in range(P):
            kernel, Z = kernels[min(c, len(kernels) - 1)], points[min(c, len(points) - 1)]
            alpha, M = _alpha_and_M(svgp, whiten, kernel, Z, c)
            alphas.append(alpha)
            Ms.append(M)
        if len(points) > 1:
            total = sum(len(Z) for Z in points)
            first = np.cumsum([0, *(len(Z) for Z in points)])
            for c in range(P):
                here = slice(first[c], first[c + 1])
                alpha, M = np.zeros(total), np.zeros((total, total))
                alpha[here], M[here, here] = alphas[c], Ms[c]
                alphas[c], Ms[c] = alpha, M
        posterior = SparsePosterior(
            tf.constant(np.stack(alphas)), tf.constant(np.stack(Ms)), tf.cast(kl, tf.float64)
        )
        return cls(kernels, np.concatenate(points), posterior)

    def model(self, fit: FitModel) -> FitModel:
        """In place of `fit`, a function of `gpal.model.fit`: it fits nothing, and leaves this
        posterior; the kernels become those of the estimator."""

        def given(
            options: Any, sources: Measurements, y: np.ndarray, seed: int, **more: Any
        ) -> FittedModel:
            offset, width = -options.offset_ / options.width_, 1.0 / options.width_
            kernels = [
                of_affine_input(gpflow.utilities.deepcopy(kernel), offset, width)
                for kernel in self.kernels
            ]
            options.kernel = kernels if len(kernels) > 1 else kernels[0]
            return fit(options, sources, y, seed, **more, run=self._run)

        return given

    def _run(self, options: Any, problem: Problem, seed: int) -> Fit:
        """The posterior, and the bound that it has on these data."""
        gp, likelihood, data = problem.gp, problem.likelihood, problem.data
        latents = self.posterior.alpha.shape[0]
        if gp.num_latent != latents:
            raise InputError(
                f"the SVGP has {latents} latent functions, a {type(likelihood).__name__}"
                f" likelihood of these data {gp.num_latent}"
            )
        marginals = gp.data_marginals(data, self.posterior)
        terms = meet(problem.rule, likelihood, *marginals, data.Y, gp.nodes)[1]
        return Fit(self.posterior, [float(tf.reduce_sum(terms) - self.posterior.kl)])


def _latent_kernels(kernel: gk.Kernel) -> list[gk.Kernel]:
    """One for all latent functions, or one each."""
    several = isinstance(kernel, gk.SeparateIndependent | gk.LinearCoregionalization)
    if several or isinstance(kernel, gk.SharedIndependent):
        kernels = list(kernel.kernels) if several else [kernel.kernel]
        if any(map(has_active_dims, kernels)):
            warnings.warn(
                f"the SVGP's {type(kernel).__name__} holds a kernel with active_dims, which GPflow"
                " leaves out of account in some variances of f; gpal heeds them, so that"
                " predictions may differ",
                stacklevel=2,
            )
        return kernels
    if isinstance(kernel, gk.MultioutputKernel):
        raise InputError(
            f"the SVGP has the kernel {type(kernel).__name__}: use one of one output,"
            " SharedIndependent, SeparateIndependent, or LinearCoregionalization for classes"
        )
    return [kernel]


def _inducing_points(variables: Any) -> list[np.ndarray]:
    """One set for all latent functions, or one each where they differ."""
    parts: list[Any] = [variables]
    if isinstance(variables, gi.FallbackSharedIndependentInducingVariables):
        parts = [variables.inducing_variable]
    elif isinstance(variables, gi.FallbackSeparateIndependentInducingVariables):
        parts = list(variables.inducing_variable_list)
    for part in parts:
        if type(part) is not gi.InducingPoints:
            raise InputError(
                f"the SVGP has inducing variables of class {type(part).__name__}: use"
                " InducingPoints"
            )
    sets = [np.asarray(part.Z, dtype=float) for part in parts]
    return sets[:1] if all(np.array_equal(Z, sets[0]) for Z in sets) else sets


def _alpha_and_M(
    svgp: Any, whiten: bool, kernel: gk.Kernel, Z: np.ndarray, latent: int
) -> tuple[np.ndarray, np.ndarray]:
    """α [m] and M [m, m] of a latent function."""
    jitter = gpflow.config.default_jitter()
    K = np.asarray(kernel(Z), dtype=float) + jitter * np.eye(len(Z))
    L = scipy.linalg.cholesky(K, lower=True)
    mean = np.asarray(svgp.q_mu, dtype=float)[:, latent]
    root = np.asarray(svgp.q_sqrt, dtype=float)
    root = np.diag(root[:, latent]) if root.ndim == 2 else np.tril(root[latent])
    if not whiten:
        mean = scipy.linalg.solve_triangular(L, mean, lower=True)
        root = scipy.linalg.solve_triangular(L, root, lower=True)
    inverse = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True)
    M = inverse.T @ (root @ root.T - np.eye(len(L))) @ inverse
    return inverse.T @ mean, 0.5 * (M + M.T)


def likelihood_of_classes(svgp: Any) -> ClassificationLikelihood:
    """gpal's likelihood for that of the model; it is the likelihood that mixes latent functions."""
    if not isinstance(svgp.kernel, gk.LinearCoregionalization):
        return own_likelihood(svgp.likelihood)
    if type(svgp.likelihood) not in (gpflow.likelihoods.Softmax, Softmax):
        raise InputError(
            f"the SVGP mixes latent functions under a {type(svgp.likelihood).__name__} likelihood:"
            " gpal does so under the softmax only"
        )
    W = svgp.kernel.W
    return Coregionalized(svgp.likelihood.num_classes, mixing=W.numpy(), learn_mixing=W.trainable)


def likelihood_of_response(svgp: Any) -> Any:
    """gpal's likelihood for that of the model, of one latent function as it stands."""
    if isinstance(svgp.kernel, gk.LinearCoregionalization):
        raise InputError(
            "the SVGP mixes latent functions (LinearCoregionalization), and a response has one, as"
            " it is: take its kernel times W squared"
        )
    return make_single_latent(svgp.likelihood)


def own_parameters(given: GivenPosterior, parameters: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments beside those that the SVGP decides."""
    decided = ("likelihood", "kernel", "shared_kernel", "n_inducing", "inducing_points")
    for name in decided:
        if name in parameters:
            raise InputError(f"{name} is the SVGP's: leave it out")
    of_learning: dict[str, tuple[Any, ...]] = {
        "learn_errors": ("none",),
        "learn_by": ("auto", "bound"),
        "learn_inducing": (None, False),
        "inference_options": (None, {}),
    }
    for name, nothing in of_learning.items():
        if name in parameters and parameters[name] not in nothing:
            raise InputError(
                f"{name}={parameters[name]!r} is of learning, and an SVGP is taken as it is: leave"
                " it out, or give it to a later fit by set_params"
            )
    return {**parameters, "inducing_points": given.Z}
