"""Prospective validation: learn from an old release, be examined by what a newer one identified.

    labelled   sources whose class the old release knows; their old measurements train the models
    targets    sources that the old release left without a class, or with an undecided one
    examined   the targets whose class the new release gives; nothing else of it is used

A random split of labelled sources asks about sources like the labelled ones. This asks about those
that people want to know: fainter, with larger errors, and with other class fractions.

With seeds s = 1 … S the loss of examined source i is L_i = 1/S Σ_s −ln P^s[i, y_i], so that scores
are those of one model, not of S averaged ones. Intervals are percentiles over bootstrap samples of
the examined sources, the same samples for every model: differences are paired by source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from gpal.catalog.catalog import Catalog
from gpal.catalog.crossmatch import crossmatch
from gpal.errors import InputError
from gpal.evaluation import any_classifier
from gpal.evaluation.outcomes import outcomes
from gpal.evaluation.prior_shift import estimate_prior, estimate_prior_by_origin, reweight
from gpal.evaluation.uncertain_fractions import with_uncertain_fractions
from gpal.metrics import ECE_BINS, reliability_table

__all__ = [
    "CORRECTIONS",
    "FLOOR",
    "ProspectiveSplit",
    "ProspectiveValidation",
    "prospective_split",
    "prospective_validation",
]

# How probabilities are referred to the targets' class fractions, and on whom these are estimated.
CORRECTIONS = {
    "train": "no correction: the labelled sources' class fractions",
    "all targets": "one mix, estimated on all targets",
    "by origin": "a mix per origin, estimated on all its targets",
    "uncertain": "left open around those of the labelled sources, a factor of e at one sigma",
    "examined only": "one mix, estimated on the examined sources alone; not available in practice",
}
N_BOOTSTRAP = 2000
FLOOR = float(np.finfo(float).tiny)

Classes = Iterable[str] | Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class ProspectiveSplit:
    """Labelled sources and targets of an old release, and what a new one says of the targets.

    labelled   the old release's labelled sources
    targets    its n targets, all of them
    truth      (n,) group in the new release; '' where it gives none of them
    new_names  (n,) name in the new release; '' where there is no counterpart
    matched    sources of the old release found in the new one
    new_labels (n,) class in the new release as printed there; '' where it gives none
    outcome    (n,) what became of each, see gpal.evaluation.outcomes
    """

    labelled: Catalog
    targets: Catalog
    truth: np.ndarray
    new_names: np.ndarray
    matched: int
    new_labels: np.ndarray
    outcome: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """(C,) the labelled groups, sorted."""
        return np.unique(self.labelled.y)

    @property
    def train_fractions(self) -> np.ndarray:
        """(C,) class fractions of the labelled sources."""
        return np.mean(self.labelled.y[:, None] == self.classes, axis=0)

    @property
    def recommended(self) -> str:
        """The one of CORRECTIONS to take: estimated fractions run away where `other` is a class."""
        return "uncertain" if self.labelled.leaves_none_out else "by origin"

    @property
    def examined(self) -> np.ndarray:
        """(n,) bool: targets with a truth."""
        return self.truth != ""

    @property
    def y(self) -> np.ndarray:
        """(m,) class index of the examined targets."""
        return np.searchsorted(self.classes, self.truth[self.examined])

    @property
    def origin(self) -> np.ndarray:
        """(n,) what the old release called a target: 'unassociated' or an undecided class."""
        return np.where(self.targets.labels == "", "unassociated", self.targets.labels)


def prospective_split(
    old: Catalog,
    new: Catalog,
    classes: Classes | None = None,
    *,
    fallback_radius: float = 0.1,
) -> ProspectiveSplit:
    """Labelled sources and targets of `old`, with the truth from `new`.

    classes  as in Catalog.with_classes, for both catalogs; None: their current groups

    Raises InputError if a class has no labelled source or no target was classified later.
    """
    if classes is not None:
        classes = classes if isinstance(classes, Mapping) else list(classes)
        old, new = old.with_classes(classes), new.with_classes(classes)
    if set(old.classes) != set(new.classes):
        raise InputError(
            f"the catalogs tell different classes apart, {', '.join(old.classes)} and"
            f" {', '.join(new.classes)}; name the classes"
        )
    pairs = crossmatch(old, new, fallback_radius=fallback_radius)
    truth = np.full(len(old), "", dtype=new.group.dtype)
    new_names = np.full(len(old), "", dtype=new.names.dtype)
    new_labels = np.full(len(old), "", dtype=new.original_labels.dtype)
    truth[pairs.old], new_names[pairs.old] = new.group[pairs.new], new.names[pairs.new]
    new_labels[pairs.old] = new.original_labels[pairs.new]
    split = ProspectiveSplit(
        labelled=old[old.y != ""],
        targets=old[old.is_target],
        truth=truth[old.is_target],
        new_names=new_names[old.is_target],
        matched=len(pairs),
        new_labels=new_labels[old.is_target],
        outcome=outcomes(old, new, pairs)[old.is_target],
    )
    if len(split.classes) < 2 or not set(split.truth[split.examined]) <= set(split.classes):
        raise InputError(
            f"the old catalog labels only {', '.join(split.classes) or 'nothing'}; name two or more"
            " classes that it holds"
        )
    if not split.examined.any():
        raise InputError(
            "the new catalog classifies none of the old one's targets, so there is nothing to"
            " examine; give a newer release, or other classes"
        )
    return split


@dataclass(frozen=True)
class ProspectiveValidation:
    """Probabilities of every target by every model; all scores follow from them.

    split          what was asked
    probabilities  model -> (S, n, C) under the labelled class fractions, one slice per seed
    floor          a probability of the true class below it counts as so much in the NLL
    draws          model -> (D, n, C) drawn from the posterior of the first seed, jointly for all
                   targets, under the labelled class fractions; only where asked for
    """

    split: ProspectiveSplit
    probabilities: Mapping[str, np.ndarray]
    random_state: int = 0
    floor: float = FLOOR
    draws: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    _corrected: dict[tuple[str, str], np.ndarray] = field(default_factory=dict, repr=False)
    _areas: dict[tuple, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def models(self) -> list[str]:
        """Their names."""
        return list(self.probabilities)

    def __repr__(self) -> str:
        split = self.split
        return (
            f"<ProspectiveValidation: {len(split.targets)} targets, {int(split.examined.sum())}"
            f" examined; {', '.join(self.models)}>"
        )

    def corrected(self, model: str, correction: str = "train") -> np.ndarray:
        """(S, n, C) probabilities of every target under one of CORRECTIONS, seed by seed."""
        if (model, correction) not in self._corrected:
            P = self.probabilities[model]
            self._corrected[model, correction] = np.stack([self._correct(p, correction) for p in P])
        return self._corrected[model, correction]

    def _correct(self, P: np.ndarray, correction: str) -> np.ndarray:
        train = self.split.train_fractions
        if correction == "train":
            return P
        if correction == "uncertain":
            return with_uncertain_fractions(P)
        if correction == "by origin":
            origin = self.split.origin
            _, each = estimate_prior_by_origin(P, train, origin, n_bootstrap=0)
            target = np.stack([each[name].fractions for name in origin])
            return reweight(P, train, target)
        if correction not in CORRECTIONS:
            raise InputError(f"no correction '{correction}'; there are: {', '.join(CORRECTIONS)}")
        sample = P[self.split.examined] if correction == "examined only" else P
        return reweight(P, train, estimate_prior(sample, train, n_bootstrap=0).fractions)

    def per_source(self, model: str, correction: str = "train") -> dict[str, np.ndarray]:
        """Metric -> (m,) loss of every examined source, averaged over seeds."""
        P, y = self.corrected(model, correction)[:, self.split.examined], self.split.y
        of_truth = np.maximum(P[:, np.arange(len(y)), y], self.floor)
        return {
            "nll": -np.log(of_truth).mean(axis=0),
            "error": (P.argmax(axis=2) != y).mean(axis=0),
            "brier": ((P - np.eye(P.shape[2])[y]) ** 2).sum(axis=2).mean(axis=0),
        }

    def scores(
        self,
        model: str,
        correction: str = "train",
        rows: np.ndarray | None = None,
        minus: tuple[str, str] | None = None,
    ) -> dict[str, Any]:
        """Metric -> mean, se, and the 95 % bootstrap interval (lower, upper); under `per_class`
        class -> "auc" -> the same.

        rows   (m,) bool, some of the examined sources (InputError for none); None: all. Of a single
               one se and interval are NaN
        minus  (model, correction) to take the paired difference with

        An area of a class that no source or every one has is NaN, and not in the mean `macro_auc`.
        `nll` also has `seed_sd`, the scatter of the mean from seed to seed; NaN with one seed.
        """
        rows = np.full(len(self.split.y), True) if rows is None else rows
        if not rows.any():
            raise InputError("no examined source is selected; there are no scores of none")
        alone = rows.sum() == 1
        weights = _bootstrap_weights(int(rows.sum()), self.random_state)
        losses = self.per_source(model, correction)
        if minus is not None:
            losses = {k: v - self.per_source(*minus)[k] for k, v in losses.items()}
        found: dict[str, Any] = {
            k: _summary(v[rows].mean(), weights @ v[rows]) for k, v in losses.items()
        }
        areas = self._bootstrapped_areas(model, correction, rows)
        if minus is not None:
            areas = areas - self._bootstrapped_areas(*minus, rows)
        found["macro_auc"] = _area_summary(_mean_of_known(areas))
        found["per_class"] = {
            str(name): {"auc": _area_summary(areas[:, c])}
            for c, name in enumerate(self.split.classes)
        }
        if minus is None:
            y = self.split.y[rows]
            P = self.corrected(model, correction)[:, self.split.examined][:, rows]
            found["ece"] = _summary(_ece(P, y, np.full(len(y), 1 / len(y))), _ece(P, y, weights))
            of_seed = -np.log(np.maximum(P[:, np.arange(len(y)), y], self.floor)).mean(axis=1)
            found["nll"]["seed_sd"] = float(of_seed.std(ddof=1)) if len(of_seed) > 1 else np.nan
        if alone:
            for score in found.keys() - {"per_class"}:
                found[score].update(dict.fromkeys(("se", "lower", "upper"), np.nan))
        return found

    def _bootstrapped_areas(self, model: str, correction: str, rows: np.ndarray) -> np.ndarray:
        """(1 + B, C) areas under the ROC curves, averaged over seeds: of the examined sources
        `rows`, then of every bootstrap sample of them."""
        key = (model, correction, rows.tobytes())
        if key not in self._areas:
            y, n = self.split.y[rows], int(rows.sum())
            P = self.corrected(model, correction)[:, self.split.examined][:, rows]
            weights = np.vstack([np.full(n, 1 / n), _bootstrap_weights(n, self.random_state)])
            self._areas[key] = np.mean([_areas(p, y, weights) for p in P], axis=0)
        return self._areas[key]

    def reliability(
        self, model: str, correction: str, rows: np.ndarray
    ) -> dict[str, list[dict[str, float]]]:
        """Class -> reliability in bins of `rows`, (m,) bool of the examined; of the first seed."""
        P = self.corrected(model, correction)[0][self.split.examined][rows]
        y = self.split.y[rows]
        return {
            str(name): reliability_table(y == c, P[:, c])
            for c, name in enumerate(self.split.classes)
        }


@lru_cache(maxsize=8)
def _bootstrap_weights(n: int, random_state: int) -> np.ndarray:
    """(B, n) share of every source in every bootstrap sample."""
    rng = np.random.default_rng(random_state)
    return rng.multinomial(n, np.full(n, 1 / n), size=N_BOOTSTRAP) / n


def _summary(mean: Any, sample: np.ndarray) -> dict[str, float]:
    lower, upper = np.quantile(sample, [0.025, 0.975])
    return {
        "mean": float(mean),
        "se": float(sample.std()),
        "lower": float(lower),
        "upper": float(upper),
    }


def _ece(P: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Any:
    """Expected calibration error of samples with `weights` (..., m), averaged over seeds."""
    values = []
    for p in P:
        confidence = p.max(axis=1)
        gap = (p.argmax(axis=1) == y) - confidence
        bin_of = np.minimum((confidence * ECE_BINS).astype(int), ECE_BINS - 1)
        values.append(np.abs(weights @ (gap[:, None] * np.eye(ECE_BINS)[bin_of])).sum(axis=-1))
    return np.mean(values, axis=0)


def _areas(P: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, C) areas under the ROC curves of samples with `weights` (B, m).

    Σ_ij w_i w_j (1[p_i > p_j] + ½ 1[p_i = p_j]) / Σ_ij w_i w_j over members i and others j: all
    samples at once, where scikit-learn takes one at a time. NaN in a sample without one of the two.
    """
    found = np.full((len(weights), P.shape[1]), np.nan)
    for c in range(P.shape[1]):
        member = y == c
        inside, outside = weights[:, member], weights[:, ~member]
        p, others = P[member, c][:, None], P[~member, c]
        above = (p > others) + 0.5 * (p == others)
        pairs = inside.sum(axis=1) * outside.sum(axis=1)
        known = pairs > 0
        found[known, c] = np.sum((inside @ above) * outside, axis=1)[known] / pairs[known]
    return found


