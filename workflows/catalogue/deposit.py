"""The tables that one would deposit: of folders of `gpal classify`, with a CDS-style ReadMe.

    gpal classify 4fgl-dr4 --out dr4
    gpal classify fl16y --out fl16y
    python workflows/catalogue/deposit.py dr4 fl16y --out deposit

Of every folder, called after its release:

    4fgl-dr4.fits, .csv      the table as gpal wrote it: FITS has unit, UCD and description of every
                             column, both have the provenance
    4fgl-dr4.dat             the same in columns of fixed width, described byte by byte in ReadMe
    4fgl-dr4_metrics.json    scores of every model by cross-validation, settings, versions
    4fgl-dr4_*.png           figures

and once ReadMe, CITATION.cff and SHA256SUMS. Bytes and formats are those of astropy's writer of
machine-readable tables, and `Table.read("4fgl-dr4.dat", readme="ReadMe", format="ascii.cds")` reads
a table back. Numbers in .dat are rounded: positions to 1e-5 degrees, probabilities to 1e-4. A cell
is empty where there is no value; true is 1, false 0.
"""

from __future__ import annotations

import argparse
import io
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from astropy.io import ascii
from astropy.table import MaskedColumn, Table

from gpal.catalog.release_files import sha256
from gpal.errors import InputError, shown
from gpal.files.fits import fits_text
from gpal.files.json import read_json
from gpal.files.output import staged_folder
from gpal.jobs.probability_catalogue import read_probabilities

ROOT = Path(__file__).parents[2]
POSITIONS = ("ra", "dec", "glon", "glat", "position_error")
RULE = 80 * "="
TITLE = "Class probabilities of sources of Fermi-LAT catalogs"
ABSTRACT = """Every source of {releases} with a probability for each class and its standard
deviation, by a Gaussian-process classifier that takes the measurement errors of the catalog into
account (gpal {version}). Sources of a known class have out-of-fold probabilities, by a model that
was fitted without them. Settings and class fractions stand in the files *_metrics.json.
Probabilities sum to one over the classes told apart: a source that is none of them has them
too."""
KEYWORDS = "Keywords: Active gal. nuclei ; Pulsars ; Gamma rays"
CELLS = """1 is true and 0 is false. A cell is empty where there is no value. Positions are rounded
to 1e-5 degrees, probabilities to 1e-4; the FITS and CSV files have all digits."""
NOTE = """Scores are those of cross-validation on the labelled sources, mean +- standard error over
folds; what people ask about is fainter. Sources with outside_support = 1 are far from every
labelled source: their probabilities are extrapolated."""


LINE = 80 * "-"


def deposit(folders: Sequence[Path], out: Path) -> None:
    """Write the tables of some folders, with what describes them."""
    if out.is_dir() and any(out.iterdir()):
        raise InputError(
            f"'{shown(out)}' is not empty, and a deposit describes all that is in it; give a new"
            " folder"
        )
    made: dict[str, tuple[Path, dict[str, Any]]] = {}
    for folder in folders:
        metrics = read_json(folder / "metrics.json")
        name = metrics["provenance"]["catalog"]["catalog"]
        if name in made:
            raise InputError(f"'{folder}' is of {shown(name)}, as a folder before it; give one")
        made[name] = (folder, metrics)
    with staged_folder(out) as place:
        parts = []
        for name, (folder, _) in made.items():
            table = read_probabilities(folder / "probabilities.fits")
            parts.append(write_fixed(fixed(table), place / f"{name}.dat"))
            for ending in ("fits", "csv"):
                shutil.copy(folder / f"probabilities.{ending}", place / f"{name}.{ending}")
            shutil.copy(folder / "metrics.json", place / f"{name}_metrics.json")
            for figure in sorted(folder.glob("*.png")):
                shutil.copy(figure, place / f"{name}_{figure.name}")
        lines = readme([metrics for _, metrics in made.values()], parts)
        (place / "ReadMe").write_text("\n".join(lines) + "\n", encoding="ascii")
        shutil.copy(ROOT / "CITATION.cff", place)
        sums = [f"{sha256(path)}  {path.name}\n" for path in sorted(place.iterdir())]
        (place / "SHA256SUMS").write_text("".join(sums))


