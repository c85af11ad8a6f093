"""What a classifier's labels say of each other: two settings that the bound does not tell.

*Hyper-parameters* are learned by the bound, and then, where `leaves_out` says so, for a few steps
by the likelihood of every source given the others (`gpal.inference.predictive_learning`).

*The temperature* T: predictions are by N(m/T, v) in place of q(f) = N(m, v).

The kernel with the highest bound says too little where many classes are well apart: of eleven
textures 99 % of the answers were right, at a mean probability of .955. That is not the fault of a
Gaussian q(f), for draws of the posterior under the same kernel give the same probabilities
(`workflows/benchmarks/temperature.py`). T < 1 takes the means of f farther out. It is the one with
the highest likelihood of every source given the others,

    T = argmax Σ_i w_i log E p(y_i | f_i) − |log T|/b,      f_i ~ N(m₋/T, v₋),

m₋ and v₋ those of q(f) without the site of source i (`gpal.inference.leave_one_out`): no further
fit. The second term is a Laplace prior of scale b: it keeps T = 1 where labels hardly tell it, as
those of few sources, from which the kernel was learned too, do in appearance only. Draws,
deviations and entropies follow, since it is q(f) that changes. Variances are left as they are: with
v/T², f would only be in other units, which says little where v is large. Only the slope variance of
`first_order` error bars is of f/T, as slopes are.

Source: Guo et al. (2017), "On calibration of modern neural networks", where T divides logits and
is chosen by labels held out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from scipy.optimize import minimize_scalar

from gpal.errors import InputError, shown
from gpal.inference.base import Fit, Problem
from gpal.inference.leave_one_out import leave_one_out
from gpal.input_noise.none import NoInputNoise
from gpal.likelihoods import is_auto

__all__ = [
    "BOUND",
    "BY_LABELS",
    "check_learn_by",
    "check_temperature",
    "chosen_temperature",
    "leaves_out",
    "where_open",
]

BOUND, BY_LABELS = "bound", "leave_one_out"

FEWEST = 400  # sources that hyper-parameters are not learned from by leaving out
SOURCES = 4000  # drawn at random where there are more
PRIOR_SCALE = 0.1  # b, chosen on development sets (docs/defaults.md)
FARTHEST = 4.0  # T from 1/4 to 4: where labels are told without a fault it would fall for ever
PRECISION = 0.02  # of log T


def check_temperature(temperature: Any) -> None:
    """InputError unless it is "auto", "leave_one_out" or a number above 0."""
    number = isinstance(temperature, int | float | np.integer | np.floating)
    if number and not isinstance(temperature, bool) and 0 < temperature < np.inf:
        return
    if not (isinstance(temperature, str) and temperature in ("auto", BY_LABELS)):
        raise InputError(
            f"temperature must be 'auto', 'leave_one_out' or a number above 0, got {temperature!r}"
        )


def check_learn_by(learn_by: Any) -> None:
    """InputError unless it is "auto", "bound" or "leave_one_out"."""
    if not (isinstance(learn_by, str) and learn_by in ("auto", BOUND, BY_LABELS)):
        raise InputError(
            f"learn_by must be 'auto', '{BOUND}' or '{BY_LABELS}', got {shown(repr(learn_by))}"
        )


def where_open(asked: Any, likelihood: Any, otherwise: Any) -> Any:
    """What is asked; `otherwise` for "auto" where the likelihood is not left open too."""
    if isinstance(asked, str) and asked == "auto" and not is_auto(likelihood):
        return otherwise
    return asked


def leaves_out(learn_by: str, options: Any, problem: Problem, fit: Fit, exact: bool) -> bool:
    """Whether hyper-parameters are learned by leaving out too.

    "auto": where inputs are exact, there are inducing points, and nothing that has been given says
    how the kernel is to be learned.

    Raises InputError for "leave_one_out" where that cannot be done.
    """
    reason = _cannot_leave_out(problem, fit)
    if options.max_rounds == 0:
        reason = reason or "max_rounds=0 keeps the kernel as it is"
    if learn_by == BY_LABELS and reason:
        raise InputError(f"learn_by='{BY_LABELS}' is not possible, as {reason}: take '{BOUND}'")
    if learn_by != "auto":
        return learn_by == BY_LABELS
    is_open = isinstance(options.kernel, str) and options.inference == "sites"
    return (
        is_open
        and exact
        and not reason
        and problem.gp.kind == "sparse"
        and len(problem.data.Y) > FEWEST
    )


def _cannot_leave_out(problem: Problem, fit: Fit) -> str:
    if not isinstance(problem.treatment, NoInputNoise):
        return f"input noise '{problem.treatment.name}' spreads a source"
    return "the inference has no sites to leave out" if fit.sites is None else ""


def chosen_temperature(
    asked: Any, problem: Problem, fit: Fit, seed: int, exact: bool
) -> tuple[float, dict[str, Any]]:
    """T, and how it was chosen: of so many sources, their NLL with it and with T = 1.

    asked  a number; "leave_one_out"; "auto": the same where inputs are exact and there are sites,
           else 1
    seed   of the sources where they are drawn
    exact  whether inputs are

    Raises InputError for "leave_one_out" where error bars are not ignored, and without sites.
    """
    if not isinstance(asked, str):
        return float(asked), {}
    reason = _cannot_leave_out(problem, fit)
    if asked == BY_LABELS and reason:
        raise InputError(
            f"temperature='leave_one_out' cannot be chosen, as {reason}: give a number"
        )
    if reason or (asked == "auto" and not exact):
        return 1.0, {}
    n, which = len(problem.data.Y), None
    if n > SOURCES:
        which = np.sort(np.random.default_rng(seed).choice(n, SOURCES, replace=False))
    mean, variance = leave_one_out(problem, fit, which)
    Y, weight = problem.data.Y, problem.data.weight
    if which is not None:
        Y, weight = tf.gather(Y, which), None if weight is None else tf.gather(weight, which)

    def nll(temperature: float) -> float:
        log_p = problem.likelihood.predict_log_density(None, mean / temperature, variance, Y)
        return -float(np.average(log_p, weights=weight))

    size, limit = float(len(Y) if weight is None else np.sum(weight)), np.log(FARTHEST)
    found = minimize_scalar(
        lambda x: nll(np.exp(x)) + abs(x) / (PRIOR_SCALE * size),
        bounds=(-limit, limit),
        method="bounded",
        options={"xatol": PRECISION},
    )
    plain = nll(1.0)
    temperature = float(np.exp(found.x)) if found.fun < plain else 1.0
    told = {"sources": len(Y), "nll": nll(temperature), "nll_at_temperature_1": plain}
    return temperature, told
