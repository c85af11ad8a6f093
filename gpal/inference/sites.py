"""The engine: Gaussian sites, one loop for every likelihood (methods, section 1).

Repeat: take the marginals of q(f); let the likelihood's rule say which Gaussian sites (θ, r) meet
it there; step towards them; solve for q. With a conjugate rule each step is coordinate ascent; with
natural-gradient sites it is conjugate-computation variational inference (Khan & Lin 2017). If the
bound falls, the step is taken back by half until it does not.

Hyper-parameters are learned on the collapsed bound with the sites held (Adam et al. 2021): their
number does not grow with the inducing points. Rounds of two quasi-Newton steps and a few sweeps
alternate until the bound stops rising.

Of a likelihood that is not log-concave, or averaged over an uncertain input, some optimal sites
have θ < 0. On the way they are clipped at zero, so that q always exists; the last sweeps follow
them.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from gpal.inference.base import INFERENCES, Fit, Inference, Problem, make_schedule
from gpal.inference.chunks import SparsePosterior
from gpal.inference.constant_sites import ConstantSchedule, fit_constant_sites
from gpal.inference.hyper_parameters import (
    HyperParameters,
    fit_hyper_parameters,
    fit_likelihood,
)
from gpal.inference.parameters import assign, pack
from gpal.inference.rows import Sites, first_sites
from gpal.likelihoods.site_rules import SiteRule

__all__ = [
    "CaviSites",
    "JaakkolaJordanSites",
    "Schedule",
    "SiteEngine",
    "TaylorSites",
    "fit_sites",
]

SUBSET_ROUNDS = 3  # more of them fit the few sources rather than all
# Change of the bound per source in a sweep, in nats, that tells that sites are far from being met.
# The first sweep after a subset was seen to make up to .03, and .08 to .26 on letter (26 classes).
FAR = 0.05

# Part of the rise by a round's hyper-parameters that the next sweep should bring: else others come
# first. Sites of many classes lag behind, those of first-order input noise hardly do.
WORTH = 0.2

# With first-order input noise a bound and its gradient take the time of two sweeps, and sites
# hardly lag behind the hyper-parameters: fewer and longer rounds, and fewer still where a round
# must bring two tolerances a step: .8 of the time, for .0005 ± .0002 in NLL on development sets and
# −.0001 ± .0001 on 4FGL.
OF_FIRST_ORDER = {"iterations": 4, "sweeps": 2, "least_rise": 2.0}

logger = logging.getLogger("gpal")
CLIPPED = 1e-6  # precisions below may be those that `rows.meet` has clipped, or a mixture with them


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long `fit_sites` does what.

    subset        sources, drawn at random, on which hyper-parameters are learned first, where there
                  are more than twice as many; None: all from the start
    initial_sweeps  before the first round, where no subset has been learned from or too small a one
    rounds        of {`iterations` of a quasi-Newton method on the hyper-parameters; `sweeps` of the
                  sites}; 0 keeps the hyper-parameters as they are
    final_sweeps  after the last round, and as many that follow θ < 0, where some are
    tolerance     stop when the bound per source rises by less in a final sweep
    least_rise    stop when it rises by less than so many tolerances in a round, for each of its
                  iterations
    mixed_precision  gradients in the hyper-parameters by float32 products of rows whitened in
                  float64, where six latent functions or more share a kernel
                  (`mixed_precision.py`); not for a tolerance below 1e-6. The bound by which a round
                  is judged is float64 in any case
    seed          of the subset
    progress      False silent, None a bar on a terminal only
    callback      called as callback(posterior, bound per source) after every sweep
    """

    subset: int | None = 2000
    initial_sweeps: int = 4
    rounds: int = 20
    iterations: int = 2
    sweeps: int = 4
    final_sweeps: int = 20
    tolerance: float = 1e-4
    least_rise: float = 1.0
    mixed_precision: bool = True
    seed: int = 0
    progress: bool | None = False
    callback: Callable[[SparsePosterior, float], None] | None = None

    @classmethod
    def of_posterior(cls, options: Mapping[str, Any] | None) -> Schedule:
        """To find q(f) alone, with `final_sweeps` and `tolerance` of these options, where given."""
        named = ("final_sweeps", "tolerance")
        given = {name: value for name, value in (options or {}).items() if name in named}
        return cls(rounds=0, initial_sweeps=0, **given)

    def takes_subset(self, sources: int) -> bool:
        """Whether so many sources are learned from in two stages."""
        return self.subset is not None and self.rounds > 0 and sources > 2 * self.subset

    def of_subset(self) -> Schedule:
        """For the few sources: nothing is met to the end there."""
        return replace(
            self,
            subset=None,
            rounds=min(self.rounds, SUBSET_ROUNDS),
            final_sweeps=0,
            tolerance=10 * self.tolerance,
            progress=False,
        )


