"""What an inference is: a way from a GP, a likelihood and data to q(f) and a bound of the evidence.

    @INFERENCES.register
    class Sites(Inference):
        name = "sites"
        ...
        def fit(self, problem, options, *, rounds, seed, verbose): ...

What it can do stands on the class; `gpal.inference.capabilities` derives its tables and refusals
from there. An object has no state: everything that a fit needs comes in `Problem`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import tensorflow as tf

from gpal.errors import InputError, shown
from gpal.files.saved_data import whole_number
from gpal.inference.chunks import SparsePosterior
from gpal.inference.hyper_parameters import HyperParameters
from gpal.inference.protocol import GaussianProcess
from gpal.inference.rows import Data, Sites
from gpal.input_noise.base import InputNoise
from gpal.input_noise.none import NoInputNoise
from gpal.likelihoods.site_rules import SiteRule
from gpal.registry import Register

__all__ = ["INFERENCES", "Fit", "Inference", "Problem", "make_schedule"]


Schedule = TypeVar("Schedule")


@dataclass(frozen=True)
class Problem:
    """What is to be inferred.

    gp, likelihood   with the hyper-parameters to start from; they are learned in place
    rule             the likelihood's site rule
    data             training rows
    treatment        of input noise that made them
    """

    gp: GaussianProcess
    likelihood: Any
    rule: SiteRule
    data: Data
    treatment: InputNoise = field(default_factory=NoInputNoise)

    @property
    def site_arguments(self) -> tuple[SiteRule, Any, tf.Tensor, int, tf.Tensor | None]:
        """Of `rows.first_sites`."""
        return self.rule, self.likelihood, self.data.Y, self.gp.nodes, self.data.weight

    @property
    def variables(self) -> list[tf.Variable]:
        """All hyper-parameters."""
        return HyperParameters(self.gp, self.likelihood).variables

    @property
    def log_prior(self) -> float:
        """Of all hyper-parameters, at their present values."""
        return HyperParameters(self.gp, self.likelihood).log_prior


@dataclass
class Fit:
    """What a fit leaves: q(f) as predictions need it, the bound of all the data in the course of
    it (after every sweep, or the last one alone), and the sites where the method has them.

    rounds     the bound before and after every round of learning hyper-parameters; [] where the
               method has no rounds
    converged  whether learning ended because the bound had stopped rising; None where there were no
               rounds, or the method takes the steps it is given
    """

    posterior: SparsePosterior
    bounds: list[float] = field(default_factory=list)
    sites: Sites | None = None
    rounds: list[float] = field(default_factory=list)
    converged: bool | None = None

    @property
    def bound(self) -> float:
        return self.bounds[-1]


class Inference(ABC):
    """A method by name.

    name, summary, source   for the tables of the documentation
    rule           name of the site rule that it needs; None: the likelihood's own
    one_node       why it cannot take several nodes per source; "" where it can
    exact_inputs   cannot take a slope variance either
    log_concave    needs E_q log p(y|f) with ∂E/∂v ≤ 0 everywhere
    draws_inputs   follows treatments that draw the inputs at every step
    full_gp        runs on a GP without inducing points
    can_refit      its posterior can be met anew by the site engine, hyper-parameters kept
    takes_priors   of hyper-parameters: learns those that maximise bound and log prior together
    takes_weights  of sources
    in_rounds      learns hyper-parameters in rounds, of which there may be none
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    rule: ClassVar[str | None] = None
    one_node: ClassVar[str] = ""
    exact_inputs: ClassVar[bool] = False
    log_concave: ClassVar[bool] = False
    draws_inputs: ClassVar[bool] = False
    full_gp: ClassVar[bool] = False
    can_refit: ClassVar[bool] = False
    takes_priors: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    in_rounds: ClassVar[bool] = False

    @abstractmethod
    def fit(
        self,
        problem: Problem,
        options: Mapping[str, Any],
        *,
        rounds: int,
        seed: int,
        verbose: bool,
    ) -> Fit:
        """Fit q(f) and the hyper-parameters of the problem in place.

        options   the user's, of this method alone; InputError for one that it does not have
        rounds    of learning hyper-parameters, where the method works in rounds
        verbose   a progress bar on a terminal
        """


AT_LEAST_ONE = ("batch_size", "callback_every", "subset")  # numbers of which 0 makes no sense
MANY = 1 << 40  # steps

INFERENCES: Register[Inference] = Register(
    "inference", "gpal.inference", "gpal.inference", Inference
)


def make_schedule(
    kind: Callable[..., Schedule],
    name: str,
    options: Mapping[str, Any],
    given: Mapping[str, Any] | None = None,
) -> Schedule:
    """A schedule of the user's options, over what is given; InputError, with those that there are,
    for one that this kind of schedule does not have."""
    known = inspect.signature(kind).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"inference '{name}' has no option '{unknown[0]}'; it has: {', '.join(sorted(known))}"
        )
    for option, value in options.items():
        _check_number(option, value, str(known[option].annotation))
    return kind(**{**(given or {}), **options})


def check_between(
    option: str, value: Any, least: float, most: float = np.inf, open_below: bool = False
) -> None:
    """InputError for a finite number out of bounds; None and schedules of rates are let pass."""
    if value is None or callable(value):
        return
    inside = (least < value if open_below else least <= value) and value <= most
    if not inside or not np.isfinite(value):
        above = "above" if open_below else "from"
        to = "" if most == np.inf else f" to {most:g}"
        raise InputError(f"inference option '{option}' is {above} {least:g}{to}, got {value}")


def _check_number(option: str, value: Any, annotation: str) -> None:
    """InputError for what an option of this type cannot be."""
    if value is None and "None" in annotation:
        return
    what = f"inference option '{option}'"
    if annotation.startswith("bool") and not isinstance(value, bool | np.bool_):
        raise InputError(f"{what} is True or False, got {shown(repr(value))}")
    if annotation.startswith("Callable") and not callable(value):
        raise InputError(f"{what} is a function, got {shown(repr(value))}")
    if annotation.startswith("int"):
        whole_number(value, what, 1 if option in AT_LEAST_ONE else 0, MANY)
    elif annotation.startswith("float") and not callable(value):  # as a schedule of rates is
        number = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf"
        if not number or np.isnan(value):
            raise InputError(f"{what} must be a number, got {shown(repr(value))}")
