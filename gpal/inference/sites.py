"""The engine: Gaussian sites, one loop for every likelihood (methods, section 1).

Repeat: take the marginals of q(f); let the likelihood's rule say which Gaussian sites (θ, r) meet
it there; step towards them; solve for q. With a conjugate rule each step is coordinate ascent; with
natural-gradient sites it is conjugate-computation variational inference (Khan & Lin 2017). If the
bound falls, the step is taken back by half until it does not.

Hyper-parameters are learned on the collapsed bound with the sites held (Adam et al. 2021): their
number does not grow with the inducing points. Rounds of a few L-BFGS iterations and a few sweeps
alternate until the bound stops rising.

Of a likelihood that is not log-concave, or averaged over an uncertain input, some optimal sites
have θ < 0. On the way they are clipped at zero, so that q always exists; the last sweeps follow
them.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from gpal.inference.base import INFERENCES, Fit, Inference, Problem, known_options
from gpal.inference.chunks import SparsePosterior
from gpal.inference.constant_sites import fit_constant_sites
from gpal.inference.parameters import assign, maximise, pack
from gpal.inference.rows import Data, Sites, meet

__all__ = [
    "CaviSites",
    "JaakkolaJordanSites",
    "SiteEngine",
    "TaylorSites",
    "fit_likelihood",
    "fit_sites",
]

SUBSET_ROUNDS = 3  # more of them fit the few sources rather than all
# L-BFGS iterations in a round: all sources are dear to go through, and after a subset are near the
# optimum, where the sites hardly depend on the hyper-parameters.
ITERATIONS, ITERATIONS_AFTER_SUBSET = 6, 10
# Change of the bound per source in a sweep, in nats, that tells that sites are far from being met.
# The first sweep after a subset was seen to make up to .03, and .08 to .26 on letter (26 classes).
FAR = 0.05

logger = logging.getLogger("gpal")
CLIPPED = 1e-6  # precisions below may be those that `rows.meet` has clipped, or a mixture with them


@INFERENCES.register
class SiteEngine(Inference):
    """The engine with the likelihood's own rule."""

    name: ClassVar[str] = "sites"
    summary: ClassVar[str] = "natural-gradient Gaussian sites over all rows (the default)"
    source: ClassVar[str] = "Khan & Lin 2017"
    full_gp = True
    can_refit = True

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
        fit = fit_constant_sites if rule.constant and gp.nodes == 1 else fit_sites
        given = {"rounds": rounds, "seed": seed, "progress": None if verbose else False}
        given |= known_options(self.name, options, fit)
        return fit(gp, likelihood, rule, data, **given)


@INFERENCES.register
class JaakkolaJordanSites(SiteEngine):
    """The engine with the Jaakkola-Jordan bound of the logistic function."""

    name = "jaakkola_jordan"
    summary = "vi-JJ: Jaakkola-Jordan bound, also Pólya-Gamma coordinate ascent"
    source = "Izmailov & Kropotov 2016"
    rule = "jaakkola_jordan"


@INFERENCES.register
class TaylorSites(SiteEngine):
    """The engine with the second-order expansion of the logistic function."""

    name = "taylor"
    summary = "vi-Taylor: second-order expansion, not a bound"
    source = "Izmailov & Kropotov 2016"
    rule = "taylor"


@INFERENCES.register
class CaviSites(SiteEngine):
    """The engine with the sites of the augmented logistic-softmax."""

    name = "cavi"
    summary = "coordinate ascent on the augmented logistic-softmax: quick, loose bound"
    source = "Galy-Fajou et al. 2019"
    rule = "cavi"


