"""Damaged catalogs of every format: refused in one line, or read as their own rules say."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from catalog_rules import (
    MAPPING,
    csv_rules,
    ecsv_rules,
    fits_columns,
    fits_rules,
    parquet_rules,
    votable_rules,
)
from harness import Subject
from mutations import CELLS, damage_bytes, damage_text

from gpal.catalog import Catalog, load_catalog
from gpal.catalog.registry import catalogs_folder
from gpal.files.fits import write_fits

N = 60


def table() -> Table:
    """Sources with numbers that need all their digits, some missing, and words of all kinds."""
    rng = np.random.default_rng(0)
    made = Table(
        {
            "Name": [f"S J{i:03d}+{i}" for i in range(N)],
            "Type": np.tile(["bll", "PSR", "", "NA", "fsrq, sure", "bcu"], N // 6),
            "RA": rng.uniform(0, 360, N),
            "Dec": rng.uniform(-90, 90, N),
            "Index": rng.normal(2, 0.3, N),
            "e_Index": rng.lognormal(-3, 1, N),
            "Flux": rng.lognormal(-20, 3, N),
            "Flags": rng.integers(0, 3000, N),
            "Remark": np.tile(["", "bright", 'a "so-called" one', "β"], N // 4),
        }
    )
    made["Index"][[3, 17]] = made["e_Index"][[5, 17]] = np.nan
    return made


def values(catalog: Catalog) -> dict[str, Any]:
    return {
        "names": catalog.names.tolist(),
        "types": catalog.original_labels.tolist(),
        "labels": catalog.labels.tolist(),
        "X": catalog.X,
        "X_err": catalog.X_err,
        "ra": catalog.ra,
        "dec": catalog.dec,
    }


def read(path: Path) -> dict[str, Any]:
    return values(load_catalog(path, mapping=MAPPING))


def read_release(path: Path) -> dict[str, Any]:
    """Recognised by its header; its columns are those of the schema."""
    catalog = load_catalog(path)
    return {**values(catalog), "position_error": catalog.position_error}


def as_text(format: str) -> bytes:
    text = io.StringIO()
    table().write(text, format=format)
    return text.getvalue().encode()


def as_bytes(folder: Path, ending: str) -> bytes:
    path = folder / f"whole.{ending}"
    if ending == "fits":
        write_fits(table(), path)
    else:
        table().write(path, format="votable")
    return path.read_bytes()


def release(folder: Path) -> bytes:
    """Some rows of a real release, with checksums."""
    whole = Table.read(catalogs_folder() / "4fgl.fits.gz", hdu=1, mask_invalid=False)
    write_fits(whole[:200], folder / "some.fits")
    return (folder / "some.fits").read_bytes()


def damage_cells(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three cells of a CSV replaced, quoted as they must be: the file stays well formed."""
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    for _ in range(int(rng.integers(1, 4))):
        row = rows[rng.integers(1, len(rows))]
        row[rng.integers(len(row))] = CELLS[rng.integers(len(CELLS))]
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def damage_votable_cells(content: bytes, rng: np.random.Generator) -> bytes:
    """The same of a VOTable."""
    for _ in range(int(rng.integers(1, 4))):
        cells = list(re.finditer(rb"<TD>([^<]*)</TD>|<TD/>", content))
        cell = cells[rng.integers(len(cells))]
        word = f"<TD>{escape(CELLS[rng.integers(len(CELLS))])}</TD>".encode()
        content = content[: cell.start()] + word + content[cell.end() :]
    return content


def test_cells_of_a_csv(withstands):
    withstands(Subject("cells.csv", as_text("csv"), read, damage_cells, csv_rules))


def test_cells_of_a_votable(withstands, tmp_path):
    content = as_bytes(tmp_path, "vot")
    withstands(Subject("cells.vot", content, read, damage_votable_cells, votable_rules))


def test_csv(withstands):
    withstands(Subject("mine.csv", as_text("csv"), read, damage_text, csv_rules))


def test_csv_with_remarks(withstands):
    content = b"# made by me, with care\n# from 2 tables\n" + as_text("csv")
    withstands(Subject("remarks.csv", content, read, damage_text, csv_rules))


def test_compressed_csv(withstands):
    packed = gzip.compress(as_text("csv"), mtime=0)
    withstands(Subject("mine.csv.gz", packed, read, damage_bytes))


@pytest.mark.parametrize("damage", [damage_text, damage_bytes])
def test_ecsv(withstands, damage):
    withstands(Subject("mine.ecsv", as_text("ascii.ecsv"), read, damage, ecsv_rules))


@pytest.mark.parametrize("damage", [damage_text, damage_bytes])
def test_votable(withstands, tmp_path, damage):
    content = as_bytes(tmp_path, "vot")
    withstands(Subject("mine.vot", content, read, damage, votable_rules))


@pytest.mark.parametrize("checksums", [True, False])
def test_parquet(withstands, tmp_path, checksums):
    path = tmp_path / "whole.parquet"
    table().to_pandas().to_parquet(path, write_page_checksum=checksums)
    withstands(Subject("mine.parquet", path.read_bytes(), read, damage_bytes, parquet_rules))


def test_fits(withstands, tmp_path):
    withstands(Subject("mine.fits", as_bytes(tmp_path, "fits"), read, damage_bytes, fits_rules))


def test_fits_of_a_release(withstands, tmp_path):
    """What gpal keeps of its columns, as they stand."""
    names = ("Source_Name", "CLASS1", "RAJ2000", "DEJ2000", "LP_Index", "Unc_LP_Index", "Flux1000")

    def columns(path: Path) -> dict[str, Any]:
        kept = load_catalog(path).table
        return {name: np.array(kept[name].tolist()) for name in names}

    def rules(content: bytes) -> dict[str, Any]:
        return {name: np.array(cells) for name, cells in fits_columns(content, *names).items()}

    withstands(Subject("release.fits", release(tmp_path), columns, damage_bytes, rules))


def test_fits_without_checksums(withstands, tmp_path):
    """Nothing says what the values were: one clear line or some table is all that can be asked."""

    def whether(path: Path) -> bool:
        return len(read_release(path)["names"]) > 0

    with fits.open(io.BytesIO(release(tmp_path))) as hdus:
        for hdu in hdus:
            del hdu.header["CHECKSUM"], hdu.header["DATASUM"]
        hdus.writeto(tmp_path / "plain.fits")
    content = (tmp_path / "plain.fits").read_bytes()
    withstands(Subject("plain.fits", content, whether, damage_bytes))


def test_extract(withstands):
    content = (catalogs_folder() / "4fgl.fits.gz").read_bytes()
    withstands(Subject("4fgl.fits.gz", content, read_release, damage_bytes))
