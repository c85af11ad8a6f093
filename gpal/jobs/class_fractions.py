"""Class fractions in a classification: what `prior` means, and probabilities that refer to it.

Only candidates are referred to other fractions: the labelled sources have those of training. What
the formulas are stands in gpal.evaluation.prior_shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpal.errors import InputError, as_python
from gpal.evaluation import any_classifier
from gpal.evaluation.prior_shift import estimate_prior_by_origin, reweight
from gpal.measurements import Measurements
from gpal.model.reweighting import warn_of_sum

__all__ = ["check_prior", "refer_to", "target_fractions"]

Prior = str | Mapping[str, float]
Counts = Mapping[str, int]  # class -> labelled sources, classes sorted


def check_prior(
    prior: Prior, train: Counts, candidates: np.ndarray, leaves_none_out: bool = False
) -> None:
    """Raise InputError unless `prior` is "train", "estimated" or a fraction for each class.

    Where one of the classes is `other`, estimates run away: to 60 to 80 % of `other` on every pair
    of releases that was tried (docs/validation.md).
    """
    if isinstance(prior, Mapping):
        values = np.array([*prior.values()], dtype=float)
        usable = (values >= 0).all() and 0 < values.sum() < np.inf
        if set(prior) != set(train) or not usable:
            raise InputError(
                f"prior needs a finite fraction of 0 or more for each of {', '.join(train)},"
                f" got {as_python(prior)}"
            )
        warn_of_sum(prior, stacklevel=4)
    elif prior not in ("train", "estimated"):
        raise InputError(
            f"prior must be 'train', 'estimated' or class fractions, got {as_python(prior)!r}"
        )
    elif prior == "estimated" and leaves_none_out:
        raise InputError(
            "class fractions of which one is 'other' cannot be estimated on the candidates: what is"
            " faint takes after it; give them (class=fraction,...), or leave 'other' out"
        )
    elif prior == "estimated" and not candidates.any():
        raise InputError("no candidates to estimate class fractions on; give prior='train'")


def target_fractions(
    prior: Prior,
    train: Counts,
    P: np.ndarray,
    candidates: np.ndarray,
    labels: np.ndarray,
    known: Mapping[str, Mapping[str, float]],
) -> tuple[np.ndarray, dict[str, Any]]:
    """(n, C) class fractions that each source's probabilities are to refer to, and the estimates.

    P (n, C) refers to the fractions of `train`. Estimated, candidates of each catalog class in
    `labels` have fractions of their own; where nothing is asked for, those of a class in `known`
    have (`Catalog.known_fractions`).
    """
    fractions = np.tile(_normalised(train), (len(P), 1))
    if prior == "train":
        for label, parts in known.items():
            fractions[candidates & (labels == label)] = [parts[name] for name in train]
    if isinstance(prior, Mapping):
        fractions[candidates] = _normalised({name: prior[name] for name in train})
    if prior != "estimated":
        return fractions, {}
    origin = np.where(labels == "", "unassociated", labels)
    every, each = estimate_prior_by_origin(P[candidates], fractions[0], origin[candidates])
    for name, estimate in each.items():
        fractions[candidates & (origin == name)] = estimate.fractions
    found = {"all candidates": every, **each}
    return fractions, {name: estimate.as_dict(list(train)) for name, estimate in found.items()}


def _normalised(values: Mapping[str, float]) -> np.ndarray:
    array = np.array(list(values.values()), dtype=float)
    return array / array.sum()


def refer_to(
    fractions: np.ndarray,
    train: Counts,
    fitted: Any,
    sources: Measurements,
    P: np.ndarray,
    deviation: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Probabilities and their standard deviations under `fractions`; P and deviation under `train`.

    The standard deviations of a classifier that knows them for its own fractions only are lost:
    None.
    """
    of_training = _normalised(train)
    changed = (fractions != of_training).any(axis=1)
    if not changed.any():
        return P, deviation
    corrected = np.where(changed[:, None], reweight(P, of_training, fractions), P)
    if deviation is None or not any_classifier.takes_prior(fitted):
        return corrected, None
    deviation = deviation.copy()
    for mix in np.unique(fractions[changed], axis=0):
        rows = changed & (fractions == mix).all(axis=1)
        prior = dict(zip(train, mix.tolist(), strict=True))
        deviation[rows] = any_classifier.predict_proba_std(fitted, sources[rows], prior)
    return corrected, deviation
