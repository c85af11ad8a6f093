"""Can the probabilities say how good they will turn out to be? On three pairs of releases.

    python workflows/validation/forecast.py

Of each function drawn from the posterior (with class fractions by origin: under those of a
bootstrap of the targets, too) labels are drawn, and the stated probabilities are scored against
them: the NLL that they promise, with a 90 % interval, for as many sources of each origin as were
examined. *Of the examined*: of those very sources, which nobody knows beforehand. *Of the targets*:
of any. Frozen settings, all features, one seed, nothing chosen on these pairs. Takes six minutes on
one core.
"""

import numpy as np
from frozen import MODEL, PAIRS, corrections, model, release

from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.jobs.class_counts import SAMPLES, posterior_probabilities

SMALLEST = 1e-12


def promised(samples, stated, of_origin, rng):
    """NLL of labels drawn from each sample (S, n, C), for so many rows of each origin."""
    found = []
    for P in samples:
        rows = np.concatenate([rng.choice(members, number) for members, number in of_origin])
        label = (P[rows].cumsum(axis=1) < rng.random(len(rows))[:, None]).sum(axis=1)
        found.append(-stated[rows, np.minimum(label, P.shape[1] - 1)].mean())
    low, high = np.quantile(found, [0.05, 0.95])
    return f"{np.mean(found):.2f} ({low:.2f} to {high:.2f})"


print(
    "| classes | pair | fractions | examined | NLL | promised, of the examined | of the targets |"
)
print("|" + 7 * "---|")
for exhaustive in (False, True):
    for old, new in PAIRS:
        before = release(old, exhaustive)
        split = prospective_split(before, release(new, exhaustive))
        models = {MODEL: model(before, exhaustive)}
        validation = prospective_validation(split, models, n_seeds=1, n_draws=SAMPLES)
        label = np.searchsorted(split.classes, split.truth[split.examined])
        origins = [split.origin == name for name in np.unique(split.origin[split.examined])]
        for correction in corrections(exhaustive):
            samples = posterior_probabilities(validation, MODEL, correction, 0)
            stated = np.log(np.maximum(samples.mean(axis=0), SMALLEST))
            rng = np.random.default_rng(0)
            cells = [
                promised(
                    samples,
                    stated,
                    [
                        (np.flatnonzero(of & among), int((of & split.examined).sum()))
                        for of in origins
                    ],
                    rng,
                )
                for among in (split.examined, np.full(len(split.origin), True))
            ]
            outcome = -stated[split.examined][np.arange(len(label)), label].mean()
            print(
                f"| {', '.join(split.classes)} | {old} -> {new} | {correction} | {len(label)} |"
                f" {outcome:.2f} | {' | '.join(cells)} |",
                flush=True,
            )
