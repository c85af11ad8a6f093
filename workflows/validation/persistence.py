"""Will the source still be there? Targets without a counterpart in a newer release, foretold.

    python workflows/validation/persistence.py [--old gll_psc_v16.fit]

Logistic regression of having vanished, learned from one pair of releases and asked about another:
from 3FGL -> 4FGL (fetched, or its full file), which shares no measurement with those asked about,
and from 4FGL -> FL16Y, which shares sources and the newer release with 4FGL-DR4 -> FL16Y. Beside it
the significance alone, the least first. Areas under the ROC curve, with bootstrap errors of the
difference. Under a minute.
"""

import argparse

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpal import load_catalog
from gpal.evaluation.prospective import prospective_split
from gpal.jobs.galactic_plane import galactic_latitude

FEATURES = ("log_significance", "index", "curvature")
N_BOOTSTRAP = 1000


def pair(old, new):
    """Of every target without a class: features, minus its significance, and whether it is gone."""
    split = prospective_split(*(load_catalog(c).with_exhaustive_classes() for c in (old, new)))
    targets = split.targets
    X = np.column_stack(
        [
            targets.measurements.select(FEATURES).X,
            np.log10(1 + np.abs(galactic_latitude(targets.ra, targets.dec))),
            np.asarray(targets.table["Flags"]) > 0,
        ]
    )
    return X, -np.nan_to_num(X[:, 0], nan=np.nanmedian(X[:, 0])), split.outcome == "vanished"


def report(name, taught, asked):
    (X, _, gone), (X_new, faintness, truth) = taught, asked
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(X, gone)
    score, rng = model.predict_proba(X_new)[:, 1], np.random.default_rng(0)
    alone = roc_auc_score(truth, faintness)
    drawn = []
    for _ in range(N_BOOTSTRAP):
        rows = rng.integers(len(truth), size=len(truth))
        drawn.append(
            roc_auc_score(truth[rows], score[rows]) - roc_auc_score(truth[rows], faintness[rows])
        )
    print(
        f"| {name} | {truth.sum()} of {len(truth)} | {alone:.3f} |"
        f" {roc_auc_score(truth, score):.3f} |"
        f" {roc_auc_score(truth, score) - alone:+.3f} ± {np.std(drawn):.3f} |"
    )


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
arguments = parser.parse_args()
first, second = pair(arguments.old, "4fgl"), pair("4fgl", "fl16y")
third = pair("4fgl-dr4", "fl16y")
print("| learned from, asked about | vanished | significance alone | learned | difference |")
print("|---|---|---|---|---|")
report("3FGL -> 4FGL, 4FGL -> FL16Y", first, second)
report("3FGL -> 4FGL, 4FGL-DR4 -> FL16Y", first, third)
report("4FGL -> FL16Y, 4FGL-DR4 -> FL16Y", second, third)
