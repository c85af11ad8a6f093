"""The samples of measure.py: who is learned from, who is tested, and what of them is told.

random            both drawn from all galaxies
bright to faint   learned from galaxies brighter than i = 24.0, tested on fainter than i = 24.3

The test sample of a seed is the same for every training size, and the training samples are nested,
so that every comparison within a seed is paired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np

from gpal import load_catalog
from gpal.catalog import Catalog
from gpal.measurements import Measurements

__all__ = ["SIZES", "SPLITS", "Sample", "catalog", "draw"]

SPLITS = ("random", "bright to faint")
SIZES = (500, 1000, 2500, 5000)
TEST = 4000
BRIGHT, FAINT = 24.0, 24.3  # i magnitude
LEAST_SIGNAL_TO_NOISE = 2.0  # of a band, for `Sample.detected`
BANDS = "ugrizy"


@dataclass(frozen=True)
class Sample:
    """Galaxies: what was measured, with all it implies, the redshift bin and the redshift."""

    measurements: Measurements
    detected: np.ndarray
    y: np.ndarray
    z: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Sample:
        return Sample(self.measurements[rows], self.detected[rows], self.y[rows], self.z[rows])

    def told(self, covariance: bool = False, limits: bool = False) -> Measurements:
        """The measurements with or without covariance and limits."""
        kept = self.measurements
        return replace(
            kept,
            covariance=kept.covariance if covariance else None,
            limits=kept.limits if limits else None,
        )

    def only_detected(self) -> Measurements:
        """With the errors' diagonal; bands of low signal to noise are not measured."""
        plain = self.told()
        return replace(
            plain,
            X=np.where(self.detected, plain.X, np.nan),
            X_err=np.where(self.detected, plain.X_err, np.inf),
        )


@cache
def catalog() -> Catalog:
    """Of which the samples are drawn."""
    return load_catalog("lsst-dc2")


@cache
def galaxies() -> Sample:
    """All of them, with the truth."""
    table, edges = catalog().table, catalog().schema.classes.edges
    largest = 2.5 * np.log10(1 + 1 / LEAST_SIGNAL_TO_NOISE)  # how these errors are defined
    seen = {
        band: (np.asarray(table[f"mag_{band}"]) < 99)
        & (np.asarray(table[f"mag_err_{band}"]) <= largest)
        for band in BANDS
    }
    pairs = [seen[one] & seen[other] for one, other in pairwise(BANDS)]
    z = np.asarray(table["redshift"], dtype=float)
    return Sample(
        measurements=catalog().measurements,
        detected=np.column_stack([seen["i"], *pairs]),
        y=np.searchsorted(edges, z, side="right") - 1,
        z=z,
    )


def draw(split: str, n: int, seed: int) -> tuple[Sample, Sample]:
    """The galaxies to learn from and those to test on."""
    everything = galaxies()
    i = everything.measurements.X[:, 0]
    order = np.random.default_rng(seed).permutation(len(i))
    if split == "random":
        test, known = order[:TEST], order[TEST:]
    else:
        test, known = order[i[order] > FAINT][:TEST], order[i[order] < BRIGHT]
    return everything[known[:n]], everything[test]