def fixed(table: Table) -> Table:
    """The columns as astropy's writer takes them: rounded, without NaN, without truth values."""
    made = Table()
    for name in table.colnames:
        column = table[name]
        ucd = column.meta.get("ucd")
        if not column.description or not ucd:
            raise InputError(f"column '{shown(name)}' has no description or no UCD; give it both")
        values = np.asarray(np.ma.getdata(column))
        missing = np.ma.getmaskarray(np.ma.asarray(column)).copy()
        if values.dtype.kind == "f":
            missing |= ~np.isfinite(values)
            values = np.where(missing, 0.0, values.astype(float))
        elif values.dtype.kind == "b":
            values = values.astype(int)
        elif values.dtype.kind == "U":
            missing |= values == ""
            values = np.array([fits_text(word) for word in values.tolist()], dtype=str)
        described = fits_text(f"{column.description} (UCD {ucd})")
        made[name] = MaskedColumn(values, mask=missing, description=described, unit=column.unit)
        if values.dtype.kind == "f":
            made[name].format = digits(name, values[~missing])
        if not missing.any():
            made[name] = made[name].filled()
    return made


def digits(name: str, values: np.ndarray) -> str:
    """How the numbers of a column are printed."""
    if name in POSITIONS:
        return ".5f"
    tiny = len(values) and np.abs(values).max() < 0.01
    return ".4e" if tiny else ".4f"


def write_fixed(table: Table, path: Path) -> tuple[str, int, int, list[str]]:
    """Write the rows alone; returns the file's name, bytes of a row, rows, and its description."""
    text = io.StringIO()
    ascii.write(table, text, format="mrt")
    head, rows = text.getvalue().split(f"Notes:\n{LINE}\n")
    path.write_text(rows, encoding="ascii")
    description = head.split(f"{RULE}\n", 1)[1].replace("table.dat", path.name)
    width = max(map(len, rows.splitlines()))
    return path.name, width, len(table), [line.rstrip() for line in description.splitlines()]


def readme(runs: Sequence[Mapping[str, Any]], parts: Sequence[Any]) -> list[str]:
    """In the order of the standard of CDS, https://cds.unistra.fr/doc/catstd.htx."""
    origins = [metrics["provenance"] for metrics in runs]
    titles = [origin["catalog"]["title"] for origin in origins]
    files = [("ReadMe", 80, ".", "this file")]
    files += [(n, w, k, f"sources of {t}") for (n, w, k, _), t in zip(parts, titles, strict=True)]
    lines = [TITLE, RULE, "Authors: ", RULE, KEYWORDS, "", "Abstract:"]
    lines += indented(ABSTRACT.format(releases=" and ".join(titles), version=origins[0]["gpal"]))
    lines += ["", "File Summary:", LINE, " FileName          Lrecl  Records  Explanations", LINE]
    lines += [f" {name:16s} {width:6} {rows:>8}  {what}" for name, width, rows, what in files]
    lines += [LINE, ""]
    for *_, description in parts:
        lines += [*description, ""]
    lines += ["Note on cells:", *indented(CELLS), ""]
    lines += ["Note on scores:", *indented(NOTE), ""]
    for metrics, title in zip(runs, titles, strict=True):
        for model in metrics["models"]:
            scores = {key: metrics[model][key] for key in ("nll", "error", "brier", "ece")}
            said = [f"{key} {of['mean']:.3f} +-{of['se']:.3f}" for key, of in scores.items()]
            lines += indented(f"{title}, {model}: {', '.join(said)}")
    lines += ["", "References:"]
    for origin in origins:
        catalog, paper = origin["catalog"], origin["catalog"].get("reference", {})
        cited = f"{paper.get('paper', '')} {paper.get('bibcode', '')}".strip()
        lines += indented(f"{catalog['title']}: {cited}. File {catalog['release_file']}, SHA-256")
        lines += [f"  {catalog['release_sha256']}"]
    lines += ["  gpal: see CITATION.cff", "", "History:"]
    for origin, title in zip(origins, titles, strict=True):
        versions = [f"{of} {origin[of]}" for of in ("gpal", "numpy", "tensorflow", "gpflow")]
        lines += indented(f"{origin['date'][:10]}: {title}, {', '.join(versions)}")
    return [line.rstrip() for line in [*lines, RULE, "(End)"]]


def indented(text: str) -> list[str]:
    """A paragraph, as wide as a line of a ReadMe may be."""
    return textwrap.wrap(" ".join(text.split()), 80, initial_indent="  ", subsequent_indent="  ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders that `gpal classify` made")
    parser.add_argument("--out", type=Path, default=Path("deposit"))
    arguments = parser.parse_args()
    deposit(arguments.folders, arguments.out)
    print(f"{arguments.out}: fill in the authors in ReadMe, and check its keywords")
