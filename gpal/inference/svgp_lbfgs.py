"""The gradient path without chance: L-BFGS on the ELBO of all sources,

    ELBO = Σ_i E_q[log p(y_i | f_i)] − KL(q(u) ‖ p(u)),

in m (m + 3)/2 variables of q(u) per latent function, kernel and likelihood together (Izmailov &
Kropotov 2016, section 5, who found it worse than their other methods). Every evaluation meets all
sources at once, n m numbers per latent function in memory: a reference for some thousand of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gpflow
import tensorflow as tf
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from gpal.inference.base import INFERENCES, Fit, Inference, Problem, make_schedule
from gpal.inference.chunks import SparsePosterior
from gpal.inference.svgp import make_svgp

__all__ = ["LbfgsSchedule", "SvgpLbfgs", "fit_svgp_lbfgs"]


@dataclass(frozen=True, kw_only=True)
class LbfgsSchedule:
    """How many iterations, of several evaluations each.

    seed       of what a treatment of input noise draws to start with
    progress   False silent, None a bar on a terminal only
    callback   called as callback(posterior, iteration) every `callback_every` iterations
    """

    iterations: int = 1000
    seed: int = 0
    progress: bool | None = False
    callback: Callable[[SparsePosterior, int], None] | None = None
    callback_every: int = 100


def fit_svgp_lbfgs(problem: Problem, schedule: LbfgsSchedule | None = None) -> Fit:
    """Fit q(u), the hyper-parameters, and the q(x_i) of a treatment that draws x_i, in place."""
    schedule = schedule or LbfgsSchedule()
    model, data = make_svgp(problem, schedule.seed), problem.data
    sources = tf.range(model.num_data)

    # GPflow makes its graph with autograph, which would convert all that this reaches (`graph.py`).
    @tf.autograph.experimental.do_not_convert
    def loss() -> tf.Tensor:
        return model.kl() - model.total(data, sources)

    hidden = True if schedule.progress is False else None
    with tqdm(total=schedule.iterations, desc="svgp_lbfgs", leave=False, disable=hidden) as bar:

        def after(iteration: int, variables: Any, values: Any) -> None:
            bar.update()
            done = iteration + 1
            if schedule.callback is not None and done % schedule.callback_every == 0:
                for variable, value in zip(variables, values, strict=True):
                    variable.assign(value)
                schedule.callback(model.posterior(), done)

        result = gpflow.optimizers.Scipy().minimize(
            loss,
            model.trainable_variables,
            step_callback=after,
            options={"maxiter": schedule.iterations, "maxfun": 20 * schedule.iterations},
        )
    if not result.success and schedule.iterations >= LbfgsSchedule.iterations:
        warnings.warn(
            f"L-BFGS had not converged after {result.nit} iterations ({result.message}): raise"
            " inference_options={'iterations': ...}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Fit(model.posterior(), [model.bound_of_all(data)], converged=bool(result.success))


@INFERENCES.register
class SvgpLbfgs(Inference):
    """The gradient path by L-BFGS, all sources in every step."""

    name: ClassVar[str] = "svgp_lbfgs"
    summary: ClassVar[str] = "SVGP on all sources at once, L-BFGS on q(u) and the rest"
    source: ClassVar[str] = "Izmailov & Kropotov 2016"
    draws_inputs = True

    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        given = {"seed": seed, "progress": None if verbose else False}
        return fit_svgp_lbfgs(problem, make_schedule(LbfgsSchedule, self.name, options, given))
