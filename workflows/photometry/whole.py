"""What `gpal classify lsst-dc2` says, against the redshifts that the simulation knows.

    gpal classify lsst-dc2 --out FOLDER
    python workflows/photometry/whole.py FOLDER

NLL and error rate of the galaxies with a spectrum (out of fold) and of those without, which are
fainter; and the expected number of those in each bin, with its interval, beside the true one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from gpal import load_catalog, metrics
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.names import probability_column


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    table = read_probabilities(folder / "probabilities.fits")
    written = json.loads((folder / "metrics.json").read_text())
    bins = written["settings"]["classes"]
    edges = load_catalog("lsst-dc2").schema.classes.edges
    y = np.searchsorted(edges, np.asarray(table["redshift"], float), side="right") - 1
    P = np.column_stack([np.asarray(table[probability_column(name)], float) for name in bins])
    asked = np.asarray(table["candidate"], bool)
    for name, rows in (("with a spectrum", ~asked), ("without", asked)):
        nll = metrics.negative_log_predictive_density(y[rows], P[rows])
        print(f"{name}: {rows.sum()}, NLL {nll:.4f}, wrong {metrics.error(y[rows], P[rows]):.4f}")
    found = written["counts"]["sets"]["all candidates"]["classes"]
    for k, name in enumerate(bins):
        print(name, "true", np.sum(y[asked] == k), "expected", found[name])


if __name__ == "__main__":
    main()
