"""Does knowing which source is noisy help? The same model, told four things about its errors.

    own        each source's own errors
    zero       none: every measured value is exact
    constant   one error per feature, the median, for all sources
    permuted   the errors of another source

If "own" is no better than "permuted" and "constant", the classifier gains nothing from knowing
*which* source is noisy, whatever it gains from knowing that measurements are. A value that was not
measured (infinite error) stays so under every control: that is no error bar. Correlations of a
source's errors stay with them; "zero" and "constant" have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpal.errors import InputError
from gpal.measurements import Measurements

__all__ = ["NOISE_CONTROLS", "noise_controls"]

NOISE_CONTROLS = ("own", "zero", "constant", "permuted")


def noise_controls(
    parts: Sequence[Measurements], random_state: int = 0
) -> dict[str, tuple[Measurements, ...]]:
    """Control -> every part with the errors that it is told; parts share their features.

    The constant is one for all parts; errors are permuted within each part, so that the parts keep
    the distribution of their errors and only who has which is lost.
    """
    if not parts or any(part.names != parts[0].names for part in parts):
        raise InputError("noise_controls needs one or more Measurements of the same features")
    rng = np.random.default_rng(random_state)
    together = np.vstack([part.X_err for part in parts])
    measured = np.isfinite(together)
    constant = np.array(
        [np.median(e[m]) if m.any() else 0.0 for e, m in zip(together.T, measured.T, strict=True)]
    )
    return {
        "own": tuple(parts),
        "zero": tuple(_told(part, np.zeros_like(constant)) for part in parts),
        "constant": tuple(_told(part, constant) for part in parts),
        "permuted": tuple(_permuted(part, rng) for part in parts),
    }


def _told(part: Measurements, error: np.ndarray) -> Measurements:
    """`part` with one error (d,) for all of its sources."""
    return replace(part, X_err=np.where(part.measured, error, np.inf), covariance=None)


def _permuted(part: Measurements, rng: np.random.Generator) -> Measurements:
    """Whole rows among sources with the same features measured: errors of a source go together."""
    order = np.arange(len(part))
    patterns, group = np.unique(part.measured, axis=0, return_inverse=True)
    for k in range(len(patterns)):
        rows = np.flatnonzero(group.reshape(-1) == k)
        order[rows] = rng.permutation(rows)
    covariance = None if part.covariance is None else part.covariance[order]
    return replace(part, X_err=part.X_err[order], covariance=covariance)
