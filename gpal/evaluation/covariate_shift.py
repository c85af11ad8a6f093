"""Covariate shift: are the targets like the sources that the model learned from?

overlap        ∫ min(p_labelled(x), p_target(x)) dx per feature, from histograms whose
               edges are the deciles of either: 1 for the same distribution, 0 for disjoint ones
support        a target is outside it if its distance to the k-th nearest labelled source, in
               standardised features, exceeds 99 % of the labelled sources' own such distances
weights        w(x) = p_target(x)/p_labelled(x) ∝ g/(1 − g) from a logistic regression g(x) that
               tells the two samples apart, for importance-weighted cross-validation (Sugiyama
               et al. 2007, JMLR 8, 985)
calibration    scores in bins of any quantity, such as significance or the size of error bars
"""

from __future__ import annotations

from typing import Any

import numpy as np
from astropy.stats import binom_conf_interval
from scipy.stats import ks_2samp
from sklearn.impute import SimpleImputer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpal.array_messages import refuse_masked
from gpal.errors import InputError
from gpal.evaluation.baselines import quadratic_logistic_regression
from gpal.measurements import Measurements
from gpal.metrics import negative_log_predictive_density
from gpal.model.known_features import by_name, in_units
from gpal.plain_values import plain

__all__ = [
    "Support",
    "calibration_by",
    "effective_sample_size",
    "error_size",
    "importance_weights",
    "outside_support",
    "overlap",
    "overlap_by_feature",
    "quantile_bins",
]

Sample = Measurements | np.ndarray  # sources, or their values (n, d); errors play no part
NEIGHBOURS, SUPPORT = 10, 0.99


def overlap(labelled: np.ndarray, target: np.ndarray, bins: int = 10) -> dict[str, float]:
    """Overlap of two samples of one feature, their Kolmogorov-Smirnov distance and their medians.

    NaN, a value that was not measured, is left out. Two samples of one distribution come out a
    little below 1, by about √(2 bins/(π n)) for n the smaller one's size.
    """
    of_both = (np.asarray(plain("a sample", x), float) for x in (labelled, target))
    a, b = (x[np.isfinite(x)] for x in of_both)
    if not len(a) or not len(b):
        return {"overlap": np.nan, "ks": np.nan, "labelled": np.nan, "target": np.nan}
    levels = np.linspace(0, 1, bins + 1)
    edges = np.unique(np.concatenate([np.quantile(a, levels), np.quantile(b, levels)]))
    p, q = (np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b))
    return {
        "overlap": float(np.minimum(p / len(a), q / len(b)).sum()),
        "ks": float(ks_2samp(a, b).statistic),
        "labelled": float(np.median(a)),
        "target": float(np.median(b)),
    }


def overlap_by_feature(labelled: Measurements, target: Measurements) -> dict[str, dict[str, float]]:
    """Feature -> `overlap` of the two samples in it."""
    known, asked = labelled.X, _values(target, labelled)
    return {name: overlap(known[:, j], asked[:, j]) for j, name in enumerate(labelled.names)}


def outside_support(labelled: Sample, target: Sample) -> np.ndarray:
    """(n,) bool: targets farther from the labelled sources than these are from each other.

    Values not measured take the labelled median. By construction 1 % of sources like the labelled
    ones are flagged.
    """
    return Support(labelled).outside(target)


class Support:
    """Where the labelled sources lie, see `outside_support`."""

    def __init__(self, labelled: Sample) -> None:
        self._labelled = labelled
        self._prepare = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        known = self._prepare.fit_transform(_values(labelled))
        if len(known) < 2:
            raise InputError(
                "one labelled source has no distance to others: give two labelled sources or more"
            )
        k = min(NEIGHBOURS, len(known) - 1)
        self._search = NearestNeighbors(n_neighbors=k).fit(known)
        self._limit = np.quantile(self._search.kneighbors()[0][:, -1], SUPPORT)

    def outside(self, target: Sample) -> np.ndarray:
        """(n,) bool."""
        asked = self._prepare.transform(_values(target, self._labelled))
        return self._search.kneighbors(asked)[0][:, -1] > self._limit


def importance_weights(labelled: Sample, target: Sample) -> np.ndarray:
    """(n,) weights of the labelled sources, mean one, that make them look like the targets."""
    known = _values(labelled)
    both = np.vstack([known, _values(target, labelled)])
    is_target = np.repeat([0, 1], [len(known), len(both) - len(known)])
    told_apart = quadratic_logistic_regression().fit(both, is_target)
    g = told_apart.predict_proba(known)[:, 1]
    weights = g / np.maximum(1 - g, np.finfo(float).eps)
    return weights / weights.mean()


def effective_sample_size(weights: np.ndarray) -> float:
    """(Σ w)²/Σ w²: how many equally weighted sources carry the same information."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _values(sample: Sample, like: Sample | None = None) -> np.ndarray:
    """(n, d) values; those of another sample's features, by name, in its order and units."""
    if not isinstance(sample, Measurements):
        return np.asarray(plain("a sample", sample), float)
    if isinstance(like, Measurements) and sample.named and like.named:
        sample = in_units(by_name(sample, like.names), like.units)
    return sample.X


def error_size(sources: Measurements, spread: np.ndarray) -> np.ndarray:
    """(n,) root mean square of the errors over the features that have any, in units of `spread`.

    spread (d,) is the labelled sources' standard deviation; values not measured are left out, and a
    source of which none was measured has NaN.
    """
    X_err = sources.X_err
    has_errors = (np.where(np.isfinite(X_err), X_err, 0.0) > 0).any(axis=0)
    relative = np.where(np.isfinite(X_err), X_err / spread, np.nan)[:, has_errors]
    known = np.isfinite(relative)
    squares = np.where(known, relative, 0.0) ** 2
    size = np.sqrt(squares.sum(axis=1) / np.maximum(known.sum(axis=1), 1))
    return np.where(known.any(axis=1) | ~has_errors.any(), size, np.nan)


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """(n,) bin number 0 … bins−1 of equally filled bins; −1 where `values` is NaN."""
    values = np.asarray(plain("values", values), float)
    known = np.isfinite(values)
    edges = np.quantile(values[known], np.linspace(0, 1, bins + 1)[1:-1]) if known.any() else []
    return np.where(known, np.searchsorted(edges, np.where(known, values, 0.0), "right"), -1)


def calibration_by(
    y: np.ndarray, P: np.ndarray, values: np.ndarray, bins: int = 5
) -> list[dict[str, Any]]:
    """Per equally filled bin of `values`: its range, NLL, mean confidence, accuracy and interval.

    Calibrated probabilities have accuracy = confidence within the Wilson interval (68 %) in every
    bin. Bins without sources are left out.
    """
    refuse_masked(y=y, P=P)
    y, P, values = np.asarray(y), np.asarray(P), np.asarray(plain("values", values), float)
    number = quantile_bins(values, bins)
    rows = []
    for b in range(bins):
        chosen = number == b
        n = int(chosen.sum())
        if not n:
            continue
        right = int((P[chosen].argmax(axis=1) == y[chosen]).sum())
        lower, upper = binom_conf_interval(right, n, interval="wilson")
        rows.append(
            {
                "from": float(values[chosen].min()),
                "to": float(values[chosen].max()),
                "n": n,
                "nll": negative_log_predictive_density(y[chosen], P[chosen]),
                "confidence": float(P[chosen].max(axis=1).mean()),
                "accuracy": right / n,
                "accuracy_lower": float(lower),
                "accuracy_upper": float(upper),
            }
        )
    return rows
