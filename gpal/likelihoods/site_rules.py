"""Site rules: which Gaussian site stands for p(y | f) at the current q(f) = N(m, v).

A rule gives the site precision θ and natural mean r, and the value it maximises, all as functions
of the marginals (methods, the table of section 1):

    natural_gradient   any likelihood    θ = −2 ∂E/∂v, r = ∂E/∂m + θ m of E = E_q[log p(y | f)]
    jaakkola_jordan    BernoulliLogit    vi-JJ = Pólya-Gamma CAVI
    taylor             BernoulliLogit    vi-Taylor; not a bound
    cavi               LogisticSoftmax   gamma-Poisson-Pólya-Gamma augmentation
    dirichlet          Dirichlet         constants

All but the first replace log p(y | f) by a quadratic in f with local parameters ξ,

    log p(y | f) ≥ κ(ξ) + Σ_c (r_c f_c − ½ θ_c f_c²)     (≈ for Taylor),

whose optimal ξ is a function of (m, v): no state is kept, and a mini-batch or a partition needs
nothing but its marginals. `quadratic` takes any ξ, for an engine that treats it as numerical
variables of its own (vi-JJ-full, vi-JJ-hybrid).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.likelihoods.base import ClassificationLikelihood, natural_gradient_sites
from gpal.likelihoods.bernoulli_logit import BernoulliLogit
from gpal.likelihoods.dirichlet import Dirichlet
from gpal.likelihoods.logistic_softmax import LogisticSoftmax

__all__ = [
    "SITE_RULES",
    "Quadratic",
    "QuadraticRule",
    "SiteRule",
    "make_site_rule",
    "site_rules_for",
]


class SiteRule(ABC):
    """θ and r [N, P] from marginals, and the bound [N] that they climb.

    name       key in SITE_RULES
    serves     likelihood classes the rule is for
    is_bound   whether `bound` is below E_q log p(y | f) (or equal to it)
    constant   whether the sites depend on the label alone
    signed     whether the engine is to follow θ < 0, or to clip it
    """

    name: ClassVar[str]
    serves: ClassVar[tuple[type, ...]]
    is_bound: ClassVar[bool] = True
    constant: ClassVar[bool] = False
    signed: bool = False

    @abstractmethod
    def initial_sites(self, likelihood: Any, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Float64 sites to start from; θ > 0."""

    @abstractmethod
    def sites(
        self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """θ and r at q(f)."""

    def meet(
        self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """(θ, r, bound) at q(f)."""
        precision, natural_mean = self.sites(likelihood, Fmu, Fvar, Y)
        return precision, natural_mean, self.bound(likelihood, Fmu, Fvar, Y)

    def couples(self, likelihood: Any) -> bool:
        """Whether the nodes of an uncertain input are met together (`averaged.coupled`)."""
        return False

    @abstractmethod
    def bound(self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """The local term of the evidence bound. Its gradient in (m, v) is r − θ m and −θ/2."""


class NaturalGradient(SiteRule):
    """The site that has the gradients of E_q[log p(y | f)] (Khan & Lin 2017); may have θ < 0."""

    name = "natural_gradient"
    serves = (gpflow.likelihoods.Likelihood,)

    def initial_sites(self, likelihood, Y):
        return likelihood.initial_sites(Y)

    def sites(self, likelihood, Fmu, Fvar, Y):
        if isinstance(likelihood, ClassificationLikelihood):
            return likelihood.sites(Fmu, Fvar, Y)
        return natural_gradient_sites(likelihood, Fmu, Fvar, Y)

    def meet(self, likelihood, Fmu, Fvar, Y):
        if isinstance(likelihood, ClassificationLikelihood):
            return likelihood.sites_and_expectations(Fmu, Fvar, Y)
        return super().meet(likelihood, Fmu, Fvar, Y)

    def couples(self, likelihood):
        return getattr(likelihood, "coupling_points", None) is not None

    def bound(self, likelihood, Fmu, Fvar, Y):
        return likelihood.variational_expectations(None, Fmu, Fvar, Y)


class Quadratic(NamedTuple):
    """κ + Σ_c (r_c f_c − ½ θ_c f_c²): θ and r [N, P], κ [N]."""

    precision: tf.Tensor
    natural_mean: tf.Tensor
    constant: tf.Tensor

    def expectation(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        terms = self.natural_mean * Fmu - 0.5 * self.precision * (Fmu**2 + Fvar)
        return self.constant + tf.reduce_sum(terms, axis=-1)


class QuadraticRule(SiteRule):
    """A rule made of `local_parameters` ξ(m, v) and `quadratic`(ξ).

    The bound holds ξ while it is differentiated: at the optimal ξ that is its whole gradient.
    """

    @abstractmethod
    def local_parameters(
        self, likelihood: Any, Fmu: tf.Tensor, Fvar: tf.Tensor, Y: tf.Tensor
    ) -> Any:
        """Optimal ξ at q(f)."""

    @abstractmethod
    def quadratic(self, likelihood: Any, local: Any, Y: tf.Tensor) -> Quadratic:
        """The quadratic in f at any ξ."""

    def initial_sites(self, likelihood, Y):
        prior = tf.ones((tf.shape(Y)[0], likelihood.latent_dim), tf.float64)
        return self.sites(likelihood, tf.zeros_like(prior), prior, Y)

    def sites(self, likelihood, Fmu, Fvar, Y):
        local = self.local_parameters(likelihood, Fmu, Fvar, Y)
        quadratic = self.quadratic(likelihood, local, Y)
        return quadratic.precision, quadratic.natural_mean

    def bound(self, likelihood, Fmu, Fvar, Y):
        local = self.local_parameters(likelihood, Fmu, Fvar, Y)
        quadratic = self.quadratic(likelihood, tf.nest.map_structure(tf.stop_gradient, local), Y)
        return quadratic.expectation(Fmu, Fvar)


def _second_moment_root(Fmu, Fvar):
    """c = √(m² + v), off zero, where tanh(c/2)/(2c) = ¼ is no longer computed as 0/0."""
    return tf.sqrt(tf.maximum(Fmu**2 + Fvar, 1e-12))


def _polya_gamma_mean(c):
    """E[ω] = tanh(c/2)/(2c) of the Pólya-Gamma distribution PG(1, c)."""
    return tf.tanh(0.5 * c) / (2.0 * c)


def _log_two_cosh(c):
    """log 2cosh(c/2), c ≥ 0."""
    return 0.5 * c + tf.math.softplus(-c)


class JaakkolaJordan(QuadraticRule):
    """log σ(±f) ≥ ± f/2 − log 2cosh(c/2) − ½ θ (f² − c²), θ = tanh(c/2)/(2c); best at c² = m² + v.

    Paper 002, eqs. (12)-(14), with λ(ξ) = θ/2 = tanh(ξ/2)/(4ξ). θ is the mean of the Pólya-Gamma
    variable PG(1, c): the same method as Pólya-Gamma coordinate ascent.
    """

    name = "jaakkola_jordan"
    serves = (BernoulliLogit,)

    def local_parameters(self, likelihood, Fmu, Fvar, Y):
        return _second_moment_root(Fmu, Fvar)

    def quadratic(self, likelihood, local, Y):
        c = local
        precision = _polya_gamma_mean(c)
        constant = tf.reduce_sum(0.5 * precision * c**2 - _log_two_cosh(c), axis=-1)
        return Quadratic(precision, 0.5 * likelihood.sign(Y, c.dtype), constant)


class Taylor(QuadraticRule):
    """Second-order expansion of log σ(±f) at ξ = m (paper 002, eqs. 17-18): quick, not a bound.

    θ = σ(ξ) σ(−ξ),     r = φ + θ ξ,     φ = ± σ(∓ξ)
    """

    name = "taylor"
    serves = (BernoulliLogit,)
    is_bound = False

    def local_parameters(self, likelihood, Fmu, Fvar, Y):
        return Fmu

    def quadratic(self, likelihood, local, Y):
        xi, sign = local, likelihood.sign(Y, local.dtype)
        slope = sign * tf.sigmoid(-sign * xi)
        precision = tf.sigmoid(xi) * tf.sigmoid(-xi)
        constant = tf.math.log_sigmoid(sign * xi) - slope * xi - 0.5 * precision * xi**2
        return Quadratic(precision, slope + precision * xi, tf.reduce_sum(constant, axis=-1))


class Augmentation(NamedTuple):
    """Local parameters of `Cavi`: c̄ and log γ [N, C], α [N], all float64."""

    c: tf.Tensor
    log_gamma: tf.Tensor
    alpha: tf.Tensor


class Cavi(QuadraticRule):
    """Logistic-softmax made conjugate (paper 004): λ ~ gamma, n ~ Poisson, ω ~ Pólya-Gamma.

        1/Σ_c σ(f_c) = ∫ Π_c e^{−λ σ(f_c)} dλ,     e^{−λ σ(f)} = Σ_n Po(n | λ) σ(−f)^n

    With q(λ) = Ga(α, C), q(n_c) = Po(γ_c), q(ω_c | n_c) = PG(y_c + n_c, c̄_c), y one-hot, the local
    term of the evidence bound is

        E = −log C + lnΓ(α) + (1 − α) ψ(α) + Σ_c γ_c (1 − log γ_c + ψ(α) − log C)
            + Σ_c [(y_c − γ_c) m_c/2 − (y_c + γ_c) (log 2cosh(c̄_c/2)
                                                   + (m_c² + v_c − c̄_c²) tanh(c̄_c/2)/(4 c̄_c))]

    It is stationary at c̄² = m² + v, and at

        γ_c = e^{ψ(α)} g_c/C,     g_c = e^{−m_c/2}/(2cosh(c̄_c/2)) < 1,     α = 1 + Σ_c γ_c.

    (The γ printed in the paper has E[λ] σ(−f̄) in place of e^{E log λ}/2: not stationary.) γ and α
    are solved jointly. With D = 1 − mean_c g_c and k(α) = α − e^{ψ(α)}, which lies in (.438, ½),
    the last two are one equation with one root,

        α = k(α) + (1 − k(α))/D,

    a contraction by less than .07 a step: `num_iterations` = 12 reach rounding error. D is kept
    above 10⁻⁸, where any γ still gives a bound. The sums of large cancelling terms are done in
    float64 whatever the dtype of the marginals.

        θ_c = (y_c + γ_c) tanh(c̄_c/2)/(2 c̄_c) > 0,     r_c = (y_c − γ_c)/2

    The bound is loose: independent q(λ) and q(n) cost .31 nats per source at m = 0 even where
    v = 0, .4 at v = 1. Natural-gradient sites of the same likelihood do not pay that.
    """

    name = "cavi"
    serves = (LogisticSoftmax,)
    num_iterations = 12

    def local_parameters(self, likelihood, Fmu, Fvar, Y):
        m, v = tf.cast(Fmu, tf.float64), tf.cast(Fvar, tf.float64)
        c = _second_moment_root(m, v)
        # −(m + c)/2 without cancellation where m < 0
        half_sum = tf.where(m < 0.0, 0.5 * v / (c - m), 0.5 * (m + c))
        log_g = -half_sum - tf.math.softplus(-c)
        deficit = tf.maximum(tf.reduce_mean(-tf.math.expm1(log_g), axis=-1), 1e-8)
        alpha = 0.5 + 0.5 / deficit
        for _ in range(self.num_iterations):
            k = _digamma_deficit(alpha)
            alpha = k + (1.0 - k) / deficit
        log_rate = tf.math.digamma(alpha) - np.log(likelihood.num_classes)
        return Augmentation(c, log_rate[..., None] + log_g, alpha)

    def quadratic(self, likelihood, local, Y):
        c, log_gamma, alpha = local
        gamma, log_C = tf.exp(log_gamma), np.log(likelihood.num_classes)
        one_hot = likelihood.one_hot(Y, c.dtype)
        precision = (one_hot + gamma) * _polya_gamma_mean(c)
        digamma = tf.math.digamma(alpha)
        constant = (
            tf.math.lgamma(alpha)
            + (1.0 - alpha) * digamma
            - log_C
            + tf.reduce_sum(
                gamma * (1.0 - log_gamma + digamma[..., None] - log_C)
                - (one_hot + gamma) * _log_two_cosh(c)
                + 0.5 * precision * c**2,
                axis=-1,
            )
        )
        return Quadratic(precision, 0.5 * (one_hot - gamma), constant)

    def sites(self, likelihood, Fmu, Fvar, Y):
        precision, natural_mean = super().sites(likelihood, Fmu, Fvar, Y)
        return tf.cast(precision, Fmu.dtype), tf.cast(natural_mean, Fmu.dtype)

    def bound(self, likelihood, Fmu, Fvar, Y):
        m, v = tf.cast(Fmu, tf.float64), tf.cast(Fvar, tf.float64)
        return tf.cast(super().bound(likelihood, m, v, Y), Fmu.dtype)


def _digamma_deficit(alpha):
    """k(α) = α − e^{ψ(α)}, by its expansion in x = α − ½ where the difference cancels."""
    x = tf.maximum(alpha - 0.5, 0.5)
    expansion = 0.5 - 1.0 / (24.0 * x) + 37.0 / (5760.0 * x**3) - 10313.0 / (1451520.0 * x**5)
    return tf.where(alpha > 50.0, expansion, alpha - tf.exp(tf.math.digamma(alpha)))


class DirichletRegression(QuadraticRule):
    """The Gaussian pseudo-likelihood itself: no local parameters, one solve."""

    name = "dirichlet"
    serves = (Dirichlet,)
    constant = True

    def local_parameters(self, likelihood, Fmu, Fvar, Y):
        return likelihood.targets(Y, Fmu.dtype)

    def quadratic(self, likelihood, local, Y):
        target, variance = local
        terms = tf.math.log(2.0 * np.pi * variance) + target**2 / variance
        return Quadratic(1.0 / variance, target / variance, -0.5 * tf.reduce_sum(terms, axis=-1))


SITE_RULES: dict[str, SiteRule] = {
    rule.name: rule
    for rule in (NaturalGradient(), JaakkolaJordan(), Taylor(), Cavi(), DirichletRegression())
}


def site_rules_for(likelihood: gpflow.likelihoods.Likelihood) -> list[str]:
    """Names of the rules that serve a likelihood."""
    return [name for name, rule in SITE_RULES.items() if isinstance(likelihood, rule.serves)]


def make_site_rule(name: str, likelihood: gpflow.likelihoods.Likelihood | None = None) -> SiteRule:
    """The rule of that name; InputError if there is none, or it does not serve the likelihood."""
    if name not in SITE_RULES:
        raise InputError(f"unknown site rule {name!r}: choose one of {', '.join(SITE_RULES)}")
    if likelihood is not None and name not in site_rules_for(likelihood):
        raise InputError(
            f"site rule {name!r} does not serve {type(likelihood).__name__}: choose one of "
            f"{', '.join(site_rules_for(likelihood))}"
        )
    return SITE_RULES[name]
