"""Errors as they are given, and as a model takes them: V = s² σ² + τ² (`true_input.py`).

A covariance keeps its correlations while its diagonal is scaled so. An error of KNOWN stands for a
value that is known exactly whatever τ is: one that was drawn, or one whose error is ignored.
"""

from __future__ import annotations

import numpy as np

__all__ = ["KNOWN", "scaled_errors"]

KNOWN = 1e-140  # its square is a number too


def scaled_errors(
    X_err: np.ndarray,
    X_cov: np.ndarray | None,
    scale: np.ndarray | float,
    floor: np.ndarray | float,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(√V [n, d], the covariance [n, d, d] that goes with it); what was not measured stays so."""
    known = X_err == KNOWN
    finite = np.isfinite(X_err)
    with np.errstate(invalid="ignore"):  # 0 · ∞
        scaled = np.where(finite, np.hypot(np.multiply(scale, X_err), floor), np.inf)
    scaled = np.where(known, 0.0, scaled)
    if X_cov is None:
        return scaled, None
    noisy = (X_err > 0) & finite & ~known
    ratio = np.where(noisy, scaled, 1.0) / np.where(noisy, X_err, 1.0)
    return scaled, X_cov * ratio[:, :, None] * ratio[:, None, :]
