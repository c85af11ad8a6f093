"""Classes that leave none out, agn, pulsar and other, on the unassociated sources of three pairs.

    python workflows/validation/open_classes.py [--out open_classes.json] [--seeds 1]
    python workflows/validation/open_classes.py --table

What `gpal validate OLD NEW --open` tells apart, with the frozen settings (frozen_open.toml):
learned from the sources of decided class, as they were measured and as they would look
if they were fainter; examined on its unassociated ones (no class, or `unk`) that the new one
identified as anything. The plain classifiers, and the same model without fainter copies, have all
features; `class fractions` knows those of the labelled sources and nothing else. Nothing was chosen
on these pairs. Takes ten minutes on one core.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from frozen import FROZEN, FROZEN_OPEN, MODEL, PAIRS, model, release
from sklearn.dummy import DummyClassifier

from gpal import GPClassifier
from gpal.evaluation import (
    estimate_prior,
    gradient_boosting,
    logistic_regression,
    quadratic_logistic_regression,
    random_forest,
)
from gpal.evaluation.outcomes import count_outcomes
from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.files.output import atomic_path
from gpal.jobs.galactic_plane import by_latitude, galactic_latitude
from gpal.provenance import provenance, to_json

OTHERS = {
    "GPClassifier, as measured": GPClassifier(**FROZEN["model"]),
    "logistic regression": logistic_regression(),
    "quadratic logistic regression": quadratic_logistic_regression(),
    "random forest": random_forest(),
    "gradient boosting": gradient_boosting(),
    "class fractions": DummyClassifier(),
}
MODELS = (MODEL, *OTHERS)
MIXES = ("train", "uncertain", "by origin", "examined only")


def measure(names, n_seeds):
    """All that is reported of one pair."""
    old, new = (release(name, exhaustive=True) for name in names)
    split = prospective_split(old, new)
    models = {MODEL: model(old, exhaustive=True)}
    models |= {name: (other, split.labelled.feature_names) for name, other in OTHERS.items()}
    validation = prospective_validation(split, models, n_seeds=n_seeds)
    classes, y = split.classes.tolist(), split.truth[split.examined]
    parts = by_latitude(galactic_latitude(split.targets.ra, split.targets.dec))
    P = validation.probabilities[MODEL][0]
    return {
        "classes": classes,
        "n_labelled": {name: int((split.labelled.y == name).sum()) for name in classes},
        "outcomes": count_outcomes(split.outcome, classes),
        "n_examined": {name: int((y == name).sum()) for name in classes},
        "scores": {c: {m: validation.scores(m, c) for m in MODELS} for c in MIXES},
        "differences": {
            c: {m: validation.scores(MODEL, c, minus=(m, c))["nll"] for m in MODELS if m != MODEL}
            for c in MIXES
        },
        "by_latitude": {
            name: {
                "n_targets": int(rows.sum()),
                "n_examined": {
                    c: int((split.truth[rows & split.examined] == c).sum()) for c in classes
                },
                "scores": {
                    c: {
                        m: {"nll": validation.scores(m, c, rows=rows[split.examined])["nll"]}
                        for m in MODELS
                    }
                    for c in MIXES
                },
            }
            for name, rows in parts.items()
        },
        "fractions": {
            "labelled": dict(zip(classes, split.train_fractions.tolist(), strict=True)),
            "targets, mean probability": dict(zip(classes, P.mean(axis=0).tolist(), strict=True)),
            "targets, estimated": estimate_prior(P, split.train_fractions).as_dict(classes),
            "examined, true": {c: float(np.mean(y == c)) for c in classes},
        },
    }


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def tables(pairs):
    """Those of docs/validation.md."""
    for mix in MIXES:
        print(f"NLL and area under the ROC curve of `other`, class fractions: {mix}\n")
        table(
            ["model", *pairs],
            [
                [
                    m,
                    *(
                        f"{s['nll']['mean']:.2f} ± {s['nll']['se']:.2f},"
                        f" {s['per_class']['other']['auc']['mean']:.2f}"
                        for s in (pair["scores"][mix][m] for pair in pairs.values())
                    ),
                ]
                for m in MODELS
            ],
        )
    print("GPClassifier minus another, NLL\n")
    table(
        ["fractions", "other", *pairs],
        [
            [
                mix,
                m,
                *(
                    f"{d['mean']:+.2f} ({d['lower']:+.2f} to {d['upper']:+.2f})".replace("-", "−")
                    for d in (pair["differences"][mix][m] for pair in pairs.values())
                ),
            ]
            for mix in ("train", "uncertain")
            for m in MODELS
            if m != MODEL
        ],
    )
    print("Fractions\n")
    rows = []
    for name, pair in pairs.items():
        for whose, found in pair["fractions"].items():
            values = found.get("fractions", found)
            rows.append([name, whose, *(f"{values[c]:.2f}" for c in pair["classes"])])
    table(["pair", "of", *next(iter(pairs.values()))["classes"]], rows)
    print("By latitude, NLL\n")
    table(
        ["pair", "part", "targets", "examined", *MIXES],
        [
            [
                name,
                part,
                of["n_targets"],
                ", ".join(f"{n} {c}" for c, n in of["n_examined"].items()),
                *(f"{of['scores'][mix][MODEL]['nll']['mean']:.2f}" for mix in MIXES),
            ]
            for name, pair in pairs.items()
            for part, of in pair["by_latitude"].items()
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "open_classes.json")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only print the tables of OUT")
    arguments = parser.parse_args()
    if arguments.table:
        tables(json.loads(arguments.out.read_text())["pairs"])
        return
    settings = {"frozen": FROZEN, "frozen_open": FROZEN_OPEN, "seeds": arguments.seeds}
    results = {"pairs": {}}
    for names in PAIRS:
        results["pairs"][" -> ".join(names)] = measure(names, arguments.seeds)
        results["provenance"] = provenance({}, settings)
        with atomic_path(arguments.out) as path:
            path.write_text(to_json(results, indent=1) + "\n")
        print(f"{' -> '.join(names)}: written to {arguments.out}", flush=True)


if __name__ == "__main__":
    main()