def fit_sites(
    problem: Problem, schedule: Schedule | None = None, start: SparsePosterior | None = None
) -> Fit:
    """Fit q(f) and the hyper-parameters of the problem's GP and likelihood in place.

    start   posterior to meet the likelihood at first; None: that of a subset, if the schedule has
            one, or the rule's initial sites
    """
    known = HyperParameters(problem.gp, problem.likelihood)
    return _fit_sites(problem, schedule or Schedule(), start, known)


def _fit_sites(
    problem: Problem, schedule: Schedule, start: SparsePosterior | None, known: HyperParameters
) -> Fit:
    """As `fit_sites`; the curvature of the bound per source, of a subset or of all, is kept."""
    enough = schedule.tolerance * problem.data.size
    if start is None and schedule.takes_subset(len(problem.data.Y)):
        start = _fit_of_subset(problem, schedule, known)
        state = _warm_up_after(start, problem, schedule)
    else:
        state = _warm_up(problem, schedule, start)
        if schedule.subset is not None:  # else this is the stage before another, and need not
            enough = 0.0
    _learn(problem, schedule, state, enough, known)
    _polish(problem, schedule, state)
    return state


# ---- the stages ----------------------------------------------------------------------------------


def _fit_of_subset(problem: Problem, schedule: Schedule, known: HyperParameters) -> SparsePosterior:
    """q(f) and hyper-parameters of few sources, drawn at random."""
    n = len(problem.data.Y)
    generator = np.random.default_rng(schedule.seed)
    few = np.asarray(generator.choice(n, schedule.subset, replace=False))
    part = replace(problem, data=problem.data.sources(few))
    return _fit_sites(part, schedule.of_subset(), None, known).posterior


def _warm_up(problem: Problem, schedule: Schedule, start: SparsePosterior | None) -> Fit:
    """Sites that are met well enough to learn from."""
    state = _first_state(problem) if start is None else _state_after(problem, start)[0]
    _sweep_on(problem, schedule, state, schedule.initial_sweeps)
    return _finite(state)


def _warm_up_after(start: SparsePosterior, problem: Problem, schedule: Schedule) -> Fit:
    """Sites met at what a subset has taught are good enough to learn from, if it has taught
    enough."""
    state, terms = _state_after(problem, start)
    _sweep_on(problem, schedule, state, 0)
    if abs(state.bound - float(terms - start.kl)) > FAR * problem.data.size:
        _sweep_on(problem, schedule, state, schedule.initial_sweeps)
    return _finite(state)


def _first_state(problem: Problem) -> Fit:
    """The rule's initial sites."""
    sites = first_sites(*problem.site_arguments)
    problem.gp.refresh(problem.data)
    return Fit(problem.gp.posterior(problem.data, sites), sites=sites)


def _state_after(problem: Problem, start: SparsePosterior) -> tuple[Fit, tf.Tensor]:
    """Sites met at `start`, and the data term of the bound there."""
    gp, data = problem.gp, problem.data
    gp.refresh(data)
    sites, terms = gp.met(problem.rule, problem.likelihood, data, start)
    return Fit(gp.posterior(data, sites), sites=sites), terms


def _finite(state: Fit) -> Fit:
    if not np.isfinite(state.bound):
        raise FloatingPointError(
            "the evidence bound is not finite: look for values of X or y far from all others"
        )
    return state


