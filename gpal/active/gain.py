"""What a better measurement would bring, and what a label would.

For one source with measurement x̃, in nats of its own class y:

    label                 H[y | x̃]                   a spectrum settles the class
    perfect measurement   I(y; x | x̃)                the measurement part of the entropy
    better measurement    H[y | x̃] − E H[y | x̃, x̃'],  x̃' = x + ε' measured once more

and for every other source, as information about the latent functions: a label brings I(y; f | x),
the model part; a measurement without a label brings none.

The second measurement is chosen such that errors shrink from σ to κ σ. In the model of the errors
their variance falls from v = s² σ² + τ² to v₊ = s² κ² σ² + τ²; what the classifier's `remeasured`
gives are the possible outcomes.
Information is never negative; on finitely many points the estimate is clipped at zero. The entropy
of a mean over few nodes is too low, which would count as a gain: afterwards there are 64, before as
many as make no difference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpal.active.posterior import split_sources
from gpal.active.scores import EntropySplit
from gpal.arrays import as_measurements
from gpal.errors import InputError
from gpal.measurements import Measurements

__all__ = ["Gain", "expected_gain"]

BEFORE, AFTER = 512, 64  # nodes of an entropy


class Gain(NamedTuple):
    """Nats per source [n] that each action is expected to bring.

    label                of the source's own class, by a label
    measurement          of the source's own class, by errors shrunk to κ σ
    perfect_measurement  the same with errors shrunk to nothing
    model                about the latent functions, by a label
    """

    label: np.ndarray
    measurement: np.ndarray
    perfect_measurement: np.ndarray
    model: np.ndarray

    def worth_measuring(self, time_label: Any = 1.0, time_measurement: Any = 1.0) -> np.ndarray:
        """Where a better measurement brings more per unit of time than a label; times are above 0,
        and NaN, of a source that cannot be observed, is worth nothing."""
        for name, time in (("time_label", time_label), ("time_measurement", time_measurement)):
            if (np.asarray(time, float) <= 0).any():
                raise InputError(f"{name} holds a time that is not above 0")
        by_label = np.nan_to_num(self.label / time_label, nan=0.0)
        return self.measurement / time_measurement > by_label


def expected_gain(
    classifier: Any,
    X: Measurements | np.ndarray,
    X_err: Any = None,
    shrink: float = 0.5,
    outcomes: int = 32,
    split: EntropySplit | None = None,
    *,
    X_cov: np.ndarray | None = None,
) -> Gain:
    """Gains for every source: Measurements, or values X (n, d) with X_err or X_cov.

    shrink    κ: errors after the better measurement, as a part of the present ones; 0 is all that
              could be known of the input, features that were not measured included
    outcomes  results of it that are averaged over; costs as many evaluations of the pool
    split     the sources' entropy split where it is known already

    Raises InputError for a κ outside [0, 1), without errors, and for a classifier without
    `remeasured`.
    """
    if not 0 <= shrink < 1:
        raise InputError(f"shrink is the part of the error that stays, got {shrink}; give 0 to 1")
    if not hasattr(classifier, "remeasured"):
        raise InputError(
            f"{type(classifier).__name__} has no model of the measurement; give a GPClassifier"
        )
    if X_err is None and X_cov is None and not isinstance(X, Measurements):
        raise InputError("a better measurement is one of smaller errors: give X_err or X_cov")
    sources = as_measurements(X, X_err, X_cov)
    split = split_sources(classifier, sources) if split is None else split
    if shrink == 0:
        better = split.measurement
    else:
        entropies = [
            split_sources(classifier, again, nodes=AFTER).total
            for again in classifier.remeasured(sources, shrink=shrink, outcomes=outcomes)
        ]
        before = split_sources(classifier, sources, nodes=BEFORE).total
        better = np.clip(before - np.mean(entropies, axis=0), 0.0, split.measurement)
    return Gain(split.total, better, split.measurement, split.model)
