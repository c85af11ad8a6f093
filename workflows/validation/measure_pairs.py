"""The three prospective validations with the frozen settings, and the controls on error bars.

    python workflows/validation/measure_pairs.py [--out results.json] [--seeds 5] [--dr2 FILE]

For each pair of releases: NLL of every model with and without variability under every way to take
the class fractions; the same model told zero, constant, permuted and its own errors; and plain and
importance-weighted cross-validation on the old release beside what came out. With the full file of
4FGL-DR2, also the scores on those sources of the first pair on which no setting was chosen. Takes
about half an hour; make_tables.py turns the file into the tables of docs/validation.md.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpal import GPClassifier, load_catalog
from gpal.catalog.crossmatch import crossmatch
from gpal.evaluation import (
    cross_validate,
    gradient_boosting,
    logistic_regression,
    noise_controls,
    quadratic_logistic_regression,
    random_forest,
)
from gpal.evaluation.covariate_shift import effective_sample_size, importance_weights
from gpal.evaluation.prospective import (
    CORRECTIONS,
    ProspectiveValidation,
    prospective_split,
    prospective_validation,
)
from gpal.files.output import atomic_path
from gpal.provenance import provenance, to_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FROZEN = tomllib.loads((Path(__file__).parent / "frozen.toml").read_text())
PAIRS = (("4fgl", "4fgl-dr4"), ("4fgl", "fl16y"), ("4fgl-dr4", "fl16y"))
WITHOUT = FROZEN["scores"]["without"]
MODELS = {
    "GPClassifier": GPClassifier(**FROZEN["model"]),
    "logistic regression": logistic_regression(),
    "quadratic logistic regression": quadratic_logistic_regression(),
    "random forest": random_forest(),
    "gradient boosting": gradient_boosting(),
}


def compare_models(split, features, n_seeds):
    """Scores of all models, their differences to the first, and by origin."""
    validation = prospective_validation(
        split, {name: (model, features) for name, model in MODELS.items()}, n_seeds=n_seeds
    )
    origin = split.origin[split.examined]
    found = {
        "scores": {c: {m: validation.scores(m, c) for m in MODELS} for c in CORRECTIONS},
        "differences": {
            c: {
                m: validation.scores("GPClassifier", c, minus=(m, c))
                for m in MODELS
                if m != "GPClassifier"
            }
            for c in CORRECTIONS
        },
        "by_origin": {
            str(name): {
                "n": int((origin == name).sum()),
                "scores": {
                    c: {m: validation.scores(m, c, rows=origin == name) for m in MODELS}
                    for c in CORRECTIONS
                },
            }
            for name in np.unique(origin)
        },
    }
    return validation, found


def told(split, labelled, targets):
    """The split with other errors."""
    return replace(
        split,
        labelled=replace(split.labelled, measurements=labelled),
        targets=replace(split.targets, measurements=targets),
    )


def compare_errors(split, own, n_seeds):
    """The same model told four things about its errors; paired differences own − control.

    A new permutation for every seed.
    """
    features = split.labelled.feature_names
    model = {"it": (MODELS["GPClassifier"], features)}
    runs = {"own": [own.probabilities["GPClassifier"]]}
    for seed in range(n_seeds):
        parts = [split.labelled.measurements, split.targets.measurements]
        controls = noise_controls(parts, random_state=seed)
        for name in ("zero", "constant", "permuted"):
            once = prospective_validation(
                told(split, *controls[name]), model, n_seeds=1, random_state=seed
            )
            runs.setdefault(name, []).append(once.probabilities["it"])
    together = ProspectiveValidation(split, {k: np.concatenate(v) for k, v in runs.items()})
    return {
        c: {
            "nll": {name: together.scores(name, c)["nll"] for name in runs},
            "own minus": {
                name: together.scores("own", c, minus=(name, c))["nll"]
                for name in runs
                if name != "own"
            },
        }
        for c in ("train", "by origin")
    }


def compare_cross_validation(split):
    """Plain and importance-weighted five-fold cross-validation on the labelled sources."""
    known = split.labelled
    validation = cross_validate(
        {"it": MODELS["GPClassifier"]}, known.measurements, known.y, n_splits=5
    )
    loss = -np.log(validation.out_of_fold("it")[np.arange(len(validation.y)), validation.y])
    weights = importance_weights(known.measurements, split.targets.measurements)
    return {
        "plain": float(loss.mean()),
        "weighted": float(np.average(loss, weights=weights)),
        "effective_sample_size": effective_sample_size(weights),
    }


def unseen_by_selection(validation, old, dr2):
    """Scores on the examined sources that 4FGL-DR2 had not classified yet."""
    pairs = crossmatch(old, dr2)
    known_by_dr2 = set(old.names[pairs.old][dr2.y[pairs.new] != ""])
    names = validation.split.targets.names[validation.split.examined]
    rows = np.array([name not in known_by_dr2 for name in names])
    return {
        "n": int(rows.sum()),
        "scores": {c: {m: validation.scores(m, c, rows=rows) for m in MODELS} for c in CORRECTIONS},
    }


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results.json")
parser.add_argument("--seeds", type=int, default=FROZEN["scores"]["n_seeds"])
parser.add_argument("--dr2", help="the full file of 4FGL-DR2")
arguments = parser.parse_args()

results = {"frozen": FROZEN, "provenance": provenance(), "pairs": {}}
for old_name, new_name in PAIRS:
    old = load_catalog(
        old_name,
        features=FROZEN["catalog"]["features"],
        error_scale=FROZEN["catalog"]["error_scale"],
    )
    split = prospective_split(old, load_catalog(new_name))
    features = split.labelled.feature_names
    everything, with_all = compare_models(split, features, arguments.seeds)
    rest = [name for name in features if name not in WITHOUT]
    _, without = compare_models(split, rest, arguments.seeds)
    pair = {
        "n_labelled": len(split.labelled),
        "n_targets": len(split.targets),
        "n_examined": int(split.examined.sum()),
        "n_per_origin": {
            str(o): int((split.origin[split.examined] == o).sum()) for o in np.unique(split.origin)
        },
        "n_per_class": {str(c): int((split.truth == c).sum()) for c in split.classes},
        "with variability": with_all,
        "without variability": without,
        "errors": compare_errors(split, everything, arguments.seeds),
        "cross-validation": compare_cross_validation(split),
    }
    if arguments.dr2 and (old_name, new_name) == PAIRS[0]:
        pair["not in 4FGL-DR2"] = unseen_by_selection(everything, old, load_catalog(arguments.dr2))
    results["pairs"][f"{old_name} -> {new_name}"] = pair
    with atomic_path(arguments.out) as temporary:
        temporary.write_text(to_json(results, indent=1) + "\n")
    print(f"{old_name} -> {new_name}: written to {arguments.out}", flush=True)
