"""Class fractions that nobody knows, averaged over.

Which classes the targets are of depends on what was searched for and found before: no mix of
labelled sources is theirs, and where classes leave none out, estimating theirs on their own
probabilities (gpal.evaluation.prior_shift) runs away. So they are left open,

    π_c ∝ π_train,c e^{s_c},   s_c ~ N(0, τ²) for each class,
    p(c | x) = E_s [ P_c e^{s_c} / Σ_k P_k e^{s_k} ]                                             (1)

with P the probabilities under the labelled sources' fractions. (1) takes probabilities toward each
other, the more the less x says, and never far. One s is shared by all targets: their numbers are
less certain than their probabilities would make them (`fraction_ratios`), and so is the score to be
expected of them.

τ = SPREAD = 1, a factor of e either way at one sigma, was chosen on 3FGL -> 4FGL-DR2 and 4FGL ->
4FGL-DR2 (workflows/validation/select_open.py), before other pairs were looked at.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from gpal.errors import InputError
from gpal.evaluation.prior_shift import reweight

__all__ = ["SPREAD", "fraction_ratios", "with_uncertain_fractions"]

SPREAD = 1.0
POINTS = 512


def fraction_ratios(
    num_classes: int, spread: float = SPREAD, num_samples: int = POINTS, seed: int = 0
) -> np.ndarray:
    """(num_samples, C) e^{s_c}, quasi-random."""
    if spread < 0:
        raise InputError(f"the spread of class fractions is 0 or more, got {spread}")
    points = qmc.MultivariateNormalQMC(np.zeros(num_classes), seed=seed)
    enough = 2 ** int(np.ceil(np.log2(max(num_samples, 1))))  # Sobol's points come in powers of two
    return np.exp(spread * points.random(enough)[:num_samples])


def with_uncertain_fractions(P: np.ndarray, spread: float = SPREAD) -> np.ndarray:
    """(n, C) of equation (1)."""
    ratios = fraction_ratios(P.shape[1], spread)
    return np.mean([reweight(P, np.ones(P.shape[1]), ratio) for ratio in ratios], axis=0)
