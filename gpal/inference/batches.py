"""Sites of sources that come in batches, for given hyper-parameters.

What the sites of all sources say of q(f) are sums (`rows.Statistics`), and sites met with a whole
step depend on the present q(f) alone. So a sweep goes through the batches one by one, adds their
statistics, forgets them, and solves once: the result is that of one fit of all sources, to the
rounding of the sums. A shorter step mixes statistics, which are linear in the sites: of a source
nothing is kept between sweeps.

What a batch says depends on q(f) and the batch alone (`met`), so batches may be met anywhere, again
where one got lost, and in any order; they are added in theirs.

Of batches that are not seen again the sites are held as they were last met, S_0, ρ_0, t_0, and

    Σ_new E_q[log p(y_i | f_i)] + ρ_0ᵀα − ½ (αᵀ S_0 α + t_0 + tr S_0 M) − KL(q ‖ p)

is maximised (streaming variational Bayes, Broderick et al. 2013). That is exact where sites depend
on the label alone (Dirichlet), and near it elsewhere: old sites are not met anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.base import Problem
from gpal.inference.chunks import SparsePosterior
from gpal.inference.rows import Data, Statistics, add
from gpal.inference.sites import CLIPPED
from gpal.inference.sparse import SparseGP
from gpal.likelihoods.site_rules import SiteRule

__all__ = [
    "BatchFit",
    "Meet",
    "Met",
    "all_met",
    "fit_batches",
    "held_expectation",
    "in_threads",
    "met",
]


@dataclass
class BatchFit:
    """A fit in the making or done. What follows depends on nothing else, so it may go on elsewhere.

    posterior   q(f)
    statistics  of all sites behind it; None: of no batches yet
    bounds      of each q(f) that was accepted
    size        how many sources there are, each as often as it counts
    signed      whether sites follow θ < 0
    sweep       number of the present one, of those that do or do not
    step        of the statistics
    accepted    the best statistics so far, and their q(f)
    lowest      θ of these
    jitter      relative, of K(Z, Z); None: as it is
    """

    posterior: SparsePosterior
    statistics: Statistics | None = None
    bounds: list[float] = field(default_factory=list)
    size: float = 0.0
    signed: bool = False
    sweep: int = 0
    step: float = 1.0
    accepted: tuple[Statistics, SparsePosterior] | None = None
    lowest: float = np.inf
    jitter: float | None = None


class Met(NamedTuple):
    """Of a batch, or of all: statistics of the sites met, the data term, the lowest θ, and how many
    sources there are."""

    statistics: Statistics
    terms: float
    lowest: float
    size: float

    def with_more(self, other: Met) -> Met:
        """Of both."""
        return Met(
            add(self.statistics, other.statistics),
            self.terms + other.terms,
            min(self.lowest, other.lowest),
            self.size + other.size,
        )


# All batches met at q(f), in their order.
Meet = Callable[[SiteRule, SparsePosterior], Iterable[Met]]


def met(problem: Problem, rule: SiteRule, posterior: SparsePosterior, data: Data) -> Met:
    """One batch met at q(f)."""
    gp = problem.gp
    assert isinstance(gp, SparseGP)
    sites, statistics, terms = gp.met_statistics(rule, problem.likelihood, data, posterior)
    return Met(statistics, float(terms), float(tf.reduce_min(sites.precision)), data.size)


def in_threads(problem: Problem, batches: Callable[[], Iterable[Data]], threads: int = 1) -> Meet:
    """Batches of this process, which `batches` gives anew for every sweep; of at most `threads` + 1
    at a time there is more than what it says."""

    def meet(rule: SiteRule, posterior: SparsePosterior) -> Iterator[Met]:
        problem.gp.rows.forget()
        one = partial(met, problem, rule, posterior)
        if threads == 1:
            yield from map(one, batches())
            return
        waiting: deque[Future[Met]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for data in batches():
                waiting.append(pool.submit(one, data))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            for future in waiting:
                yield future.result()

    return meet


def held_expectation(held: Statistics | None, q: SparsePosterior) -> float:
    """E_q of the log sites behind the statistics, up to a constant of the sites."""
    if held is None:
        return 0.0
    for_mean = tf.add_n([held.gram, *held.slope_gram])
    linear = tf.reduce_sum(held.projection * q.alpha)
    square = tf.reduce_sum(q.alpha * tf.linalg.matvec(for_mean, q.alpha))
    spread = tf.reduce_sum(held.diagonal) + tf.reduce_sum(held.gram * q.M)
    return float(linear - 0.5 * (square + spread))


def fit_batches(
    problem: Problem,
    meet: Meet,
    fit: BatchFit,
    *,
    sweeps: int,
    tolerance: float,
    held: Statistics | None = None,
    watch: Callable[[BatchFit], None] | None = None,
) -> BatchFit:
    """Meet the likelihood of all batches, hyper-parameters as they are.

    problem    with a SparseGP; its data are not looked at
    meet       all batches, once for every sweep
    fit        the posterior to meet the likelihood at first, or a fit to go on with; what is
               returned is this one, further on
    sweeps     at most, and as many again that follow θ < 0 where there may be some
    tolerance  stop when the bound per source rises by less
    held       statistics of sites that are held
    watch      called with the fit before all batches are met
    """
    assert isinstance(problem.gp, SparseGP)
    tolerance *= getattr(problem.likelihood, "tolerance", 1.0)
    jitter = problem.gp.jitter
    jitter.relative = jitter.relative if fit.jitter is None else fit.jitter

    def met_by(rule: SiteRule) -> Met:
        fit.jitter = jitter.relative
        if watch is not None:
            watch(fit)
        return all_met(rule, meet, fit.posterior)

    if fit.statistics is None:
        first = met_by(problem.rule)
        fit.posterior = _solved(problem, first, held)
        fit.statistics, fit.size = first.statistics, first.size
    if not fit.signed:
        _sweeps(problem, partial(met_by, problem.rule), fit, sweeps, tolerance, held)
        coupled = problem.gp.nodes > 1 and problem.rule.couples(problem.likelihood)
        log_concave = getattr(problem.likelihood, "log_concave", False) and not coupled
        if sweeps and not log_concave and fit.lowest <= CLIPPED:
            fit.signed, fit.sweep, fit.step, fit.accepted = True, 0, 1.0, None
    if fit.signed:
        signed = copy(problem.rule)
        signed.signed = True
        _sweeps(problem, partial(met_by, signed), fit, sweeps, tolerance, held)
    if held is not None:
        fit.statistics = add(held, fit.statistics)
    return fit


def _sweeps(
    problem: Problem,
    met_now: Callable[[], Met],
    fit: BatchFit,
    count: int,
    tolerance: float,
    held: Statistics | None,
) -> None:
    """As `sites._sweeps`, with statistics in place of sites."""
    assert fit.statistics is not None
    for sweep in range(fit.sweep, count + 1):
        fit.sweep = sweep
        bound = np.nan
        if np.isfinite(fit.posterior.kl):
            now = met_now()
            bound = now.terms + held_expectation(held, fit.posterior) - float(fit.posterior.kl)
        if fit.accepted is None and not np.isfinite(bound):
            break
        slack = 1e-9 * abs(bound)
        if fit.accepted is not None and not bound >= fit.bounds[-1] - slack:
            fit.step *= 0.5
            if fit.step < 1e-3:
                break
            fit.statistics = fit.accepted[0].mix(fit.statistics, 0.5)
            fit.posterior = _solved(problem, now._replace(statistics=fit.statistics), held)
            continue
        rise = np.inf if fit.accepted is None else bound - fit.bounds[-1]
        fit.accepted, fit.lowest = (fit.statistics, fit.posterior), now.lowest
        fit.bounds.append(bound)
        if sweep == count or abs(rise) < tolerance * fit.size:
            break
        fit.statistics = fit.statistics.mix(now.statistics, fit.step)
        fit.posterior = _solved(problem, now._replace(statistics=fit.statistics), held)
    if fit.accepted is not None:
        fit.statistics, fit.posterior = fit.accepted


def all_met(rule: SiteRule, meet: Meet, posterior: SparsePosterior) -> Met:
    """The sums over all batches; InputError where there are none."""
    total: Met | None = None
    for batch in meet(rule, posterior):
        total = batch if total is None else total.with_more(batch)
    if total is None:
        raise InputError(
            "there are no batches: give a list, or a function that begins anew at every call"
        )
    return total


def _solved(problem: Problem, total: Met, held: Statistics | None) -> SparsePosterior:
    assert isinstance(problem.gp, SparseGP)
    statistics = total.statistics if held is None else add(held, total.statistics)
    return problem.gp.solved(statistics, total.lowest < 0)
