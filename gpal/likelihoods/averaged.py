"""A likelihood averaged over its uncertain input, p(y | x̃) = (1/S) Σ_s p(y | f(x_s)): two bounds.

Both take no more of q(f) than its marginals N(m_s, v_s) at the S nodes of a source, so that the
engine meets them with a Gaussian site per node. Below E_q[log (1/S) Σ_s p(y | f_s)] lie

    separate   E = log (1/S) Σ_s exp E_q[log p(y | f_s)]
    coupled    E = E_ε[log (1/S) Σ_s p(y | m_s + σ_s ε)],    σ_s = √v_s

The first is for every site rule: Jensen's inequality at every node, the optimum of a free-form q(x)
that is independent of q(f). The second has one ε ~ N(0, I) for all nodes of a source. As logsumexp
is convex it is above the first; and it is still a bound wherever log p(y | f) is monotone in each
f_c. For then, with w_s ∝ p(y | f_s) and the other, independent latent functions held,

    ∂² log Σ_s p(y | f_s) / ∂f_sc ∂f_tc = −w_s w_t g_sc g_tc ≤ 0,    s ≠ t,    g = ∂ log p/∂f,

and of all joint distributions with given marginals the comonotone one, f_s = m_s + σ_s ε, gives
such a submodular function its smallest expectation (Lorentz 1953, Tchen 1980), so a smaller one
than the covariances of q do. With h_s = −∂² log p/∂f² at f_s, and Bonnet and Price's identities for
the coupled f, its sites are

    ∂E/∂m_s = E_ε[w_s g_s]      θ_s = E_ε[w_s (h_s − g_s² + g_s Σ_t w_t g_t σ_t / σ_s)]

which have no sign: a source whose nodes lie on both sides of a boundary may have θ_s < 0. E_ε is
taken on the likelihood's points, and is a bound to their accuracy.
"""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes

from gpal.likelihoods.base import ClassificationLikelihood
from gpal.likelihoods.quasi_random import VARIANCE_FLOOR

__all__ = ["coupled", "separate"]


@check_shapes(
    "precision: [rows, P]",
    "natural_mean: [rows, P]",
    "expectations: [rows]",
    "return[0]: [rows, P]",
    "return[1]: [rows, P]",
    "return[2]: [n]",
)
def separate(
    precision: tf.Tensor, natural_mean: tf.Tensor, expectations: tf.Tensor, nodes: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """(θ, r, E) from the sites and expectations at each node: node s weighs w_s ∝ exp E_s."""
    per_node = tf.reshape(expectations, [-1, nodes])
    evidence = tf.reduce_logsumexp(per_node, axis=1)
    weights = tf.reshape(tf.exp(per_node - evidence[:, None]), [-1, 1])
    terms = evidence - tf.math.log(tf.cast(nodes, evidence.dtype))
    return weights * precision, weights * natural_mean, terms


@check_shapes(
    "Fmu: [rows, P]",
    "Fvar: [rows, P]",
    "Y: [rows, K]",
    "return[0]: [rows, P]",
    "return[1]: [rows, P]",
    "return[2]: [n]",
)
def coupled(
    likelihood: ClassificationLikelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor, nodes: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """(θ, r, E), ε running over the likelihood's `coupling_points`; nodes of a source stand next to
    each other."""
    assert likelihood.coupling_points is not None
    points, shares = likelihood.coupling_points
    T, P = points.shape
    shares = tf.constant(shares, Fmu.dtype)
    # Latent functions on the middle axis, where TensorFlow reduces quickest: f is [T, P, rows].
    mean, one_hot = tf.transpose(Fmu), tf.transpose(likelihood.one_hot(Y, Fmu.dtype))
    deviation = tf.sqrt(tf.maximum(tf.transpose(Fvar), VARIANCE_FLOOR))
    f = mean + deviation * tf.constant(points[:, :, None], Fmu.dtype)
    log_p, gradient, curvature = likelihood.log_derivatives(f, one_hot, axis=-2)

    per_node = tf.reshape(log_p, [T, -1, nodes])
    evidence = tf.reduce_logsumexp(per_node, axis=2, keepdims=True)
    weights = tf.reshape(tf.exp(per_node - evidence), [T, 1, -1])
    pull = weights * gradient
    of_source = tf.reduce_sum(tf.reshape(pull * deviation, [T, P, -1, nodes]), axis=3)
    along = tf.repeat(of_source, nodes, axis=2) / deviation
    precision = tf.tensordot(shares, weights * curvature + pull * (along - gradient), 1)
    natural_mean = tf.tensordot(shares, pull, 1) + precision * mean
    terms = tf.tensordot(shares, evidence[..., 0], 1) - tf.math.log(tf.cast(nodes, Fmu.dtype))
    return tf.transpose(precision), tf.transpose(natural_mean), terms
