"""What an inference needs of a Gaussian process, whatever its rows and its solver are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import gpflow
import numpy as np
import tensorflow as tf

from gpal.inference.cholesky import Jitter
from gpal.inference.chunks import SparsePosterior
from gpal.inference.rows import Data, Sites
from gpal.inference.sparse import SparseGP
from gpal.inference.streaming import Rows
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["GaussianProcess"]


class GaussianProcess(Protocol):
    """P latent functions whose posterior follows from Gaussian sites.

    kind            "sparse" or "full"
    rows            with kernels, points Z [m, d] and all variables
    jitter          of K(Z, Z), relative
    has_noise_of_its_own  whether f has noise at the points Z that K(Z, X) knows nothing of
    sums_by_label   whether sites of the label alone may be summed over each class first
    """

    kind: str
    rows: Rows
    jitter: Jitter

    @property
    def has_noise_of_its_own(self) -> bool: ...

    @property
    def kernels(self) -> list[gpflow.kernels.Kernel]: ...

    @property
    def Z(self) -> gpflow.Parameter: ...

    @property
    def num_latent(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def noisy(self) -> tuple[int, ...]: ...

    @property
    def sums_by_label(self) -> bool: ...

    @property
    def trainable_variables(self) -> Sequence[tf.Variable]: ...

    def refresh(self, data: Data) -> None:
        """Get ready for the present hyper-parameters: `posterior` and `met` rely on it."""

    def posterior(self, data: Data, sites: Sites) -> SparsePosterior:
        """q for given sites; NaN where θ < 0 leaves no positive definite Σ."""

    def met(
        self,
        rule: SiteRule,
        likelihood: gpflow.likelihoods.Likelihood,
        data: Data,
        posterior: SparsePosterior,
    ) -> tuple[Sites, tf.Tensor]:
        """The sites that meet the likelihood at `posterior`, and the data term of its bound."""

    def bound_and_gradient(self, data: Data, sites: Sites) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """J (E2) up to a constant of the sites, and its gradient in `trainable_variables`."""

    def collapsed(
        self, data: Data, sites: Sites, mixed: bool = False
    ) -> tuple[tf.Tensor, list[tf.Tensor], SparsePosterior | None]:
        """The same, and q where it is found on the way.

        mixed   in mixed precision, where that saves time
        """

    def marginals(
        self,
        posterior: SparsePosterior,
        X: np.ndarray | tf.Tensor,
        root: np.ndarray | tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [rows, P] of q(f) at X [rows, d] with covariances R Rᵀ of x; None: exact inputs."""

    def data_marginals(self, data: Data, posterior: SparsePosterior) -> tuple[tf.Tensor, tf.Tensor]:
        """m, v [n·S, P] of q(f) at the rows of `data`."""

    def open_variance(self, data: Data) -> tf.Tensor:
        """k(x, x) − k(x, Z) K⁻¹ k(Z, x) [n·S, P] at the rows of `data`: of f given u."""

    def as_sparse(self) -> SparseGP:
        """The same model on its points Z, for other data than it was made for."""
