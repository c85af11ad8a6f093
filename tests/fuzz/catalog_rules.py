"""What a small catalog holds, read by the rules of its format alone: nothing here is gpal's.

Every function takes the bytes of a file and raises ValueError where the rules refuse it.
"""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any
from xml.dom import minidom

import numpy as np
import pyarrow.parquet
import yaml
from astropy.io import fits

__all__ = [
    *("MAPPING", "csv_rules", "ecsv_rules", "fits_columns", "fits_rules", "parquet_rules"),
    "votable_rules",
]

MAPPING = {
    **{"id": "Name", "class": "Type", "ra": "RA", "dec": "Dec", "sentinels": []},
    "features": {
        "index": {"column": "Index", "error": "e_Index"},
        "flux": {"column": "Flux", "error": "none"},
    },
}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOTHING = {
    *("", "na", "n/a", "nan", "-nan", "null", "none", "-", "--"),
    *("<na>", "#n/a", "#na", "#n/a n/a"),
}


def csv_rules(content: bytes) -> dict[str, Any]:
    lines = _lines(content)
    remarks = []
    while lines and (lines[0].startswith("#") or not lines[0].strip("\r\n")):
        remarks.append(lines.pop(0))
    remarks = [line for line in remarks if line.startswith("#")]
    if remarks and lines and any(_is_finite(c) for c in lines[0].rstrip("\r\n").split(",")):
        lines.insert(0, remarks[-1])  # a header that is a remark itself
    return _catalog(_delimited(lines, ","))


def ecsv_rules(content: bytes) -> dict[str, Any]:
    lines = _lines(content)
    head = [line for line in lines[: _first_row(lines)] if line.startswith("# ")]
    if not re.fullmatch(r"# %ECSV \d+(\.\d+)*\s*", head[0] if head else ""):
        raise ValueError("no header of ECSV")
    try:
        about = yaml.safe_load("".join(line[2:] for line in head[1:]))
        declared = {str(column["name"]): column["datatype"] for column in about["datatype"]}
    except (yaml.YAMLError, TypeError, KeyError) as error:
        raise ValueError(f"no description of columns: {error}") from None
    columns = _delimited(lines[_first_row(lines) :], about.get("delimiter", " "))
    if list(columns) != list(declared):
        raise ValueError("the header of the table is not that of the description")
    return _catalog(columns)


def votable_rules(content: bytes) -> dict[str, Any]:
    try:
        document = minidom.parseString(content)
    except Exception as error:  # expat's, and those of encodings
        raise ValueError(f"no XML: {error}") from None
    names = [f.getAttribute("ID") or f.getAttribute("name") for f in _elements(document, "FIELD")]
    rows = [
        ["".join(part.data for part in cell.childNodes) for cell in _elements(row, "TD")]
        for row in _elements(document, "TR")
    ]
    return _catalog(_columns([names, *rows]))


def parquet_rules(content: bytes) -> dict[str, Any]:
    """As Arrow reads it, the checksums of its pages verified."""
    try:
        table = pyarrow.parquet.read_table(
            io.BytesIO(content), page_checksum_verification=True, use_threads=False
        )
        columns = {name: table[name].to_pylist() for name in MAPPING_COLUMNS}
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise ValueError(f"no Parquet: {error}") from None
    return _catalog(
        {name: ["" if c is None else str(c) for c in cells] for name, cells in columns.items()}
    )


def fits_rules(content: bytes) -> dict[str, Any]:
    """The first table as astropy reads it, if astropy finds no checksum wrong."""
    columns = fits_columns(content, *MAPPING_COLUMNS)
    return _catalog({name: list(map(str, cells)) for name, cells in columns.items()})


def fits_columns(content: bytes, *names: str) -> dict[str, list]:
    """Columns of the first table. In ones' complement two changes can make up for each other: then
    no checksum shows them."""
    try:
        with fits.open(io.BytesIO(content)) as hdus:
            if any(0 in (hdu.verify_checksum(), hdu.verify_datasum()) for hdu in hdus):
                raise ValueError("a checksum is wrong")
            return {name: hdus[1].data[name].tolist() for name in names}
    except Exception as error:  # astropy's are many
        raise ValueError(f"no FITS: {error}") from None


MAPPING_COLUMNS = ("Name", "Type", "RA", "Dec", "Index", "e_Index", "Flux")


def _lines(content: bytes) -> list[str]:
    if b"\0" in content:
        raise ValueError("NUL in a text")
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return io.StringIO(text, newline="").readlines()


def _first_row(lines: list[str]) -> int:
    return next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))


def _delimited(lines: list[str], delimiter: str) -> dict[str, list[str]]:
    try:
        rows = [row for row in csv.reader(iter(lines), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    return _columns(rows)


def _columns(rows: list[list[str]]) -> dict[str, list[str]]:
    if len(rows) < 2:
        raise ValueError("no rows")
    header, *rest = rows
    if any(len(row) != len(header) for row in rest):
        raise ValueError("rows of different lengths")
    if len(set(header)) < len(header):
        raise ValueError("two columns of one name")
    return dict(zip(header, map(list, zip(*rest))))


def _catalog(columns: dict[str, list[str]]) -> dict[str, Any]:
    """The sources of MAPPING: errors infinite where a value or its error is missing."""
    missing = set(MAPPING_COLUMNS) - set(columns)
    if missing:
        raise ValueError(f"no column {missing}")
    names, types = (list(map(_word, columns[key])) for key in ("Name", "Type"))
    if "" in names or len(set(names)) < len(names):
        raise ValueError("an identifier is empty, or there twice")
    value = {key: list(map(_number, columns[key])) for key in MAPPING_COLUMNS[2:]}
    with_value = (e for x, e in zip(value["Index"], value["e_Index"]) if math.isfinite(x))
    if any(error < 0 and math.isfinite(error) for error in with_value):
        raise ValueError("a negative error")
    X = np.array([value["Index"], value["Flux"]]).T
    X_err = np.array([value["e_Index"], [0.0] * len(names)]).T
    unknown = ~(np.isfinite(X) & np.isfinite(X_err))
    return {
        "names": names,
        "types": types,
        "labels": [word.lower() for word in types],
        "X": np.where(unknown, np.nan, X),
        "X_err": np.where(unknown, np.inf, X_err),
        "ra": _angle(value["RA"], 360),
        "dec": _angle(value["Dec"], 90),
    }


def _word(cell: str) -> str:
    word = cell.strip(" \t\u00a0")
    if not word.isprintable() or "\ufffd" in word or len(word) > 200:
        raise ValueError(f"no name: {word[:80]!r}")
    return word


def _number(cell: str) -> float:
    word = cell.strip(" \t\u00a0")
    if word.lower() in NOTHING:
        return math.nan
    if re.fullmatch(r"[+-]?inf(inity)?", word.lower()):
        return float(word)
    value = float(word) if NUMBER.fullmatch(word) else math.inf
    if math.isinf(value):
        raise ValueError(f"no number: {word[:80]!r}")
    return value


def _is_finite(cell: str) -> bool:
    try:
        return not math.isnan(_number(cell))
    except ValueError:
        return False


def _angle(degrees: list[float], limit: float) -> np.ndarray:
    values = np.array([x if math.isfinite(x) else math.nan for x in degrees])
    if (np.abs(values) > limit).any():
        raise ValueError("an angle that is none")
    return values


def _elements(node: Any, name: str) -> list[Any]:
    return [e for e in node.getElementsByTagName("*") if e.tagName.rpartition(":")[2] == name]
