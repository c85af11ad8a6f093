"""Make the small extracts of Fermi-LAT releases that ship with gpal, from the full FITS files.

    python workflows/make_extracts.py FOLDER [--out catalogs] [--releases 4fgl 4fgl-dr4 fl16y]

FOLDER holds the full files (gll_psc_v20.fit, ...), as NASA's Fermi Science Support Center
publishes them and as the package fermipy ships them in fermipy/data/catalogs. Every source is kept,
and of the columns those that the schema names. The same full files give the same bytes.
"""

import argparse
import gzip
import io
import os
from pathlib import Path

from astropy.io import fits

from gpal import InputError
from gpal.catalog.registry import find_schema
from gpal.catalog.release_files import sha256


def extract(full: Path, name: str) -> bytes:
    """The compressed extract of one release."""
    schema = find_schema(name)
    if sha256(full) != schema.sha256:
        raise InputError(f"{full} is not {schema.title}: its SHA-256 differs from {name}.toml")
    columns = {column.split("[")[0] for column in schema.columns()}
    with fits.open(full) as hdus:
        source = hdus[schema.hdu]
        kept = [column for column in source.columns if column.name in columns]
        missing = columns - {column.name for column in kept}
        if missing:
            raise InputError(f"{full} has no column {', '.join(sorted(missing))}")
        table = fits.BinTableHDU.from_columns(kept, name=schema.hdu)
        for column in kept:  # what the columns mean
            ucd = source.header.get(f"TUCD{source.columns.names.index(column.name) + 1}")
            if ucd:
                table.header[f"TUCD{table.columns.names.index(column.name) + 1}"] = ucd
        primary = hdus[0].header
        for key, value, comment in (
            ("GPALCAT", name, "gpal catalog of which this is an extract"),
            ("TITLE", schema.title, "release"),
            ("ORIGFILE", schema.file, "file this was extracted from"),
            ("ORIGSHA", schema.sha256, ""),
            ("ORIGDATE", primary.get("DATE", ""), "date of that file"),
            ("ORIGVERS", primary.get("VERSION", ""), "version of that file"),
            ("ORIGURL", schema.url, ""),
            ("ORIGIN", "NASA/Fermi-LAT", "data of the Fermi-LAT Collaboration"),
            ("REFERENC", schema.reference["paper"], "cite this"),
            ("EQUINOX", 2000.0, "equinox of the positions"),
            ("RADESYS", "FK5", "frame of the positions"),
        ):
            table.header[key] = (value, comment)
        table.header["HISTORY"] = "All rows; columns selected by gpal, workflows/make_extracts.py"
        table.header["COMMENT"] = "Public data of NASA (Fermi Science Support Center)"
        memory = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), table]).writeto(memory, checksum=False)
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=0) as stream:
        stream.write(memory.getvalue())
    return packed.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the full FITS files")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "catalogs")
    parser.add_argument("--releases", nargs="+", default=["4fgl", "4fgl-dr4", "fl16y"])
    arguments = parser.parse_args()
    for name in arguments.releases:
        content = extract(arguments.folder / find_schema(name).file, name)
        path = arguments.out / f"{name}.fits.gz"
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
        print(f"{path}: {len(content) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
