"""Does knowing which source is noisy help? The same model, told four things about its errors.

    own        each source's own errors
    zero       none: every measured value is exact
    constant   one error per feature, the median, for all sources
    permuted   the errors of another source

If "own" is no better than "permuted" and "constant", the classifier gains nothing from knowing
*which* source is noisy, whatever it gains from knowing that measurements are. A value that was not
measured (infinite error) stays so under every control: that is no error bar.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpal.errors import InputError

__all__ = ["NOISE_CONTROLS", "noise_controls"]

NOISE_CONTROLS = ("own", "zero", "constant", "permuted")


def noise_controls(
    parts: Sequence[np.ndarray], random_state: int = 0
) -> dict[str, tuple[np.ndarray, ...]]:
    """Control -> errors of every part; a part is one sample's X_err (n, d).

    The constant is one for all parts; errors are permuted within each part, so that the parts keep
    the distribution of their errors and only who has which is lost.
    """
    parts = [np.array(part, dtype=float) for part in parts]
    if not parts or any(part.ndim != 2 or part.shape[1] != parts[0].shape[1] for part in parts):
        raise InputError("noise_controls needs errors (n, d) of the same d features, X_err of each")
    rng = np.random.default_rng(random_state)
    together = np.vstack(parts)
    measured = np.isfinite(together)
    constant = np.array(
        [np.median(e[m]) if m.any() else 0.0 for e, m in zip(together.T, measured.T, strict=True)]
    )
    controls: dict[str, tuple[np.ndarray, ...]] = {"own": tuple(parts)}
    for name, value in (("zero", np.zeros_like(constant)), ("constant", constant)):
        controls[name] = tuple(np.where(np.isfinite(part), value, np.inf) for part in parts)
    controls["permuted"] = tuple(_permuted(part, rng) for part in parts)
    return controls


def _permuted(errors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Whole rows among sources with the same features measured: errors of a source go together."""
    permuted = errors.copy()
    patterns, group = np.unique(np.isfinite(errors), axis=0, return_inverse=True)
    for k in range(len(patterns)):
        rows = np.flatnonzero(group.reshape(-1) == k)
        permuted[rows] = errors[rng.permutation(rows)]
    return permuted
