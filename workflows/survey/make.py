"""A survey that need not fit into memory, in HATS layout: generated, partition by partition.

    python workflows/survey/make.py FOLDER                      10,000,000 sources in 192 partitions
    python workflows/survey/make.py FOLDER --rows 100000

Stars, galaxies and quasars all over the sky with five magnitudes. Errors grow towards the faint
end; a band fainter than its limit, and one in a hundred at random, is empty: a tenth of the sources
lacks one. One source in two thousand has a class, a bright one rather than a faint. The same
seed makes the same sources.

Read by survey.toml. Needs LSDB: pip install 'gpal[hats]'.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lsdb
import numpy as np
import pandas as pd
from cdshealpix.nested import healpix_to_lonlat

SEED, DEEPEST = 20, 29
CLASSES, SHARES = np.array(["star", "galaxy", "quasar"]), (0.45, 0.5, 0.05)
BANDS, LIMITS = "ugriz", np.array([23.5, 24.8, 24.5, 24.0, 23.0])
# Mean colours u−g, g−r, r−i, i−z of each class, and their spread.
COLOURS = np.array([[1.4, 0.7, 0.3, 0.15], [1.5, 0.9, 0.45, 0.3], [0.3, 0.25, 0.2, 0.1]])
SPREAD = np.array([[0.5, 0.4, 0.3, 0.15], [0.4, 0.4, 0.2, 0.15], [0.4, 0.3, 0.25, 0.15]])
BRIGHT, FAINT = 16, 22  # magnitudes r
LABELLED, GAPS = 0.0005, 0.01


def sources(order: int, pixel: int, number: int) -> pd.DataFrame:
    """Those of one pixel of the sky, in the order of their positions."""
    rng = np.random.default_rng([SEED, order, pixel])
    shift = np.uint64(2 * (DEEPEST - order))
    inside = rng.integers(0, 1 << int(shift), number, dtype=np.uint64)
    index = np.sort((np.uint64(pixel) << shift) + inside)
    ra, dec = healpix_to_lonlat(index, np.uint8(DEEPEST))
    kind = rng.choice(3, p=SHARES, size=number)
    r = BRIGHT + (FAINT - BRIGHT) * rng.beta(3, 1.3, number)
    colours = COLOURS[kind] + SPREAD[kind] * rng.normal(size=(number, 4))
    g, i = r + colours[:, 1], r - colours[:, 2]
    true = np.stack([g + colours[:, 0], g, r, i, i - colours[:, 3]], axis=1)
    error = np.hypot(0.01, 0.2 * 10 ** (0.4 * (true - LIMITS)))
    measured = true + error * rng.normal(size=true.shape)
    missing = (error > 0.4) | (rng.random(true.shape) < GAPS)
    missing[:, 2] = False  # the survey is one of sources that were found in r
    measured[missing] = error[missing] = np.nan
    chance = LABELLED * (FAINT - r) / ((FAINT - BRIGHT) * (1 - 3 / 4.3))  # LABELLED on average
    table = {"objid": [f"{order}-{pixel}-{k}" for k in range(number)]}
    table |= {"ra": ra.to_value("deg"), "dec": dec.to_value("deg")}
    for j, band in enumerate(BANDS):
        table |= {f"mag_{band}": measured[:, j], f"magerr_{band}": error[:, j]}
    table["class"] = np.where(rng.random(number) < chance, CLASSES[kind], "")
    return pd.DataFrame(table, index=pd.Index(index.astype(np.int64), name="_healpix_29"))


def make(folder: Path, rows: int, order: int = 2, client: object = None) -> None:
    """Write the survey; by the workers of Dask where there is a client."""
    pixels = 12 * 4**order
    per_pixel = rows // pixels
    corners = pd.concat([sources(order, pixel, 2) for pixel in range(pixels)])
    outline = lsdb.from_dataframe(
        corners, ra_column="ra", dec_column="dec", lowest_order=order, highest_order=order,
        catalog_name=folder.name, margin_threshold=None,
    )  # fmt: skip

    def of_pixel(_: pd.DataFrame, place: object) -> pd.DataFrame:
        return sources(place.order, place.pixel, per_pixel)

    survey = outline.map_partitions(of_pixel, include_pixel=True, meta=corners.iloc[:0])
    survey.write_catalog(folder, progress_bar=False, resume=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--order", type=int, default=2, help="192 partitions of order 2, 768 of 3")
    given = parser.parse_args()
    make(given.folder, given.rows, given.order)


if __name__ == "__main__":
    main()
