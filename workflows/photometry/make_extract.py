"""Make catalogs/lsst-dc2.fits.gz: simulated LSST photometry of 30,674 galaxies, with redshifts.

    python workflows/photometry/make_extract.py FOLDER [--out catalogs]

FOLDER holds the two tables that the package pz-rail-base (MIT licence, LSST Dark Energy Science
Collaboration) ships in rail/examples_data/testdata; h5py and pyarrow read them. Every galaxy is
kept. To stay small, magnitudes are rounded to 1/512, their errors to 10 binary digits and redshifts
to 1/1024: at most .001 mag where the smallest error is .005. The same tables give the same bytes.

    mag_B, mag_err_B   magnitude in the band B and its 1-sigma error. Where a galaxy was not
                       detected the magnitude is 99, and the error column holds the 1-sigma depth
    redshift           the true one, of every galaxy
    redshift_spec      the same for galaxies of the training table brighter than i = 24.0, in place
                       of a spectroscopic survey; NaN for all others
"""

import argparse
import gzip
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
from astropy.io import fits
from astropy.table import Table

from gpal import InputError
from gpal.catalog.release_files import sha256

FILES = ("test_dc2_training_9816.pq", "test_dc2_validation_9816.hdf5")
SHA256 = (
    "2e4a4568f9d6b474db4134491ceaece0e09f70a0d36f6b753802229c0db34e20",
    "de4bebecea54ccc0c5aebd8f664e57d710f5b9b3c72c3fa670c99de229aa916b",
)
BANDS = "ugrizy"
SPECTROSCOPIC_LIMIT = 24.0  # i magnitude


def tables(folder: Path) -> list[pd.DataFrame]:
    """The training and the validation table."""
    import h5py

    for name, checksum in zip(FILES, SHA256, strict=True):
        if sha256(folder / name) != checksum:
            raise InputError(f"{folder / name} is another version: its SHA-256 is not {checksum}")
    training, validation = (folder / name for name in FILES)
    with h5py.File(validation) as file:
        columns = {key: np.asarray(column) for key, column in file["photometry"].items()}
    return [pd.read_parquet(training), pd.DataFrame(columns)]


def rounded(x: np.ndarray, digits: int) -> np.ndarray:
    """To so many binary digits."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.round(mantissa * 2**digits) / 2**digits, exponent).astype(np.float32)


def extract(folder: Path) -> bytes:
    """The compressed table."""
    training, validation = tables(folder)
    together = pd.concat([training, validation], ignore_index=True)
    table = Table({"id": together["id"].to_numpy(np.int64)})
    for band in BANDS:
        magnitude = together[f"mag_{band}_lsst"].to_numpy(np.float64)
        table[f"mag_{band}"] = (np.round(magnitude * 512) / 512).astype(np.float32)
        table[f"mag_err_{band}"] = rounded(together[f"mag_err_{band}_lsst"], 10)
        for name in (f"mag_{band}", f"mag_err_{band}"):
            table[name].unit = "mag"
    redshift = np.round(together["redshift"].to_numpy() * 1024) / 1024
    table["redshift"] = redshift.astype(np.float32)
    bright = together["mag_i_lsst"].to_numpy() < SPECTROSCOPIC_LIMIT
    observed = bright & (np.arange(len(table)) < len(training))
    table["redshift_spec"] = np.where(observed, redshift, np.nan).astype(np.float32)
    hdu = fits.table_to_hdu(table)
    hdu.name = "LSST_DC2"
    for key, value, comment in (
        ("GPALCAT", "lsst-dc2", "gpal catalog of which this is an extract"),
        ("TITLE", "LSST DC2", "simulated photometry"),
        ("ORIGFILE", FILES[0], "file this was extracted from, and"),
        ("ORIGFIL2", FILES[1], ""),
        ("ORIGSHA", SHA256[0], ""),
        ("ORIGSHA2", SHA256[1], ""),
        ("ORIGIN", "LSST DESC", "pz-rail-base 2.0.11"),
        ("LICENSE", "MIT", "(c) 2023 LSST Dark Energy Science Collaboration"),
        ("REFERENC", "LSST DESC et al. 2021, ApJS 253, 31", "cite this"),
    ):
        hdu.header[key] = (value, comment)
    hdu.header["HISTORY"] = "All rows, rounded; workflows/photometry/make_extract.py"
    memory = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(memory, checksum=False)
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=0) as stream:
        stream.write(memory.getvalue())
    return packed.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the two tables")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "catalogs")
    arguments = parser.parse_args()
    content = extract(arguments.folder)
    path = arguments.out / "lsst-dc2.fits.gz"
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
    print(f"{path}: {len(content) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
