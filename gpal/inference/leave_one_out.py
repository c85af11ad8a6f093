"""q(f_i) as the other sources have it: leave-one-out in closed form, without another fit.

A site is a factor exp(r g − ½ θ g²) of q(u) in g_i = k_iᵀ K⁻¹ u, the part of f_i that the inducing
variables tell; λ_i = k_ii − k_iᵀ K⁻¹ k_i is what they leave open (0 in a full GP). With q(f_i) =
N(m, v) and s = v − λ the variance of g_i, q without the site of source i is

    N(m₋, v₋),      m₋ = (m − s r)/(1 − θ s),      v₋ = s/(1 − θ s) + λ,

exactly. Held are the hyper-parameters and the sites of the other sources, which a fit without
source i would change a little. So

    p(y_i | all others) ≈ E p(y_i | f_i),     f_i ~ N(m₋, v₋)

Source: Opper & Winther (2000), "Gaussian processes for classification: mean-field algorithms";
Vehtari et al. (2016), "Bayesian leave-one-out cross-validation approximations for Gaussian latent
variable models", JMLR 17.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from gpal.inference.base import Fit, Problem
from gpal.inference.rows import Sites

__all__ = ["leave_one_out", "without_site"]

SMALLEST = 1e-6  # of 1 − θ s, which is above 0 but for rounding


@check_shapes(
    "mean: [n, P]",
    "variance: [n, P]",
    "open_variance: [n, P]",
    "sites[all]: [n, P]",
    "return[0]: [n, P]",
    "return[1]: [n, P]",
)
def without_site(
    mean: tf.Tensor, variance: tf.Tensor, open_variance: tf.Tensor, sites: Sites
) -> tuple[tf.Tensor, tf.Tensor]:
    """m₋ and v₋ of the formulas above."""
    theta, r = sites
    s = tf.maximum(variance - open_variance, 0.0)
    left = tf.maximum(1.0 - theta * s, SMALLEST)
    return (mean - s * r) / left, s / left + open_variance


def leave_one_out(
    problem: Problem, fit: Fit, which: np.ndarray | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """m₋ and v₋ [n, P] of the sources `which` of a fit by sites; None: of all.

    Raises ValueError for a fit without sites, or with several nodes for a source: leaving out one
    of them leaves the others of the same source.
    """
    gp, data = problem.gp, problem.data
    if fit.sites is None or gp.nodes > 1:
        raise ValueError("leaving one out needs a site for each source, and one node")
    parts = (*gp.data_marginals(data, fit.posterior), gp.open_variance(data), *fit.sites)
    if which is not None:
        parts = tuple(tf.gather(part, which) for part in parts)
    mean, variance, open_variance, precision, natural_mean = parts
    return without_site(mean, variance, open_variance, Sites(precision, natural_mean))
