"""How many sources are of each class, with an interval: the `counts` of a classification and of a
validation, where the truth stands beside it.

What the interval holds, of

    sampling         each candidate is of one class or another, given its probabilities
    model            the posterior, of which functions are drawn at all candidates at once
    class fractions  where they are estimated: each draw takes those of a bootstrap of candidates;
                     where the classes leave none out: each takes some that they may be, see
                     gpal.evaluation.uncertain_fractions

is stated with it. A classifier without a posterior knows no `model`, nor does any of more than
MOST candidates, since drawing them costs the cube of their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpal.catalog import Catalog
from gpal.evaluation import any_classifier
from gpal.evaluation.prior_shift import estimate_prior_by_origin, reweight
from gpal.evaluation.prospective import ProspectiveValidation
from gpal.evaluation.uncertain_fractions import fraction_ratios
from gpal.jobs.galactic_plane import by_latitude, galactic_latitude
from gpal.metrics import class_counts, expected_nll, negative_log_predictive_density

__all__ = ["MOST", "SAMPLES", "candidate_counts", "posterior_probabilities", "target_counts"]

LEVEL = 0.9
SAMPLES = 200
MOST = 5000


def candidate_counts(
    fitted: Any,
    catalog: Catalog,
    P: np.ndarray,
    train: Mapping[str, int],
    fractions: np.ndarray,
    estimated: bool,
    seed: int,
) -> dict[str, Any]:
    """Of all candidates, of those near the Galactic plane and far from it, and of each origin.

    P          (n, C) probabilities of all sources with the class fractions of `train`
    train      class -> labelled sources, classes sorted
    fractions  (n, C) those that the probabilities are to refer to
    estimated  whether they were estimated on the candidates
    """
    rows = catalog.is_target
    asked = catalog[rows]
    origin = np.where(asked.labels == "", "unassociated", asked.labels)
    of_training = np.array([*train.values()], float) / sum(train.values())
    drawn = None
    if 0 < len(asked) <= MOST:
        drawn = any_classifier.sample_proba(fitted, asked.measurements, SAMPLES, seed)
    uncertain = catalog.leaves_none_out and not estimated
    holds = ["sampling"] + ["model"] * (drawn is not None)
    holds += ["class fractions"] * (estimated or uncertain)
    samples = P[None, rows] if drawn is None else drawn
    stated = P[rows]
    if (fractions[rows] != of_training).any():
        stated = reweight(stated, of_training, fractions[rows])
    if estimated:
        samples = _under_estimates(samples, of_training, origin, seed)
    elif (fractions[rows] != of_training).any():
        samples = np.stack([reweight(sample, of_training, fractions[rows]) for sample in samples])
    if uncertain:
        samples = _under_uncertain(samples, seed)

    parts = {"all candidates": np.full(len(asked), True), **_parts(asked, origin)}
    counts = _stated(samples, parts, [*train]) | {"holds": holds}
    return _with_forecast(counts, samples, stated, parts, seed) if uncertain else counts


def target_counts(
    validation: ProspectiveValidation, model: str, correction: str, seed: int
) -> dict[str, Any]:
    """The same of the targets of a validation, under the labelled class fractions or those by
    origin; and of the examined ones, of whom `true` has the numbers in the newer release."""
    split = validation.split
    samples = posterior_probabilities(validation, model, correction, seed)
    parts = {
        "all targets": np.full(len(split.targets), True),
        **_parts(split.targets, split.origin),
        "examined": split.examined,
        **{
            f"examined, {name}": split.examined & (split.origin == name)
            for name in np.unique(split.origin[split.examined])
        },
    }
    classes = split.classes.tolist()
    found = _stated(samples, parts, classes)
    for name, part in found["sets"].items():
        if name.startswith("examined"):
            truth = split.truth[parts[name]]
            for c in classes:
                part["classes"][c]["true"] = int(np.sum(truth == c))
    if correction == "uncertain":
        P = samples.mean(axis=0)
        found = _with_forecast(found, samples, P, parts, seed)
        for name, part in found["sets"].items():
            if name.startswith("examined"):
                rows = parts[name]
                label = np.searchsorted(split.classes, split.truth[rows])
                part["nll"]["true"] = negative_log_predictive_density(label, P[rows])
    drawn, varied = model in validation.draws, correction != "train"
    holds = ["sampling"] + ["model"] * drawn + ["class fractions"] * varied
    return found | {"holds": holds}


def posterior_probabilities(
    validation: ProspectiveValidation, model: str, correction: str, seed: int
) -> np.ndarray:
    """(S, n, C) of the targets: samples of the posterior, or the probabilities where there is none,
    by origin each under the fractions of a bootstrap, and under uncertain fractions each under
    some of those that they may be."""
    split = validation.split
    samples = validation.draws.get(model)
    if samples is None:
        samples = validation.probabilities[model][:1]
    if correction == "by origin":
        samples = _under_estimates(samples, split.train_fractions, split.origin, seed)
    if correction == "uncertain":
        samples = _under_uncertain(samples, seed)
    return samples


def _parts(sources: Catalog, origin: np.ndarray) -> dict[str, np.ndarray]:
    """Name of a part -> (n,) bool: by latitude, then by origin where that differs."""
    origins = np.unique(origin)
    return {
        **by_latitude(galactic_latitude(sources.ra, sources.dec)),
        **{str(name): origin == name for name in origins if len(origins) > 1},
    }


def _stated(
    samples: np.ndarray, parts: Mapping[str, np.ndarray], classes: Sequence[str]
) -> dict[str, Any]:
    return {
        "confidence_level": LEVEL,
        "samples": len(samples),
        "sets": {
            name: {
                "n": int(inside.sum()),
                "classes": class_counts(samples[:, inside], LEVEL).as_dict(classes),
            }
            for name, inside in parts.items()
        },
    }


def _with_forecast(
    counts: dict[str, Any],
    samples: np.ndarray,
    P: np.ndarray,
    parts: Mapping[str, np.ndarray],
    seed: int,
) -> dict[str, Any]:
    """The counts, and of each part the NLL to be expected of its probabilities P (n, C).

    Only where class fractions are left open: without that no interval held what came out
    (docs/validation.md).
    """
    for name, part in counts["sets"].items():
        inside = parts[name]
        if part["n"]:
            part["nll"] = expected_nll(samples[:, inside], P[inside], LEVEL, seed)
    return counts


def _under_uncertain(samples: np.ndarray, seed: int) -> np.ndarray:
    """(S, n, C) each sample of the probabilities under class fractions that may be those."""
    same = np.ones(samples.shape[2])
    ratios = fraction_ratios(len(same), num_samples=SAMPLES, seed=seed)
    return np.stack(
        [reweight(samples[s % len(samples)], same, ratio) for s, ratio in enumerate(ratios)]
    )


def _under_estimates(
    samples: np.ndarray, train: np.ndarray, origin: np.ndarray, seed: int
) -> np.ndarray:
    """(S, n, C) each sample of the probabilities under fractions estimated on a bootstrap of it,
    within each origin."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(origin == name) for name in np.unique(origin)]
    found = np.empty((SAMPLES, *samples.shape[1:]))
    for s in range(SAMPLES):
        P = samples[s % len(samples)]
        again = np.concatenate([rng.choice(rows, len(rows)) for rows in members])
        _, each = estimate_prior_by_origin(P[again], train, origin[again], n_bootstrap=0)
        found[s] = reweight(P, train, np.stack([each[name].fractions for name in origin]))
    return found
