"""Site rules: which Gaussian site stands for p(y | f) at the current q(f) = N(m, v).

A rule gives the site precision θ and natural mean r, and the value it maximises, all as functions
of the marginals (methods, the table of section 1). Here are those of any likelihood:

    natural_gradient   θ = −2 ∂E/∂v, r = ∂E/∂m + θ m of E = E_q[log p(y | f)]

A family's own rules stand beside its likelihood, which lists them as `site_rules`. They replace
log p(y | f) by a quadratic in f with local parameters ξ,

    log p(y | f) ≥ κ(ξ) + Σ_c (r_c f_c − ½ θ_c f_c²)     (≈ for Taylor),

whose optimal ξ is a function of (m, v): no state is kept, and a mini-batch or a partition needs
nothing but its marginals. `quadratic` takes any ξ, for an engine that treats it as numerical
variables of its own (vi-JJ-full, vi-JJ-hybrid).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import gpflow
import tensorflow as tf
from check_shapes import check_shapes

from gpal.errors import InputError

__all__ = [
    "NaturalGradient",
    "Quadratic",
    "QuadraticRule",
    "SiteRule",
    "make_site_rule",
    "natural_gradient_sites",
]

Likelihood = TypeVar("Likelihood", bound=gpflow.likelihoods.Likelihood)


@check_shapes(
    "Fmu: [batch..., P]",
    "Fvar: [batch..., P]",
    "Y: [batch..., K]",
    "return[0]: [batch..., P]",
    "return[1]: [batch..., P]",
)
def natural_gradient_sites(
    likelihood: gpflow.likelihoods.Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """(θ, r) of any GPflow likelihood by differentiating its variational expectations.

    θ is not clipped: a non-log-concave likelihood can give θ < 0, and what to do then is the
    engine's decision.
    """
    Fmu, Fvar = tf.convert_to_tensor(Fmu), tf.convert_to_tensor(Fvar)
    with tf.GradientTape() as tape:
        tape.watch([Fmu, Fvar])
        expectations = likelihood.variational_expectations(None, Fmu, Fvar, Y)
    gradient_mean, gradient_variance = tape.gradient(expectations, [Fmu, Fvar])
    precision = -2.0 * gradient_variance
    return precision, gradient_mean + precision * Fmu


class SiteRule(ABC, Generic[Likelihood]):
    """θ and r [N, P] from marginals m, v [N, P] and labels Y [N, 1], or [N, C] of
    `partial_labels`, and the bound [N] that they climb.

    name       key in `make_site_rule`
    is_bound   whether `bound` is below E_q log p(y | f) (or equal to it)
    constant   whether the sites depend on the label alone
    signed     whether the engine is to follow θ < 0, or to clip it
    """

    name: ClassVar[str]
    is_bound: ClassVar[bool] = True
    constant: ClassVar[bool] = False
    signed: bool = False

    @abstractmethod
    def initial_sites(self, likelihood: Likelihood, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Float64 sites to start from; θ > 0."""

    @abstractmethod
    def sites(
        self, likelihood: Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """θ and r at q(f)."""

    def meet(
        self, likelihood: Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """(θ, r, value by which an engine judges a step) at q(f): the bound, or E_q[log p(y | f)]
        in place of what is none."""
        precision, natural_mean = self.sites(likelihood, Fmu, Fvar, Y)
        return precision, natural_mean, self.bound(likelihood, Fmu, Fvar, Y)

    def couples(self, likelihood: Likelihood) -> bool:
        """Whether the nodes of an uncertain input are met together (`averaged.coupled`)."""
        return False

    @abstractmethod
    def bound(
        self, likelihood: Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        """The local term of the evidence bound. Its gradient in (m, v) is r − θ m and −θ/2."""


class NaturalGradient(SiteRule[Any]):
    """The site that has the gradients of E_q[log p(y | f)] (Khan & Lin 2017); may have θ < 0.

    For every `ClassificationLikelihood`, which has it as its `sites`.
    """

    name = "natural_gradient"

    @check_shapes("Y: [N, K]", "return[0]: [N, P]", "return[1]: [N, P]")
    def initial_sites(self, likelihood: Any, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return likelihood.initial_sites(Y)

    def sites(
        self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return likelihood.sites(Fmu, Fvar, Y)

    def meet(
        self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return likelihood.sites_and_expectations(Fmu, Fvar, Y)

    def couples(self, likelihood: Any) -> bool:
        return likelihood.coupling_points is not None

    def bound(self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return likelihood.variational_expectations(None, Fmu, Fvar, Y)


class Quadratic(NamedTuple):
    """κ + Σ_c (r_c f_c − ½ θ_c f_c²): θ and r [N, P], κ [N]."""

    precision: tf.Tensor
    natural_mean: tf.Tensor
    constant: tf.Tensor

    @check_shapes("Fmu: [batch..., P]", "Fvar: [batch..., P]", "return: [batch...]")
    def expectation(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        terms = self.natural_mean * Fmu - 0.5 * self.precision * (Fmu**2 + Fvar)
        return self.constant + tf.reduce_sum(terms, axis=-1)


class QuadraticRule(SiteRule[Likelihood]):
    """A rule made of `local_parameters` ξ(m, v) and `quadratic`(ξ).

    The bound holds ξ while it is differentiated: at the optimal ξ that is its whole gradient.
    """

    @abstractmethod
    def local_parameters(
        self, likelihood: Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> Any:
        """Optimal ξ at q(f)."""

    @abstractmethod
    def quadratic(self, likelihood: Likelihood, local: Any, Y: tf.Tensor) -> Quadratic:
        """The quadratic in f at any ξ."""

    @check_shapes("Y: [N, 1]", "return[0]: [N, P]", "return[1]: [N, P]")
    def initial_sites(self, likelihood: Likelihood, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        prior = tf.ones((tf.shape(Y)[0], likelihood.latent_dim), tf.float64)
        return self.sites(likelihood, tf.zeros_like(prior), prior, Y)

    def sites(
        self, likelihood: Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        local = self.local_parameters(likelihood, Fmu, Fvar, Y)
        quadratic = self.quadratic(likelihood, local, Y)
        return quadratic.precision, quadratic.natural_mean

    def bound(
        self, likelihood: Likelihood, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tf.Tensor:
        local = self.local_parameters(likelihood, Fmu, Fvar, Y)
        quadratic = self.quadratic(likelihood, tf.nest.map_structure(tf.stop_gradient, local), Y)
        return quadratic.expectation(Fmu, Fvar)


def make_site_rule(name: str | None, likelihood: Any) -> SiteRule[Any]:
    """The likelihood's rule of that name, or its default for None; InputError where it has none."""
    rules = {rule.name: rule for rule in likelihood.site_rules}
    if name is None:
        return likelihood.site_rules[0]
    if name not in rules:
        kind = likelihood if isinstance(likelihood, type) else type(likelihood)
        raise InputError(
            f"{kind.__name__} has no site rule {name!r}: choose one of {', '.join(rules)}"
        )
    return rules[name]
