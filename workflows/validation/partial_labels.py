"""What sources are worth whose class is known as a set: `bcu`, which are bll or fsrq.

    python workflows/validation/partial_labels.py [--out partial_labels.json] [--seeds 1]

The three pairs of releases with the frozen settings. Treatments:

    labelled     learns from labelled sources alone
    sets         learns also from the old release's bcu, each as {bll, fsrq}
    sets, as labelled   the same, referred to the class fractions of the labelled sources

Nothing of the newer release is learned from. Examined apart: sources that the old release left
without a class, or with `unk`, by all classes and by agn or psr; and bcu, by bll or fsrq, psr being
ruled out for every treatment. Each with the fractions of training, and with fractions estimated on
the targets by origin. The NLL of a source is the mean over the seeds; differences to `labelled` are
paired by source, with the 95 % interval of a bootstrap. Takes some minutes.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from gpal import GPClassifier, load_catalog
from gpal.evaluation.prior_shift import estimate_prior_by_origin, reweight
from gpal.evaluation.prospective import prospective_split
from gpal.files.output import atomic_path
from gpal.measurements import Measurements
from gpal.metrics import Level
from gpal.provenance import provenance, to_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FROZEN = tomllib.loads((Path(__file__).parent / "frozen.toml").read_text())
PAIRS = (("4fgl", "4fgl-dr4"), ("4fgl", "fl16y"), ("4fgl-dr4", "fl16y"))
SETS = "sets"
AS_LABELLED = "sets, as labelled"


def treatments(split, seed):
    """Name -> (probabilities of all targets, the class fractions that they refer to)."""
    labelled, targets = split.labelled, split.targets
    several = np.array([len(groups) > 1 for groups in targets.possible])
    sources = Measurements.stack([labelled.measurements, targets[several].measurements])
    told = np.concatenate([labelled.y.astype(object), targets.possible[several]])
    model = GPClassifier(**FROZEN["model"], random_state=seed)
    plain = model.fit(labelled.measurements, labelled.y)
    P, train = plain.predict_proba(targets.measurements), split.train_fractions
    model = GPClassifier(**FROZEN["model"], random_state=seed)
    with_sets = model.fit(sources, told)
    Q, own = with_sets.predict_proba(targets.measurements), with_sets.class_fractions_
    return {
        "labelled": (P, train),
        SETS: (Q, own),
        AS_LABELLED: (reweight(Q, own, train), train),
    }


def losses(split, P):
    """Question -> NLL of each source that it is asked of."""
    examined, y = split.examined, split.y
    P, bcu = P[examined], split.origin[examined] == "bcu"
    level = Level.of(split.classes, split.targets.levels[0])
    place, sums = level.place[y], level.sums(P)
    blazars = P * (split.classes != "psr")
    blazars /= blazars.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    asked = bcu & (split.classes[y] != "psr")
    return {
        "no class: bll, fsrq, psr": -np.log(P[rows, y])[~bcu],
        "no class: agn, psr": -np.log(sums[rows, place])[~bcu],
        "bcu: bll, fsrq": -np.log(np.maximum(blazars[rows, y], 1e-300))[asked],
    }


def summary(values, weights):
    lower, upper = np.quantile(weights @ values, [0.025, 0.975])
    return {"mean": float(values.mean()), "lower": float(lower), "upper": float(upper)}


def measure(old, new, n_seeds):
    features = FROZEN["catalog"]["features"]
    split = prospective_split(
        load_catalog(old, features=features), load_catalog(new, features=features)
    )
    found = {}
    for seed in range(n_seeds):
        for name, (P, train) in treatments(split, seed).items():
            _, each = estimate_prior_by_origin(P, train, split.origin, n_bootstrap=0)
            target = np.stack([each[origin].fractions for origin in split.origin])
            for fractions, of in (("train", P), ("by origin", reweight(P, train, target))):
                for question, values in losses(split, of).items():
                    found.setdefault((fractions, question), {}).setdefault(name, []).append(values)
    table = []
    for (fractions, question), by_name in found.items():
        mean = {name: np.mean(values, axis=0) for name, values in by_name.items()}
        n = len(mean["labelled"])
        weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=2000) / n
        for name, values in mean.items():
            table.append(
                {
                    **{"pair": f"{old} -> {new}", "fractions": fractions, "question": question},
                    **{"treatment": name, "n": n, "nll": float(values.mean())},
                    "difference": summary(values - mean["labelled"], weights),
                }
            )
    return table, split.labelled.provenance


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "partial_labels.json")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    table = []
    for old, new in PAIRS:
        rows, origin = measure(old, new, arguments.seeds)
        table += rows
        for row in rows:
            low, high = row["difference"]["lower"], row["difference"]["upper"]
            print(
                f"{row['pair']:20s} {row['fractions']:10s} {row['question']:26s} n {row['n']:4d}"
                f"  {row['treatment']:18s} {row['nll']:.3f}"
                f"  {row['difference']['mean']:+.3f} ({low:+.3f} to {high:+.3f})",
                flush=True,
            )
    settings = {"model": FROZEN["model"], "seeds": arguments.seeds}
    with atomic_path(arguments.out) as path:
        content = {"rows": table, "provenance": provenance(origin, settings)}
        path.write_text(to_json(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
