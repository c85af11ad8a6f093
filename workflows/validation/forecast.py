"""Can the probabilities say how good they will turn out to be? On three pairs of releases.

    python workflows/validation/forecast.py

Samples of the probabilities are those of the counts in the reports: functions of the posterior,
under class fractions that are estimated on a bootstrap of the targets or left open.
gpal.metrics.expected_nll says what NLL they promise, with a 90 % interval. *Of the examined*: of
those very sources, as the reports state it; which these are nobody knows beforehand. *Of the
targets*: of any, as many of each origin as were examined. Frozen settings, all features, one seed,
nothing chosen on these pairs. Takes six minutes on one core.
"""

import numpy as np
from frozen import MODEL, PAIRS, corrections, model, release

from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.jobs.class_counts import SAMPLES, posterior_probabilities
from gpal.metrics import expected_nll, negative_log_predictive_density


def any_targets(split, rng):
    """(SAMPLES, m) targets at random, so many of each origin as were examined."""
    origins = [split.origin == name for name in np.unique(split.origin[split.examined])]
    return np.stack(
        [
            np.concatenate(
                [rng.choice(np.flatnonzero(of), (of & split.examined).sum()) for of in origins]
            )
            for _ in range(SAMPLES)
        ]
    )


def shown(found):
    return f"{found['mean']:.2f} ({found['lower']:.2f} to {found['upper']:.2f})"


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
        rows = any_targets(split, np.random.default_rng(0))
        for correction in corrections(exhaustive):
            samples = posterior_probabilities(validation, MODEL, correction, 0)
            of_examined = samples[:, split.examined]
            outcome = negative_log_predictive_density(label, of_examined.mean(axis=0))
            print(
                f"| {', '.join(split.classes)} | {old} -> {new} | {correction} | {len(label)} |"
                f" {outcome:.2f} | {shown(expected_nll(of_examined))} |"
                f" {shown(expected_nll(samples, rows=rows))} |",
                flush=True,
            )
