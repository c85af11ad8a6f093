"""Do the flags of the analysis tell `other`, most of which lies in bright interstellar emission?

    python workflows/validation/select_flags.py gll_psc_v27.fit [--old gll_psc_v16.fit]

The frozen model with one feature more, without a position in it: 1 where a release flags the
analysis of a source (`Flags`: it depends on the model of the diffuse emission, lies close to a
bright source, was poorly localised or fitted), 0 elsewhere; a fainter copy has its source's.

Rule, written before the first run and after select_none.py had chosen nothing: that of
select_none.py, for this one way. For 4FGL-DR2 the full file is needed. Takes five minutes on one
core.
"""

import argparse
from functools import partial

import numpy as np
from frozen import model, release
from select_none import FROZEN, in_folds, report, stacked, with_score

from gpal import load_catalog
from gpal.evaluation import any_classifier
from gpal.evaluation.prospective import prospective_split

FLAGS = "flags"


def flagged(catalog):
    return (np.asarray(catalog.table["Flags"]) > 0).astype(float)


def predictions(old, known, asked):
    """Way -> (m, C) of the sources `asked`, learned from `known`."""
    taught, features = model(old, exhaustive=True)
    sources, wanted = (c.measurements.select(features) for c in (known, asked))
    both = stacked(sources, taught.fainter, taught.random_state)
    informed = any_classifier.fit(
        taught.classifier,
        with_score(both, np.tile(flagged(known), 2)),
        np.tile(known.y, 2),
        sample_weight=np.full(len(both), 0.5),
    )
    found = {FLAGS: informed.predict_proba(with_score(wanted, flagged(asked)))}
    found[FROZEN] = any_classifier.fit(taught, sources, known.y).predict_proba(wanted)
    return {way: found[way] for way in (FROZEN, FLAGS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("dr2", help="the full file of 4FGL-DR2")
    parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
    arguments = parser.parse_args()
    new = load_catalog(arguments.dr2).with_exhaustive_classes()
    for name in (arguments.old, "4fgl"):
        old = release(name, exhaustive=True)
        split = prospective_split(old, new)
        found = predictions(old, split.labelled, split.targets[split.examined])
        report(f"{old.schema.name} -> 4fgl-dr2", split.classes, split.y, found)
    report("4fgl, folds", *in_folds(old.labelled(), partial(predictions, old)))


if __name__ == "__main__":
    main()
