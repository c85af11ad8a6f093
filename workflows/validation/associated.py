"""Candidates that are associated already: what becomes of `bcu`, and probabilities that know it.

    python workflows/validation/associated.py [--old gll_psc_v16.fit] [--dr2 gll_psc_v27.fit]

A `bcu` is a blazar of unknown type if its association is right. How often it is, 3FGL -> 4FGL says,
by those that 4FGL decided: `classes.fractions` of the schemas, with half a source more for pulsars
and for what is no active galaxy either. Then the frozen model on the `bcu` that the newer release
decided, with the labelled sources' fractions and with those, told apart as `gpal classify` does and
as agn, pulsar and other.

Rule: `gpal classify` refers `bcu` to them if their NLL is lower so on 4FGL -> 4FGL-DR2, with both
kinds of classes. It was written when agn, pulsar and other of the three pairs had been run, and
nothing else; the fractions before that. For 4FGL-DR2 the full file is needed. Takes four minutes on
one core.
"""

import argparse

import numpy as np
from frozen import PAIRS, model, release

from gpal.catalog.crossmatch import crossmatch
from gpal.evaluation import any_classifier, reweight

LABEL, N_BOOTSTRAP = "bcu", 2000
CLASSES = ("bll", "fsrq", "psr", "other")


def decided(old, new):
    """Rows of the old release's LABEL that the newer one decided, what as, and as which group."""
    pairs = crossmatch(old, new)
    of = (old.labels[pairs.old] == LABEL) & (new.y[pairs.new] != "")
    return pairs.old[of], new.labels[pairs.new[of]], new.y[pairs.new[of]]


def loaded(name, default):
    """A release with the classes of `gpal classify`, or with agn, pulsar and other."""
    if default:
        return release(name, exhaustive=False).with_classes(CLASSES)
    return release(name, exhaustive=True)


def compared(old, new, fitted, features, seed=0):
    """Numbers of each class, true and expected, NLL with both fractions and their difference."""
    groups = fitted.classes_.tolist()
    rows, _, became = decided(old, new)
    y = np.searchsorted(groups, became)
    P = fitted.predict_proba(old.measurements[rows].select(features))
    known = old.known_fractions()[LABEL]
    train = np.mean(old.y[old.y != ""][:, None] == groups, axis=0)
    own = reweight(P, train, [known[name] for name in groups])
    losses = [-np.log(p[np.arange(len(y)), y]) for p in (P, own)]
    gain, rng = losses[1] - losses[0], np.random.default_rng(seed)
    drawn = [gain[rng.integers(len(y), size=len(y))].mean() for _ in range(N_BOOTSTRAP)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    numbers = [np.bincount(y, minlength=len(groups)), *(p.sum(axis=0) for p in (P, own))]
    return [
        *(" ".join(f"{n:.0f}" for n in each) for each in numbers),
        *(f"{loss.mean():.3f}" for loss in losses),
        f"{gain.mean():+.3f} ({low:+.3f} to {high:+.3f})",
    ]


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
parser.add_argument("--dr2", help="the full file of 4FGL-DR2; the choice is made with it")
arguments = parser.parse_args()
_, labels, _ = decided(*(release(name, exhaustive=True) for name in (arguments.old, "4fgl")))
print("3FGL -> 4FGL:", dict(zip(*(v.tolist() for v in np.unique(labels, return_counts=True)))))
print("| classes | pair | decided | expected, labelled | own | NLL, labelled | own | difference |")
print("|" + 8 * "---|")
pairs = ((("4fgl", arguments.dr2),) if arguments.dr2 else ()) + PAIRS
for default in (True, False):
    fitted = {}
    for before, after in pairs:
        old, new = loaded(before, default), loaded(after, default)
        taught, features = model(old, exhaustive=True)
        if before not in fitted:
            known = old.labelled()
            sources = known.measurements.select(features)
            fitted[before] = any_classifier.fit(taught, sources, known.y)
        cells = compared(old, new, fitted[before], features)
        name = after if (before, after) in PAIRS else "4fgl-dr2"
        kinds = ", ".join(fitted[before].classes_)
        print(f"| {kinds} | {before} -> {name} | {' | '.join(cells)} |", flush=True)
