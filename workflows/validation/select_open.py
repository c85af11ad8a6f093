"""How to learn of classes that leave none out, chosen on what is never reported.

    python workflows/validation/select_open.py gll_psc_v27.fit [--folds 3]

Agn, pulsar and other, on 3FGL -> 4FGL-DR2 and 4FGL -> 4FGL-DR2 (unassociated sources that 4FGL-DR2
identified) and by cross-validation of 4FGL's labelled sources: with and without the significance as
a feature, and with labelled sources made as faint as the targets (FaintTraining) or left as they
are; then how uncertain class fractions should be held. For 4FGL-DR2 the full file is needed; 3FGL
is fetched. The choice is frozen_open.toml. Takes twenty minutes on one core.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from gpal import GPClassifier, load_catalog
from gpal.catalog import Fainter
from gpal.evaluation import FaintTraining, any_classifier, logistic_regression, random_forest
from gpal.evaluation.prospective import prospective_split
from gpal.evaluation.uncertain_fractions import with_uncertain_fractions
from gpal.recommended import RECOMMENDED_MODEL

SPREADS = (0.0, 0.5, 1.0, 1.5)


def models(catalog):
    """Name -> (model, its features)."""
    every, few = catalog.schema.feature_sets["default"], catalog.schema.feature_sets["open"]
    gp, fainter = GPClassifier(**RECOMMENDED_MODEL, random_state=0), Fainter.of(catalog)

    def taught(**changes):
        return FaintTraining(GPClassifier(**{**RECOMMENDED_MODEL, **changes}), fainter)

    return {
        "logistic regression": (logistic_regression(), every),
        "random forest": (random_forest(), every),
        "GPClassifier": (gp, every),
        "GPClassifier, no significance": (gp, few),
        "faint training": (taught(), every),
        "faint training, no significance": (taught(), few),
        "the same without input noise": (taught(input_noise="none"), few),
    }


def release(name):
    return load_catalog(name).with_exhaustive_classes()


def forward(old, new):
    """NLL and areas on the unassociated sources that the newer release identified."""
    split = prospective_split(old, new)
    y = split.y
    print(f"  examined: {dict(zip(split.classes.tolist(), np.bincount(y).tolist(), strict=True))}")
    for name, (model, features) in models(old).items():
        labelled = split.labelled.measurements.select(features)
        fitted = any_classifier.fit(model, labelled, split.labelled.y)
        P = any_classifier.predict_proba(fitted, split.targets.measurements.select(features))
        areas = [roc_auc_score(y == c, P[split.examined][:, c]) for c in range(P.shape[1])]
        losses = [log_loss(y, with_uncertain_fractions(P, s)[split.examined]) for s in SPREADS]
        shown = ", ".join(f"{c} {a:.3f}" for c, a in zip(split.classes, areas, strict=True))
        print(
            f"  {name:34s} NLL {log_loss(y, P[split.examined]):.3f}, with uncertain fractions"
            f" {' '.join(f'{s}: {loss:.3f}' for s, loss in zip(SPREADS, losses, strict=True))};"
            f" areas {shown}",
            flush=True,
        )


def folds(catalog, n_splits):
    """NLL of labelled sources, as bright as they are."""
    known = catalog.labelled()
    splits = list(StratifiedKFold(n_splits, shuffle=True, random_state=0).split(known.y, known.y))
    for name, (model, features) in models(catalog).items():
        sources, losses = known.measurements.select(features), []
        for train, test in splits:
            fitted = any_classifier.fit(model, sources[train], known.y[train])
            P = any_classifier.predict_proba(fitted, sources[test])
            losses.append(log_loss(known.y[test], P))
        print(f"  {name:34s} NLL {np.mean(losses):.3f}", flush=True)


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("dr2", help="the full file of 4FGL-DR2")
parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
parser.add_argument("--folds", type=int, default=3, help="0: no cross-validation")
arguments = parser.parse_args()
if not Path(arguments.dr2).is_file():
    sys.exit(f"no file {arguments.dr2}")
for old in (arguments.old, "4fgl"):
    print(f"{old} -> 4fgl-dr2")
    forward(release(old), release(arguments.dr2))
if arguments.folds:
    print("4fgl, cross-validation")
    folds(release("4fgl"), arguments.folds)
