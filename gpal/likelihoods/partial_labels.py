"""A label that is a set S of classes: p(y ∈ S | f) = Σ_{c∈S} p(c | f).

What is known of a source may be that it is one of several classes ("an active galaxy"), and not
which. That it is the set which is told, and not the class, must not depend on the class within the
set (coarsened at random). With the shares w of the classes of S and g_c, h_c the gradient and the
negative diagonal curvature of log p(c | f)

    log p(S | f) = logsumexp_{c∈S} log p(c | f),        w_c = p(c | f) / p(S | f) for c ∈ S, else 0
    ∂/∂f = Σ_c w_c g_c,        −∂²/∂f² = Σ_c w_c (h_c − g_c²) + (Σ_c w_c g_c)²

(Louis 1982), from which the sites come on the likelihood's points, as those of a class. They have
no sign: where the classes of S are told apart less than S from the rest, θ < 0. A set of one class
is that class. A set of all classes has w = p, gradient and curvature are zero: it says nothing.
If every p(c | f) falls in the f_k of other classes, p(S | f) is monotone in each f_k too, and the
nodes of an uncertain input are met together (`averaged.coupled`) where those of a class are.

Y holds c for a class, −Σ_{c∈S} 2^c for a set.

Source: Heitjan & Rubin (1991), "Ignorability and coarse data"; Cour, Sapp & Taskar (2011),
"Learning from partial labels".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from gpal.likelihoods.quasi_random import QuasiRandomLikelihood, gaussian_samples

__all__ = ["PartialLabels", "for_labels"]


def for_labels(likelihood: Any, codes: np.ndarray) -> Any:
    """The likelihood of such labels: itself, unless there are sets among them."""
    return PartialLabels(likelihood) if (np.asarray(codes) < 0).any() else likelihood


class PartialLabels(QuasiRandomLikelihood):
    """`base` for labels of which some are sets of classes; its parameters and its predictions.

    base   a likelihood that `takes_sets`
    """

    takes_sets = True

    def __init__(self, base: QuasiRandomLikelihood) -> None:
        super().__init__(base.num_classes, base.num_points, base.seed)
        self.base, self.latent_dim = base, base.latent_dim

    def to_data(self) -> dict[str, Any]:
        return self.base.to_data()

    @property
    def training_points(self) -> np.ndarray:
        return self.base.training_points

    @property
    def coupling_points(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.base.coupling_points

    def one_hot(self, Y: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """Ones at all classes of the set, [batch..., C]."""
        codes = tf.cast(tf.convert_to_tensor(Y), tf.int64)
        classes = tf.range(self.num_classes, dtype=tf.int64)
        in_set = tf.bitwise.right_shift(tf.maximum(-codes, 0), classes) % 2 == 1
        return tf.cast(tf.where(codes < 0, in_set, codes == classes), dtype)

    def log_derivatives(
        self, F: tf.Tensor, one_hot: tf.Tensor, axis: int = -1
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        classes = tf.unstack(tf.eye(self.num_classes, dtype=F.dtype))
        shape = [-1 if place == axis else 1 for place in range(axis, 0)]
        parts = [self.base.log_derivatives(F, tf.reshape(c, shape), axis) for c in classes]
        inside = tf.unstack(one_hot > 0, axis=axis)
        log_p = tf.stack(
            [tf.where(known, part[0], -np.inf) for known, part in zip(inside, parts)], axis
        )
        log_set = tf.reduce_logsumexp(log_p, axis=axis)
        shares = tf.unstack(tf.exp(log_p - tf.expand_dims(log_set, axis)), axis=axis)
        gradient, curvature = tf.zeros_like(F), tf.zeros_like(F)
        for share, (_, g, h) in zip(shares, parts):
            w = tf.expand_dims(share, axis)
            gradient += w * g
            curvature += w * (h - g * g)
        return log_set, gradient, curvature + gradient * gradient

    @inherit_check_shapes
    def sites_and_expectations(
        self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        samples = gaussian_samples(Fmu, Fvar, self.training_points)
        parts = self.log_derivatives(samples, self.one_hot(Y, Fmu.dtype))
        log_p, gradient, precision = (tf.reduce_mean(part, axis=0) for part in parts)
        return precision, gradient + precision * Fmu, log_p

    @inherit_check_shapes
    def _variational_expectations(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        return self.sites_and_expectations(Fmu, Fvar, Y)[2]

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The mean of those of the classes: at f = 0 they have equal shares."""
        of_classes = self.base.initial_sites(tf.range(self.num_classes, dtype=tf.float64)[:, None])
        members = self.one_hot(Y, tf.float64)
        shares = members / tf.reduce_sum(members, axis=-1, keepdims=True)
        precision, natural_mean = (tf.matmul(shares, part) for part in of_classes)
        return precision, natural_mean

    def _conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return self.base.conditional_probabilities(F)

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        return self.base.predict_proba(Fmu, Fvar)

    @inherit_check_shapes
    def _log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return self.log_derivatives(F, self.one_hot(Y, F.dtype))[0]

    @inherit_check_shapes
    def _predict_log_density(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        p = self.predict_proba(Fmu, Fvar)
        p_set = tf.reduce_sum(self.one_hot(Y, p.dtype) * p, axis=-1)
        return tf.math.log(tf.maximum(p_set, np.finfo(p.dtype.as_numpy_dtype).tiny))
