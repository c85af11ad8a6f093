"""What a list of a stated purity comes to: its threshold, its completeness, its candidates.

Candidates that another model predicts than labelled sources, one that has also learned from fainter
copies, have a threshold of their own: the lowest probability t for which

    mean { p_i : p_i ≥ t } ≥ purity

of the candidates themselves. A threshold that makes labelled sources so pure, by the models of the
folds, makes lists of candidates longer and less pure than it says
(workflows/validation/select_threshold.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from astropy.table import Table

from gpal.metrics import promised_threshold, pure_list
from gpal.names import probability_column

__all__ = ["PURITIES", "candidates_of", "purity_lists"]

PURITIES = (0.8, 0.9, 0.95)


def purity_lists(
    y: np.ndarray,
    P: np.ndarray,
    classes: Sequence[str],
    targets: np.ndarray | None = None,
    stated: np.ndarray | None = None,
    own: bool = False,
) -> dict[str, list[dict[str, Any]]]:
    """Class -> for each of PURITIES the fields of `gpal.metrics.PureList`, and of the sources of
    unknown class `candidates_threshold`, and of those above it `n_candidates` and
    `candidates_promised`, their mean p.

    y, P     (n,) class indices of sources of known class, (n, C) what was predicted of them
    targets  (m, C) probabilities of those of unknown class, which refer to the class fractions that
             P refers to: a threshold has one meaning only
    stated   (m, C) their probabilities as the results state them; None: `targets`
    own      their threshold is that which their stated probabilities promise, not that of the y
    """
    stated = targets if stated is None else stated

    def row(c: int, purity: float) -> dict[str, Any]:
        found = asdict(pure_list(y == c, P[:, c], purity))
        if targets is None or stated is None:
            return found
        threshold = found["threshold"]
        if own:
            threshold = promised_threshold(stated[:, c], purity)
        listed = (stated if own else targets)[:, c] >= threshold  # none above NaN
        promised = float(stated[listed, c].mean()) if listed.any() else np.nan
        return found | {
            "candidates_threshold": threshold,
            "n_candidates": int(listed.sum()),
            "candidates_promised": promised,
        }

    return {str(name): [row(c, purity) for purity in PURITIES] for c, name in enumerate(classes)}


def candidates_of(table: Table, classes: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(m, C) probabilities of a probability catalogue's candidates, with the class fractions of the
    labelled sources, and as they are stated."""
    rows = np.asarray(table["candidate"])

    def columns(kind: str) -> np.ndarray:
        return np.column_stack([table[probability_column(name, kind)][rows] for name in classes])

    stated = columns("")
    referred = probability_column(classes[0], "_train") in table.colnames
    return columns("_train") if referred else stated, stated