def _learn(
    problem: Problem, schedule: Schedule, state: Fit, enough: float, known: HyperParameters
) -> None:
    """Rounds of learning hyper-parameters and meeting the likelihood, until the bound (with the log
    prior of the hyper-parameters, where they have one) stops rising; what lowers it is taken back.

    enough   change of the bound in a sweep with which the sites of a round are met
    """
    state.rounds = [state.bound]
    if not schedule.rounds:
        return
    n, before = problem.data.size, state.bound + known.log_prior
    enough_risen = schedule.tolerance * schedule.least_rise * schedule.iterations * n
    hidden = True if schedule.progress is False else None
    with tqdm(
        total=schedule.rounds, desc="learning", unit="round", leave=False, disable=hidden
    ) as bar:
        for _ in range(schedule.rounds):
            kept = _Kept.of(problem, state, known.variables)
            _round(problem, schedule, state, enough, known)
            bar.update()
            bar.set_postfix(bound=f"{state.bound / n:.4f}")
            after = state.bound + known.log_prior
            raised = problem.gp.jitter.relative > kept.jitter
            if not after >= before - 1e-6 * abs(before):
                logger.info("a hyper-parameter step lowered the bound and was taken back")
                kept.restore(problem, state)
                known.curvature.forget()
                if raised:  # the same sites have another bound now: learning goes on from there
                    assert state.sites is not None
                    state.posterior = problem.gp.posterior(problem.data, state.sites)
                # It may have been learned from sites that were not met well enough yet.
                _sweep_on(problem, schedule, state, schedule.initial_sweeps)
                after = state.bound + known.log_prior
            state.rounds.append(state.bound)
            state.converged = not raised and after - before < enough_risen
            if state.converged:
                break
            before = after


def _round(
    problem: Problem, schedule: Schedule, state: Fit, enough: float, known: HyperParameters
) -> None:
    """Hyper-parameters with the sites held, then the sites."""
    gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
    assert state.sites is not None
    before = state.bound
    learned = fit_hyper_parameters(
        gp, data, state.sites, schedule.iterations, schedule.mixed_precision, known
    )
    gp.refresh(data)
    state.posterior = gp.posterior(data, state.sites) if learned is None else learned
    if likelihood.trainable_variables:
        mean, variance = gp.data_marginals(data, state.posterior)
        fit_likelihood(rule, likelihood, mean, variance, data.Y, gp.nodes, weight=data.weight)
    _sweeps(problem, state, schedule.sweeps, enough, schedule.callback, fall=enough, before=before)


def _polish(problem: Problem, schedule: Schedule, state: Fit) -> None:
    """Sweeps to the end; at last those that follow θ < 0, where there may be such."""
    likelihood, rule = problem.likelihood, problem.rule
    finer = schedule.tolerance * getattr(likelihood, "tolerance", 1.0)
    schedule = replace(schedule, tolerance=finer)
    if not schedule.final_sweeps:
        return
    _sweep_on(problem, schedule, state, schedule.final_sweeps)
    coupled = problem.gp.nodes > 1 and rule.couples(likelihood)
    log_concave = getattr(likelihood, "log_concave", False) and not coupled
    assert state.sites is not None
    heaviest = 1.0 if problem.data.weight is None else tf.reduce_max(problem.data.weight)
    if not log_concave and tf.reduce_min(state.sites.precision) <= CLIPPED * heaviest:
        signed = replace(problem, rule=_signed(rule))
        _sweep_on(signed, schedule, state, schedule.final_sweeps)


@functools.lru_cache(maxsize=16)
def _signed(rule: SiteRule) -> SiteRule:
    """The rule that follows θ < 0; always the same one, since every rule has a graph of its own."""
    signed = copy(rule)
    signed.signed = True
    return signed