def fit_sites(
    gp,
    likelihood,
    rule,
    data: Data,
    *,
    initial_sweeps: int = 4,
    rounds: int = 10,
    iterations: int | None = None,
    sweeps: int = 3,
    final_sweeps: int = 20,
    tolerance: float = 1e-4,
    progress: bool | None = False,
    callback: Callable[[Any, float], None] | None = None,
    start: Any = None,
    subset: int | None = 2000,
    mixed_precision: bool = True,
    seed: int = 0,
) -> Fit:
    """Fit q(f) and the hyper-parameters of `gp` (SparseGP or FullGP).

    subset        sources, drawn at random, on which hyper-parameters are learned first, where there
                  are more than twice as many; None: all from the start
    mixed_precision  gradients in the hyper-parameters by float32 products of rows whitened in
                  float64, where latent functions share a kernel (`mixed_precision.py`); not for a
                  tolerance below 1e-6. The bound by which a round is judged is float64 in any case
    initial_sweeps  before the first round, where no subset has been learned from or too small a one
    start         posterior to meet the likelihood at first; None: the rule's initial sites
    rounds        of {`iterations` of L-BFGS on the hyper-parameters; `sweeps` of the sites};
                  0 keeps the hyper-parameters as they are
    iterations    None: 6, or 10 where a subset has been learned from before
    tolerance     stop when the bound per source rises by less in a round, or in a final sweep
    progress      False silent, None a bar on a terminal only
    callback      called as callback(posterior, bound per source) after every sweep
    """
    n = data.Y.shape[0]
    staged = subset is not None and start is None and rounds > 0 and n > 2 * subset
    if staged:
        few = np.random.default_rng(seed).choice(n, subset, replace=False)
        start = fit_sites(
            gp,
            likelihood,
            rule,
            data.sources(few),
            initial_sweeps=initial_sweeps,
            rounds=min(rounds, SUBSET_ROUNDS),
            iterations=iterations,
            sweeps=sweeps,
            final_sweeps=0,
            tolerance=10 * tolerance,
            callback=callback,
            subset=None,
            mixed_precision=mixed_precision,
        ).posterior
    precision, natural_mean = rule.initial_sites(likelihood, data.Y)
    nodes = gp.nodes
    if nodes > 1:
        precision = tf.repeat(precision / nodes, nodes, axis=0)
        natural_mean = tf.repeat(natural_mean / nodes, nodes, axis=0)
    sites = Sites(tf.cast(precision, tf.float64), tf.cast(natural_mean, tf.float64))
    gp.refresh(data)
    # With step 0 a sweep is gp.posterior(data, sites), by a graph that is needed anyway.
    step = 0.0 if start is None else 1.0
    prior = SparsePosterior.filled(gp.num_latent, gp.Z.shape[0], 0.0)
    sites, posterior, terms = gp.sweep(rule, likelihood, data, start or prior, sites, step)
    state = Fit(posterior, sites=sites)
    bar = tqdm(
        total=rounds,
        desc="learning",
        unit="round",
        leave=False,
        disable=True if progress is False else None,
    )
    _sweeps(
        gp, likelihood, rule, data, state, 0 if staged else initial_sweeps, tolerance * n, callback
    )
    # Sites met at what a subset has taught are good enough to learn from, if it has taught enough.
    if staged and abs(state.bound - float(terms - start.kl)) > FAR * n:
        _sweeps(gp, likelihood, rule, data, state, initial_sweeps, tolerance * n, callback)
    if not np.isfinite(state.bound):
        raise FloatingPointError(
            "the evidence bound is not finite: look for values of X or y far from all others"
        )
    before = state.bound
    if iterations is None:
        iterations = ITERATIONS_AFTER_SUBSET if staged else ITERATIONS
    # Of the stage before another, and of the one after it, sites need not be met to the end.
    enough = tolerance * n if staged or subset is None else 0.0
    for _ in range(rounds):
        kept = _snapshot(gp, likelihood, state)
        learned = _fit_hyper_parameters(gp, data, state.sites, iterations, mixed_precision)
        gp.refresh(data)
        state.posterior = gp.posterior(data, state.sites) if learned is None else learned
        if likelihood.trainable_variables:
            mean, variance = gp.data_marginals(data, state.posterior)
            fit_likelihood(rule, likelihood, mean, variance, data.Y, nodes)
        _sweeps(gp, likelihood, rule, data, state, sweeps, enough, callback, fall=enough)
        bar.update()
        bar.set_postfix(bound=f"{state.bound / n:.4f}")
        if not state.bound >= before - 1e-6 * abs(before):
            logger.info("a hyper-parameter step lowered the bound and was taken back")
            _restore(gp, likelihood, data, state, kept)
            # It may have been learned from sites that were not met well enough yet.
            _sweeps(gp, likelihood, rule, data, state, initial_sweeps, tolerance * n, callback)
        if state.bound - before < tolerance * n:
            break
        before = state.bound
    _sweeps(gp, likelihood, rule, data, state, final_sweeps, tolerance * n, callback)
    log_concave = getattr(likelihood, "log_concave", False) and not (
        nodes > 1 and rule.couples(likelihood)
    )
    if final_sweeps and not log_concave and tf.reduce_min(state.sites.precision) <= CLIPPED:
        _sweeps(gp, likelihood, _signed(rule), data, state, final_sweeps, tolerance * n, callback)
    bar.close()
    return state


