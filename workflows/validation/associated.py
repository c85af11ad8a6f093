"""Candidates that are associated already: what becomes of `bcu`, and probabilities that know it.

    python workflows/validation/associated.py [--old gll_psc_v16.fit]

A `bcu` is a blazar of unknown type if its association is right. How often it is, 3FGL -> 4FGL says,
by those that 4FGL decided: the class fractions of `bcu` in the schemas (`classes.fractions`), with
half a source more for each of the two kinds that are none. Then agn, pulsar or other by the frozen
model on the `bcu` that the newer release of the three pairs decided, with the labelled sources'
fractions and with those. Nothing was chosen on these pairs. Takes three minutes on one core.
"""

import argparse

import numpy as np
from frozen import PAIRS, model, release
from sklearn.metrics import log_loss

from gpal.catalog.crossmatch import crossmatch
from gpal.evaluation import any_classifier
from gpal.evaluation.prior_shift import reweight

LABEL, N_BOOTSTRAP = "bcu", 2000


def decided(old, new):
    """(m,) rows of the old release's LABEL that the newer one calls something else, and as what."""
    pairs = crossmatch(old, new)
    of = (old.labels[pairs.old] == LABEL) & (new.labels[pairs.new] != LABEL)
    of &= new.group[pairs.new] != ""
    return pairs.old[of], new.group[pairs.new[of]]


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
arguments = parser.parse_args()
names = ("agn", "other", "pulsar")
_, became = decided(*(release(name, exhaustive=True) for name in (arguments.old, "4fgl")))
counts = np.array([np.sum(became == name) for name in names])
target = np.add(counts, [0.0, 0.5, 0.5]) / (counts.sum() + 1)
print("3FGL -> 4FGL:", dict(zip(names, counts.tolist(), strict=True)), "fractions", target.round(4))
print("| pair | bcu decided | NLL, labelled | bcu's | difference | expected, labelled | bcu's |")
print("|" + 7 * "---|")
fitted = {}
for before, after in PAIRS:
    old, new = release(before, exhaustive=True), release(after, exhaustive=True)
    taught, features = model(old, exhaustive=True)
    known = old.labelled()
    if before not in fitted:
        sources = known.measurements.select(features)
        fitted[before] = any_classifier.fit(taught, sources, known.y)
    rows, became = decided(old, new)
    y = np.searchsorted(names, became)
    P = fitted[before].predict_proba(old.measurements[rows].select(features))
    train = np.mean(known.y[:, None] == np.array(names), axis=0)
    own = reweight(P, train, target)
    gain = np.log(P[np.arange(len(y)), y]) - np.log(own[np.arange(len(y)), y])
    rng = np.random.default_rng(0)
    drawn = [gain[rng.integers(len(y), size=len(y))].mean() for _ in range(N_BOOTSTRAP)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    expected = [" ".join(f"{n:.0f}" for n in p.sum(axis=0)) for p in (P, own)]
    print(
        f"| {before} -> {after} | {' '.join(map(str, np.bincount(y, minlength=3)))} |"
        f" {log_loss(y, P, labels=range(3)):.3f} | {log_loss(y, own, labels=range(3)):.3f} |"
        f" {gain.mean():+.3f} ({low:+.3f} to {high:+.3f}) | {' | '.join(expected)} |",
        flush=True,
    )