@dataclass(frozen=True)
class _Kept:
    """Where a round has started."""

    variables: Sequence[tf.Variable]
    values: np.ndarray
    sites: Sites | None
    posterior: SparsePosterior
    length: int
    jitter: float

    @classmethod
    def of(cls, problem: Problem, state: Fit, variables: Sequence[tf.Variable]) -> _Kept:
        length, jitter = len(state.bounds), problem.gp.jitter.relative
        return cls(variables, pack(variables), state.sites, state.posterior, length, jitter)

    def restore(self, problem: Problem, state: Fit) -> None:
        assign(self.variables, self.values)
        state.sites, state.posterior = self.sites, self.posterior
        problem.gp.refresh(problem.data)
        del state.bounds[self.length :]


# ---- sweeps --------------------------------------------------------------------------------------


def _sweep_on(problem: Problem, schedule: Schedule, state: Fit, count: int) -> None:
    """`count` sweeps, or until the bound per source rises by less than the tolerance."""
    tolerance = schedule.tolerance * problem.data.size
    _sweeps(problem, state, count, tolerance, schedule.callback)


def _sweeps(
    problem: Problem,
    state: Fit,
    count: int,
    tolerance: float,
    callback: Callable[[SparsePosterior, float], None] | None,
    fall: float = 0.0,
    before: float = np.inf,
) -> None:
    """`count` sweeps with back-tracking; stops when the bound rises by less than `tolerance`, or by
    less than WORTH of what it has risen since it was `before`.

    A step that lowers it is halved; one that lowers it by less than `fall` ends the sweeps instead.
    What meets the likelihood measures the bound of the posterior it starts from, so the last one
    needs no q after it. Sites with θ < 0 may leave no q (a posterior that is not finite): such a
    step is too long as well. Where the bound is not finite to begin with, nothing is done.
    """
    gp, likelihood, rule, data = problem.gp, problem.likelihood, problem.rule, problem.data
    assert state.sites is not None
    step, accepted = 1.0, None
    sites, posterior = state.sites, state.posterior
    for k in range(count + 1):
        bound = np.nan
        if np.isfinite(posterior.kl):
            target, terms = gp.met(rule, likelihood, data, posterior)
            bound = float(terms - posterior.kl)
        if accepted is None and not np.isfinite(bound):
            state.bounds.append(bound)
            return
        if accepted is None:
            tolerance = max(tolerance, WORTH * (bound - before))
        slack = 1e-9 * abs(bound)
        if accepted is not None and not bound >= accepted[2] - slack:
            step *= 0.5
            if step < 1e-3 or bound > accepted[2] - fall:
                break
            sites = accepted[0].mix(sites, 0.5)
            posterior = gp.posterior(data, sites)
            continue
        rise = np.inf if accepted is None else bound - accepted[2]
        accepted = (sites, posterior, bound)
        state.bounds.append(bound)
        if callback is not None:
            callback(posterior, bound / data.size)
        if k == count or abs(rise) < tolerance:
            break
        sites = sites.mix(target, step)
        posterior = gp.posterior(data, sites)
    assert accepted is not None
    state.sites, state.posterior, _ = accepted


# ---- by name -------------------------------------------------------------------------------------


@INFERENCES.register
class SiteEngine(Inference):
    """The engine with the likelihood's own rule."""

    name: ClassVar[str] = "sites"
    summary: ClassVar[str] = "natural-gradient Gaussian sites over all rows (the default)"
    source: ClassVar[str] = "Khan & Lin 2017"
    full_gp = True
    can_refit = True
    takes_priors = True
    in_rounds = True

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        given: dict[str, Any] = {"rounds": rounds, "seed": seed}
        if problem.rule.constant and problem.gp.nodes == 1:
            once = make_schedule(ConstantSchedule, self.name, options, given)
            return fit_constant_sites(problem, once)
        given["progress"] = None if verbose else False
        if problem.gp.noisy:
            given |= OF_FIRST_ORDER
        return fit_sites(problem, make_schedule(Schedule, self.name, options, given))


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
    summary = "coordinate ascent on the augmented logistic-softmax: no integrals, a loose bound"
    source = "Galy-Fajou et al. 2019"
    rule = "cavi"
    one_node = (
        "has a bound that is highest at the uniform distribution where it is averaged over several"
        " nodes"
    )