@functools.lru_cache(maxsize=16)
def _signed(rule):
    """The rule that follows θ < 0; always the same one, since every rule has a graph of its own."""
    signed = copy(rule)
    signed.signed = True
    return signed


def _sweeps(
    gp, likelihood, rule, data, state: Fit, count, tolerance, callback, fall: float = 0.0
) -> None:
    """`count` sweeps with back-tracking; stops when the bound rises by less than `tolerance`.

    A step that lowers it is halved; one that lowers it by less than `fall` ends the sweeps instead.
    A rule that is no bound (Taylor) is not back-tracked: its fixed point is not a maximum.
    A sweep measures the bound of the posterior it starts from, so one more than `count` is run and
    its step not taken. Sites with θ < 0 may leave no q (a posterior that is not finite): such a
    step is too long as well. Where the bound is not finite to begin with, nothing is done.
    """
    step, accepted = 1.0, None
    sites, posterior = state.sites, state.posterior
    for k in range(count + 1):
        bound = np.nan
        if np.isfinite(posterior.kl):
            new_sites, new_posterior, terms = gp.sweep(
                rule, likelihood, data, posterior, sites, step
            )
            bound = float(terms - posterior.kl)
        if accepted is None and not np.isfinite(bound):
            state.bounds.append(bound)
            return
        slack = 1e-9 * abs(bound)
        if accepted is not None and rule.is_bound and not bound >= accepted[2] - slack:
            step *= 0.5
            if step < 1e-3 or bound > accepted[2] - fall:
                break
            # By the sweep's own graph with step 0, rather than by making one for `gp.posterior`.
            sites = accepted[0].mix(sites, 0.5)
            posterior = gp.sweep(rule, likelihood, data, accepted[1], sites, 0.0)[1]
            continue
        rise = np.inf if accepted is None else bound - accepted[2]
        accepted = (sites, posterior, bound)
        state.bounds.append(bound)
        if callback is not None:
            callback(posterior, bound / data.Y.shape[0])
        if k == count or abs(rise) < tolerance:
            break
        sites, posterior = new_sites, new_posterior
    assert accepted is not None
    state.sites, state.posterior, _ = accepted


def _fit_hyper_parameters(gp, data: Data, sites: Sites, iterations: int, mixed_precision: bool):
    """A few L-BFGS iterations on the collapsed bound; no coordinate moves by more than one.

    Kernel parameters are log-transformed, so that is a factor of e at most: the sites were met at
    the old values and a far step would leave their neighbourhood. Returns q at the new values where
    the last evaluation has it, else None.
    """
    n, variables = len(data.Y), gp.trainable_variables
    seen: list = []  # the last point and its posterior

    def per_source():
        J, gradients, posterior = gp.collapsed(data, sites, mixed_precision)
        seen[:] = pack(variables), posterior
        return J / n, [g / n for g in gradients]

    if not variables:
        return None
    maximise(
        variables,
        per_source,
        iterations=iterations,
        largest_change=1.0,
        # The noise of J per source in mixed precision.
        tolerance=1e-7 if mixed_precision else 2.2e-9,
    )
    return seen[1] if np.array_equal(seen[0], pack(variables)) else None


def fit_likelihood(rule, likelihood, Fmu, Fvar, Y, nodes: int = 1, iterations: int = 10) -> None:
    """The likelihood's own parameters (such as the label noise δ), q(f) held fixed."""
    variables = likelihood.trainable_variables

    @tf.function(autograph=False)
    def value_and_gradient():
        with tf.GradientTape() as tape:
            total = tf.reduce_mean(meet(rule, likelihood, Fmu, Fvar, Y, nodes)[1])
        return total, tape.gradient(
            total, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )

    maximise(variables, value_and_gradient, iterations=iterations)


def _snapshot(gp, likelihood, state: Fit):
    variables = [*gp.trainable_variables, *likelihood.trainable_variables]
    return pack(variables), state.sites, state.posterior, len(state.bounds)


def _restore(gp, likelihood, data: Data, state: Fit, kept) -> None:
    x, state.sites, state.posterior, length = kept
    assign([*gp.trainable_variables, *likelihood.trainable_variables], x)
    gp.refresh(data)
    del state.bounds[length:]
