"""Damaged schemas and error calibrations: refused in one line, or read as TOML says.

A schema's rules are those of TOML: every key that gpal took must be there, with that value.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from catalog_rules import MAPPING, csv_rules
from harness import Subject
from mutations import damage_bytes, damage_text

from gpal.catalog import load_catalog
from gpal.catalog.registry import catalogs_folder, find_schema
from gpal.catalog.schema import UNDECIDED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "Name,Type,RA,Dec,Index,e_Index,Flux\n" + "".join(
    f"S{i},{'bll' if i % 2 else 'psr'},{i},{i},{i / 7},{0.1 + i / 70},{i / 3}\n" for i in range(20)
)
SCHEMA = """\
title = "Survey"   # of stars
id = "Name"
class = "Type"
ra = "RA"
dec = "Dec"
sentinels = [-99, 9.99]

[classes]
default = ["bll", "psr"]
undecided = ["?", "none"]
groups = { agn = ["bll", "fsrq"] }

[features.index]
column = "Index"
error = "e_Index"
label = "photon index Γ"
floor = 0.5

[features.flux]
column = "Flux"
error = "none"
above = 0

[features.colour]
difference = ["Index", "Flux"]
error = ["e_Index", "none"]
error_kind = "variance"
negative_error = "missing"

[features.fraction]
ratio = ["Flux", "Index"]
transform = "asinh"
softening = 0.25
sentinels = [0]

[error_calibration.scale]
index = 1.25
"""
CALIBRATION = """\
[error_calibration.scale]
index = 1.250
flux = 2.000

[error_calibration.correlation]
"index,flux" = 0.140
"""


def toml(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except RecursionError as error:
        raise ValueError(str(error)) from None


def said(path: Path) -> dict[str, Any]:
    """What gpal takes from a schema, by its keys in TOML."""
    schema = find_schema(path)
    taken = {"title": schema.title, "id": schema.id, "class": schema.class_column}
    taken |= {"ra": schema.ra, "dec": schema.dec, "default": list(schema.classes.default)}
    taken["features"] = {
        name: [
            *(f.column, f.error, f.floor, f.above, f.transform, f.label, f.hardness),
            *(f.difference, f.ratio, f.softening, f.sentinels, f.error_kind, f.negative_error),
        ]
        for name, f in schema.features.items()
    }
    taken |= {"sentinels": schema.sentinels, "undecided": schema.classes.undecided}
    calibration = schema.error_calibration
    taken["scale"] = {} if calibration is None else dict(calibration.scale)
    return taken


def schema_rules(content: bytes) -> dict[str, Any]:
    read = toml(content)
    taken = {key: read.get(key, "") for key in ("title", "id", "class", "ra", "dec")}
    taken["default"] = [name.lower() for name in read.get("classes", {}).get("default", [])]
    keys = {"column": "", "error": None, "floor": None, "above": None, "transform": "none"}
    keys |= {"label": "", "hardness": [], "difference": [], "ratio": [], "softening": None}
    keys |= {"sentinels": None, "error_kind": "sigma", "negative_error": "forbid"}
    entries = read.get("features", {})
    named = {name: {"column": e} if isinstance(e, str) else e for name, e in entries.items()}
    taken["features"] = {name: [e.get(k, keys[k]) for k in keys] for name, e in named.items()}
    taken["scale"] = read.get("error_calibration", {}).get("scale", {})
    taken["sentinels"] = read.get("sentinels")
    words = read.get("classes", {}).get("undecided")
    taken["undecided"] = UNDECIDED if words is None else [word.lower() for word in words]
    return taken


def scaled(path: Path) -> dict[str, Any]:
    table = path.with_name("mine.csv")
    table.write_text(TABLE)
    with warnings.catch_warnings():  # where the damage took a feature's factor
        warnings.filterwarnings("ignore", message="the error calibration has no factor for")
        sources = load_catalog(table, mapping=MAPPING, error_scale=path).measurements
    return {"X_err": sources.X_err, "covariance": sources.covariance}


def calibration_rules(content: bytes) -> dict[str, Any]:
    read = toml(content)["error_calibration"]
    scale = {name: read.get("scale", {}).get(name, 1.0) for name in ("index", "flux")}
    error = csv_rules(TABLE.encode())["X_err"] * list(scale.values())
    if "correlation" not in read or not read["correlation"]:
        return {"X_err": error, "covariance": None}
    pairs = {
        tuple(part.strip() for part in k.split(",")): v for k, v in read["correlation"].items()
    }
    between = 0.0
    for pair, value in pairs.items():
        if set(pair) == {"index", "flux"}:
            between = value
    if not math.isfinite(between):
        raise ValueError("no correlation")
    correlation = np.array([[1.0, between], [between, 1.0]])
    return {"X_err": error, "covariance": correlation * error[:, :, None] * error[:, None, :]}


@pytest.mark.parametrize("damage", [damage_text, damage_bytes])
def test_schema(withstands, damage):
    withstands(Subject("mine.toml", SCHEMA.encode(), said, damage, schema_rules))


def test_schema_that_extends_another(withstands):
    """A release's own: what it inherits stays what it is."""
    content = (catalogs_folder() / "4fgl.toml").read_bytes()

    def own(path: Path) -> dict[str, Any]:
        schema = find_schema(path)
        return {"title": schema.title, "sha256": schema.sha256, "rows": schema.rows}

    def rules(content: bytes) -> dict[str, Any]:
        read = toml(content)
        return {
            key: read.get(key, 0 if key == "rows" else "") for key in ("title", "sha256", "rows")
        }

    withstands(Subject("mine.toml", content, own, damage_text, rules))


@pytest.mark.parametrize("damage", [damage_text, damage_bytes])
def test_error_calibration(withstands, damage):
    withstands(Subject("errors.toml", CALIBRATION.encode(), scaled, damage, calibration_rules))
