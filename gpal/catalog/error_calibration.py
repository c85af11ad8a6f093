"""Are a catalog's error bars real? Two releases of the same sources tell.

If every error σ is the true one up to a factor s, then for a source that does not vary

    new data hold the old ones (nested)     Var(x_old − x_new) = s² (σ_old² − σ_new²)          (1)
    independent data                        Var(x_old − x_new) = s² (σ_old² + σ_new²)          (2)

(1) is what efficient estimates on a growing data set do: the later one is uncorrelated with the
difference. Errors are estimates too, so σ_old² − σ_new² of a single source scatters, below zero for
some, and leaving those out would select the sources whose old error came out large. Hence with q,
the median of σ_new²/σ_old² among sources of like errors,

    σ_old² − σ_new²  ≈  (σ_old² + σ_new²) (1 − q)/(1 + q)                                      (3)

and the pull r = (x_old − x_new)/√(that) has standard deviation s. It is taken robustly, 1.4826 ·
median |r − median r|: a few sources change by far more than any error because they vary or were
fitted anew. What most sources do (variability of bright ones, a new calibration) still counts as
error, so calibrate on faint sources if they are what the errors are needed for.

The correlation of two features is that of their pulls, ρ = 2 sin(π ρ_S/6) from Spearman's ρ_S.
What is found is used by gpal.catalog.error_scale.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from gpal.catalog.catalog import Catalog
from gpal.catalog.crossmatch import crossmatch
from gpal.catalog.units import factor_between
from gpal.errors import InputError
from gpal.files.output import atomic_path
from gpal.measurements import Measurements
from gpal.provenance import provenance

__all__ = [
    "FoundCalibration",
    "Scale",
    "calibrate",
    "write_calibration",
]

LEAST_PAIRS = 50
LEAST_SCALE = 0.001  # of which three digits are left
LARGEST_RATIO = 0.95  # q above which (3) divides by next to nothing
BY_SIZE = 3
N_BOOTSTRAP = 500


@dataclass(frozen=True)
class Scale:
    """Factor for one feature's errors: value, 95 % bootstrap interval, and the factors of sources
    with small, middling and large errors, NaN where they cannot be told; from n pairs of
    sources."""

    value: float
    lower: float
    upper: float
    by_size: tuple[float, ...]
    n: int


@dataclass(frozen=True)
class FoundCalibration:
    """Feature -> scale; pair of features -> correlation of their errors; how it was found."""

    scale: Mapping[str, Scale]
    correlation: Mapping[tuple[str, str], float]
    n_matched: int
    nested: bool


def calibrate(
    old: Catalog, new: Catalog, *, nested: bool = True, random_state: int = 0
) -> FoundCalibration:
    """Scales and correlations of the errors of the features that both catalogs have errors for.

    nested  the new catalog's data hold the old one's: equations (1) and (3), else (2)

    Raises InputError if no feature has enough pairs of sources, for one whose units in the two do
    not convert, and for a comma in a name. Warns of a feature that most sources have the same of.
    """
    pairs = crossmatch(old, new)
    before, after = old.measurements[pairs.old], new.measurements[pairs.new]
    names = [name for name in before.names if name in after.names]
    rng = np.random.default_rng(random_state)
    pulls: dict[str, np.ndarray] = {}
    scale: dict[str, Scale] = {}
    for name in names:
        first = before.select([name])
        second = _in_unit(after.select([name]), first.units[0])
        pull, third = _pull(first, second, nested)
        known = np.isfinite(pull)
        if known.sum() < LEAST_PAIRS:
            continue
        of_feature = _scale(pull[known], third[known], rng)
        if of_feature.value < LEAST_SCALE:
            warnings.warn(
                f"feature '{name}' is left out: it is the same in both catalogs in more than half"
                f" of {known.sum()} common sources, which says nothing of its errors",
                stacklevel=2,
            )
            continue
        pulls[name], scale[name] = pull, of_feature
    if not scale:
        raise InputError(
            f"no feature with errors in at least {LEAST_PAIRS} common sources"
            f" ({len(pairs)} sources matched); choose releases further apart, or say independent if"
            " the new one does not hold the old one's data"
        )
    return FoundCalibration(scale, _correlations(pulls), len(pairs), nested)


def _in_unit(of_one: Measurements, wanted: str) -> Measurements:
    """One feature in the unit `wanted`; where either is not stated the numbers stay."""
    found = of_one.units[0]
    if not found or not wanted or found == wanted:
        return of_one
    try:
        factor = factor_between(found, wanted)
    except ValueError:
        raise InputError(
            f"feature '{of_one.names[0]}' is in '{wanted}' in the old catalog and in '{found}' in"
            " the new one, and they do not convert; give it the same unit and transform in both"
        ) from None
    return replace(of_one.scale(np.zeros(1), np.full(1, 1.0 / factor)), units=(wanted,))


def _pull(old: Measurements, new: Measurements, nested: bool) -> tuple[np.ndarray, np.ndarray]:
    """(m,) r of one feature, NaN where it cannot be formed, and the third by size of its errors."""
    x_old, x_new, σ_old, σ_new = (v[:, 0] for v in (old.X, new.X, old.X_err, new.X_err))
    known = np.isfinite(σ_old) & np.isfinite(σ_new) & (σ_old > 0) & (σ_new > 0)
    pull, third = np.full(len(known), np.nan), np.full(len(known), -1)
    variance = np.where(known, σ_old, 1.0) ** 2 + np.where(known, σ_new, 1.0) ** 2
    order = np.flatnonzero(known)[np.argsort(variance[known], kind="stable")]
    for k, rows in enumerate(np.array_split(order, BY_SIZE)):
        q = np.median((σ_new[rows] / σ_old[rows]) ** 2) if nested and len(rows) else 0.0
        if q > LARGEST_RATIO:
            continue
        share = (1 - q) / (1 + q)
        pull[rows] = (x_old[rows] - x_new[rows]) / np.sqrt(variance[rows] * share)
        third[rows] = k
    return pull, third


def _robust_deviation(r: np.ndarray) -> np.ndarray:
    """1.4826 · median |r − median r| along the last axis."""
    centre = np.median(r, axis=-1, keepdims=True)
    return 1.482602218505602 * np.median(np.abs(r - centre), axis=-1)


def _scale(pull: np.ndarray, third: np.ndarray, rng: np.random.Generator) -> Scale:
    sample = [
        _robust_deviation(pull[rng.integers(len(pull), size=len(pull))]) for _ in range(N_BOOTSTRAP)
    ]
    lower, upper = np.quantile(sample, [0.025, 0.975])
    return Scale(
        value=float(_robust_deviation(pull)),
        lower=float(lower),
        upper=float(upper),
        by_size=tuple(_of_third(pull[third == k]) for k in range(BY_SIZE)),
        n=len(pull),
    )


def _of_third(pull: np.ndarray) -> float:
    """NaN of no pair, as where q is above LARGEST_RATIO."""
    return float(_robust_deviation(pull)) if len(pull) else float("nan")


def _correlations(pulls: Mapping[str, np.ndarray]) -> dict[tuple[str, str], float]:
    """Of each two features. Found pair by pair, and written to 3 digits, they may be those of no
    errors at all: then the negative part of their matrix is left out."""
    names, ρ = [*pulls], np.eye(len(pulls))
    comma = [name for name in names if "," in name]
    if comma and len(names) > 1:
        raise InputError(
            f"the feature '{comma[0]}' has a comma in its name, which parts two features in a"
            " calibration; name it otherwise in the schema"
        )
    pairs = [*combinations(range(len(names)), 2)]
    for i, j in pairs:
        ρ[i, j] = ρ[j, i] = _correlation(pulls[names[i]], pulls[names[j]])
    if np.linalg.eigvalsh(ρ.round(3))[0] < 0:
        values, vectors = np.linalg.eigh(ρ)
        ρ = vectors * np.maximum(values, 1e-3 * len(ρ)) @ vectors.T  # more than rounding takes
        width = np.sqrt(np.diagonal(ρ))
        ρ = ρ / np.outer(width, width)
    return {(names[i], names[j]): float(ρ[i, j]) for i, j in pairs}


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    from scipy.stats import spearmanr

    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < LEAST_PAIRS:
        return 0.0
    if np.ptp(a[known]) == 0 or np.ptp(b[known]) == 0:
        return 0.0
    return float(2 * np.sin(np.pi / 6 * spearmanr(a[known], b[known]).statistic))


def write_calibration(
    path: str | os.PathLike, found: FoundCalibration, old: Catalog, new: Catalog
) -> None:
    """Write the `error_calibration` table of a schema, as TOML with its provenance."""
    origin = provenance()
    measured = {
        "old": str(old.provenance.get("title") or old.schema.name),
        "old_sha256": str(old.provenance.get("release_sha256", "")),
        "new": str(new.provenance.get("title") or new.schema.name),
        "new_sha256": str(new.provenance.get("release_sha256", "")),
        "cuts": "; ".join(old.provenance.get("cuts", ())),
        "matched": str(found.n_matched),
        "data": "nested" if found.nested else "independent",
        "gpal": str(origin["gpal"]),
        "date": str(origin["date"]),
    }
    lines = [
        f"# How far the errors of {measured['old']} can be trusted, measured against"
        f" {measured['new']}.",
        f'# Used when asked for: load_catalog("{old.schema.name}", error_scale="this file").',
        "",
        "[error_calibration.scale]                # true error / catalog error",
        *(f"{_quoted(name)} = {scale.value:.3f}" for name, scale in found.scale.items()),
        "",
        "[error_calibration.interval]             # 95 %, bootstrap over sources",
        *(f"{_quoted(n)} = [{s.lower:.3f}, {s.upper:.3f}]" for n, s in found.scale.items()),
        "",
        "[error_calibration.by_size]              # scale of small, middling and large errors",
        *(
            f"{_quoted(name)} = [{', '.join(map(_factor, scale.by_size))}]"
            for name, scale in found.scale.items()
        ),
        "",
        "[error_calibration.correlation]          # of the errors of two features",
        *(f"{_quoted(f'{a},{b}')} = {ρ:.3f}" for (a, b), ρ in found.correlation.items()),
        "",
        "[error_calibration.measured]",
        *(f"{key} = {_quoted(value)}" for key, value in measured.items()),
    ]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _factor(value: float) -> str:
    return '"–"' if np.isnan(value) else f"{value:.3f}"


def _quoted(text: str) -> str:
    """A string or key of TOML; its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
