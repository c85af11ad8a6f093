"""Class-prior shift: the targets' class fractions, from the targets' own probabilities.

If labelled and target sources differ only in their class fractions π_train and π,

    p(c | x) under π  ∝  p(c | x) under π_train · π_c / π_train,c                              (1)

and the likelihood of π given the targets is concave. Expectation-maximisation climbs it
(Saerens, Latinne & Decaestecker 2002, Neural Computation 14, 21, eqs 2.5-2.9):

    r_ic ∝ P_ic π_c / π_train,c,  Σ_c r_ic = 1;      π_c ← (Σ_i r_ic + κ β_c) / (n + κ)         (2)

κ pseudo-sources at the fractions β are the guard against collapse: with κ = 0 a rare class of which
no target is typical ends at a fraction of zero, and (1) then excludes it for good. κ > 0 is the
posterior mode under a Dirichlet prior.

The estimate has to see *all* targets. The few whose class was found later are no fair sample: what
is found first is what is easy to find. Targets of different origin, say no counterpart or blazar of
unknown type, have different fractions: each is given its own, with those of all targets as β.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpal.array_messages import refuse_masked
from gpal.errors import InputError
from gpal.plain_values import identifiers, refuse_other_columns

__all__ = ["PriorEstimate", "estimate_prior", "estimate_prior_by_origin", "reweight"]

PSEUDO_SOURCES = 10.0
TOLERANCE, MAX_SWEEPS = 1e-8, 5000


@dataclass(frozen=True)
class PriorEstimate:
    """Class fractions of n targets.

    fractions     (C,) estimate, summing to one
    lower, upper  (C,) percentile interval over bootstrap samples of the targets. It holds the
                  scatter of the sample, not an error of the model's probabilities. NaN without
                  a bootstrap
    collapsed     (C,) bool: less than one target supports the class; what it has comes from the
                  pseudo-sources
    n             number of targets
    """

    fractions: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    collapsed: np.ndarray
    n: int

    def as_mapping(self, classes: Sequence[Any] | np.ndarray) -> dict[Any, float]:
        """Class -> fraction, as GPClassifier(prior=...) takes it."""
        return dict(zip(np.asarray(classes).tolist(), self.fractions.tolist(), strict=True))

    def as_dict(self, classes: Sequence[Any] | np.ndarray) -> dict[str, Any]:
        """Everything as plain data, for metrics.json."""
        names = list(map(str, classes))
        return {
            "n": self.n,
            "fractions": self.as_mapping(names),
            "lower": dict(zip(names, self.lower.tolist(), strict=True)),
            "upper": dict(zip(names, self.upper.tolist(), strict=True)),
            "collapsed": [c for c, low in zip(names, self.collapsed, strict=True) if low],
        }


def reweight(P: np.ndarray, train: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Probabilities (n, C) under fractions `train`, taken to fractions `target`: equation (1).

    Fractions are (C,), or (n, C) of each source; only their ratio matters. InputError for a source
    of which nothing is left: its classes have the fraction 0; and for P that are no probabilities.
    """
    for name, fractions in (("train", train), ("target", target)):
        _refuse_other_classes(P, name, fractions)
    refuse_masked(P=P)
    P = np.asarray(P, float)
    bad = np.flatnonzero(~(np.isfinite(P) & (P >= 0)).all(axis=1))
    if len(bad):
        raise InputError(f"row {bad[0]} of P is {P[bad[0]]}: no probabilities")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(target, float) / np.asarray(train, float)
    if not (np.isfinite(ratio) & (ratio >= 0)).all():
        raise InputError("class fractions are numbers ≥ 0, those that P refers to above 0")
    weighted = P * ratio
    total = weighted.sum(axis=1, keepdims=True)
    nothing = np.flatnonzero(~(total > 0))
    if len(nothing):
        raise InputError(
            f"row {nothing[0]} of P, {P[nothing[0]]}, has no probability left under these class"
            f" fractions ({len(nothing)} such in all); give its classes a fraction above 0"
        )
    return weighted / total


