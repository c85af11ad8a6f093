"""Where a list of candidates should have its threshold from, chosen on what is never reported.

    python workflows/validation/select_threshold.py gll_psc_v27.fit

The model that predicts candidates has also learned from fainter copies, those of the
cross-validation have not: a threshold on the probabilities of these may not be one on its own.
Lists of agn, of pulsars and of other, .8 and .9 pure, among the unassociated sources of 3FGL and
4FGL, as the taught model of the frozen settings predicts them; 4FGL-DR2 says of some what they are.
The threshold is that which makes a list so pure

    plain folds    of labelled sources, by models of the other folds without fainter copies
    taught folds   of labelled sources, by taught models of the other folds
    faint folds    the same, of labelled sources made as faint as the targets
    promise        of the targets themselves, by the mean of their probabilities

Rule, written before the first run: the smallest mean of |purity found − purity asked| over all
lists that have five or more examined sources in every way; of ways that differ by less than .02
that which needs the fewest fits, so promise, plain folds, taught folds, faint folds in this order.
For 4FGL-DR2 the full file is needed; 3FGL is fetched. Takes six minutes on one core.
"""

import argparse

import numpy as np
from frozen import model, release
from sklearn.model_selection import StratifiedKFold

from gpal import load_catalog
from gpal.catalog import Fainter
from gpal.evaluation import any_classifier
from gpal.evaluation.prospective import prospective_split
from gpal.metrics import pure_list, purity_curve

WAYS = ("promise", "plain folds", "taught folds", "faint folds")
PURITIES = (0.8, 0.9)
LEAST = 5


def predicted(old, split):
    """Way -> (n, C) of labelled sources, and (m, C) of the targets."""
    taught, features = model(old, exhaustive=True)
    known, y = split.labelled.measurements.select(features), split.labelled.y
    faint = Fainter.of(old)(known, random_state=1)
    found = {way: np.zeros((len(y), len(split.classes))) for way in WAYS[1:]}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        plain = any_classifier.fit(taught.classifier, known[train], y[train])
        found["plain folds"][test] = plain.predict_proba(known[test])
        any_classifier.fit(taught, known[train], y[train])
        found["taught folds"][test] = taught.predict_proba(known[test])
        found["faint folds"][test] = taught.predict_proba(faint[test])
    any_classifier.fit(taught, known, y)
    return found, taught.predict_proba(split.targets.measurements.select(features))


def thresholds(c, split, found, P, purity):
    """Way -> lowest probability in a list of class c that is so pure."""
    curve = purity_curve(np.full(len(P), True), P[:, c])
    promised = curve.threshold[curve.promised >= purity]
    return {
        "promise": promised.min(initial=np.inf),
        **{
            way: pure_list(split.labelled.y == split.classes[c], of[:, c], purity).threshold
            for way, of in found.items()
        },
    }


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("dr2", help="the full file of 4FGL-DR2")
parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
arguments = parser.parse_args()
new = load_catalog(arguments.dr2).with_exhaustive_classes()
gaps = []
print(f"| pair | class | purity | {' | '.join(WAYS)} |")
print("|" + (3 + len(WAYS)) * "---|")
for name in (arguments.old, "4fgl"):
    old = release(name, exhaustive=True)
    split = prospective_split(old, new)
    found, P = predicted(old, split)
    for c, kind in enumerate(split.classes.tolist()):
        for purity in PURITIES:
            cells, of_ways = [], []
            for threshold in thresholds(c, split, found, P, purity).values():
                listed = P[:, c] >= threshold
                true = split.truth[listed & split.examined] == kind
                cells.append(
                    f"p ≥ {threshold:.2f}: {listed.sum()} listed, {true.sum()} of {len(true)}"
                )
                of_ways.append(abs(true.mean() - purity) if len(true) >= LEAST else np.nan)
            gaps.append(of_ways)
            print(
                f"| {old.schema.name} -> 4fgl-dr2 | {kind} | {purity} | {' | '.join(cells)} |",
                flush=True,
            )
gaps = np.array(gaps)
common = np.isfinite(gaps).all(axis=1)
print(f"\nmean |found − asked| over {common.sum()} lists that all ways have:")
for way, mean in zip(WAYS, gaps[common].mean(axis=0), strict=True):
    print(f"  {way:13s} {mean:.3f}")
