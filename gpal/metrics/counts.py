"""How many sources of a set are of each class, with an interval.

Given probabilities P (n, C), sources are independent of each other, and N_c = Σ_i 1[y_i = c] is
Poisson-binomial: p(N_c = k | P) is the coefficient of z^k in

    Π_i (1 − P_ic + P_ic z)                                                                     (1)

What is uncertain about all probabilities at once, the model's posterior or the class fractions,
does not average out over sources. With S samples of P, each drawn jointly for all of them,

    p(N_c = k) = 1/S Σ_s p(N_c = k | P^s)                                                       (2)
    Var N_c    = 1/S Σ_s Σ_i P^s_ic (1 − P^s_ic)  +  Var_s Σ_i P^s_ic                           (3)
                 sampling                            shared

The interval is of the quantiles of (2), no draws of classes: it has at least the stated level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count
from scipy.fft import set_workers
from scipy.signal import fftconvolve

from gpal.array_messages import refuse_masked
from gpal.errors import InputError

__all__ = ["ClassCounts", "class_counts"]

ROUNDING = 1e-12  # of a sum of the coefficients of (1)
BLOCK = 400_000  # probabilities of a class held at once


@dataclass(frozen=True)
class ClassCounts:
    """How many of n sources are of each of C classes.

    Attributes
    ----------
    n : int
        Sources.
    mean : array (C,)
        Expected numbers; they add up to n.
    lower, upper : array (C,) of int
        Limits of the interval.
    sampling_sd : array (C,)
        Standard deviation given the probabilities.
    shared_sd : array (C,)
        Scatter of the expected number from sample to sample of the probabilities; 0 with one.
    confidence_level : float
        Of the interval.
    samples : int
        Of the probabilities.

    Examples
    --------
    >>> from gpal.metrics import class_counts
    >>> class_counts([[0.9, 0.1]] * 100).as_dict(["agn", "pulsar"])["pulsar"]["upper"]
    15
    """

    n: int
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sampling_sd: np.ndarray
    shared_sd: np.ndarray
    confidence_level: float
    samples: int

    def as_dict(self, classes: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Class -> its numbers as plain data, for metrics.json.

        Parameters
        ----------
        classes : sequence of str
            Names of the C classes.

        Returns
        -------
        dict of str to dict
            mean, lower, upper, sampling_sd and shared_sd of each.
        """
        fields = ("mean", "lower", "upper", "sampling_sd", "shared_sd")
        return {
            str(name): {field: getattr(self, field)[c].item() for field in fields}
            for c, name in enumerate(classes)
        }


def class_counts(P: np.ndarray, confidence_level: float = 0.9) -> ClassCounts:
    """How many of n sources are of each class.

    Parameters
    ----------
    P : array (n, C) or (S, n, C)
        Probabilities, or samples of them, each drawn jointly for all sources.
    confidence_level : float
        Of the interval, which leaves as much out below as above.

    Returns
    -------
    ClassCounts

    Raises
    ------
    InputError
        For what are no probabilities, and for a level that is not between 0 and 1.

    Examples
    --------
    >>> from gpal.metrics import class_counts
    >>> found = class_counts([[0.9, 0.1]] * 100)
    >>> found.mean, found.lower, found.upper
    (array([90., 10.]), array([85,  5]), array([95, 15]))
    """
    refuse_masked(P=P)
    P = np.asarray(P, float)
    P = P[None] if P.ndim == 2 else P
    if P.ndim != 3 or not len(P) or not ((P >= 0) & (P <= 1)).all():
        raise InputError("class counts need probabilities from 0 to 1, (n, C) or (S, n, C)")
    if not np.allclose(P.sum(axis=2), 1, atol=1e-4):
        raise InputError("the probabilities of a source must sum to one")
    if not 0 < confidence_level < 1:
        raise InputError(f"confidence_level must be between 0 and 1, got {confidence_level}")
    tail = (1 - confidence_level) / 2
    S, n, _ = P.shape
    size = max(1, BLOCK // (n + 1))  # samples at once, for memory
    blocks = (P[first : first + size] for first in range(0, S, size))
    with set_workers(cpu_count()):
        total = sum(_distribution(block.transpose(0, 2, 1)).sum(axis=0) for block in blocks)
    below = np.cumsum(total / S, axis=1)
    expected = P.sum(axis=1)
    return ClassCounts(
        n=n,
        mean=expected.mean(axis=0),
        lower=(below <= tail + ROUNDING).sum(axis=1),
        upper=(below < 1 - tail - ROUNDING).sum(axis=1),
        sampling_sd=np.sqrt((P * (1 - P)).sum(axis=1).mean(axis=0)),
        shared_sd=expected.std(axis=0),
        confidence_level=confidence_level,
        samples=S,
    )


def _distribution(p: np.ndarray) -> np.ndarray:
    """(S, C, n + 1) coefficients of (1), p (S, C, n): polynomials multiplied in pairs."""
    n = p.shape[-1]
    factors = np.stack([1 - p, p], axis=-1) if n else np.ones((*p.shape[:2], 1, 1))
    while factors.shape[2] > 1:
        if factors.shape[2] % 2:
            one = np.zeros_like(factors[:, :, :1])
            one[..., 0] = 1
            factors = np.concatenate([factors, one], axis=2)
        factors = fftconvolve(factors[:, :, ::2], factors[:, :, 1::2], axes=3)
    return np.maximum(factors[:, :, 0, : n + 1], 0.0)