def estimate_prior(
    P: np.ndarray,
    train: np.ndarray,
    *,
    centre: np.ndarray | None = None,
    pseudo_sources: float = PSEUDO_SOURCES,
    n_bootstrap: int = 200,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> PriorEstimate:
    """Fractions of the targets with probabilities P (n, C), which refer to fractions `train` (C,).

    centre          β of equation (2), (C,); the training fractions if None
    pseudo_sources  κ of equation (2); 0 is plain maximum likelihood

    InputError for P that are no probabilities, and fractions that are none.
    """
    for name, given in (("train", train), ("centre", centre)):
        _refuse_other_classes(P, name, given)
    P = _probabilities(P)
    if not len(P):
        raise InputError("no targets to estimate class fractions on; give prior='train'")
    train = _fractions("train", train, P.shape[1])
    β = train if centre is None else _fractions("centre", centre, P.shape[1], zero=True)
    if not 0 <= pseudo_sources < np.inf:
        raise InputError(f"pseudo_sources must be 0 or more, got {pseudo_sources}")
    if not 0 < confidence_level < 1:
        raise InputError(f"confidence_level is between 0 and 1, got {confidence_level}")
    n = len(P)
    likelihood = P / train
    fractions = _maximise(likelihood, np.ones((1, n)), pseudo_sources * β, train)[0]
    lower = upper = np.full(len(train), np.nan)
    if n_bootstrap:
        rng = np.random.default_rng(random_state)
        counts = rng.multinomial(n, np.full(n, 1 / n), size=n_bootstrap).astype(float)
        sample = _maximise(likelihood, counts, pseudo_sources * β, fractions)
        tail = (1 - confidence_level) / 2
        lower, upper = np.quantile(sample, [tail, 1 - tail], axis=0)
    support = fractions * (n + pseudo_sources) - pseudo_sources * β
    return PriorEstimate(fractions, lower, upper, support < 1, n)


def estimate_prior_by_origin(
    P: np.ndarray,
    train: np.ndarray,
    origin: np.ndarray,
    *,
    pseudo_sources: float = PSEUDO_SOURCES,
    n_bootstrap: int = 200,
    random_state: int = 0,
) -> tuple[PriorEstimate, dict[str, PriorEstimate]]:
    """Fractions of all targets, and origin -> fractions of its targets; origin (n,) is any text."""
    options: dict[str, Any] = {
        "pseudo_sources": pseudo_sources,
        "n_bootstrap": n_bootstrap,
        "random_state": random_state,
    }
    _refuse_other_classes(P, "train", train)
    P, origin = _probabilities(P), identifiers(origin, "origin")
    if origin.shape != (len(P),):
        raise InputError(f"origin has shape {origin.shape}; give one for each of {len(P)} targets")
    every = estimate_prior(P, train, **options)
    each = {
        str(name): estimate_prior(P[origin == name], train, centre=every.fractions, **options)
        for name in np.unique(origin)
    }
    return every, each


def _refuse_other_classes(P: Any, name: str, fractions: Any) -> None:
    """InputError for a Series of fractions that is not in the order of a data frame's columns."""
    if hasattr(P, "columns") and hasattr(fractions, "index") and hasattr(fractions, "to_numpy"):
        refuse_other_columns(name, fractions, [str(column) for column in P.columns], "columns of P")


def _probabilities(P: Any) -> np.ndarray:
    """(n, C) as an array; InputError for what are none."""
    refuse_masked(P=P)
    P = np.asarray(P, float)
    if P.ndim != 2:
        raise InputError(f"P has shape {P.shape}: give a row of probabilities for each source")
    bad = np.flatnonzero(
        ~(np.isfinite(P) & (P >= 0)).all(axis=1) | ~np.isclose(P.sum(1), 1, 0, 1e-4)
    )
    if len(bad):
        raise InputError(
            f"row {bad[0]} of P is {P[bad[0]]}: no probabilities that sum to one ({len(bad)} such"
            " in all)"
        )
    return P


def _fractions(name: str, given: Any, num_classes: int, zero: bool = False) -> np.ndarray:
    """(C,) scaled to sum to one; above 0, or some of them 0 with `zero`."""
    values = np.asarray(given, float)
    positive = values >= 0 if zero else values > 0
    if values.shape != (num_classes,) or not (np.isfinite(values) & positive).all():
        least = "none below 0" if zero else "all above 0"
        raise InputError(
            f"{name}: {num_classes} classes need as many fractions, {least}, got {given}"
        )
    if not values.sum() > 0:
        raise InputError(f"{name}: all fractions are 0; give one above")
    return values / values.sum()


def _maximise(
    likelihood: np.ndarray, counts: np.ndarray, pseudo: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """(B, C) fixed points of equation (2), target i counting counts[b, i] times; p(x|c) (n, C)."""
    π = np.tile(start, (len(counts), 1))
    total = counts.sum(axis=1, keepdims=True) + pseudo.sum()
    for _ in range(MAX_SWEEPS):
        evidence = π @ likelihood.T
        # A target that a sample leaves out may be of classes of which it holds none: 0 / 0.
        share = np.divide(counts, evidence, out=np.zeros_like(counts), where=counts > 0)
        responsible = π * (share @ likelihood)
        previous, π = π, (responsible + pseudo) / total
        if np.abs(π - previous).max() < TOLERANCE:
            break
    return π
