"""A survey as surveys are: for the page "Your own survey in ten minutes" and its tests.

    python workflows/own_survey.py      # survey.csv, survey.vot and, without classes, tonight.csv

Stars, galaxies and quasars with four magnitudes, a parallax and a radio flux. Some bands were not
measured (an empty cell, or -99), two errors are negative, the parallax has a lower and an upper
error, the radio flux has none and is an upper limit where it is faint, and that there is no class
is written in five ways.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from astropy.table import MaskedColumn, Table

KINDS = ("STAR", "GALAXY", "QSO")
COLOURS = {"u": (1.7, 2.4, 0.4), "g": (0.5, 0.8, 0.2), "r": (0, 0, 0), "i": (-0.2, -0.4, -0.1)}
NO_CLASS = ("UNKNOWN", "None", "-", "n/a", "?", "")


def survey(n: int = 1500, seed: int = 0) -> Table:
    """n sources, 60 % of them with a class."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, p=(0.5, 0.3, 0.2), size=n)
    table = Table({"objid": [f"S{i:05d}" for i in range(n)]})
    table["ra"] = rng.uniform(0, 360, n).round(5)
    table["dec"] = rng.uniform(-30, 60, n).round(5)
    table["mjd"] = rng.integers(55000, 56000, n)
    table["flags"] = rng.integers(0, 3, n)
    brightness = rng.normal(19, 1.2, n)
    for band, colour in COLOURS.items():
        true = brightness + np.array(colour)[kind] + rng.normal(0, 0.2, n)
        error = (0.02 + 0.05 * 10 ** (0.3 * (true - 20))).round(4)
        table[f"psfMag_{band}"] = MaskedColumn((true + error * rng.normal(size=n)).round(3))
        table[f"psfMagErr_{band}"] = MaskedColumn(error)
        for name in (f"psfMag_{band}", f"psfMagErr_{band}"):
            table[name].unit = "mag"
    table["plx"] = (rng.normal(1, 0.5, n) * (kind == 0) + rng.normal(0, 0.2, n)).round(3)
    table["plx_err_lo"] = rng.uniform(0.1, 0.3, n).round(3)
    table["plx_err_hi"] = (1.4 * table["plx_err_lo"]).round(3)
    flux = rng.lognormal(0, 2, n).round(5)
    table["flux_20cm"] = np.maximum(flux, 0.1)
    table["l_flux_20cm"] = np.where(flux < 0.1, "<", "")
    words = np.array(KINDS)[kind].astype("U10")
    words[rng.permutation(n)[: 2 * n // 5]] = rng.choice(NO_CLASS, size=2 * n // 5)
    table["class"] = words

    for name in ("psfMag_u", "psfMagErr_u"):
        table[name][: n // 20] = -99.0
    for name in ("psfMag_g", "psfMagErr_g"):
        table[name].mask[n // 10 : n // 8] = True
    table["psfMagErr_r"][[n // 3, n // 3 + 1]] = -0.1
    return table


def main(folder: str | Path = ".") -> None:
    """Write the three files."""
    folder = Path(folder)
    table = survey()
    table.write(folder / "survey.csv", format="ascii.csv", overwrite=True)
    table.write(str(folder / "survey.vot"), format="votable", overwrite=True)
    tonight = survey(300, seed=1)
    del tonight["class"]
    tonight.write(folder / "tonight.csv", format="ascii.csv", overwrite=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
