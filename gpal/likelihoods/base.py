"""What every classification likelihood p(y | f) offers, and the register of them by name.

    @LIKELIHOODS.register
    class Softmax(ClassificationLikelihood):
        name = "softmax"
        ...

Shapes: N sources, C classes, P latent functions (P = C for multi-class, P = 1 for binary).

    Fmu, Fvar   [N, P]  marginals q(f_i) = N(m_i, v_i), latent functions independent
    Y           [N, 1]  class index 0 … C−1, integer or float (as in gpflow's MultiClass, Bernoulli)
                or weights of the classes [N, C] (`partial_labels`)

A likelihood is an ordinary `gpflow.likelihoods.Likelihood`, so it also works inside plain GPflow
models. On top it supplies

    conditional_probabilities(F)   p(y = c | f) at given latent values
    predict_proba(Fmu, Fvar)       E_q(f) p(y = c | f)
    sites(Fmu, Fvar, Y)            precision θ and natural mean r of the Gaussian that meets
                                   E_q(f) log p(y | f) at q (methods: the natural-gradient row)

         θ = −2 ∂E/∂v,     r = ∂E/∂m + θ m,      E = E_q(f)[log p(y | f)]

after Khan & Lin (2017), "Conjugate-computation variational inference". The results have the dtype
of Fmu, float64 or float32; leading batch axes are allowed wherever N is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes

from gpal.errors import InputError
from gpal.files.saved_data import whole_number
from gpal.likelihoods.site_rules import NaturalGradient, SiteRule, natural_gradient_sites
from gpal.registry import Register

__all__ = ["LIKELIHOODS", "ClassificationLikelihood"]


class ClassificationLikelihood(gpflow.likelihoods.Likelihood):
    """Base class: a subclass gives `_conditional_probabilities`, `_variational_expectations`,
    `_predict_proba` and `initial_sites`; `_sites` too where it has a closed form.

    What there is to say about a likelihood stands on its class; the tables of the documentation and
    the refusals of what does not work are derived from there (`gpal.inference.capabilities`).

    name, aliases  keys in `LIKELIHOODS`
    classes        how many it can tell apart: "two or more", or "two": others are refused
    expectation    how E_q log p(y | f) is taken, in words
    prediction     how E_q p(y | f) is
    source         the paper
    log_concave    whether log p(y | f), or its bound, is concave in f: all sites have θ ≥ 0
                   (not those of several nodes that are met together, `averaged.coupled`)
    smooth         whether log p(y | f) is differentiable in f
    site_rules     that it has; the first is the one of inference "sites"
    tolerance      a factor of that of the last sweeps, below 1 where these gain slowly
    takes_sets     whether a label may be a set of classes, or have weights (`partial_labels`)
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    classes: ClassVar[str] = "two or more"
    expectation: ClassVar[str] = ""
    prediction: ClassVar[str] = ""
    source: ClassVar[str] = ""
    log_concave: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    site_rules: ClassVar[tuple[SiteRule[Any], ...]] = (NaturalGradient(),)
    tolerance: ClassVar[float] = 1.0
    takes_sets: ClassVar[bool] = False
    latent_dim: int  # P, of which GPflow says that it may be None

    def __init_subclass__(cls, **options: Any) -> None:
        """A class that is not registered has a name nevertheless, and not that of its base."""
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __init__(self, num_classes: int, latent_dim: int) -> None:
        if num_classes < 2:
            raise InputError(
                f"{type(self).__name__} needs at least two classes, got {num_classes}: "
                "give sources of another class"
            )
        if self.classes == "two" and num_classes != 2:
            raise InputError(
                f"the {self.name} likelihood is for two classes, got {num_classes}: "
                "use softmax, or one classifier per class against the rest"
            )
        super().__init__(input_dim=None, latent_dim=latent_dim, observation_dim=None)
        self.num_classes = whole_number(num_classes, "num_classes", 2)

    @check_shapes("F: [batch..., P]", "return: [batch..., C]")
    def conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        """p(y = c | f)."""
        return self._conditional_probabilities(tf.convert_to_tensor(F))

    @check_shapes("Fmu: [batch..., P]", "Fvar: [batch..., P]", "return: [batch..., C]")
    def predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """E_q(f) p(y = c | f); rows sum to one."""
        return self._predict_proba(tf.convert_to_tensor(Fmu), tf.convert_to_tensor(Fvar))

    @check_shapes(
        "Fmu: [batch..., P]",
        "Fvar: [batch..., P]",
        "Y: [batch..., K]",
        "return[0]: [batch..., P]",
        "return[1]: [batch..., P]",
    )
    def sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Site precisions θ and natural means r at the marginals q(f_i) = N(Fmu, Fvar)."""
        return self._sites(tf.convert_to_tensor(Fmu), tf.convert_to_tensor(Fvar), Y)

    @check_shapes(
        "Fmu: [batch..., P]",
        "Fvar: [batch..., P]",
        "Y: [batch..., K]",
        "return[0]: [batch..., P]",
        "return[1]: [batch..., P]",
        "return[2]: [batch...]",
    )
    def sites_and_expectations(
        self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """(θ, r, E_q log p): both at once, for likelihoods that share work between them."""
        precision, natural_mean = self._sites(Fmu, Fvar, Y)
        return precision, natural_mean, self._variational_expectations(None, Fmu, Fvar, Y)

    @property
    def coupling_points(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Points [T, P] and weights [T] of N(0, I), for all nodes of a source alike (`averaged`);
        None unless log p(y | f) is monotone in each f_c and has `log_derivatives`."""
        return None

    @classmethod
    def is_coupled(cls) -> bool:
        """Whether the nodes of an uncertain input are met together: it has `coupling_points`."""
        return cls.coupling_points is not ClassificationLikelihood.coupling_points

    def monotone(self, Y: tf.Tensor) -> tf.Tensor | None:
        """Of which labels log p(y | f) is monotone in each f_c, [batch...]; None: of all, where
        there are `coupling_points`."""
        return None

    def log_derivatives(
        self, F: tf.Tensor, one_hot: tf.Tensor, axis: int = -1
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """log p(y | f), its gradient in f and its negative curvatures −∂² log p(y | f)/∂f_c².

        F and the one-hot labels have latent functions and classes on `axis`; log p is without it.
        """
        raise NotImplementedError

    def initial_sites(self, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Float64 sites to start from, before any q(f) is known; θ > 0.

        The rule throughout: the largest curvature that log p(y | f) has for θ, so that the first
        step is not too long, and its gradient at f = 0 for r.
        """
        raise NotImplementedError

    def select_settings(self, held_out_nll: Callable[[], float]) -> bool:
        """Choose settings that the bound cannot tell apart; whether any was changed.

        Called before the fit. `held_out_nll` learns hyper-parameters for the likelihood as it is
        then, from where they were left before, and gives the negative log likelihood per source of
        labels that q(f) has not seen.
        """
        return False

    def to_data(self) -> dict[str, Any]:
        """Name and constructor arguments, fit for JSON; `likelihood_from_data` makes it again.

        Parameters, such as a learned δ, are not in it: gpflow.utilities.parameter_dict has them.
        """
        return {"name": self.name, "num_classes": self.num_classes, **self._options()}

    def _options(self) -> dict[str, Any]:
        return {}

    def _conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def _log_conditional_probabilities(self, F: tf.Tensor) -> tf.Tensor:
        return tf.math.log(self._conditional_probabilities(F))

    def _predict_proba(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def _sites(self, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return natural_gradient_sites(self, Fmu, Fvar, Y)

    @check_shapes("Y: [batch..., 1]", "return: [batch..., C]")
    def one_hot(self, Y: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """Class index [batch..., 1] as zeros and a one, [batch..., C]."""
        labels = tf.cast(tf.convert_to_tensor(Y)[..., 0], tf.int32)
        return tf.one_hot(labels, self.num_classes, dtype=dtype)

    # ---- the GPflow side, in terms of the above --------------------------------------------------

    @inherit_check_shapes
    def _log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        log_p = self._log_conditional_probabilities(F)
        return _at_label(self.one_hot(Y, log_p.dtype), log_p)

    @inherit_check_shapes
    def _conditional_mean(self, X: Any, F: tf.Tensor) -> tf.Tensor:
        return self.conditional_probabilities(F)

    @inherit_check_shapes
    def _conditional_variance(self, X: Any, F: tf.Tensor) -> tf.Tensor:
        p = self.conditional_probabilities(F)
        return p - p**2

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        p = self.predict_proba(Fmu, Fvar)
        return p, p - p**2

    @inherit_check_shapes
    def _predict_log_density(
        self, X: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        p = self.predict_proba(Fmu, Fvar)
        smallest = np.finfo(p.dtype.as_numpy_dtype).tiny  # a zero by underflow stays finite
        return tf.math.log(tf.maximum(_at_label(self.one_hot(Y, p.dtype), p), smallest))


LIKELIHOODS: Register[ClassificationLikelihood] = Register(
    "likelihood", "gpal.likelihoods", "gpal.likelihoods", ClassificationLikelihood
)


def _at_label(one_hot: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """The value at the label; a `where`, because 0 · (−∞) is not 0."""
    return tf.reduce_sum(tf.where(one_hot > 0, values, tf.zeros_like(values)), axis=-1)
