"""Differences and ratios of columns, and what two features that share a column have in common.

    a − b    σ² = σ_a² + σ_b²                    a/b    σ² = (σ_a/b)² + (a σ_b/b²)²

to first order, the errors of different columns independent. A feature is kept with its terms, by
column the error that this column alone would give it, with its sign: t_c = (∂x/∂c) σ_c. Then σ² is
the sum of t_c², and the covariance of two features the sum of t_c t'_c over the columns of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gpal.catalog.column_values import Reading, read_column
from gpal.catalog.columns import conversion, unit_of
from gpal.catalog.feature import Feature
from gpal.errors import InputError

__all__ = ["Made", "covariance_of", "difference_or_ratio", "member", "units_of"]


@dataclass(frozen=True)
class Made:
    """A feature as it was made of columns: NaN and inf where not measured, its terms, 0 there, and
    the values and errors of both columns of a difference or ratio."""

    x: np.ndarray
    error: np.ndarray
    unit: str
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    members: tuple[tuple[np.ndarray, np.ndarray], ...] = ()


def member(feature: Feature, k: int) -> Feature:
    """The column `k` of a difference or ratio as a feature of its own."""
    error = feature.error if isinstance(feature.error, str | None) else feature.error[k]
    return Feature(
        feature.name,
        column=feature.arithmetic[k],
        error=error,
        unit=feature.unit,
        requires=feature.requires if k == 0 else "",
        missing=feature.missing,
        missing_error=feature.missing_error,
        zero_error=feature.zero_error,
        negative_error=feature.negative_error,
        error_kind="sigma" if error == "none" else feature.error_kind,
        sentinels=feature.sentinels,
    )


def difference_or_ratio(reading: Reading, feature: Feature) -> Made:
    """a − b or a/b; not measured where one of them is not."""
    unit, of_members = units_of(reading, feature)
    (a, σ_a), (b, σ_b) = (
        read_column(reading, replace(member(feature, k), unit=of_members[k])) for k in range(2)
    )
    one, other = feature.arithmetic
    measured = np.isfinite(a) & np.isfinite(b)
    if feature.ratio:
        by_zero = measured & (b == 0)
        measured &= ~reading.decide(by_zero, feature.name, "divided by 0: not measured")
    with np.errstate(divide="ignore", invalid="ignore"):
        if feature.difference:
            x, terms = a - b, {one: σ_a, other: -σ_b}
        else:
            x, terms = a / b, {one: σ_a / b, other: -(a / b) * (σ_b / b)}
    if feature.above is not None:
        low = measured & (x <= feature.above)
        rule = f"not above {feature.above:g}: not measured"
        measured &= ~reading.decide(low, feature.name, rule)
    terms = {column: np.where(measured, term, 0.0) for column, term in terms.items()}
    error = np.hypot(*terms.values())
    x, error = np.where(measured, x, np.nan), np.where(measured, error, np.inf)
    return Made(x, error, unit, terms, ((a, σ_a), (b, σ_b)))


def covariance_of(features: Sequence[Made]) -> np.ndarray | None:
    """(n, d, d) covariance of the errors, None where no two features share a column with errors."""
    d = len(features)
    shared = {}
    for i in range(d):
        for j in range(i):
            both = features[i].terms.keys() & features[j].terms.keys()
            common = sum((features[i].terms[c] * features[j].terms[c] for c in sorted(both)), 0.0)
            if np.any(common):
                shared[i, j] = common
    if not shared:
        return None
    covariance = np.zeros((len(features[0].x), d, d))
    for i, made in enumerate(features):
        covariance[:, i, i] = made.error**2
    for (i, j), common in shared.items():
        covariance[:, i, j] = covariance[:, j, i] = common
    return covariance


def units_of(reading: Reading, feature: Feature) -> tuple[str, tuple[str, str]]:
    """The unit of the result, and those that the two columns are taken in."""
    one, other = (unit_of(reading.table, column) for column in feature.arithmetic)
    common = feature.unit or one or other
    if common and not feature.unit and not (one and other):
        a, b = feature.arithmetic if one else feature.arithmetic[::-1]
        reading.remarks.stated_by_one(a, common, b)
    if feature.difference:
        return common, (common, common)
    try:
        conversion(reading.table, feature.ratio[1], common)
    except InputError:  # of different things, such as counts per area
        return f"({one}) / ({other})", (one, other)
    return "", (common, common)