def _mean_of_known(areas: np.ndarray) -> np.ndarray:
    """(B,) means over the classes whose area is known in the first row, the sample itself."""
    known = ~np.isnan(areas[0])
    return areas[:, known].mean(axis=1) if known.any() else np.full(len(areas), np.nan)


def _area_summary(areas: np.ndarray) -> dict[str, float]:
    """Of the sample's area and those of its bootstrap samples, but for these without the class."""
    sample = areas[1:][~np.isnan(areas[1:])]
    if np.isnan(areas[0]) or not len(sample):
        return dict.fromkeys(("mean", "se", "lower", "upper"), np.nan)
    return _summary(areas[0], sample)


def prospective_validation(
    split: ProspectiveSplit,
    models: Mapping[str, tuple[Any, Sequence[str]]],
    *,
    n_seeds: int = 5,
    n_draws: int = 0,
    random_state: int = 0,
    progress: bool | None = None,
) -> ProspectiveValidation:
    """Fit every model on the labelled sources, `n_seeds` times, and predict every target.

    models  name -> (scikit-learn classifier, names of the features it is given). Each is told of
            the errors what it can take, see gpal.evaluation.any_classifier
    n_draws  of the posterior of each model that has one, first seed; costs the cube of the targets

    Raises InputError for a model that has class fractions of its own.
    """
    for model, _ in models.values():
        any_classifier.refuse_own_fractions(model)
    probabilities: dict[str, np.ndarray] = {}
    draws: dict[str, np.ndarray] = {}
    bar = tqdm(
        total=len(models) * n_seeds,
        desc="validation",
        unit="fit",
        disable=None if progress is None else not progress,
    )
    # A few thousand sources are too few to share out: OpenMP threads would mostly wait, and on a
    # busy machine gradient boosting then takes thirty times as long.
    with bar, threadpool_limits(limits=1, user_api="openmp"):
        for name, (model, features) in models.items():
            bar.set_postfix_str(name)
            labelled = split.labelled.measurements.select(features)
            targets = split.targets.measurements.select(features)
            of_seeds = []
            for seed in range(random_state, random_state + n_seeds):
                fitted = any_classifier.fit(_with_seed(model, seed), labelled, split.labelled.y)
                of_seeds.append(any_classifier.predict_proba(fitted, targets))
                if n_draws and seed == random_state:
                    drawn = any_classifier.sample_proba(fitted, targets, n_draws, seed)
                    draws.update({} if drawn is None else {name: drawn})
                bar.update()
            probabilities[name] = np.stack(of_seeds)
    return ProspectiveValidation(split, probabilities, random_state, draws=draws)


def _with_seed(model: Any, seed: int) -> Any:
    """A clone whose every random_state is `seed`."""
    fresh = clone(model)
    keys = [key for key in fresh.get_params() if key.split("__")[-1] == "random_state"]
    return fresh.set_params(**dict.fromkeys(keys, seed))
