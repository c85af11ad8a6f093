"""The negative log predictive density that probabilities promise, with an interval.

With samples P^s (S, n, C) of what the probabilities may be, drawn jointly for all sources (of a
posterior, of class fractions), and Q the probabilities that are stated, each sample gives labels
and a score,

    y_i^s ~ P^s_i,     L^s = 1/n Σ_i −ln Q_i[y_i^s]

and the interval is of the quantiles of L^s over the samples. Scores of probabilities that hold what
is not known lie inside as often as it says; what all samples leave out, it leaves out.
"""

from __future__ import annotations

import numpy as np

from gpal.errors import InputError

__all__ = ["expected_nll"]

SMALLEST = 1e-12


def expected_nll(
    samples: np.ndarray,
    P: np.ndarray | None = None,
    confidence_level: float = 0.9,
    random_state: int = 0,
) -> dict[str, float]:
    """The NLL to be expected of n sources.

    Parameters
    ----------
    samples : array (S, n, C)
        Probabilities, each drawn jointly for all sources.
    P : array (n, C), optional
        Those that are stated; the mean of the samples.
    confidence_level : float
        Of the interval.
    random_state : int
        Seed of the labels.

    Returns
    -------
    dict of str to float
        "mean", "lower" and "upper".

    Examples
    --------
    >>> import numpy as np
    >>> from gpal.metrics import expected_nll
    >>> samples = np.full((200, 50, 2), 0.5)
    >>> round(expected_nll(samples)["mean"], 4)  # ln 2, whatever the labels
    0.6931
    """
    samples = np.asarray(samples, float)
    if samples.ndim != 3 or not samples.shape[1]:
        raise InputError(
            f"samples of probabilities are (samples, sources, classes), got {samples.shape}"
        )
    if not 0 < confidence_level < 1:
        raise InputError(f"confidence_level is between 0 and 1, got {confidence_level}")
    stated = samples.mean(axis=0) if P is None else np.asarray(P, float)
    loss = -np.log(np.maximum(stated, SMALLEST))
    rng, rows = np.random.default_rng(random_state), np.arange(samples.shape[1])
    found = []
    for sample in samples:
        label = (sample.cumsum(axis=1) < rng.random((len(rows), 1))).sum(axis=1)
        found.append(loss[rows, np.minimum(label, sample.shape[1] - 1)].mean())
    tail = (1 - confidence_level) / 2
    lower, upper = np.quantile(found, [tail, 1 - tail])
    return {"mean": float(np.mean(found)), "lower": float(lower), "upper": float(upper)}
