"""Which Gaussian process a model has: full or sparse, on which inducing points and rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from gpal.inference.base import INFERENCES
from gpal.inference.full import FullGP
from gpal.inference.input_rows import InputRows
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.power_input import PowerInput
from gpal.inference.psi_rows import PsiRows
from gpal.inference.rows import Data
from gpal.inference.sparse import SparseGP
from gpal.measurements import Measurements

__all__ = ["FULL_GP_UP_TO", "inducing_points", "make_gp", "noisy_features"]

# A full GP costs n³; below this many sources it is as quick as a sparse one, and exact.
FULL_GP_UP_TO = 400
KMEANS_ROWS = 5000


def noisy_features(inputs: InputRows, sources: Measurements, data: Data) -> tuple[int, ...]:
    """The features whose errors enter the GP: of which a source has some, or that count as such."""
    if not inputs.treatment.uses_root:
        return ()
    some = (data.root.numpy() != 0).any(axis=(0, 1)) | inputs.true_input.adds_noise
    return tuple(int(j) for j in np.flatnonzero(some | sources.have_errors))


def make_gp(
    options: Any,
    kernels: list[Any],
    inputs: InputRows,
    data: Data,
    num_latent: int,
    points: int,
    seed: int,
    Z: np.ndarray | None = None,
    learn_Z: bool = False,
    noisy: tuple[int, ...] = (),
) -> SparseGP | FullGP:
    """FullGP up to FULL_GP_UP_TO exact sources on the engine, else SparseGP of so many points, or
    of the points Z, which are learned if told so; `noisy` as found by `noisy_features`."""
    d = data.X.shape[1]
    treatment, n = inputs.treatment, int(data.Y.shape[0])
    learned = inputs.true_input.learn != "none"
    X = (inputs(data.X, data.root)[0] if learned else data.X).numpy()
    X = X.reshape(n, inputs.nodes, d).mean(axis=1)
    full = options.n_inducing is None and Z is None and n <= FULL_GP_UP_TO
    may_be_full = INFERENCES.find(options.inference).full_gp
    if full and treatment.nodes == 1 and not noisy and may_be_full:
        return FullGP(KernelRows(kernels, X, num_latent))
    psi = treatment.closed_form_moments
    # Psi statistics cost m² per source: there "full" would be n³.
    every = full and not (psi and noisy)
    if Z is None:
        Z = _inducing_points(kernels, X, n if every else points, seed, data.weight)
    return SparseGP(
        (PsiRows if psi else KernelRows)(
            kernels,
            Z,
            num_latent,
            nodes=inputs.nodes,
            learn_Z=learn_Z,
            dtype=tf.as_dtype(options.dtype),
            noisy=noisy,
            inputs=inputs if learned else None,
        )
    )


def _inducing_points(
    kernels: list[Any], X: np.ndarray, number: int, *seed_and_weight: Any
) -> np.ndarray:
    """Of powers of the inputs where the kernels are of these: k-means would be led by tails."""
    first, distinct = kernels[0], np.unique(X, axis=0)
    if not isinstance(first, PowerInput) or len(distinct) <= number:
        return inducing_points(X, number, *seed_and_weight)
    inner = inducing_points(first.inner(tf.constant(X)).numpy(), number, *seed_and_weight)
    return np.clip(first.outer(inner), X.min(axis=0), X.max(axis=0))


def inducing_points(
    X: np.ndarray, number: int, seed: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """k-means centres of X [n, d] with weights [n]; the distinct rows themselves where there are no
    more of them.

    Of many rows, KMEANS_ROWS drawn at random (and at least 50 per centre): the others would move
    the centres little and cost as much as several sweeps.
    """
    distinct = np.unique(X, axis=0)
    if len(distinct) <= number:
        return distinct
    enough = max(KMEANS_ROWS, 50 * number)
    if len(X) > enough:
        few = np.random.default_rng(seed).choice(len(X), enough, replace=False)
        X, weight = X[few], None if weight is None else np.asarray(weight)[few]
    with warnings.catch_warnings(), threadpool_limits(1):  # several add up in another order
        warnings.simplefilter("ignore")
        return (
            KMeans(number, n_init=1, random_state=seed)
            .fit(X, sample_weight=weight)
            .cluster_centers_
        )
