"""The negative log predictive density that probabilities promise, with an interval.

With samples P^s (S, n, C) of what the probabilities may be, drawn jointly for all sources (of a
posterior, of class fractions), and Q the probabilities that are stated, each sample gives labels
and a score,

    y_i^s ~ P^s_i,     L^s = 1/n Σ_i −ln Q_i[y_i^s]

and the interval is of the quantiles of L^s over the samples. Scores of probabilities that hold what
is not known lie inside as often as it says; what all samples leave out, it leaves out. Which of the
sources will be asked about may be unknown as well: then each sample has its own.
"""

from __future__ import annotations

import numpy as np

from gpal.array_messages import refuse_masked
from gpal.errors import InputError

__all__ = ["expected_nll"]

SMALLEST = np.finfo(float).tiny


def expected_nll(
    samples: np.ndarray,
    P: np.ndarray | None = None,
    confidence_level: float = 0.9,
    random_state: int = 0,
    rows: np.ndarray | None = None,
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
    rows : array (S, m) of int, optional
        The sources that each sample is scored on; all n.

    Returns
    -------
    dict of str to float
        "mean", "lower" and "upper".

    Raises
    ------
    InputError
        For what are no samples, a level that is not between 0 and 1, and rows that are not there.

    Examples
    --------
    >>> import numpy as np
    >>> from gpal.metrics import expected_nll
    >>> samples = np.full((200, 50, 2), 0.5)
    >>> round(expected_nll(samples)["mean"], 4)  # ln 2, whatever the labels
    0.6931
    """
    refuse_masked(samples=samples, P=P)
    samples = np.asarray(samples, float)
    if samples.ndim != 3 or not samples.shape[1]:
        raise InputError(
            f"samples of probabilities are (samples, sources, classes), got {samples.shape}"
        )
    wrong = ~((samples >= 0) & (samples <= 1)).all() or np.abs(samples.sum(-1) - 1).max() > 1e-4
    if wrong:
        raise InputError(
            "samples hold no probabilities: they are from 0 to 1, and the sum of those of a source"
            " is one"
        )
    if P is not None and np.shape(P) != samples.shape[1:]:
        raise InputError(f"P has shape {np.shape(P)}, the samples are of {samples.shape[1:]}")
    stated = samples.mean(axis=0) if P is None else np.asarray(P, float)
    if not (stated >= 0).all() or np.abs(stated.sum(axis=-1) - 1).max() > 1e-4:
        raise InputError(
            "P holds no probabilities: they are from 0 to 1, and the sum of a source's is one"
        )
    if not 0 < confidence_level < 1:
        raise InputError(f"confidence_level is between 0 and 1, got {confidence_level}")
    S, n, C = samples.shape
    rows = np.broadcast_to(np.arange(n), (S, n)) if rows is None else np.asarray(rows)
    if rows.ndim != 2 or len(rows) != S or not rows.size or rows.min() < 0 or rows.max() >= n:
        raise InputError(f"rows are (samples, m) numbers of sources, from 0 to {n - 1}")
    loss = -np.log(np.maximum(stated, SMALLEST))
    rng = np.random.default_rng(random_state)
    found = []
    for sample, asked in zip(samples, rows, strict=True):
        below = sample[asked].cumsum(axis=1) < rng.random((len(asked), 1))
        found.append(loss[asked, np.minimum(below.sum(axis=1), C - 1)].mean())
    tail = (1 - confidence_level) / 2
    lower, upper = np.quantile(found, [tail, 1 - tail])
    return {"mean": float(np.mean(found)), "lower": float(lower), "upper": float(upper)}
