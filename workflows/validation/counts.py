"""Do the intervals of numbers hold? Expected numbers of each class among the examined sources, and
how many there were, on three pairs of releases.

    python workflows/validation/counts.py [--out counts.json]

What `gpal validate OLD NEW` states under `counts`, with the frozen settings, all features and one
seed: of bll, fsrq and psr among the targets that the newer release identified as one of them, and
of agn, pulsar and other (`--open`) among the unassociated ones that it identified at all. Nothing
was chosen on these pairs. Takes six minutes on one core.
"""

import argparse
from pathlib import Path

from frozen import FROZEN, FROZEN_OPEN, MODEL, PAIRS, corrections, model, release

from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.files.output import atomic_path
from gpal.jobs.class_counts import SAMPLES, target_counts
from gpal.provenance import provenance, to_json


def shown(count):
    return f"{count['true']}: {count['mean']:.0f} ({count['lower']} to {count['upper']})"


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--out", type=Path, default=Path(__file__).parent / "counts.json")
arguments = parser.parse_args()


results = {"frozen": FROZEN, "frozen_open": FROZEN_OPEN, "provenance": provenance(), "pairs": {}}
for exhaustive in (False, True):
    for old, new in PAIRS:
        before = release(old, exhaustive)
        split = prospective_split(before, release(new, exhaustive))
        models = {MODEL: model(before, exhaustive)}
        validation = prospective_validation(split, models, n_seeds=1, n_draws=SAMPLES)
        pair = {c: target_counts(validation, MODEL, c, 0) for c in corrections(exhaustive)}
        kind = ", ".join(split.classes.tolist())
        results["pairs"][f"{old} -> {new}: {kind}"] = pair
        print(f"\n| {kind} | examined | fractions |")
        for correction, found in pair.items():
            for part, of in found["sets"].items():
                if part.startswith("examined"):
                    cells = " | ".join(shown(count) for count in of["classes"].values())
                    print(f"| {old} -> {new} | {part} | {correction} | {cells} |", flush=True)
with atomic_path(arguments.out) as path:
    path.write_text(to_json(results, indent=1) + "\n")
